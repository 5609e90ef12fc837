#!/bin/bash
# What decode writes, says and removes.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

# ---- helpers -----------------------------------------------------------------------
npy_shape() { head -c 128 "$1" | grep -aoE "'descr': '[^']*'|'shape': \([^)]*\)" | tr '\n' ' '; }
npy_data() { # the elements' bytes
    local n
    n=$(od -An -tu2 -j8 -N2 "$1" | tr -d ' ')
    tail -c +$((11 + n)) "$1"
}
png_size() { od -An -tu1 -j16 -N8 "$1" | awk '{print $3 * 256 + $4 "x" $7 * 256 + $8}'; }
json_value() { # json_value FILE KEY: first value of that key
    grep -m1 "\"$2\":" "$1" | sed -E 's/^[^:]*: *"?([^",]*)"?,?$/\1/'
}

check "KL model" "$vaeref" synth --arch sd15 --div 16 -o kl.safetensors
check "Tiny model" "$vaeref" synth --arch taesd --div 16 -o tiny.safetensors
check "latents" "$vaeref" latents --arch sd15 --latent-size 6x4 --n 2 --seed 5 -o two.npy
K=(decode --model kl.safetensors --latents two.npy)
T=(decode --model tiny.safetensors --latents two.npy)
ONE=(decode --model kl.safetensors --latents seed:5,6x4)

# ---- formats -----------------------------------------------------------------------
runs "one picture" "${ONE[@]}" -o one.png
check "one line of summary" same "$(wc -l <"$box/stdout")" 1
for part in "sd15" "32x48 pixels" "scaling 0.18215" "policy golden" " s; " "one.png"; do
    check "summary says $part" has "$box/stdout" "$part"
done
check "picture has the output's size" same "$(png_size one.png)" 32x48
runs "quiet" "${ONE[@]}" -o quiet.png --quiet
check "quiet says nothing" test ! -s "$box/stdout"
check "quiet writes the same picture" cmp one.png quiet.png
runs "digest alone" "${ONE[@]}"
check "digest is printed" grep -qE 'sha256 [0-9a-f]{64}' "$box/stdout"

runs "batch to pictures" "${K[@]}" -o many.png
check "first" same "$(png_size many_00000.png)" 32x48
check "second" same "$(png_size many_00001.png)" 32x48
check "no third" test ! -e many_00002.png
check "no picture of the plain name" test ! -e many.png
checks=$((checks + 1))
cmp -s many_00000.png many_00001.png && fail "both pictures of a batch are the same"
# The second latent on its own: the header of two.npy, the second half of its data.
{ head -c 128 two.npy | sed 's/(2, 4/(1, 4/'; npy_data two.npy | tail -c 384; } >second.npy
runs "second latent alone" decode --model kl.safetensors --latents second.npy -o second.png
check "a picture does not depend on its batch" cmp second.png many_00001.png

runs "npy" "${K[@]}" -o out.npy
check "npy is float32, whole batch" same "$(npy_shape out.npy)" "'descr': '<f4' 'shape': (2, 3, 48, 32) "
runs "safetensors" "${K[@]}" -o out.safetensors
check "same numbers in both" same "$(npy_data out.npy | sha256sum)" "$(tail -c 36864 out.safetensors | sha256sum)"
for key in '"decoded"' '"vaeproof.arch":"sd15"' '"vaeproof.policy":"golden"' vaeproof.weights_sha256 vaeproof.version; do
    check "safetensors says $key" grep -qaF "$key" out.safetensors
done
runs "truth" "${K[@]}" --policy truth -o truth.npy
check "truth is float64" same "$(npy_shape truth.npy)" "'descr': '<f8' 'shape': (2, 3, 48, 32) "
check "truth and golden agree" "$VAEPROOF_BIN/../tests/cli_compare" tensors truth.npy out.npy 1e-4
for policy in f32 f16 bf16; do
    for order in seq lanes8 lanes32 pairwise kblock64; do
        runs "$policy $order" "${T[@]}" --policy $policy --order $order -o $policy-$order.npy
        check "$policy is stored as float32" same "$(npy_shape $policy-$order.npy)" "'descr': '<f4' 'shape': (2, 3, 48, 32) "
    done
done

# ---- the same bytes ------------------------------------------------------------------
for threads in 1 2 3; do
    runs "$threads threads" "${K[@]}" --threads $threads -o t.npy
    check "$threads threads: same bytes" cmp t.npy out.npy
done
VAEREF_ISA=portable runs "portable kernels" "${K[@]}" -o isa.npy
check "portable kernels: same bytes" cmp isa.npy out.npy
runs "memory limit that suffices" "${K[@]}" --memory-limit 64MiB -o limit.npy
check "memory limit: same bytes" cmp limit.npy out.npy

# ---- normalisation -------------------------------------------------------------------
runs "raw latents" "${K[@]}" --latent-space raw -o raw.npy
check "raw: says so" has "$box/stdout" "raw"
runs "scaling 1" "${K[@]}" --scaling-factor 1 --shift-factor 0 -o unit.npy
check "scaling 1, shift 0 is raw" cmp raw.npy unit.npy
runs "scaling given" "${K[@]}" --scaling-factor 0.18215 -o given.npy
check "the model's own scaling, given" cmp given.npy out.npy
echo '{"_class_name":"AutoencoderKL","scaling_factor":0.5}' >half.json
runs "scaling from a config" "${K[@]}" --config half.json -o config.npy
check "config is used" has "$box/stdout" "scaling 0.5"
checks=$((checks + 1))
cmp -s config.npy out.npy && fail "another scaling makes no difference"

# ---- stats ---------------------------------------------------------------------------
runs "stats" "${K[@]}" -o out.npy --stats stats.json
check "digest is over the raw bytes" same "$(json_value stats.json output_sha256)" "$(npy_data out.npy | sha256sum | cut -c1-64)"
check "arch" same "$(json_value stats.json arch)" sd15
check "policy" same "$(json_value stats.json policy)" golden
check "golden has no order" same "$(json_value stats.json order)" null
check "nothing went non-finite" same "$(json_value stats.json nonfinite)" null
for key in isa threads weights_sha256 seconds macs gmacs gmacs_per_second peak_bytes peak_held_bytes hits latent_shape output_shape outputs operations tap kind; do
    check "stats has $key" grep -q "\"$key\":" stats.json
done
ops=$(grep -c '"tap":' stats.json)
check "inspect json" bash -c "'$vaeref' inspect --model kl.safetensors --size 32x48 --json >inspect.json"
check "as many operations as the program" same "$ops" "$(grep -c '"tap":' inspect.json)"
"$vaeref" decode --model kl.safetensors --latents seed:5,6x4 --quiet --stats one.json
check "MACs as inspect says" same "$(json_value one.json macs)" "$(json_value inspect.json macs)"
check "peak memory as inspect says" same "$(json_value one.json peak_bytes)" "$(json_value inspect.json peak_bytes)"

# ---- taps ----------------------------------------------------------------------------
runs "taps" "${K[@]}" -o out.npy --taps taps
check "a file for every operation" same "$(ls taps/*.npy | wc -l)" "$ops"
check "an entry for every file" same "$(grep -c '"file":' taps/index.json)" "$ops"
grep '"file":' taps/index.json | sed -E 's/.*: "(.*)"/\1/' | while read -r f; do
    [ -s "taps/$f" ] || echo "$f"
done >"$box/absent"
check "every file of the index is there" test ! -s "$box/absent"
last=$(ls taps/*.npy | tail -1)
check "the last tap is the output" cmp "$last" out.npy
check "the first tap is the latent" same "$(npy_data taps/000_latent.npy | sha256sum)" "$(npy_data two.npy | sha256sum)"
runs "taps into a folder that exists" "${K[@]}" --taps taps

# ---- NaN and infinity ----------------------------------------------------------------
F=(--policy f16 --scaling-factor 1e-9)
checks=$((checks + 1))
"$vaeref" "${K[@]}" "${F[@]}" -o bad.png --stats bad.json --taps bad-taps >"$box/stdout" 2>"$box/stderr"
code=$?
check "overflow is a failure" same $code 1
check "no picture" test ! -e bad_00000.png
check "stats are written all the same" test -s bad.json
check "taps are kept" test -s bad-taps/index.json
tap=$(sed -n '/"nonfinite": {/,/}/p' bad.json | grep '"tap"' | sed -E 's/.*: "(.*)",/\1/')
check "stats and error name the same tap" has "$box/stderr" "'$tap'"
checks=$((checks + 1))
"$vaeref" "${K[@]}" "${F[@]}" --allow-nonfinite -o bad.png >"$box/stdout" 2>"$box/stderr" || fail "--allow-nonfinite: exit $?"
check "a warning" has "$box/stderr" "vaeref: warning: "
check "warning names the tap" has "$box/stderr" "'$tap'"
check "picture is written" test -s bad_00001.png
checks=$((checks + 1))
"$vaeref" "${K[@]}" "${F[@]}" --allow-nonfinite -o bad.npy >"$box/stdout" 2>"$box/stderr" || fail "--allow-nonfinite .npy: exit $?"
check "tensor is written" test -s bad.npy

# ---- an older file survives a failure --------------------------------------------------
echo precious >old.npy
refuses 1 "failure over an older file" "bf16" -- "${K[@]}" "${F[@]}" -o old.npy
check "older file is untouched" same "$(cat old.npy)" precious

# ---- interruption and progress -----------------------------------------------------------
check "slow model" "$vaeref" synth --arch sd15 --div 2 -o slow.safetensors
before=$(listing)
"$vaeref" decode --model slow.safetensors --latents seed:1,96x96 -o slow.png --taps slow-taps 2>"$box/stderr" >"$box/stdout" &
pid=$!
for _ in $(seq 600); do
    [ -z "$(ls slow-taps 2>/dev/null | grep -v index)" ] || break
    kill -0 $pid 2>/dev/null || break
    sleep 0.05
done
kill -TERM $pid
for _ in $(seq 400); do # whole, it would take minutes
    kill -0 $pid 2>/dev/null || break
    sleep 0.05
done
checks=$((checks + 1))
kill -KILL $pid 2>/dev/null && fail "still running 20 s after an interrupt"
wait $pid
code=$?
check "interrupted: exit 130" same $code 130
check "interrupted: says so" has "$box/stderr" "vaeref: error: interrupted"
check "interrupted: nothing left" same "$before" "$(listing)"
if command -v script >/dev/null; then
    script -qec "'$vaeref' decode --model slow.safetensors --latents seed:1,16x16" /dev/null >"$box/tty" 2>&1 </dev/null
    check "a terminal sees progress" grep -qaE '\[#+\.*\] +[0-9]+ %' "$box/tty"
    check "and the time left" grep -qaE '[0-9]+ s left' "$box/tty"
fi
finish 130
