# shellcheck shell=bash
# Shared by the scripts in ci/: where the repository is, how many jobs, which
# generator. Sourced, not run.
# SPDX-License-Identifier: MIT
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export LC_ALL=C
jobs=${VAEPROOF_JOBS:-$(nproc)}
shared=${VAEPROOF_SHARED_DIR:-../shared} # real weights and latents, where they are present

say() { printf '== %s\n' "$*"; }
die() { printf '%s: %s\n' "ci/$(basename "$0")" "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }

# The presets name no generator, so that plain make will do; ninja is quicker
# where it is installed.
if [ -z "${CMAKE_GENERATOR:-}" ] && have ninja; then
    export CMAKE_GENERATOR=Ninja
fi

# build PRESET [TARGET...]: configure and build, output kept short.
build() {
    local preset=$1
    shift
    say "build $preset (build/$preset)"
    mkdir -p "build/$preset"
    cmake --preset "$preset" -DVAEPROOF_SHARED_DIR="$(realpath -m "$shared")" \
        >"build/$preset/configure.log" 2>&1 ||
        { cat "build/$preset/configure.log" >&2; die "configuring $preset failed"; }
    cmake --build --preset "$preset" -j "$jobs" ${1:+--target "$@"}
}
