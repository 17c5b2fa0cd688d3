"""Writes the table: each workload a row, each peer a column, beside our own figures and the raw limits.

Says what failed and why, and never fills a gap with a guess. No names or paths of the machine.
"""

import datetime
import json
import os
import platform
from dataclasses import dataclass
from statistics import median

from common import PEERS, ROOT, SCALE
from install import versions_text
from ours import PARKED
from workloads import TIMES

FIGURES = "figures"


@dataclass(frozen=True)
class Row:
    work: str
    figure: str
    label: str
    # The figure that is this one divided by the raw limit of the same moment, where that means something.
    raw: str = ""
    better: str = "lower"
    repeated: bool = True


ROWS = [
    Row("w1", "w1_ms", "**W1** chain of 1 000, ms a node", raw="w1_raw"),
    Row("w2", "w2_rate", "**W2** 500 runs x 10, 64 in flight, nodes/s", raw="w2_share", better="higher"),
    Row("w2", "w2_cpu", "W2 CPU seconds per 1 000 nodes"),
    Row("w3", "w3_ms", "**W3** 1 000 branches merged, ms"),
    Row("w4", "w4_p50", "**W4** one-node run, p50 ms", raw="w4_p50_raw"),
    Row("w4", "w4_p99", "W4 one-node run, p99 ms", raw="w4_p99_raw"),
    Row("w5", "w5_park_ms", "**W5** parking at a gate, ms a run", repeated=False),
    Row("w5", "w5_kb", "W5 memory, KB a parked run", repeated=False),
    Row("w5", "w5_answer_ms", "W5 answering, ms a run", repeated=False),
    Row("w6", "w6_begin_s", "**W6** kill -9, restart to the next node, s"),
    Row("w6", "w6_finish_s", "W6 restart to the end, s"),
    Row("w6", "w6_twice", "W6 nodes run twice", better=""),
    Row("idle", "idle_mb", "idle memory, MB", repeated=False),
    Row("raw", "raw_ms", "raw commit beside it, ms", better="", repeated=False),
]


def number(value):
    if isinstance(value, int) or abs(value) >= 100 or value == 0:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def line(cells):
    return "| " + " | ".join(cells) + " |"


def peer_cell(row, result):
    values = result[FIGURES].get(row.figure)
    if not values:
        return "failed" if result["failures"] else "-"
    text = number(median(values))
    if max(values) > min(values):
        text += f" [{number(min(values))}..{number(max(values))}]"
    if row.repeated and len(values) != TIMES:
        text += f" n={len(values)}"
    return text


def raw_cell(row, figures):
    """How many raw commits it costs; for a rate, which part of the raw rate it reaches."""
    values = figures.get(row.raw)
    if not values:
        return "-"
    return f"{number(median(values))} x" if row.better == "lower" else f"{number(100 * median(values))} %"


def times_better(row, figure, ours, theirs):
    if not ours.get(figure) or not theirs.get(figure):
        return None
    mine, other = median(ours[figure]), median(theirs[figure])
    if mine <= 0 or other <= 0:
        return None
    return other / mine if row.better == "lower" else mine / other


def better_cell(row, ours, theirs):
    plain = times_better(row, row.figure, ours, theirs)
    by_raw = times_better(row, row.raw, ours, theirs) if row.raw else None
    if plain is None:
        return "-"
    return f"{number(plain)} x" + (f" ({number(by_raw)} x by raw)" if by_raw else "")


def rows_of(row, ours, results):
    mine = number(median(ours[row.figure])) if row.figure in ours else "-"
    yield line([row.label, mine, *(peer_cell(row, result) for result in results)])
    if row.raw:
        limit = "... against the raw commit" if row.better == "lower" else "... of the raw rows, 64 a commit"
        yield line([limit, raw_cell(row, ours), *(raw_cell(row, result[FIGURES]) for result in results)])
    if row.better:
        yield line(["... Wonder is better by", "", *(better_cell(row, ours, result[FIGURES]) for result in results)])


def main_table(peers, ours, results):
    yield line(["", "Wonder", *(peer.title for peer in peers)])
    yield line(["---"] * (len(peers) + 2))
    for row in ROWS:
        yield from rows_of(row, ours, results)


WONDER = [
    "Wonder",
    "this tree",
    "SQLite WAL, synchronous FULL, one commit a node, grouped over runs",
    "in process (W1 to W3, W5), over its socket (W4), as its binary (W6)",
    "`wonder resume`",
    number(PARKED),
]


def peers_table(peers, results, measured):
    yield line(["", "versions", "a step is safe by", "runs as", "after a crash", "parked in W5", "measured"])
    yield line(["---"] * (len(WONDER) + 1))
    yield line([*WONDER, measured])
    for peer, result in zip(peers, results):
        parked = number(result["sizes"]["w5"]) if "w5" in result["sizes"] else "-"
        about = [versions_text(peer.name), peer.durability, peer.runs, peer.recovery]
        yield line([peer.title, *about, parked, result["measured"]])


def agents_table():
    """What agents.py measured, each figure beside the bare client of the same moment; nothing if it was not run."""
    path = PEERS / "agents.json"
    if not path.exists():
        return
    measured = json.loads(path.read_text())
    names = [name for name in AGENT_TITLES if name in measured]
    turns, agents = (next(iter(measured.values()))[key] for key in ("turns", "agents"))
    rows = [
        ("W8 turn 10, ms over the bare call", lambda at: over(at, "at_ms_10")),
        (f"... turn {turns}", lambda at: over(at, f"at_ms_{turns}")),
        ("W8 CPU of turn 10, ms over the bare client's", lambda at: over(at, "cpu_ms_10")),
        (f"... of turn {turns}", lambda at: over(at, f"cpu_ms_{turns}")),
        ("W8 KB stored by turn 10", lambda at: [value / 1_024 for value in at.get("bytes_10", [])]),
        (f"... by turn {turns}", lambda at: [value / 1_024 for value in at.get(f"bytes_{turns}", [])]),
        (f"W10 with {agents} agents, turns/s", lambda at: at.get("rate")),
        ("... of bare clients in the same moment", lambda at: at.get("rate_bare")),
        ("... ms a turn over them", lambda at: at.get("over_ms")),
        ("... CPU ms a turn", lambda at: at.get("cpu_ms")),
        ("... memory, MB more than idle", lambda at: at.get("growth_mb")),
        ("kill -9 in the middle of a tool: turns paid again", lambda at: at.get("paid_again")),
        ("raw commit beside it, ms", lambda at: at.get("raw_ms")),
    ]
    yield from ["## Agents", "", AGENTS_READING, f"Measured on {date_of(path)}.", ""]
    yield line(["", *(AGENT_TITLES[name] for name in names)])
    yield line(["---"] * (len(names) + 1))
    for label, figure in rows:
        cells = [figure(measured[name][FIGURES]) for name in names]
        yield line([label, *(number(median(values)) if values else "-" for values in cells)])
    yield ""
    for name in names:
        for work, reason in measured[name]["failures"].items():
            yield f"- {AGENT_TITLES[name]}, {work}: {' '.join(reason.split())}"


def own_agents_table(path):
    """What our own benchmark says of agents: those without a peer to compare with are here too."""
    measured = json.loads(path.read_text()) if path.exists() else []
    named = [figure for figure in measured if figure["name"].startswith(("W8 agent", "W10", "text"))]
    if not named:
        return
    yield from [f"Ours alone, with 200 turns and 500 agents (`make bench`, {date_of(path)}):", ""]
    yield line(["", "", "target"])
    yield line(["---"] * 3)
    for figure in named:
        missed = "" if figure["holds"] else " **missed**"
        cell = f"{number(figure['value'])} {figure['unit']}".strip()
        yield line([figure["name"], cell, figure["target"].replace("-", "") + missed])
    yield ""


def date_of(path):
    return f"{datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.timezone.utc):%Y-%m-%d %H:%M} UTC"


def over(figures, name):
    return [own - bare for own, bare in zip(figures.get(name, []), figures.get(f"{name}_bare", []))]


def failures(peers, results):
    found = [
        f"- {peer.title}, {work}: {' '.join(reason.split())}"
        for peer, result in zip(peers, results)
        for work, reason in result["failures"].items()
    ]
    return found or ["None."]


AGENT_TITLES = {
    "wonder": "Wonder",
    "langgraph_agent": "LangGraph, SQLite, durability sync",
    "pydantic_agent": "Pydantic AI on DBOS, SQLite",
}
AGENTS_READING = """\
One scripted model server for all, a process of its own. W8: one agent whose conversation grows by 8 KB a turn, one call
of a tool a turn that does nothing. W10: agents at once, ten turns and twenty calls each. The bare client keeps nothing,
sends the same conversations and reads the same answers; "over" is against it, in the same moment. Medians of three, the
kill once. Bytes are what a turn adds to the database: ours by its own count, the others' in whole pages. LangGraph
(its prebuilt agent, langchain-openai) streams from the server as we do; Pydantic AI asks for whole answers, which costs
it less. DBOS because it is the durable backend of Pydantic AI that needs no server, as SQLite needs none."""

READING = """\
- The disk is shared and noisy: the raw commit (one row, SQLite WAL, synchronous FULL) is measured before and after
  every repetition of W1 and W4, the raw rows before every one of W2, and "against" is the ratio of that very
  moment. "By raw" compares those ratios instead of the figures. It flatters a peer that the processor holds back
  while the disk is slow: trust both where they agree, and where the raw commits in the last row are alike.
- Cells are medians of three [least..most]; n says where there are fewer, because a workload that has taken 40 s
  is not repeated. W5 and idle memory are taken once. Ours are medians of five.
- Every peer here syncs each step to the disk before the next, as we do; how many syncs it needs is below.
- Steps do nothing and return about 100 bytes. What is measured is the engine, not anybody's work.
- LangGraph and DBOS are libraries: their W4 crosses no process. Restate's is HTTP and then HTTP/2 to its Node
  handler, Temporal's is gRPC to the server and back to the worker. Ours is{w4}.
- CPU and memory count the server and the process with the steps. Restate's client is not counted; in the other
  peers, and in ours, the client is in the counted process.
- W3 is steps in parallel in one run: `ctx.run` (Restate), `Send` (LangGraph), asynchronous steps (DBOS),
  activities (Temporal).
- W5 is given per run, since not every peer can park 10 000 in a reasonable time; the number parked is below.
  Restate's runs count as parked and ended when its handler says so, a moment before the server knows.
- W6 kills every process of the peer at 400 of 1 000 nodes. kill -9 leaves the page cache alone, so it says
  nothing about power loss. "Run twice" counts executions of a step for the peers, completions for us.
- Where a peer's default is as safe but slower than another of its settings, it got the faster one: WAL for DBOS
  and Temporal, and no rate limits for Temporal, whose default lets one shard look for work 20 times a second
  (50 ms a node in W1).
- Temporal is its development server, which is what runs on one machine without a database server; a cluster on
  PostgreSQL or Cassandra is another thing and was not measured."""


def machine():
    with open("/proc/meminfo") as file:
        gigabytes = int(file.readline().split()[1]) / 2**20
    return f"{os.cpu_count()} cores, {gigabytes:.0f} GB, {platform.system()} {platform.release()}, all on the loopback"


def write(path, peers, ours, results):
    today = datetime.datetime.now(datetime.timezone.utc).date()
    small = "" if SCALE == 1 else f"\n**Sizes times {SCALE}: a trial of the scripts, not a measurement.**\n"
    text = [
        "# Beside the peers", "",
        f"Written by `make bench-peers` on {today}. {machine()}.", small,
        *main_table(peers, ours.figures, results), "",
        "## The peers", "", *peers_table(peers, results, ours.measured), "",
        *agents_table(), *own_agents_table(ROOT / "target/bench.json"),
        "## What failed", "", *failures(peers, results), "",
        "## How to read this", "", READING.format(w4=ours.w4_way), "",
    ]
    path.write_text("\n".join(text))
