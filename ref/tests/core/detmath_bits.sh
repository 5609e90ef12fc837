#!/bin/sh
# The functions of clause N5 give the same bits whatever the compiler, the
# optimisation level and the vector width: one program that hashes their results
# is built in several ways, and every digest must be the same.
#
# SPDX-License-Identifier: MIT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
ref=$(cd "$here/../.." && pwd)
command -v clang-19 >/dev/null || { echo "skipped: clang-19 is not installed"; exit 77; }
command -v gcc >/dev/null || { echo "skipped: gcc is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cpu_has() {
    for f in "$@"; do
        grep -qw "$f" /proc/cpuinfo || return 1
    done
}

runs=0
first=
check() { # compiler and flags
    "$@" -std=c11 -D_GNU_SOURCE -ffp-contract=off -I"$ref" -I"$ref/include" -o "$work/bits" \
        "$here/detmath_bits.c" "$ref/core/sha256.c" -lm
    got=$("$work/bits")
    echo "$*: " $got
    [ -n "$first" ] || first=$got
    [ "$got" = "$first" ] || { echo "FAIL: $* differs"; exit 1; }
    runs=$((runs + 1))
}

check gcc -O0
check gcc -O3
check clang-19 -O0
check clang-19 -O3
if cpu_has avx2 fma bmi2; then
    check gcc -O3 -march=x86-64-v3
    check clang-19 -O3 -march=x86-64-v3
fi
if cpu_has avx512f avx512dq avx512bw avx512vl avx512cd; then
    check gcc -O3 -march=x86-64-v4 -mprefer-vector-width=512
    check clang-19 -O3 -march=x86-64-v4
fi
echo "$runs builds, the same bits"
[ "$runs" -ge 4 ]
