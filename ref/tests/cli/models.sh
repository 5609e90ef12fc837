#!/bin/bash
# synth, latents and convert: every architecture, both layouts, every type.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

sha() { "$vaeref" inspect --model "$1" --json | grep -m1 weights_sha256; }
D=(--latents seed:3,2x3)
archs=(sd15 sdxl sd3 flux1 flux2 taesd taesdxl taesd3 taef1 taef2 taesana)

for a in "${archs[@]}"; do
    runs "synth $a" synth --arch $a --div 16 --seed 4 -o $a.safetensors
    check "says what it wrote" has "$box/stdout" "$a.safetensors"
    runs "synth $a again" synth --arch $a --div 16 --seed 4 -o again.safetensors
    check "$a: same seed, same bytes" cmp $a.safetensors again.safetensors
    runs "synth $a other seed" synth --arch $a --div 16 --seed 5 -o other.safetensors
    checks=$((checks + 1))
    cmp -s $a.safetensors other.safetensors && fail "$a: seeds 4 and 5 give the same bytes"
    runs "$a decodes" decode --model $a.safetensors "${D[@]}" -o $a.npy
    runs "$a decodes unwritten" decode --model synth:$a,seed=4,div=16 "${D[@]}" -o direct.npy
    check "$a: file and synth: are the same model" cmp $a.npy direct.npy
    runs "latents for $a" latents --arch $a --latent-size 2x3 --seed 3 -o z.npy
    runs "$a decodes those" decode --model $a.safetensors --latents z.npy -o z-out.npy
    check "$a: seed: and the latents command agree" cmp $a.npy z-out.npy
done

for a in sd15 sd3 flux2 taesd taef2; do
    runs "synth $a original" synth --arch $a --div 16 --seed 4 --layout original -o $a-o.safetensors
    runs "$a original decodes" decode --model $a-o.safetensors "${D[@]}" -o o.npy
    check "$a: layouts decode alike" cmp $a.npy o.npy
    runs "$a to original" convert --model $a.safetensors --layout original -o o.safetensors
    check "$a: converted is written alike" cmp o.safetensors $a-o.safetensors
    runs "$a back" convert --model o.safetensors --layout diffusers -o back.safetensors
    check "$a: there and back" cmp back.safetensors $a.safetensors
    check "$a: one digest in both layouts" same "$(sha $a.safetensors)" "$(sha $a-o.safetensors)"
done

for t in F64 F32 F16 BF16 F8_E4M3 F8_E5M2; do
    runs "convert to $t" convert --model sd15.safetensors --dtype $t -o t.safetensors
    check "$t is in the file" grep -qaF "\"dtype\":\"$t\"" t.safetensors
    runs "$t decodes" decode --model t.safetensors "${D[@]}" -o t.npy
    runs "synth $t" synth --arch sd15 --div 16 --seed 4 --dtype $t -o s.safetensors
    check "$t: synth and convert agree" cmp s.safetensors t.safetensors
done
check "F64 holds F32 exactly" bash -c "'$vaeref' convert --model sd15.safetensors --dtype F64 -o w.safetensors &&
    '$vaeref' decode --model w.safetensors ${D[*]} -o w.npy && cmp w.npy sd15.npy"

# A value of 1e6 in place of the first weight: beyond F16, within BF16.
cp sd15.safetensors big.safetensors
at=$((8 + $(od -An -tu8 -N8 big.safetensors | tr -d ' ')))
printf '\x00\x24\x74\x49' | dd of=big.safetensors bs=1 seek=$at conv=notrunc 2>/dev/null
refuses 1 "a weight F16 cannot hold" "range of F16" "BF16" -- convert --model big.safetensors --dtype F16 -o f16.safetensors
runs "BF16 holds it" convert --model big.safetensors --dtype BF16 -o bf16.safetensors

runs "latents as safetensors" latents --model sd15.safetensors --size 24x16 --seed 3 -o z.safetensors
runs "they decode by name" decode --model sd15.safetensors --latents z.safetensors#latents -o z.npy
check "pixels and cells agree" cmp z.npy sd15.npy
runs "raw latents of FLUX.2" latents --arch flux2 --latent-space raw --latent-size 4x6 -o raw.npy
check "have 32 channels" grep -qaF "(1, 32, 4, 6)" raw.npy
runs "decode in raw space" decode --model flux2.safetensors --latent-space raw --latents raw.npy -o raw-out.npy
check "8 pixels a cell" grep -qaF "(1, 3, 32, 48)" raw-out.npy
finish 180
