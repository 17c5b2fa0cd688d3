#!/bin/sh
# Runs the release example the way a person would: start it, approve it, look at what happened.
set -u
cd "$(dirname "$0")/.."
wonder=${1:-target/demo/wonder}
WONDER_HOME=$(mktemp -d)
export WONDER_HOME
trap 'rm -rf "$WONDER_HOME"' EXIT

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }

say wonder run examples/release.yaml --input version=1.4.0
"$wonder" run examples/release.yaml --input version=1.4.0
code=$?
[ "$code" -eq 3 ] || { echo "expected exit 3 (waiting for a person), got $code" >&2; exit 1; }

if [ -t 0 ] && [ -t 1 ]; then
    say wonder answer last
    "$wonder" answer last
else
    say wonder answer last approve=true
    "$wonder" answer last approve=true
fi
code=$?
[ "$code" -eq 0 ] || { echo "expected exit 0, got $code" >&2; exit 1; }

say wonder show last
"$wonder" show last
