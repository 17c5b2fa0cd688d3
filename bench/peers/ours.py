"""Our own figures, read from what `wonder-bench --json` wrote. A figure that is not there stays absent."""

import datetime
import json
from dataclasses import dataclass

PARKED = 10_000

# Each figure of the table: beginnings of the names that it may have, the best first, and what to multiply it by.
NAMES = {
    "w1_ms": (["W1 chain of 1 000, a node"], 1),
    "w1_raw": (["W1 against the raw commit"], 1),
    "w2_rate": (["W2 500 runs x 10"], 1),
    "w2_share": (["W2 share of the raw rows"], 1),
    "w2_cpu": (["W2 CPU a thousand nodes"], 1),
    "w3_ms": (["W3 fan-out of 1 000"], 1),
    "w4_p50": (["W4 one-node run over HTTP, p50", "W4 one-node run over the socket, p50"], 1),
    "w4_p99": (["W4 one-node run over HTTP, p99", "W4 one-node run over the socket, p99"], 1),
    "w4_p50_raw": (["W4 p50 against the raw commit"], 1),
    "w4_p99_raw": (["W4 p99 against the raw commit"], 1),
    "w5_park_ms": (["W5 10 000 runs parked"], 1_000 / PARKED),
    "w5_kb": (["W5 memory for them"], 1_024 / PARKED),
    "w5_answer_ms": (["W5 all answered"], 1_000 / PARKED),
    "w6_begin_s": (["W6 restart to the next"], 1),
    "w6_finish_s": (["W6 restart to the end"], 1),
    "w6_twice": (["W6 nodes completed twice"], 1),
    "idle_mb": (["start: memory of an idle owner"], 1),
    "raw_ms": (["W1 raw commit beside it"], 1),
}


@dataclass(frozen=True)
class Ours:
    # Lists of one, so that they are read like those of the peers.
    figures: dict
    w4_way: str
    measured: str


def first_named(measured, beginnings):
    for beginning in beginnings:
        for figure in measured:
            if figure["name"].startswith(beginning) and "value" in figure:
                return figure
    return None


def read(path):
    measured = json.loads(path.read_text()) if path.exists() else []
    found = {}
    for name, (beginnings, factor) in NAMES.items():
        figure = first_named(measured, beginnings)
        if figure:
            found[name] = [figure["value"] * factor]
    w4 = first_named(measured, NAMES["w4_p50"][0])
    way = " not measured" if not w4 else " HTTP" if "HTTP" in w4["name"] else " the owner's Unix socket"
    at = path.stat().st_mtime if path.exists() else 0
    when = datetime.datetime.fromtimestamp(at, datetime.timezone.utc)
    return Ours(found, way, f"{when:%Y-%m-%d %H:%M} UTC")
