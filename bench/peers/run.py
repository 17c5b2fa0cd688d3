"""`make bench-peers`: installs the peers, measures each, writes the table. Standard library only.

Usage: run.py [PEER ...] [--ours FILE] [--table]. Given peers, the others keep what was measured before. With
--table nothing is measured. PEERS_SCALE=0.05 makes every workload smaller, and writes beside the data instead
of into the repository. Refuses nothing a peer does: its failure is a cell of the table.
"""

import argparse
import datetime
import json
import subprocess
from pathlib import Path

import ours
import table
from common import PEERS, ROOT, SCALE
from install import install
from peers import ALL
from workloads import measure

RESULTS = PEERS / "results.json"
TABLE = ROOT / "bench/RESULTS.md" if SCALE == 1 else PEERS / "RESULTS.md"


def arguments():
    parser = argparse.ArgumentParser(description="Measures the peers beside Wonder.")
    parser.add_argument("peers", nargs="*", metavar="PEER", help=", ".join(peer.name for peer in ALL))
    parser.add_argument("--ours", type=Path, default=ROOT / "target/bench.json")
    parser.add_argument("--table", action="store_true", help="only write the table again")
    given = parser.parse_args()
    unknown = set(given.peers) - {peer.name for peer in ALL}
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}")
    return given


def measured(peer):
    try:
        install(peer.name)
    except (RuntimeError, OSError, subprocess.TimeoutExpired) as problem:
        result = {"figures": {}, "failures": {"install": str(problem)}, "sizes": {}}
    else:
        print(f"measuring {peer.name}", flush=True)
        result = measure(peer)
    now = datetime.datetime.now(datetime.timezone.utc)
    return result | {"measured": f"{now:%Y-%m-%d %H:%M} UTC"}


def main():
    given = arguments()
    PEERS.mkdir(parents=True, exist_ok=True)
    keep = given.table or given.peers
    results = json.loads(RESULTS.read_text()) if keep and RESULTS.exists() else {}
    for peer in ALL:
        if not given.table and (not given.peers or peer.name in given.peers):
            results[peer.name] = measured(peer)
            RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    shown = [peer for peer in ALL if peer.name in results]
    table.write(TABLE, shown, ours.read(given.ours), [results[peer.name] for peer in shown])
    print(TABLE.read_text())


if __name__ == "__main__":
    main()
