#!/bin/bash
# A version only grows: what regen keeps, adds, refuses; what verify and diff say
# of a digest that changed. SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

V=golden/v1
state() { (cd "$1" && find . -path ./.part -prune -o -type f -printf '%P\n' | LC_ALL=C sort | xargs sha256sum); }

cases "$a" "$b" "$c"
runs "first version" regen --jobs 2
check "a manifest" test -e $V/MANIFEST.sha256
check "that sha256sum takes" holds_or_none $V
check "pictures of a and c only" same "$(cd $V/pictures && echo *)" "a.png c.png"
check "no folder left over" test ! -e $V/.part
runs "verifies" verify
check "says what agreed" has "$box/stdout" "3 of 3 cases computed, all agree"
cp -r golden "$box/good"
before=$(state $V)
again() { rm -rf golden && cp -r "$box/good" golden; }

# The same again, on one thread, with plain C, elsewhere: the same bytes.
touch -d '2001-01-01' $V/cases/a.json
runs "again" regen --jobs 1
check "says that nothing changed" has "$box/stdout" "3 cases computed; nothing changed"
check "touches no file that is right" test "$(date -r $V/cases/a.json +%Y)" = 2001
VAEREF_ISA=portable runs "elsewhere" regen --jobs 3 --output elsewhere
check "the same bytes" diff -r $V elsewhere
runs "no difference" diff $V elsewhere
check "says that all are the same" has "$box/stdout" "3 cases are the same, 0 differ"
rm -r elsewhere

# A file model in models/, with named latents, as trained ones will lie there.
mkdir -p golden/models/small
"$VAEPROOF_BIN/vaeref" synth --arch sd15 --seed 9 --div 32 --dtype F16 -o golden/models/small/model.safetensors >/dev/null
"$VAEPROOF_BIN/vaeref" latents --model golden/models/small/model.safetensors --latent-size 2x3 --seed 5 \
    -o golden/models/latents.safetensors >/dev/null
f='{"id": "file", "model": "small/model.safetensors", "latents": "latents.safetensors#latents"}'
cases "$a" "$b" "$c" "$f"
finds "a case not made yet" "golden/cases.json:9: case 'file'" -- verify
runs "a case is added" regen --only file
check "computes it alone" has "$box/stdout" "1 case computed; 3 files new or changed"
runs "verifies with it" verify
check "the others are as before" same "$(state $V | grep -v 'file.json\|provenance\|MANIFEST')" \
    "$(echo "$before" | grep -v 'provenance\|MANIFEST')"
"$VAEPROOF_BIN/vaeref" synth --arch sd15 --seed 8 --div 32 --dtype F16 -o golden/models/small/model.safetensors >/dev/null
finds "other weights under the same name" "case 'file': weights" "output" -- verify --only file
rm golden/models/small/model.safetensors
finds "no weights" "case 'file'" "golden/models/small/model.safetensors" -- verify --only file
again

# A changed, or lost, case is refused before anything is computed.
cases "$a" "${b/seed:2/seed:3}" "$c"
refuses 1 "another input" "golden/cases.json:7:" "case 'b'" "not what golden/v1 froze" "--new-version" -- regen
finds "another input" "golden/cases.json:7: case 'b'" -- verify --only a
cases "$a" "$c"
refuses 1 "a case is gone" "case 'b' of golden/v1 is gone" "--new-version" -- regen
finds "a case is gone" "case 'b': is in golden/v1, not in golden/cases.json" -- verify --only a
again

# One digit of one digest, under a manifest that holds.
flip $V/cases/b.json output_sha256
remanifest $V
finds "a flipped digest" "case 'b': output " " f32 noise levels from truth, was " -- verify
check "names that one alone" same "$(wc -l <"$box/stdout")" 1
check "counts it" has "$box/stderr" "golden/v1: 1 fault; 2 of 3 cases agree"
checks=$((checks + 1))
"$vaegolden" regen >"$box/stdout" 2>"$box/stderr" && fail "regen over a flipped digest: exit 0"
check "regen refuses, old and new" grep -qE "case 'b' differs from what golden/v1 froze: output [0-9a-f]{12} -> [0-9a-f]{12}; .*--new-version" "$box/stderr"
check "and leaves the version" holds_or_none $V
check "with its manifest" test -e $V/MANIFEST.sha256
check "what it computed can be compared" has "$box/stderr" "vaegolden diff golden/v1 golden/v1/.part"
finds "compares" "differs  b: output" "2 cases are the same, 1 differ (0 in input, 1 in output, 0 in noise), 0 added, 0 removed" -- diff $V $V/.part
checks=$((checks + 1))
"$vaegolden" regen >/dev/null 2>&1 && fail "regen again over a flipped digest: exit 0"
cp -r $V/.part "$box/part" # three cases, complete
runs "a new version" regen --new-version
check "is v2" has "$box/stdout" "golden/v2: 3 cases computed"
runs "verify takes the newest" verify
check "which is v2" has "$box/stdout" "golden/v2: 3 of 3"
finds "the old one still differs" "case 'b'" -- verify $V
finds "v1 to v2" "differs  b: output" -- diff $V golden/v2
again

# Noise, pixels, truth: each is compared.
flip $V/cases/a.json pixels_sha256
sed -i -E '/"bf16"/s/"max": ([^,]*),/"max": 0.5,/' $V/cases/c.json
remanifest $V
finds "pixels and noise" "case 'a': pixels" "pictures/a.png: its pixels are" "case 'c': bf16 noise max 0.5 -> " -- verify
check "only these" same "$(wc -l <"$box/stdout")" 3
again

# Pictures are made again; a wish for one is not a change of the case.
rm $V/pictures/a.png
runs "a lost picture comes back" regen
check "the same bytes" same "$(state $V)" "$before"
cases "${a/, \"picture\": true/}" "$b" "$c"
runs "a picture no longer wanted" regen
check "is removed" test ! -e $V/pictures/a.png
runs "verifies without it" verify
again
echo x >>$V/cases/b.json
checks=$((checks + 1))
"$vaegolden" regen >"$box/stdout" 2>"$box/stderr" && fail "regen over a damaged record: exit 0"
check "says what to do with a damaged record" has "$box/stderr" "restore it, or remove it and run regen"
rm $V/cases/b.json
runs "a removed record comes back" regen
check "the same bytes" same "$(state $V)" "$before"

# --only into an empty folder makes no manifest; the rest completes it.
runs "a part" regen --output part --only 'a'
check "without a manifest" test ! -e part/MANIFEST.sha256
check "says so" has "$box/stdout" "no manifest: 2 of 3 cases are not there yet, first 'b'"
runs "the rest" regen --output part
check "the same bytes as at once" diff -r $V part

# What a stopped run left counts only if it is whole, of this input and this tool.
left() { # left NAME COMPUTED [KEPT]: regen into a folder with that .part
    runs "$1" regen --output new
    check "$1: computes $2" grep -q ": $2 cases* computed" "$box/stdout"
    [ -z "${3:-}" ] || check "$1: keeps $3" has "$box/stdout" "$3 kept from a run that was stopped"
    rm -rf new
    mkdir new
    cp -r "$box/part" new/.part
}
left "nothing" 3
left "all of it" 0 3
cases "$a" "${b/seed:2/seed:9}" "$c"
left "another input" 1 2
cases "$a" "$b" "$c"
echo >>new/.part/cases/a.json
left "a damaged record" 1 2
rm new/.part/pictures/c.png
left "a picture missing" 1 2
echo 0 >new/.part/made-by
left "another tool" 3

# Two at once: the second gives way.
checks=$((checks + 1))
flock $V "$vaegolden" regen >"$box/stdout" 2>"$box/stderr" && fail "regen beside another: exit 0"
check "says that another is at work" has "$box/stderr" "another regen is at work"
finish 70
