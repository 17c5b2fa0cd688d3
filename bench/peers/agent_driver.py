"""What the drivers of agents share: the one tool, which notes at each call what has been used so far.

A driver is given the database and the provider's address. It runs agents that call `note` until the model answers.
"""

import os
import sqlite3
import sys
import time
from pathlib import Path

DATABASE, URL = sys.argv[1], sys.argv[2]
KEY = "sk-bench-0123456789abcdef"
PROMPT = "Look at what there is, note what matters, and say what is to be done."
# In the middle of the call with this number the process is killed; the file says that it was reached.
HANGS_AT = 5
REACHED = os.environ.get("PEERS_SIDE")

marks = []
calls = 0


def stored_bytes():
    """As a reader sees the database, whether it is in the log or not."""
    if not os.path.exists(DATABASE):
        return 0
    database = sqlite3.connect(DATABASE)
    pages = database.execute("PRAGMA page_count").fetchone()[0]
    size = database.execute("PRAGMA page_size").fetchone()[0]
    database.close()
    return pages * size


def noted():
    """The tool: nothing. Where things stand is written down, unless many agents call it at once."""
    global calls
    calls += 1
    if REACHED and calls == HANGS_AT and not os.path.exists(REACHED):
        Path(REACHED).touch()
        time.sleep(60)
    if marks is not None:
        mark()
    return "noted"


# What looking at the database has taken so far: that is ours, not the peer's.
looking = {"cpu_ms": 0.0, "at_ms": 0.0}


def mark():
    now = {"cpu_ms": time.process_time() * 1_000, "at_ms": time.perf_counter() * 1_000}
    marks.append({key: value - looking[key] for key, value in now.items()} | {"bytes": stored_bytes()})
    looking["cpu_ms"] += time.process_time() * 1_000 - now["cpu_ms"]
    looking["at_ms"] += time.perf_counter() * 1_000 - now["at_ms"]


def peak_mb():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1_024
    return 0


def resident_mb():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1_024
    return 0


def turns(run):
    """One agent until it answers, and where things stood at each of its calls."""
    marks.clear()
    run()
    return {"marks": list(marks)}


def crowd(run_all):
    """Many agents at once. What they call is not written down one by one."""
    global marks
    marks = None
    before, cpu, began = resident_mb(), time.process_time(), time.perf_counter()
    run_all()
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    marks = []
    return {"crowd_s": seconds, "cpu_s": used, "growth_mb": peak_mb() - before}
