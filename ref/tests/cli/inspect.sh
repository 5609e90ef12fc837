#!/bin/bash
# Parameter and multiply-add counts of the published models at full width.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

value() { # value KEY: of the last inspection, numbers as printed
    grep -m1 "^  \"$1\":" "$box/stdout" | sed -E 's/^[^:]*: *"?([^",]*)"?,?$/\1/'
}
# counts ARCH PARAMETERS SIZE GMAC: GMAC compared with as many digits as given.
counts() {
    runs "$1 $3" inspect --model synth:$1 --size $3 --json
    check "$1 parameters" same "$(value parameters)" "$2"
    local digits=${4#*.}
    check "$1 at $3" same "$(printf "%.${#digits}f" "$(value gmacs)")" "$4"
}
extent=${1:-full}
[ $extent = short ] || counts sd15 49490199 256x256 311.09
counts sd15 49490199 512x512 1257.26
check "convolutions" same "$(printf %.2f "$(value conv_macs)e-9")" 1235.78
check "attention projections" same "$(printf %.2f "$(value attention_projection_macs)e-9")" 4.29
check "attention" same "$(printf %.2f "$(value attention_macs)e-9")" 17.18
# 256 channels in and 256 up-sampled (or 256 + 128 + 128) at 512x512.
check "peak" same "$(value peak_bytes)" $((512 << 20))
if [ $extent = full ]; then
    counts sd15 49490199 1024x1024 5235.20
    counts flux1 49545475 512x512 1257.49
fi
counts taesd 1222531 256x256 17.7
counts taesd 1222531 512x512 70.7
counts taesd 1222531 1024x1024 282.7
check "halo of TAESD" grep -q '"low": 19' "$box/stdout"
check "TAESD has nothing global" grep -q '"global_operations": 0' "$box/stdout"

runs "text" inspect --model synth:sd15,div=8
for part in "architecture  sd15" "1x4x64x64" "1x3x512x512" "GMAC" "halo" "conv2d" "attention" "decoder"; do
    check "text says $part" has "$box/stdout" "$part"
done
runs "wide" inspect --model synth:taesd,div=8 --size 64x32 --json
check "width comes first in --size" grep -q '"output_shape": ' "$box/stdout"
check "latents are rows by columns" same "$(grep -A5 '"latent_shape"' "$box/stdout" | tr -d ' \n')" '"latent_shape":[1,4,4,8],'
[ $extent = full ] && finish 39
finish 30
