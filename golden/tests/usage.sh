#!/bin/bash
# Command lines of vaegolden: what is wrong is said in one line, exit 2.
# SPDX-License-Identifier: MIT
. "$(dirname "$0")/lib.sh"

u() { refuses 2 "$@"; }
u "no command" "no command given" regen verify diff show --
u "unknown command" "unknown command 'regn'" regen verify diff show -- regn
u "option before command" "unknown option '--jobs'" -- --jobs 2 regen
u "jobs 0" "--jobs '0'" "from 1" -- regen --jobs 0
u "jobs text" "--jobs '2x'" -- verify --jobs 2x
u "unknown option" "unknown option '--olny'" "regen --help" -- regen --olny x
u "argument to regen" "unexpected argument 'v1'" -- regen v1
u "two folders to verify" "unexpected argument 'v2'" "one folder" -- verify v1 v2
u "diff with one" "want two folders, OLD and NEW" -- diff v1
u "diff with three" "unexpected argument 'v3'" -- diff v1 v2 v3
u "two ids" "unexpected argument 'b'" -- show a b
u "empty output" "--output ''" folder -- regen --output ''
u "new version elsewhere" "--new-version" "not both" -- regen --new-version --output x
refuses 1 "no golden folder" "golden/cases.json" "--golden DIR" -- regen
refuses 1 "no golden folder" "golden: cannot open" "--golden DIR" -- verify
refuses 1 "no such version" "v9" -- verify v9
refuses 1 "diff of no version" "nowhere: is no golden version" -- diff nowhere nowhere
cases "$a" "$b"
refuses 1 "nothing to verify" "no version" "regen" -- verify
refuses 1 "no case matches" "--only 'x*'" "show lists" -- regen --only 'x*'
refuses 1 "unknown id" "no case 'aa'" "nearest is 'a'" -- show aa
VAEREF_ISA=z80 refuses 1 "unknown instruction set" z80 -- regen
touch file
refuses 1 "output is a file" "file" -- regen --output file
refuses 1 "output below nothing" "no/where: cannot make this folder" -- regen --output no/where
mkdir other && touch other/notes.txt
refuses 1 "output holds something else" "other: holds 'notes.txt'" "new folder" -- regen --output other

runs "help" --help
check "help names every command" test "$(grep -cE '^  (regen|verify|diff|show) ' "$box/stdout")" = 4
runs "version" --version
check "version is a number" grep -qE '^vaegolden [0-9]+\.[0-9]+\.[0-9]+$' "$box/stdout"
for command in regen verify diff show; do
    runs "$command help" $command --help
    check "$command help shows its usage" has "$box/stdout" "Usage: vaegolden $command"
    check "$command help has an example" grep -q 'Example' "$box/stdout"
done
runs "list" show
check "list has both" test "$(wc -l <"$box/stdout")" = 2
runs "one case" show b
check "says what is not made yet" has "$box/stdout" "golden/v1 has no record of it yet"
check "says how it is tiled" has "$box/stdout" "comfy, tile 16x16, overlap 8x8"
finish 45
