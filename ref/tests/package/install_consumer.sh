#!/usr/bin/env bash
# install_consumer.sh CMAKE BUILD_DIR CC [CFLAGS]: installs the built library
# under a prefix that is not the configured one, moves that folder, and builds
# and runs the consumer against it through find_package and through pkg-config.
# SPDX-License-Identifier: MIT
set -euo pipefail
cmake=$1 build=$2 cc=$3 flags=${4:-}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
expected="status 41: wrong shape"

check() { # HOW PROGRAM
    local said
    said=$("$2")
    if [ "$said" != "$expected" ]; then
        printf '%s: the consumer printed "%s", expected "%s"\n' "$1" "$said" "$expected"
        exit 1
    fi
    printf '%s: built and ran\n' "$1"
}

"$cmake" --install "$build" --prefix "$work/first" >/dev/null
mv "$work/first" "$work/moved" # an installed tree must not remember where it was put
prefix=$work/moved

if ! { "$cmake" -S "$here/consumer" -B "$work/b" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_PREFIX_PATH="$prefix" &&
    "$cmake" --build "$work/b"; } >"$work/log" 2>&1; then
    cat "$work/log"
    exit 1
fi
if [ -x "$prefix/bin/vaecheck" ] && [ -z "$flags" ]; then
    "$prefix/bin/vaecheck" --backend minimal -q || { echo "the installed vaecheck does not find its backend or its cases"; exit 1; }
fi
check find_package "$work/b/consumer"

pc=$(find "$prefix" -name vaeproof.pc)
[ -n "$pc" ] || { echo "vaeproof.pc was not installed"; exit 1; }
export PKG_CONFIG_PATH=${pc%/*}
# shellcheck disable=SC2046,SC2086 # flags are words
"$cc" -std=c11 $flags "$here/consumer/consumer.c" $(pkg-config --cflags vaeproof) \
    $(pkg-config --libs vaeproof) -o "$work/by_pkg_config"
check pkg-config "$work/by_pkg_config"

if grep -rIlF "$work/first" "$prefix" | grep .; then
    echo "these installed files remember the prefix they were first put under"
    exit 1
fi
