#!/bin/bash
# What is committed is what this build computes: verify, and regen elsewhere gives
# the same bytes. "short" (sanitizers): some cases of each kind only.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"
golden=$VAEPROOF_SOURCE/golden
OMP_NUM_THREADS=$(nproc)
newest=$(find "$golden" -maxdepth 1 -name 'v[0-9]*' | sort -V | tail -n 1)

check "the manifest is what sha256sum takes" holds_or_none "$newest"
check "there is a manifest" test -e "$newest/MANIFEST.sha256"
check "pictures within 1 MB" test "$(cat "$newest"/pictures/*.png | wc -c)" -le 1048576
check "no compiler, processor or path in what is committed" \
    sh -c "! grep -rliE --include=*.json 'gcc|clang|x86|avx|/home|/tmp|/work' '$newest'"
if [ "${1:-full}" = short ]; then
    runs "verifies, in part" verify --golden "$golden" --only '*1x1'
    cat "$box/stdout"
    runs "regen elsewhere, in part" regen --golden "$golden" --output mine --only 'taesd.*'
    for f in mine/cases/*.json; do
        check "$f" cmp "$f" "$newest/cases/${f##*/}"
    done
else
    runs "verifies" verify --golden "$golden"
    cat "$box/stdout"
    runs "regen elsewhere" regen --golden "$golden" --output mine
    cat "$box/stdout"
    check "the same bytes" diff -r "$newest" mine
fi
check "every case is frozen" test "$(find "$newest/cases" -name '*.json' | wc -l)" = "$("$vaegolden" show --golden "$golden" | wc -l)"
finish 8
