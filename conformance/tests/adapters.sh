#!/bin/bash
# Adapters and the example: each judged conformant on what it claims, or skipped by itself
# with its reason. One thing must run: the example is always there.
# SPDX-License-Identifier: MIT
set -u
export OMP_WAIT_POLICY=passive
vaecheck=$VAEPROOF_BIN/vaecheck adapters=$VAEPROOF_SOURCE/conformance/adapters
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
failures=0 ran=0
judge() { # NAME ARGS...
    local name=$1 code
    shift
    "$vaecheck" -q --seed 0x5eed "$@" >"$box/out" 2>&1
    code=$?
    case $code in
        0) ran=$((ran + 1)); tail -1 "$box/out" ;;
        77) echo "$name: not judged: $(grep -o 'does not open: .*' "$box/out")" ;;
        *) failures=$((failures + 1)); echo "FAIL: $name: exit $code"; "$vaecheck" "$@" 2>&1 | cut -c1-300 | head -8 ;;
    esac
}
judge example --backend minimal
judge torch --backend "py:$adapters/torch_backend.py" --case '[aobd]*' --contract f32
judge diffusers --backend "py:$adapters/diffusers_backend.py"
judge onnxruntime --backend "py:$adapters/onnxruntime_backend.py" --case '[abd]*' # its sigmoid is no 4 ulp: adapters/README.md
printf '#!/bin/sh\nexec "%s/vaeref" decode -q -m "$1/model.safetensors" --arch "$2" --policy f32 -l "$1/latents.npy" -o "$1/picture.npy"\n' \
    "$VAEPROOF_BIN" >"$box/decode.sh"
chmod +x "$box/decode.sh"
if /usr/bin/python3 -c 'import numpy' 2>/dev/null; then
    judge command --backend "py:$adapters/command_backend.py" --option "command=$box/decode.sh {folder} {arch}" --level L3
    "$vaecheck" -q --backend "py:$adapters/command_backend.py" --option "command=false" --level L3 >"$box/out" 2>&1
    [ $? = 1 ] || { failures=$((failures + 1)); echo "FAIL: a command that fails is no decoder"; }
fi
echo "$ran judged, $failures failed"
[ $failures = 0 ] && [ $ran -ge 1 ]
