#!/bin/bash
# index.html opens in headless Chromium without a console error and shows its pictures; a
# screenshot is left in the build folder.
# SPDX-License-Identifier: MIT
set -u
chromium=$(command -v chromium || command -v chromium-browser) || { echo "skipped: chromium is not installed (apt-get install chromium)"; exit 77; }
out=$VAEPROOF_BIN/../browser
rm -rf "$out" && mkdir -p "$out" || exit 1
"$VAEPROOF_BIN/vaecheck" --backend mutants --option variant=no_scale --case '[d]*.sd15.f32.*' --seed 5 --report "$out" >/dev/null
"$VAEPROOF_BIN/vaecheck" --backend mutants --option variant=corner --case 'tile.comfy.f32.*' --seed 5 --log "$out/t.jsonl" >/dev/null
# Every picture must have been decoded: a script says so in the title.
sed 's|</html>|<script>onload=()=>{const i=[...document.images];document.title="images "+i.filter(x=>x.complete\&\&x.naturalWidth>0).length+" of "+i.length}</script></html>|' \
    "$out/index.html" >"$out/probe.html"
run() { timeout 60 "$chromium" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$out/profile" --enable-logging=stderr --v=0 "$@" 2>"$out/log"; }
run --window-size=1280,2200 --screenshot="$out/index.png" "file://$out/index.html" >/dev/null || { tail "$out/log"; exit 1; }
run --virtual-time-budget=5000 --dump-dom "file://$out/probe.html" >"$out/dom.html"
title=$(grep -o '<title>[^<]*' "$out/dom.html" | head -1)
rm -rf "$out/profile"
if grep -E 'CONSOLE|Uncaught' "$out/log"; then echo "FAIL: the console has something to say"; exit 1; fi
[ -s "$out/index.png" ] || { echo "FAIL: no screenshot"; exit 1; }
case $title in
    *"images 0 of"*) echo "FAIL: no picture: $title"; exit 1 ;;
    *"images "*) set -- $title; [ "$2" = "$4" ] || { echo "FAIL: $title"; exit 1; } ;;
    *) echo "FAIL: the page did not run: $title"; exit 1 ;;
esac
echo "$title, screenshot $out/index.png"
