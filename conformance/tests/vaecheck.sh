#!/bin/bash
# vaecheck as people meet it: usage, selection, seeds, shards, waivers, a run that does
# nothing, a backend that is none.
# SPDX-License-Identifier: MIT
set -u
export OMP_WAIT_POLICY=passive
vaecheck=${VAEPROOF_BIN:?}/vaecheck
box=$(mktemp -d)
trap 'rm -rf "$box"' EXIT
cd "$box" || exit 1
checks=0 failures=0
fail() { failures=$((failures + 1)); echo "FAIL: $*"; }
# run CODE NAME ARGS...: exit code; text in out, err
run() {
    checks=$((checks + 1))
    local code=$1 name=$2 got
    shift 2
    "$vaecheck" "$@" >out 2>err </dev/null
    got=$?
    [ $got = "$code" ] || fail "$name: exit $got, want $code: $(head -c 400 err) $(tail -c 300 out)"
}
has() { checks=$((checks + 1)); grep -qF -- "$2" "$1" || fail "want '$2' in $1: $(head -c 400 "$1")"; }
lacks() { checks=$((checks + 1)); ! grep -qF -- "$2" "$1" || fail "'$2' is in $1"; }

# ---- wrong command lines ---------------------------------------------------------------
run 2 "nothing"; has err "want --backend NAME"
run 2 "unknown option" --backend ref --colour
run 2 "profile" --backend ref --profile tiny; has err "core, full or embedded"
run 2 "level" --backend ref --level L9; has err "L0 to L7"
run 2 "contract" --backend ref --contract f8; has err "'f8' is not one of"
for bad in 0/2 3/2 x 1/2/3; do run 2 "shard $bad" --backend ref --shard $bad; has err "want I/N"; done
for bad in -1 x 1x ''; do run 2 "seed $bad" --backend ref --seed "$bad"; done
run 2 "timeout" --backend ref --timeout 0; has err "from 0.1"
run 2 "model without latents" --backend ref --model x; has err "go together"
run 2 "model with levels" --backend ref --model x --latents y --level L1; has err "have no meaning"
run 2 "no such case" --backend ref --case 'nothing.*'; has err "no case is left to run"
run 2 "no such cases" --backend ref --cases nowhere; has err "no case files in nowhere"
run 4 "no such backend" --backend nobody; has err "want ref, onednn"
echo "not a library" >x.so
run 4 "no library" --backend ./x.so; has err "does not load"
run 2 "report into nowhere" --backend ref --report no/where --case 'op.relu.*'; has err "no/where"
mkdir bad && echo '{"schema": "vaeproof-case/1", "cases": [{"id": "a"}]}' >bad/x.json
run 2 "bad case file" --backend ref --cases bad; has err "bad/x.json:1:"

# ---- selection ---------------------------------------------------------------------------
run 0 "list" --list; checks=$((checks + 1)); [ "$(wc -l <out)" -ge 400 ] || fail "core has $(wc -l <out) cases, want 400"
cp out core.txt
run 0 "list of full" --list --profile full; checks=$((checks + 1)); [ "$(wc -l <out)" -gt "$(wc -l <core.txt)" ] || fail "full is no larger than core"
for i in 1 2 3; do run 0 "shard $i" --list --shard $i/3; cat out >>shards.txt; done
checks=$((checks + 1)); cmp -s <(sort core.txt) <(sort shards.txt) || fail "three shards are not the whole"

# ---- runs ----------------------------------------------------------------------------------
some=(--backend ref --case 'op.[rsc]*' --seed 0x1234)
run 0 "some cases" "${some[@]}" --log one.jsonl; has out "conformant as far as asked"
run 0 "again" "${some[@]}" --log two.jsonl
strip() { sed -E 's/"seconds":[0-9.e-]+//; s/"time":"[^"]*"//; s/(one|two)\.jsonl//' "$1"; }
checks=$((checks + 1)); cmp -s <(strip one.jsonl) <(strip two.jsonl) || fail "the same seed gives another log"
run 0 "another seed" --backend ref --case 'op.[rsc]*' --seed 0x1235 --log two.jsonl
checks=$((checks + 1)); cmp -s <(strip one.jsonl) <(strip two.jsonl) && fail "another seed gives the same log"
run 0 "fresh seeds" --backend ref --case 'op.relu.*'; has out "seed 0x"
run 5 "nothing executed" --backend ref --level L5,L6 --case '*' --cases "$VAEPROOF_SOURCE/conformance/tests/future"; has out incomplete
run 0 "a larger list fits" "${some[@]}" --verbose; has out "pass         op.relu.f32.c16.8x8"
sed 1d core.txt >short.txt
run 2 "list that lacks an id" "${some[@]}" --must-pass short.txt; has err "want the list made again"
(cat core.txt; echo op.gone.f32) >long.txt
run 2 "list with an id too many" "${some[@]}" --must-pass long.txt; has err "'op.gone.f32' is required"

# ---- shards, as a Slurm array would run them ---------------------------------------------------
mkdir two
for i in 1 2; do
    checks=$((checks + 1))
    VAECHECK=$vaecheck SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=2 "$VAEPROOF_SOURCE/conformance/examples/slurm_array.sh" \
        minimal core 0x77 two >out 2>err || fail "shard $i: $(head -c 300 err)"
done
run 0 "merged" merge --report merged --junit j.xml two/shard-1.jsonl two/shard-2.jsonl; has out "minimal: conformant; 611 cases of 2 logs"
has merged/report.json '"verdict": "conformant"'; has j.xml "<skipped"
run 5 "half of it" merge two/shard-2.jsonl; has out "shard 1 of 2 is missing"
run 5 "twice the same" merge two/shard-1.jsonl two/shard-1.jsonl; has err "in two logs"
run 2 "no log" merge merged/report.json; has err "report.json:1"

# ---- waivers ---------------------------------------------------------------------------------
waiver() { echo "{\"schema\": \"vaeproof-waivers/1\", \"waivers\": [{\"case\": \"$1\", \"backend\": \"ref\", \"suite\": \"0.1.0\", \"status\": \"fail\", \"reason\": \"r\", \"issue\": \"https://example.org/1\", \"owner\": \"o\", \"expires\": \"$2\"}]}" >w.json; }
soon=$(date -u -d '+30 days' +%F) gone=$(date -u -d '-1 day' +%F)
waiver 'op.relu.*' "$soon"
run 1 "a waiver for what passes" "${some[@]}" --waivers w.json; has out "xpass"; has out "take the waiver out"
waiver 'op.none.*' "$soon"
run 0 "a waiver for nothing" "${some[@]}" --waivers w.json
waiver 'op.relu.*' "$gone"
run 2 "an expired waiver" "${some[@]}" --waivers w.json; has err "expired on $gone"

echo "$checks checks, $failures failed"
[ "$failures" = 0 ] && [ "$checks" -ge 78 ]
