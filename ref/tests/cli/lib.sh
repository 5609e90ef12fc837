# Shared by the scripts here and by golden/tests; sourced, not run.
# SPDX-License-Identifier: MIT
#
# work/ is where each script works; after a refused command its listing must be
# what it was before, so a left-over output or temporary file is always seen.
set -u
# Small models: threads that spin cost more than they bring on a busy machine.
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=1
: "${VAEPROOF_BIN:?set it to the folder that holds vaeref}"
tool=${tool:-vaeref} # the tool that runs and refuses are about
box=$(mktemp -d)
trap 'chmod -R u+w "$box"; rm -rf "$box"' EXIT
chmod 755 "$box"
vaeref=$VAEPROOF_BIN/vaeref
mkdir "$box/work"
cd "$box/work" || exit 1
checks=0 failures=0

fail() { failures=$((failures + 1)); echo "FAIL: $*"; }
check() { # check NAME COMMAND...: the command must succeed
    checks=$((checks + 1))
    local name=$1
    shift
    "$@" >"$box/check" 2>&1 || fail "$name: $* $(head -c 300 "$box/check")"
}
has() { grep -qF -- "$2" "$1"; }
lacks() { ! grep -qF -- "$2" "$1"; }
same() { [ "$1" = "$2" ]; }

# runs NAME ARGS...: exit 0, silent on stderr.
runs() {
    checks=$((checks + 1))
    local name=$1 code
    shift
    "$VAEPROOF_BIN/$tool" "$@" >"$box/stdout" 2>"$box/stderr" </dev/null
    code=$?
    [ $code = 0 ] || fail "$name: exit $code, want 0: $(head -c 600 "$box/stderr")"
    [ ! -s "$box/stderr" ] || [ $code != 0 ] || fail "$name: stderr says: $(head -c 300 "$box/stderr")"
}

listing() { find . -printf '%p %s\n' | LC_ALL=C sort; }

# refuses CODE NAME SUBSTRING... -- ARGS...: that exit code, exactly one line on
# stderr beginning "TOOL: error: " and holding every substring, nothing on
# stdout, no file made or changed. runner, when set, wraps the command.
runner=()
refuses() {
    checks=$((checks + 1))
    local code=$1 name=$2 wants=() before got want
    shift 2
    while [ "$1" != -- ]; do wants+=("$1"); shift; done
    shift
    before=$(listing)
    "${runner[@]}" "$VAEPROOF_BIN/$tool" "$@" >"$box/stdout" 2>"$box/stderr" </dev/null
    got=$?
    local text
    text=$(head -c 900 "$box/stderr")
    [ $got = "$code" ] || fail "$name: exit $got, want $code: $text"
    [ "$(wc -l <"$box/stderr")" = 1 ] || fail "$name: want one line on stderr: $text"
    [[ $text == "$tool: error: "* ]] || fail "$name: want '$tool: error: ': $text"
    for want in "${wants[@]}"; do
        has "$box/stderr" "$want" || fail "$name: want '$want' in: $text"
    done
    [ ! -s "$box/stdout" ] || fail "$name: stdout says $(head -c 200 "$box/stdout")"
    [ "$before" = "$(listing)" ] ||
        fail "$name: files changed: $(diff <(echo "$before") <(listing) | head -5 | tr '\n' ' ')"
}

finish() {
    echo "$checks checks, $failures failed"
    [ "$failures" = 0 ] && [ "$checks" -ge "$1" ] && exit 0
    [ "$checks" -ge "$1" ] || echo "FAIL: fewer checks ran than the $1 this script has"
    exit 1
}
