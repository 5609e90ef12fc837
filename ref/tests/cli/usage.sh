#!/bin/bash
# Wrong command lines: exit 2, one line that says what would be right.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

u() { refuses 2 "$@"; }
M=(--model synth:taesd,div=16)
L=(--latents seed:1,2x2)

u "no command" "no command given" decode inspect plan synth latents convert doctor --
u "unknown command" "unknown command 'decoed'" decode inspect plan synth latents convert doctor -- decoed
u "option before command" "unknown option '--quiet'" -- --quiet decode
u "hostile command name" "unknown command 'a?b'" -- $'a\nb'

u "decode without model" "--model" -- decode "${L[@]}"
u "decode without latents" "--latents" -- decode "${M[@]}"
u "unknown option" "unknown option '--modle'" "decode --help" -- decode --modle x
u "unknown short option" "unknown option '-z'" -- decode -z
u "option without value" "'--model' needs a value" FILE -- decode --model
u "value for a flag" "'--quiet' takes no value" -- decode "${M[@]}" "${L[@]}" --quiet=yes
u "ambiguous option" "'--s' is ambiguous" -- decode --s 1
u "stray argument" "unexpected argument 'out.png'" -- decode "${M[@]}" "${L[@]}" out.png
u "unknown policy" "--policy 'fp16'" golden truth f32 f16 bf16 -- decode "${M[@]}" "${L[@]}" --policy fp16
u "unknown order" "--order 'lanes4'" lanes8 pairwise -- decode "${M[@]}" "${L[@]}" --order lanes4
u "threads 0" "--threads '0'" "from 1" -- decode "${M[@]}" "${L[@]}" --threads 0
u "threads text" "--threads '2x'" -- decode "${M[@]}" "${L[@]}" --threads 2x
u "memory without unit we know" "--memory-limit '2GB'" GiB -- decode "${M[@]}" "${L[@]}" --memory-limit 2GB
u "memory 0" "--memory-limit '0'" -- decode "${M[@]}" "${L[@]}" --memory-limit 0
u "memory beyond 64 bits" "--memory-limit" -- decode "${M[@]}" "${L[@]}" --memory-limit 99999999999TiB
u "scaling 0" "--scaling-factor 0" -- decode "${M[@]}" "${L[@]}" --scaling-factor 0
u "scaling nan" "--scaling-factor 'nan'" -- decode "${M[@]}" "${L[@]}" --scaling-factor nan
u "shift text" "--shift-factor 'x'" -- decode "${M[@]}" "${L[@]}" --shift-factor x
u "unknown arch" "--arch 'sd9'" sd15 flux2 taesd -- decode "${M[@]}" "${L[@]}" --arch sd9
u "unknown space" "--latent-space 'pixel'" diffusion raw -- decode "${M[@]}" "${L[@]}" --latent-space pixel
u "unknown extension" "'x.jpg'" .png .npy .safetensors -- decode "${M[@]}" "${L[@]}" -o x.jpg
u "no extension" "'x'" .png -- decode "${M[@]}" "${L[@]}" -o x
u "extension alone" "'.png'" -- decode "${M[@]}" "${L[@]}" -o .png
u "empty taps" "--taps ''" folder -- decode "${M[@]}" "${L[@]}" --taps ''
u "output is stats" "same file" -- decode "${M[@]}" "${L[@]}" -o x.npy --stats x.npy
u "seed without size" "'seed:1'" "seed:N,HxW" -- decode "${M[@]}" --latents seed:1
u "seed text" "seed 'one'" -- decode "${M[@]}" --latents seed:one,2x2
u "seed size 0" "'0x2'" -- decode "${M[@]}" --latents seed:1,0x2
u "seed batch 0" "'0'" -- decode "${M[@]}" --latents seed:1,2x2,n=0
u "seed surplus" "seed:N,HxW" -- decode "${M[@]}" --latents seed:1,2x2,n=1,m=2

u "inspect without model" "--model" -- inspect
u "inspect size text" "--size 'big'" 512x512 -- inspect "${M[@]}" --size big
u "inspect size negative" "--size '-8x8'" -- inspect "${M[@]}" --size -8x8
u "inspect odd size" "width 513" 512 520 -- inspect "${M[@]}" --size 513x512
u "inspect tiny size" "height 3" "nearest is 8" -- inspect "${M[@]}" --size 8x3
u "inspect frames 0" "--frames '0'" -- inspect "${M[@]}" --frames 0

u "synth without arch" "--arch" -- synth -o a.safetensors
u "synth without output" "-o FILE.safetensors" -- synth --arch sd15
u "synth into npy" "'a.npy'" .safetensors -- synth --arch sd15 -o a.npy
u "synth dtype" "--dtype 'F12'" BF16 -- synth --arch sd15 --dtype F12 -o a.safetensors
u "synth integer dtype" "--dtype 'I32'" -- synth --arch sd15 --dtype I32 -o a.safetensors
u "synth layout" "--layout 'ldm'" original -- synth --arch sd15 --layout ldm -o a.safetensors
u "synth div 0" "--div '0'" -- synth --arch sd15 --div 0 -o a.safetensors
u "synth seed" "--seed '-1'" -- synth --arch sd15 --seed -1 -o a.safetensors

u "latents without size" "--size" "--latent-size" -- latents --arch sd15 -o z.npy
u "latents with both sizes" "one of" -- latents --arch sd15 --size 8x8 --latent-size 1x1 -o z.npy
u "latents without model" "--arch" -- latents --size 8x8 -o z.npy
u "latents without output" "-o FILE" -- latents --arch sd15 --size 8x8
u "latents odd size" "--size 9x8" 16x8 -- latents --arch sd15 --size 9x8 -o z.npy
u "latents png" "'z.png'" .npy -- latents --arch sd15 --size 8x8 -o z.png

u "convert without model" "--model" -- convert --dtype F16 -o a.safetensors
u "convert without output" "-o FILE" -- convert --model a.safetensors --dtype F16
u "convert nothing" "--layout, --dtype" -- convert --model a.safetensors -o b.safetensors
u "doctor surplus" "unexpected argument 'now'" -- doctor now

runs "help" --help
check "help names every command" grep -cE '^  (decode|inspect|synth|latents|convert|doctor) ' "$box/stdout"
runs "version" --version
check "version is a number" grep -qE '^vaeref [0-9]+\.[0-9]+\.[0-9]+$' "$box/stdout"
for c in decode inspect synth latents convert doctor; do
    runs "$c help" $c --help
    check "$c help shows its usage" has "$box/stdout" "Usage: vaeref $c"
    [ $c = doctor ] || check "$c help has examples" has "$box/stdout" "Examples:"
done
runs "doctor" doctor
check "doctor names the kernels" grep -qE '^kernels +ok +' "$box/stdout"
check "doctor ends with a verdict" has "$box/stdout" "vaeref can decode here"
runs "doctor json" doctor --json
check "doctor json" has "$box/stdout" '"works": true'
export VAEREF_ISA=z80
checks=$((checks + 1))
"$vaeref" doctor >"$box/stdout" 2>"$box/stderr" && fail "doctor: exit 0 under an unknown VAEREF_ISA"
check "doctor says what is broken" grep -qE '^kernels +broken.*z80' "$box/stdout"
refuses 1 "decode under an unknown VAEREF_ISA" z80 -- decode "${M[@]}" "${L[@]}"
unset VAEREF_ISA
if [ -w /dev/full ]; then
    checks=$((checks + 1))
    "$vaeref" --help >/dev/full 2>"$box/stderr" && fail "help into a full disk: exit 0"
    check "says that stdout is full" has "$box/stderr" "cannot write to standard output"
fi
finish 80
