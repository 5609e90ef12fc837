#!/bin/bash
# Trained weights (TAEF2) decode to the right pictures, judged by an independent
# float64 decode that lies beside them.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
unset OMP_NUM_THREADS
real=${VAEPROOF_SHARED:-}/real
if [ ! -r "$real/taef2_decoder.safetensors" ]; then
    echo "skipped: no trained weights in $real (set VAEPROOF_SHARED_DIR when configuring)"
    exit 77
fi
compare=$VAEPROOF_BIN/../tests/cli_compare
M=(decode --model "$real/taef2_decoder.safetensors")
names=(coffee chelsea)
[ "${1:-full}" = full ] || names=(chelsea)
for name in "${names[@]}"; do
    runs "$name" "${M[@]}" --latents "$real/taef2_latents.safetensors#$name" -o $name.npy
    check "$name equals float64" "$compare" tensors $name.npy "$real/taef2_expected_f64.safetensors#$name" 2e-6
    cat "$box/check"
done
if [ "${1:-full}" = full ]; then
    runs "astronaut" "${M[@]}" --latents "$real/taef2_latents.safetensors#astronaut" -o a.png
    check "astronaut is the same picture" "$compare" pictures a.png "$real/taef2_astronaut_f64.png" 1 0.999
    cat "$box/check"
fi
# The comparison can say no: float32 is never this close to float64.
checks=$((checks + 1))
"$compare" tensors chelsea.npy "$real/taef2_expected_f64.safetensors#chelsea" 1e-9 >/dev/null 2>&1 &&
    fail "the comparison passes anything"
[ "${1:-full}" = full ] && finish 7
finish 3
