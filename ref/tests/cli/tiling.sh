#!/bin/bash
# vaeref plan, and decode under a tiling scheme (docs/spec/tiling.md).
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

json_value() { # json_value FILE KEY: first value of that key
    grep -m1 "\"$2\":" "$1" | sed -E 's/^[^:]*: *"?([^",]*)"?,?$/\1/'
}
data_sha() { tail -c +129 "$1" | sha256sum | cut -c1-64; }
M=(--model synth:taesd,div=16)
P=(plan "${M[@]}" --size 128x96)
D=(decode "${M[@]}" --latents seed:1,12x16 --threads 1)
u() { refuses 2 "$@"; }

# ---- wrong command lines: the form ---------------------------------------------------
u "plan without model" "--model" -- plan
u "unknown scheme" "--tile-mode 'blend'" diffusers-stride comfy-3pass sdcpp exact auto -- "${P[@]}" --tile-mode blend
u "tile text" "--tile 'big'" "W or WxH" -- "${P[@]}" --tile-mode comfy --tile big
u "tile 0" "--tile '0'" "from 1" -- "${P[@]}" --tile-mode comfy --tile 0
u "tile half a pair" "--tile '64x'" -- "${P[@]}" --tile-mode comfy --tile 64x
u "tile of three" "--tile '64x64x64'" -- "${P[@]}" --tile-mode comfy --tile 64x64x64
for bad in 0.95 -0.1 -8 nan 0,5 '' 99999999; do # R02: never clamped, never guessed
    u "overlap $bad" "--overlap '$bad'" "from 0" -- "${P[@]}" --tile-mode comfy --tile 64 --overlap "$bad"
done
u "sizes without a scheme" "--tile has no meaning" "--tile-mode" -- "${P[@]}" --tile 64
u "overlap without a scheme" "--overlap has no meaning" -- "${D[@]}" --overlap 16
u "odd size" "width 100" 96 104 -- plan "${M[@]}" --size 100x96 --tile-mode comfy
u "taps of tiles" "--taps" "--tile-mode comfy" -- "${D[@]}" --tile-mode comfy --taps t

u "auto with a tile" "auto: tile 64" "leave the tile out" -- "${P[@]}" --tile-mode auto --tile 64
u "auto with half a cell" "auto: overlap 12" "such as 16" -- "${P[@]}" --tile-mode auto --overlap 12
u "costs of comfy" "--tile-costs has no meaning with --tile-mode comfy" -- "${P[@]}" --tile-mode comfy --tile-costs c.json
u "reasons of comfy" "--explain has no meaning with --tile-mode comfy" -- "${P[@]}" --tile-mode comfy --explain
u "tune without model" "tune needs --model" -- tune
for bad in 0 64,64 128,64 60 64,x; do
    u "tune sizes '$bad'" "--sizes '$bad'" "ascending" -- tune "${M[@]}" --sizes "$bad" -o c.json
done
refuses 1 "costs that are not there" "nowhere.json" -- "${P[@]}" --tile-mode auto --tile-costs nowhere.json
refuses 1 "auto below the smallest tile" "smallest needs" -- "${P[@]}" --tile-mode auto --memory-limit 1000
u "comparison without tiles" "--compare-to-untiled has nothing to compare" -- "${D[@]}" --compare-to-untiled
u "difference without tiles" "--diff-png has nothing to compare" -- "${D[@]}" --diff-png d.png
u "difference as text" "d.txt" ".png" -- "${D[@]}" --tile-mode comfy --diff-png d.txt
u "difference over the output" "same file" -- "${D[@]}" --tile-mode comfy -o d.png --diff-png d.png
u "gain alone" "--diff-gain has no meaning" -- "${D[@]}" --tile-mode comfy --diff-gain 8
u "gain 0" "--diff-gain '0'" "above 0" -- "${D[@]}" --tile-mode comfy --diff-png d.png --diff-gain 0
u "comparison of truth" "--policy truth" -- "${D[@]}" --tile-mode comfy --compare-to-untiled --policy truth
u "plan: limit of a blend" "--memory-limit has no meaning with --tile-mode comfy" "exact or auto" -- "${P[@]}" --tile-mode comfy --memory-limit 1MiB
refuses 1 "plan: limit too small" "needs at least" -- "${P[@]}" --tile-mode exact --memory-limit 100
u "spill of a blend" "--spill-dir has no meaning with --tile-mode comfy" exact -- "${D[@]}" --tile-mode comfy --spill-dir .
refuses 1 "difference into nowhere" "nowhere" -- "${D[@]}" --tile-mode comfy --diff-png nowhere/d.png -o x.npy
refuses 1 "spill into nowhere" "nowhere" -- "${D[@]}" --tile-mode exact --memory-limit 64KiB --spill-dir nowhere -o x.npy
refuses 1 "exact below the smallest" "needs at least" -- "${D[@]}" --tile-mode exact --memory-limit 100 -o x.npy
refuses 1 "no limit at all for comfy" "--memory-limit" -- "${D[@]}" --tile-mode comfy --tile 64 --memory-limit 1 -o x.npy

# ---- numbers the schemes get wrong: both named, remedy given, nothing made ------------
for cmd in P D; do
    declare -n C=$cmd
    u "$cmd: quarter of 240" "overlap 60 of tile 240" "56 or 64" -- "${C[@]}" --tile-mode diffusers --tile 240
    u "$cmd: overlap is the tile" "overlap 64 of tile 64" "never advance" "at most 56" -- "${C[@]}" --tile-mode comfy --tile 64 --overlap 64
    u "$cmd: overlap beyond the tile" "overlap 96 of tile 64" "at least 104" -- "${C[@]}" --tile-mode diffusers --tile 64 --overlap 96
    u "$cmd: halved pass" "overlap 32 of tile 64" "halved" "at least 80" -- "${C[@]}" --tile-mode comfy-3pass --tile 64 --overlap 32
    u "$cmd: more than half" "overlap 40 of tile 64 pixels (width)" "at most 32" -- "${C[@]}" --tile-mode sdcpp --tile 64 --overlap 40x32
    u "$cmd: small tile" "tile width 4" "at least 8" -- "${C[@]}" --tile-mode comfy --tile 4x64 --overlap 0
    u "$cmd: no multiple" "tile height 100" "96 and 104" -- "${C[@]}" --tile-mode comfy --tile 64x100
    u "$cmd: context is fixed" "overlap 64" "does not blend" -- "${C[@]}" --tile-mode two-pass --overlap 64
done

# ---- plan ---------------------------------------------------------------------------
runs "no tiling" "${P[@]}"
check "says none" has "$box/stdout" "none over 128x96 pixels, taesd"
check "one tile" has "$box/stdout" "1 of 1 shapes"
for mode in diffusers diffusers-stride diffusers-tiny comfy comfy-3pass sdcpp two-pass two-pass-fast two-pass-fixed exact; do
    runs "$mode as text" "${P[@]}" --tile-mode $mode
    check "$mode is named" has "$box/stdout" "$mode over 128x96 pixels"
    runs "$mode as JSON" "${P[@]}" --tile-mode $mode --json
    for key in tile_mode tiles tile_shapes macs work_ratio peak_bytes effective_overlap undivided_macs passes owned; do
        check "$mode: JSON has $key" grep -q "\"$key\":" "$box/stdout"
    done
done
runs "comfy" "${P[@]}" --tile-mode comfy --tile 64x48 --overlap 16x8 --json
cp "$box/stdout" comfy.json
check "tile count" same "$(json_value comfy.json tiles)" 9
check "columns, rows" same "$(grep -c '"start":' comfy.json)" 6
runs "the collapsed overlap" plan "${M[@]}" --size 504x504 --tile-mode sdcpp
check "requested" has "$box/stdout" "tile 256x256, overlap 128x128"
check "effective" has "$box/stdout" "effective overlap 8 across, 8 down"
check "one shape" has "$box/stdout" "4 of 1 shapes"
rm comfy.json

# ---- decode ---------------------------------------------------------------------------
runs "undivided" "${D[@]}" -o none.npy
for mode in diffusers diffusers-stride diffusers-tiny comfy sdcpp; do
    runs "$mode larger than the picture" "${D[@]}" --tile-mode $mode --tile 256 -o one.npy
    check "$mode: one tile is the undivided decode" cmp one.npy none.npy
    check "$mode: says one tile" has "$box/stdout" "$mode, 1 tile;"
done
for mode in diffusers diffusers-stride diffusers-tiny comfy comfy-3pass sdcpp; do
    runs "$mode" "${D[@]}" --tile-mode $mode --tile 64x48 --overlap 16x8 -o t.npy --stats t.json
    runs "$mode plan" "${P[@]}" --tile-mode $mode --tile 64x48 --overlap 16x8 --json
    cp "$box/stdout" "$box/plan.json"
    check "$mode: same size" same "$(stat -c %s t.npy)" "$(stat -c %s none.npy)"
    checks=$((checks + 1))
    cmp -s t.npy none.npy && fail "$mode: tiles make no difference at all"
    check "$mode: close to undivided" "$VAEPROOF_BIN/../tests/cli_compare" tensors none.npy t.npy 1
    check "$mode: decoded as many tiles as planned" same "$(json_value t.json tiles_done)" "$(json_value "$box/plan.json" tiles)"
    check "$mode: tiles of decode and plan" same "$(json_value t.json tiles)" "$(json_value "$box/plan.json" tiles)"
    check "$mode: peak as planned" same "$(json_value t.json peak_bytes)" "$(json_value "$box/plan.json" peak_bytes)"
    check "$mode: MACs as planned" same "$(json_value t.json macs)" "$(json_value "$box/plan.json" macs)"
    check "$mode: digest" same "$(json_value t.json output_sha256)" "$(data_sha t.npy)"
    runs "$mode, two threads" "${D[@]}" --tile-mode $mode --tile 64x48 --overlap 16x8 --threads 2 -o t2.npy
    check "$mode: same bytes" cmp t.npy t2.npy
    peak=$(json_value "$box/plan.json" peak_bytes)
    runs "$mode within its peak" "${D[@]}" --tile-mode $mode --tile 64x48 --overlap 16x8 --memory-limit "$peak" -o t2.npy
    check "$mode: same bytes within its peak" cmp t.npy t2.npy
    refuses 1 "$mode below its peak" "--memory-limit" "smaller tiles" -- "${D[@]}" --tile-mode $mode --tile 64x48 --overlap 16x8 --memory-limit $((peak - 1)) -o x.npy
done
export XDG_CACHE_HOME=$box/cache
mkdir "$XDG_CACHE_HOME"
runs "auto without a table" "${P[@]}" --tile-mode auto --explain
check "says that it estimates" has "$box/stdout" "multiply-adds (an estimate; vaeref tune measures)"
runs "tune" tune "${M[@]}" --sizes 32,48,64 --rounds 1 --threads 1
check "says where to" grep -q "9 shapes of taesd .* -> $XDG_CACHE_HOME/vaeproof/tile-costs-" "$box/stdout"
runs "auto with the cached table" "${P[@]}" --tile-mode auto --explain --memory-limit 300KiB --overlap 16
check "says that it was measured" has "$box/stdout" "seconds, measured by vaeref tune"
check "says what it chose" grep -qE "columns .* pixels" "$box/stdout"
runs "auto as JSON" "${P[@]}" --tile-mode auto --memory-limit 300KiB --overlap 16 --json
check "JSON says why" grep -q '"unit": "seconds"' "$box/stdout"
check "within the limit" test "$(json_value "$box/stdout" peak_bytes)" -le 307200
runs "auto decodes within it" "${D[@]}" --tile-mode auto --memory-limit 300KiB --overlap 16 -o t.npy --stats t.json
check "auto: within the limit" test "$(json_value t.json peak_bytes)" -le 307200
check "auto: several tiles" test "$(json_value t.json tiles_done)" -gt 1
cp "$XDG_CACHE_HOME"/vaeproof/tile-costs-*.json c.json
refuses 1 "costs of other weights" "measured with other weights" "vaeref tune" -- plan --model synth:taesd,div=8 --size 128x96 --tile-mode auto --tile-costs c.json
sed -i 's/"machine": "/"machine": "not /' c.json
refuses 1 "costs of another machine" "was measured on 'not" -- "${P[@]}" --tile-mode auto --tile-costs c.json
rm c.json
K=(--model synth:sd15,div=16 --tile-mode)
for mode in two-pass two-pass-fast two-pass-fixed; do
    T=(--tile 64)
    runs "$mode plan" plan "${K[@]}" $mode "${T[@]}" --size 448x400 --json
    peak=$(json_value "$box/stdout" peak_bytes) tiles=$(json_value "$box/stdout" tiles)
    check "$mode: several tiles" test "$tiles" -gt 1
    runs "$mode" decode "${K[@]}" $mode "${T[@]}" --latents seed:1,50x56 --memory-limit "$peak" -o t.npy --stats t.json
    check "$mode: peak as planned" same "$(json_value t.json peak_bytes)" "$peak"
    refuses 1 "$mode below its peak" "--memory-limit" "smaller tiles" -- decode "${K[@]}" $mode "${T[@]}" --latents seed:1,50x56 --memory-limit $((peak - 1)) -o x.npy
done
runs "exact planned for a limit" "${P[@]}" --tile-mode exact --memory-limit 96KiB --json
check "planned within it" test "$(json_value "$box/stdout" peak_bytes)" -le 98304
runs "exact in little memory" "${D[@]}" --tile-mode exact --tile 32 --memory-limit 96KiB --spill-dir . -o t.npy --stats t.json
check "exact: the undivided bits" cmp t.npy none.npy
check "exact: within the limit" test "$(json_value t.json peak_bytes)" -le 98304
check "exact: spilled" test "$(json_value t.json spilled_bytes)" -gt 0
check "exact: the spilled file has gone" same "$(find . -name '*spill*')" ""
runs "exact compared" "${D[@]}" --tile-mode exact --tile 32 --memory-limit 96KiB --compare-to-untiled
check "exact: says identical" has "$box/stdout" "identical, bit for bit"
runs "comfy compared" "${D[@]}" --tile-mode comfy --tile 64 --compare-to-untiled --diff-png d.png --stats t.json
check "says how far" grep -qE "max [0-9.e-]+ at \[0, [0-2], [0-9]+, [0-9]+\], rms .* PSNR .* SSIM" "$box/stdout"
check "the difference is a picture" grep -q PNG d.png
check "the difference in the list of files" grep -q '"d.png"' t.json
check "in the statistics" same "$(json_value t.json identical)" false
for key in max_abs rms psnr ssim tone_step border_score untiled_peak_bytes; do
    check "comparison has $key" grep -q "\"$key\": [0-9]" t.json
done
runs "two differences" decode "${M[@]}" --latents seed:1,12x16,n=2 --threads 1 --tile-mode comfy --tile 64 --diff-png d.png --diff-gain 8
check "numbered" test -s d_00000.png -a -s d_00001.png
check "the gain asked for" has "$box/stdout" "times 8 -> d.png"
rm d.png d_0000?.png
runs "a picture" "${D[@]}" --tile-mode comfy --tile 64 -o t.png
runs "stats of no tiling" "${D[@]}" --stats t.json
check "tiling is null" same "$(json_value t.json tiling)" null
finish 350
