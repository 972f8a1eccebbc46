#!/usr/bin/env bash
# Opens a report of `ferry bench --report` in headless Chromium, light and dark, and fails when the page logs an error or
# lacks its charts. With a second argument, pictures of both go to that folder.
#
#     scripts/check-report.sh report.html [folder]
set -euo pipefail

page=$(realpath "$1")
folder=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

if ! command -v chromium >/dev/null; then
    echo "chromium is not installed: apt-get install chromium" >&2
    exit 1
fi
browse() {
    timeout 60 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --enable-logging=stderr \
        --user-data-dir="$work/profile" --window-size=1240,2700 "$@" "file://$page"
}
browse --dump-dom >"$work/dom" 2>"$work/log"
if grep -E 'CONSOLE' "$work/log"; then
    echo "the page logs errors" >&2
    exit 1
fi
charts=$(grep -o '<svg' "$work/dom" | wc -l)
marks=$(grep -oE '<circle|<polyline' "$work/dom" | wc -l)
if ((charts < 4 || marks < 8)) || grep -q 'NaN\|inf' <(grep -oE '(cx|cy|points|d)="[^"]*"' "$work/dom"); then
    echo "the page has $charts charts and $marks marks, or a coordinate that is no number" >&2
    exit 1
fi
if [[ -n $folder ]]; then
    mkdir -p "$folder"
    browse --screenshot="$folder/report-light.png" 2>/dev/null
    browse --blink-settings=preferredColorScheme=0 --screenshot="$folder/report-dark.png" 2>/dev/null
fi
echo "ok: $charts charts, $marks marks"
