#!/bin/bash
# Every mutant is rejected by a case of the level that is to catch it, with the status it
# is to get; every honest variant is accepted. With a file name: writes the table there.
# Usage: mutants.sh faulty|locate|honest [TABLE.md]
# VAEPROOF_SEEDS=N: honest variants are tried with N seeds (default 1), VAEPROOF_GLOB on other
# cases than operations and blocks.
# SPDX-License-Identifier: MIT
set -u
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
vaecheck=${VAEPROOF_BIN:?}/vaecheck
list=$VAEPROOF_BIN/../tests/vaemutants
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
checks=0 failures=0
fail() { failures=$((failures + 1)); echo "FAIL: $*"; }

faulty() { # name kind status level cases culprit what
    local log=$box/log.jsonl code caught
    checks=$((checks + 1))
    "$vaecheck" --backend mutants --option "variant=$1" --case "$5" --timeout 2 --no-locate --log "$log" --seed 0x5eed -q >"$box/out" 2>&1
    code=$?
    [ $code = 1 ] || { fail "$1: exit $code, want 1: $(tail -c 300 "$box/out")"; return; }
    caught=$(grep '"event":"case"' "$log" | grep "\"level\":\"$4\"" | grep -c "\"status\":\"$3\"")
    [ "$caught" -gt 0 ] || { fail "$1: no case of $4 says $3: $(grep -v '"status":"pass"' "$log" | cut -c1-300 | head -3)"; return; }
    first=$(grep "\"status\":\"$3\"" "$log" | head -1 | sed -E 's/.*"id":"([^"]*)".*/\1/')
    ran=$(grep -c '"event":"case"' "$log")
    why=$(grep "\"status\":\"$3\"" "$log" | head -1 | sed -E 's/.*"reason":"(([^"\\]|\\.)*)".*/\1/' | cut -c1-110 | tr '|' '/')
    printf '| `%s` | %s | %s | %s | `%s` | %s of %s | %s |\n' "$1" "$7" "$4" "$3" "$first" "$caught" "$ran" "$why" >>"$box/table"
}

# A whole decode is wrong: the operation is named.
locate() {
    local log=$box/log.jsonl model=decode.sd15.f32.4x4 got
    [ "$6" = - ] && return
    checks=$((checks + 1))
    "$vaecheck" --backend mutants --option "variant=$1" --case $model --log "$log" --seed 0x5eed -q >"$box/out" 2>&1
    got=$(sed -nE 's/.*"culprit":\{[^}]*"kind":"([^"]*)".*/\1/p' "$log")
    [ "$got" = "$6" ] || fail "$1: the report names '$got', want $6: $(grep -v '"event":"run"' "$log" | cut -c1-400 | head -1)"
}

honest() {
    local seeds=${VAEPROOF_SEEDS:-1} glob=${VAEPROOF_GLOB:-[ob]*}
    for ((s = 1; s <= seeds; s++)); do
        checks=$((checks + 1))
        "$vaecheck" --backend mutants --option "variant=$1" --case "$glob" --seed $s --no-locate -q >"$box/out" 2>&1 ||
            fail "$1, seed $s: $("$vaecheck" --backend mutants --option "variant=$1" --case "$glob" --seed $s --no-locate 2>&1 | cut -c1-300 | head -5)"
    done
}

while IFS=$'\t' read -r name kind status level cases culprit what; do
    case $1 in
        faulty) [ "$kind" = honest ] || faulty "$name" "$kind" "$status" "$level" "$cases" "$culprit" "$what" ;;
        locate) [ "$kind" = operation ] && locate "$name" "$kind" "$status" "$level" "$cases" "$culprit" "$what" ;;
        honest) [ "$kind" = honest ] && honest "$name" ;;
    esac
done < <("$list")

if [ -n "${2:-}" ]; then
    {
        echo "# What the suite can tell apart"
        echo
        echo "Made by \`conformance/tests/mutants.sh faulty docs/sensitivity.md\`, seed 0x5eed; run with every test run."
        echo "Each backend is wrong in one way. The cases named by its glob were run; the first that caught it is shown."
        echo
        echo "| backend | stands for | level | status | first case that caught it | caught | reason given |"
        echo "|---|---|---|---|---|---|---|"
        cat "$box/table"
    } >"$2.tmp" && mv "$2.tmp" "$2"
fi
echo "$checks checks, $failures failed"
[ "$failures" = 0 ] && [ "$checks" -ge 11 ]
