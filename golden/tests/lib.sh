# Shared by the scripts here; sourced, not run.
# SPDX-License-Identifier: MIT
tool=vaegolden
: "${VAEPROOF_SOURCE:?set it to the root of the sources}"
. "$VAEPROOF_SOURCE/ref/tests/cli/lib.sh"
vaegolden=$VAEPROOF_BIN/vaegolden
export OMP_NUM_THREADS=2

# cases LINE...: writes golden/cases.json with these entries, one a line, the
# first on line 6.
cases() {
    mkdir -p golden
    {
        printf '{\n  "schema": "vaegolden-cases/1",\n  "suite_version": "1.0",\n  "spec_version": "1.0",\n  "cases": [\n'
        local first=1 line
        for line in "$@"; do
            [ $first = 1 ] || printf ',\n'
            first=0
            printf '%s' "$line"
        done
        printf '\n  ]\n}\n'
    } >golden/cases.json
}
# Small cases that take a few hundredths of a second each.
a='{"id": "a", "model": "synth:taesd,seed=1,div=16", "latents": "seed:1,3x2", "picture": true}'
b='{"id": "b", "model": "synth:taesd,seed=2,div=16", "latents": "seed:2,2x3", "tile": {"mode": "comfy", "tile": 16, "overlap": 8}}'
c='{"id": "c", "model": "synth:sd15,seed=3,div=32", "latents": "seed:3,2x2", "picture": true}'
d='{"id": "d", "model": "synth:taesd,seed=4,div=16", "latents": "seed:4,2x2,n=2", "latent_space": "raw"}'

# holds_or_none DIR: DIR has no manifest, or one that every file obeys.
holds_or_none() {
    [ ! -e "$1/MANIFEST.sha256" ] || (cd "$1" && sha256sum --check --strict --quiet MANIFEST.sha256)
}
# flip FILE KEY: another first digit in the digest after "KEY".
flip() { sed -i -E "/\"$2\":/{s/(\"$2\": \")0/\11/;t;s/(\"$2\": \")[1-9a-f]/\10/}" "$1"; }
# remanifest DIR: a manifest that says what is there now.
remanifest() { (cd "$1" && find cases pictures provenance.json -type f | LC_ALL=C sort | xargs sha256sum >MANIFEST.sha256); }
# finds NAME SUBSTRING... -- ARGS...: exit 1, one line on stderr, and every
# substring in what stdout says.
finds() {
    checks=$((checks + 1))
    local name=$1 wants=() got want
    shift
    while [ "$1" != -- ]; do wants+=("$1"); shift; done
    shift
    "$vaegolden" "$@" >"$box/stdout" 2>"$box/stderr" </dev/null
    got=$?
    [ $got = 1 ] || fail "$name: exit $got, want 1: $(head -c 600 "$box/stderr")"
    for want in "${wants[@]}"; do
        has "$box/stdout" "$want" || fail "$name: want '$want' in: $(head -c 900 "$box/stdout" "$box/stderr")"
    done
}
