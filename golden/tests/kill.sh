#!/bin/bash
# kill -9 at any moment: the manifest holds or is not there, and the same command
# finishes with the same bytes. Twenty random moments, then every change of the
# file system in turn. Usage: kill.sh [kill_at library; without it: no turn]
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
library=${1:-}

# ---- random moments ---------------------------------------------------------------
entries=("$a" "$b" "$c" "$d")
for n in 1 2 3 4 5 6 7 8; do
    entries+=("{\"id\": \"more.$n\", \"model\": \"synth:sd15,seed=$n,div=32\", \"latents\": \"seed:$n,4x4\"}")
done
cases "${entries[@]}"
start=${EPOCHREALTIME/./}
runs "undisturbed" regen --output whole
took=$((${EPOCHREALTIME/./} - start)) # microseconds
seed=${VAEGOLDEN_SEED:-$RANDOM}
RANDOM=$seed
echo "undisturbed: $((took / 1000)) ms; VAEGOLDEN_SEED=$seed"
killed=0
for n in {1..20}; do
    [ -e v/MANIFEST.sha256 ] && rm -rf v # finished: begin anew
    "$vaegolden" regen --output v --jobs 2 >"$box/stdout" 2>"$box/stderr" &
    pid=$!
    sleep "$(awk -v t=$took -v r=$RANDOM 'BEGIN { print t / 1e6 * 0.6 * r / 32767 }')"
    kill -9 $pid 2>/dev/null && killed=$((killed + 1))
    wait $pid 2>/dev/null
    check "kill $n: the manifest holds or is not there" holds_or_none v
done
check "kills that hit a running regen" test $killed -ge 10
echo "$killed of 20 kills hit a running regen"
runs "finishes" regen --output v
check "the same bytes" diff -r whole v

# Ctrl-C keeps what is done and says so. It may come before the work or after it.
told=0
for part in 0.5 0.6 0.4 0.7 0.3 0.5 0.6 0.4; do
    rm -rf v
    timeout --preserve-status --signal=INT "$(awk -v t=$took -v p=$part 'BEGIN { print t / 1e6 * p }')" \
        "$vaegolden" regen --output v >"$box/stdout" 2>"$box/stderr"
    code=$?
    if [ $code = 130 ] && grep -qE 'interrupted; [0-9]+ of 12 cases are done and kept: the same command continues' "$box/stderr"; then
        told=1
        break
    fi
done
check "an interrupt says how far it got" test $told = 1
runs "goes on after an interrupt" regen --output v
check "the same bytes" diff -r whole v

# ---- every change of the file system ---------------------------------------------------
if [ -n "$library" ]; then
    cases "$a" "$b"
    runs "two cases" regen
    cp -r golden "$box/two"
    cases "$a" "$b" "$c"
    cp golden/cases.json "$box/three.json"
    runs "three" regen
    cp -r golden/v1 "$box/want"
    steps=0 lost=0
    for after in '' 1; do
        for ((n = 1; n < 500; n++)); do
            rm -rf golden
            cp -r "$box/two" golden
            cp "$box/three.json" golden/cases.json
            { # braces: the shell's own note on the kill is not wanted
                env ${after:+VAEGOLDEN_KILL_AFTER=1} VAEGOLDEN_KILL_AT=$n LD_PRELOAD="$library" \
                    "$vaegolden" regen --jobs 1 >"$box/stdout" 2>"$box/stderr"
                code=$?
            } 2>/dev/null
            [ $code = 0 ] && break
            steps=$((steps + 1))
            [ $code = 137 ] || fail "change $n${after:+ done}: exit $code, want 137: $(cat "$box/stderr")"
            check "change $n${after:+ done}: the manifest holds or is not there" holds_or_none golden/v1
            [ -e golden/v1/MANIFEST.sha256 ] || lost=$((lost + 1))
            runs "change $n${after:+ done}: goes on" regen --jobs 1
            check "change $n${after:+ done}: the same bytes" diff -r "$box/want" golden/v1
        done
    done
    echo "killed at $steps changes of the file system; $lost of these left no manifest"
    check "enough changes were tried" test $steps -ge 40
    check "some while the manifest was away" test $lost -ge 4
fi
least=12 # a kill that comes too late is no check
[ -z "${library:-}" ] || least=29
finish $least
