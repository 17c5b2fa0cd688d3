#!/bin/sh
# An agent the way a person would run it, but for one thing: it is killed in the middle of a tool. It goes on, and what
# the model's server and the tools have counted shows that no turn was paid twice and no call that completed made twice.
set -u
cd "$(dirname "$0")/.."
wonder=$(realpath "${1:-target/demo/wonder}")
server=$(realpath "${2:-target/demo/wonder-modelserver}")
place=$(mktemp -d)
WONDER_HOME="$place/home" DEMO_KEY=demo
export WONDER_HOME DEMO_KEY
"$server" --script examples/demo/turns.yaml --listen 127.0.0.1:0 > "$place/address" &
serving=$!
trap 'kill "$serving" 2>/dev/null; rm -rf "$place"' EXIT

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
fail() { echo "$1" >&2; exit 1; }
# Waits until a command succeeds, for at most so many tenths of a second.
wait_for() { left=300; until "$@"; do left=$((left - 1)); [ "$left" -gt 0 ] || fail "waited too long for: $*"; sleep 0.1; done; }

wait_for test -s "$place/address"
address=$(sed 's#^http://##' "$place/address")
sed "s#127.0.0.1:4848#$address#" examples/demo/mend.yaml > "$place/mend.yaml"
printf 'allow_hosts = ["%s"]\n' "$address" > "$place/wonder.toml"
echo '3 tests fail' > "$place/status.txt"
cd "$place" || exit 1

say wonder run mend.yaml --input repo=parser
"$wonder" run mend.yaml --input repo=parser &
running=$!
wait_for grep -qs run_tests calls.log
say "kill -9 $running   # in the middle of run_tests"
kill -9 "$running"
wait "$running" 2>/dev/null

say wonder resume last
"$wonder" resume last
[ $? -eq 3 ] || fail "expected exit 3: the agent asks before it publishes"
say wonder answer last action=approve
"$wonder" answer last action=approve || fail "expected exit 0"

turns=$("$wonder" show last -o json | grep -o '"turns":[0-9]*' | head -n 1 | cut -d: -f2)
asked=$(python3 -c "import json, urllib.request as r; print(json.load(r.urlopen('http://$address/count'))['count'])")
printf '\n%s turns, %s requests at the model: ' "$turns" "$asked"
[ "$turns" = "$asked" ] || fail "a turn was paid twice"
echo "no turn was paid twice."
sort calls.log | uniq -c | awk '{ printf "  %s made %s time%s%s\n", $2, $1, ($1 > 1 ? "s" : ""), ($1 > 1 ? ", with the same key: it was out when the process died" : "") }'
