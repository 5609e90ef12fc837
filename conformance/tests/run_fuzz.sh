#!/bin/bash
# Builds the fuzz targets with clang's libFuzzer and runs each for ten seconds from its
# corpus. Usage: run_fuzz.sh BUILD_DIR [SECONDS]
# SPDX-License-Identifier: MIT
set -u
source=${VAEPROOF_SOURCE:?}
out=$1/fuzz seconds=${2:-10}
clang=$(command -v clang-19 || command -v clang-14) || { echo "skipped: no clang-19 or clang-14"; exit 77; }
mkdir -p "$out"
echo 'int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n); int LLVMFuzzerTestOneInput(const unsigned char *d, unsigned long n) { (void)d; (void)n; return 0; }' >"$out/probe.c"
"$clang" -fsanitize=fuzzer,address "$out/probe.c" -o "$out/probe" 2>"$out/probe.log" || { echo "skipped: $clang cannot link libFuzzer"; exit 77; }
cd "$source" || exit 1
common=(conformance/runner/{suite,manifest,expand,waiver}.c conformance/wire/*.c)
for target in cases waivers frames; do
    "$clang" -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -DFUZZ_TARGET=$target -D_GNU_SOURCE \
        -Iref -Iref/include -Iconformance -Iconformance/include conformance/tests/fuzz.c "${common[@]}" "$1/ref/libvaeref.a" -ljansson -lpng -lgomp -lm \
        -o "$out/fuzz_$target" || exit 1
    mkdir -p "$out/corpus_$target"
    "$out/fuzz_$target" -max_total_time="$seconds" -print_final_stats=1 -rss_limit_mb=2048 "$out/corpus_$target" \
        "conformance/tests/corpus/$target" >"$out/$target.log" 2>&1 || { tail -30 "$out/$target.log"; exit 1; }
    grep -E "stat::number_of_executed_units" "$out/$target.log" | sed "s/^/$target: /"
done
