#!/bin/bash
# How far each tiling scheme is from the undivided decode on real latents with
# trained weights, in the order that docs/tiling.md shows: independent tiles have
# a tone each, shared statistics nearly none, exact tiling no difference.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
unset OMP_NUM_THREADS
real=${VAEPROOF_SHARED:-}/real
if [ ! -r "$real/taef2_decoder.safetensors" ]; then
    echo "skipped: no trained weights in $real (set VAEPROOF_SHARED_DIR when configuring)"
    exit 77
fi
[ "${1:-full}" = full ] || { echo "skipped: eight decodes of 512x512 take minutes under a sanitizer"; exit 77; }
D=(decode --model "$real/taef2_decoder.safetensors" --latents "$real/taef2_latents.safetensors#astronaut" --tile 192)
declare -A tone rms
value() { grep -m1 "\"$1\":" s.json | sed -E 's/^[^:]*: *"?([^",]*)"?,?$/\1/'; }
for mode in diffusers comfy sdcpp two-pass two-pass-fixed exact; do
    runs $mode "${D[@]}" --tile-mode $mode --compare-to-untiled --stats s.json
    tone[$mode]=$(value tone_step) rms[$mode]=$(value rms)
    check "$mode: several tiles" test "$(value tiles_done)" -gt 1
    echo "$mode: tone step ${tone[$mode]}, rms ${rms[$mode]}, PSNR $(value psnr), SSIM $(value ssim), identical $(value identical)"
done
check "exact is the undivided decode" same "$(value identical)" true
less() { awk -v a="$1" -v b="$2" -v f="$3" 'BEGIN { exit !(a < b * f) }'; }
for mode in diffusers comfy; do
    check "$mode has tone steps" less 0.05 "${tone[$mode]}" 1
    check "two-pass: smaller steps than $mode" less "${tone[two-pass]}" "${tone[$mode]}" 0.2
    check "two-pass: smaller error than $mode" less "${rms[two-pass]}" "${rms[$mode]}" 0.5
done
check "two-pass-fixed: smaller steps still" less "${tone[two-pass-fixed]}" "${tone[two-pass]}" 0.1
check "two-pass-fixed: smaller error still" less "${rms[two-pass-fixed]}" "${rms[two-pass]}" 0.1
finish 21
