#!/bin/bash
# Damaged cases.json, manifests and records: what is wrong, in which line of
# which file. SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

# ---- cases.json: entries begin on line 6 -----------------------------------------
J=golden/cases.json
# bad LINE NAME SUBSTRING... -- ENTRY...: cases.json with these entries is refused.
bad() {
    local line=$1 name=$2 wants=()
    shift 2
    while [ "$1" != -- ]; do wants+=("$1"); shift; done
    shift
    cases "$@"
    refuses 1 "$name" "$J:$line:" "${wants[@]}" -- show
}
e() { echo "{\"id\": \"x\", \"model\": \"synth:taesd,div=16\", \"latents\": \"seed:1,2x2\"$1}"; }
bad 7 "unknown key" "case 'x'" "'colour'" "is no key" "latents" -- "$a" "$(e ', "colour": 1')"
bad 7 "key in another case" "'Picture'" "is no key" -- "$a" "$(e ', "Picture": true')"
bad 7 "same id" "'id' is taken" "line 6" -- "$a" "${a/3x2/3x3}"
bad 7 "same input" "its input is that of case 'a' on line 6" -- "$a" "${a/\"a\"/\"a2\"}"
bad 6 "no id" "key 'id' is missing" -- '{"model": "synth:taesd", "latents": "seed:1,2x2"}'
bad 6 "no model" "key 'model' is missing" -- '{"id": "x", "latents": "seed:1,2x2"}'
bad 6 "no latents" "key 'latents' is missing" -- '{"id": "x", "model": "synth:taesd"}'
bad 6 "id with a slash" "'id' is '../x'" "a-z" -- "${a/\"a\"/\"../x\"}"
bad 6 "id in capitals" "'id' is 'A'" -- "${a/\"a\"/\"A\"}"
bad 6 "empty id" "'id' is ''" -- "${a/\"a\"/\"\"}"
bad 6 "id too long" "at most 63" -- "${a/\"a\"/\"$(printf 'a%.0s' {1..64})\"}"
bad 6 "id is a number" "'id' is an integer; a string is needed" -- "${a/\"a\"/1}"
bad 6 "model outside" "'model' is '../vae.safetensors'" "below models/" -- "${a/synth:taesd,seed=1,div=16/../vae.safetensors}"
bad 6 "model absolute" "below models/" -- "${a/synth:taesd,seed=1,div=16//vae.safetensors}"
bad 6 "model of another kind" "'model' is 'vae.ckpt'" -- "${a/synth:taesd,seed=1,div=16/vae.ckpt}"
bad 6 "latents seed" "'latents' is wrong" "seed 'one'" -- "${a/seed:1,3x2/seed:one,3x2}"
bad 6 "latents size" "seed:N,HxW" -- "${a/seed:1,3x2/seed:1}"
bad 6 "latents batch 0" "batch '0'" -- "${a/seed:1,3x2/seed:1,3x2,n=0}"
bad 6 "latents outside" "below models/" -- "${a/seed:1,3x2/../z.npy}"
bad 6 "latent space" "'latent_space' is 'pixel'" "diffusion or raw" -- "$(e ', "latent_space": "pixel"')"
bad 6 "picture is a string" "'picture' is a string; true or false is needed" -- "$(e ', "picture": "yes"')"
bad 6 "tile is a string" "'tile' is a string; an object is needed" -- "$(e ', "tile": "comfy"')"
bad 6 "tile null" "'tile' is null" -- "$(e ', "tile": null')"
bad 6 "no mode" "key 'mode' is missing" -- "$(e ', "tile": {"tile": 64}')"
bad 6 "unknown mode" "'mode' is 'comfi'" "comfy-3pass" -- "$(e ', "tile": {"mode": "comfi"}')"
bad 6 "mode none" "'mode' is 'none'" "no key 'tile'" -- "$(e ', "tile": {"mode": "none"}')"
bad 6 "tile size 0" "'tile' is 0" "from 1" -- "$(e ', "tile": {"mode": "comfy", "tile": 0}')"
bad 6 "three tile sizes" "list of 2 integers" -- "$(e ', "tile": {"mode": "comfy", "tile": [1, 2, 3]}')"
bad 6 "tile size real" "'tile' is a real number" -- "$(e ', "tile": {"mode": "comfy", "tile": 64.5}')"
bad 6 "negative overlap" "'overlap' is -8" "from 0" -- "$(e ', "tile": {"mode": "comfy", "overlap": -8}')"
bad 6 "memory limit" "'memory_limit' is wrong" "'2GB'" "GiB" -- "$(e ', "tile": {"mode": "exact", "memory_limit": "2GB"}')"
bad 6 "memory limit number" "'memory_limit' is an integer; a string" -- "$(e ', "tile": {"mode": "exact", "memory_limit": 2}')"
bad 8 "key on its own line" "case 'x'" "'blend'" "is no key" -- "$(e ', "tile":
 {"mode": "comfy",
  "blend": 4}')"
bad 6 "entry is a list" "entry 1 of the list is a list" -- '[]'
bad 7 "second entry is a string" "entry 2 of the list is a string" -- "$a" '"b"'
bad 7 "duplicate key" "duplicate object key" -- "$a" "$(e ', "id": "y"')"
bad 7 "syntax" "not valid JSON" -- "$a" '{"id": "x",}'
bad 6 "quote in a text" "byte 0x22" -- "$(e ', "why": "a \"b\""')"
bad 6 "line break in a text" "byte 0x0a" -- "$(e ', "why": "a\nb"')"
bad 5 "no case" "'cases' is empty" --
# top SED LINE NAME SUBSTRING...: the head of the file.
top() {
    local edit=$1 line=$2
    cases "$a"
    sed -i "$edit" $J
    shift 2
    refuses 1 "$1" "$J:$line:" "${@:2}" -- show
}
top 's|cases/1|cases/2|' 2 "schema of the future" "'vaegolden-cases/2'" "this tool reads 'vaegolden-cases/1'"
top '/"schema"/d' 1 "no schema" "key 'schema' is missing"
top 's|"suite_version": "1.0"|"suite_version": "1"|' 3 "version" "'suite_version' is '1'"
top 's|"spec_version": "1.0"|"spec_version": 1|' 4 "version is a number" "'spec_version' is an integer"
top 's|"cases": \[|"extra": 1, "cases": [|' 5 "unknown key above" "'extra' is no key"
top 's|"cases"|"case"|' 1 "no list" "key 'cases' is missing"
echo '[]' >$J
refuses 1 "no object" "$J:1:" "object" -- show
: >$J
refuses 1 "empty file" "$J:1:" "not valid JSON" -- show

# ---- what only shows when models are opened: the case's line -------------------------
cases "$a" "${b/16, \"overlap\": 8/16, \"overlap\": 16}"
refuses 1 "overlap of a whole tile" "$J:7:" "case 'b'" overlap -- regen
cases "$a" "${b/taesd,/sd9,}"
refuses 1 "unknown architecture" "$J:7:" "case 'b'" sd9 -- regen
cases "$a" "${b/synth:taesd,seed=2,div=16/small.safetensors}"
refuses 1 "no model file" "$J:7:" "golden/models/small.safetensors" -- regen
cases "$a" "${b/seed:2,2x3/z.npy}"
refuses 1 "no latents file" "$J:7:" "golden/models/z.npy" -- regen
cases "$a" "${d/\"raw\"/\"raw\", \"picture\": true}"
refuses 1 "picture of a batch" "$J:7:" "batch of 1" -- regen

# ---- the manifest ------------------------------------------------------------------------
cases "$a" "$b" "$c"
runs "a version" regen
runs "verifies" verify
M=golden/v1/MANIFEST.sha256
cp -r golden "$box/good"
again() { rm -rf golden && cp -r "$box/good" golden; }
# m SED NAME SUBSTRING...: the manifest so edited.
m() {
    again
    sed -i "$1" $M
    finds "$2" "${@:3}" -- verify
}
m '2s/^./g/' "no hexadecimal" "$M:2:" "64 digits"
m '2s/^.//' "a digit short" "$M:2:" "64 digits"
m '2s/  / /' "one space" "$M:2:" "two spaces"
m '2s/  / */' "binary form" "$M:2:" "two spaces"
m '2s/$/\r/' "carriage return" "$M:2:" "carriage return"
m '2s/^/\n/' "empty line" "$M:2:" "it is empty"
m '2{h;G}' "line twice" "$M:3:" "that of the line before"
m '1{h;d};2{G}' "out of order" "$M:2:" "out of order"
m '2s|cases/|/cases/|' "absolute path" "$M:2:" "relative"
m '2s|cases/|../cases/|' "path that leaves" "$M:2:" "leaves"
m '2s|cases/|./cases/|' "path not shortest" "$M:2:" "leaves"
m '4s|  .*|  MANIFEST.sha256|' "holds itself" "$M:4:" "cannot hold itself"
m '2s|b.json|bb.json|' "file that is missing" "$M:2: 'cases/bb.json' is missing" "'cases/b.json' is not in the manifest"
m '2d' "line lost" "golden/v1: 'cases/b.json' is not in the manifest"
m '$d' "last line lost" "provenance.json' is not in the manifest"
m '2s/^\(.\)./\1x/' "digit that is none" "$M:2:"
again && head -c -1 $M >"$box/cut" && cp "$box/cut" $M
finds "cut off" "$M:6:" "cut off" -- verify
again && : >$M && finds "empty manifest" "$M:1:" "empty" -- verify
again && rm $M && finds "no manifest" "$M: there is no manifest" "regen" -- verify
again && printf 'a\0b\n' >$M && finds "NUL byte" "$M:1:" "NUL" -- verify
again && echo more >>golden/v1/provenance.json
finds "changed file" "$M:6: 'provenance.json' was changed" "provenance.json:" -- verify
again && rm golden/v1/pictures/a.png
finds "picture lost" "'pictures/a.png' is missing" "case 'a': has no picture" -- verify
again && cp golden/v1/cases/a.json golden/v1/cases/z.json
finds "file too many" "'cases/z.json' is not in the manifest" "cases/z.json:3: 'id' is 'a'" -- verify
again && cp golden/v1/pictures/c.png golden/v1/pictures/a.png && remanifest golden/v1
finds "picture of another case" "pictures/a.png" -- verify

# ---- records, under a manifest that holds --------------------------------------------------
R=golden/v1/cases/b.json
# r SED NAME SUBSTRING...: the record of b so edited.
r() {
    again
    sed -i "$1" $R
    remanifest golden/v1
    finds "$2" "${@:3}" -- verify
}
r '2s|case/1|case/2|' "schema of the future" "$R:2:" "this tool reads"
r '3s|"b"|"bb"|' "id of another" "$R:3: 'id' is 'bb'" "wants 'b'"
r '/"arch"/d' "key lost" "$R:1: key 'arch' is missing"
r '3s|$| "note": 1,|' "unknown key" "$R:3: 'note' is no key"
r '/"output_sha256"/s|: "..|: "|' "digest too short" "$R:17: 'output_sha256' is no SHA-256"
r '/"rms_order"/s|"seq"|"sec"|g' "unknown order" "want a summation order"
r '/"f32"/s|"rms": [^,]*|"rms": -1|' "negative noise" "'rms' is -1"
r '/"f32"/s|"rms": [^,]*|"rms": "0"|' "noise is a string" "'rms' is a string; a number"
r '/"shape"/s|\[1, |[|' "shape of three" "'shape' is a list of another length" "4 integers"
r '/"latents"/s|seed:2|seed:3|' "another input" "'input_sha256' is not the digest of this input"
r '/"shape"/s|, |,|' "another layout" "$R: is not as vaegolden writes it"
r '$d' "cut off" "not valid JSON"
finish 90
