"""What every part shares: where things are, sizes, the raw limits, and what processes cost.

Standard library only. Measures; decides nothing.
"""

import os
import sqlite3
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = ROOT / "target" / "peers"
DATA = PEERS / "data"

SCALE = float(os.environ.get("PEERS_SCALE", "1"))
TICKS = os.sysconf("SC_CLK_TCK")
RAW_SECONDS = 0.4


def scaled(size, least=1):
    """A size of the specification; PEERS_SCALE makes all of them smaller, to try the scripts."""
    return max(least, round(size * SCALE))


def percentile(values, percent):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def raw_rows_per_second(rows):
    """SQLite, WAL, synchronous FULL, so many rows a commit: the table and the rows of our own raw limit."""
    DATA.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DATA) as folder:
        database = sqlite3.connect(f"{folder}/raw.db", isolation_level=None)
        rate = commit_rows(database, rows)
        database.close()
    return rate


def commit_rows(database, rows):
    for pragma in ("journal_mode = WAL", "synchronous = FULL", "wal_autocheckpoint = 4000"):
        database.execute(f"PRAGMA {pragma}")
    database.execute("CREATE TABLE t (a INTEGER, b INTEGER, c TEXT, PRIMARY KEY (a, b)) WITHOUT ROWID")
    body, written, began = "x" * 300, 0, time.perf_counter()
    while time.perf_counter() - began < RAW_SECONDS:
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO t VALUES (1, ?, ?)", [(written + row, body) for row in range(rows)])
        database.execute("COMMIT")
        written += rows
    return written / (time.perf_counter() - began)


def raw_commit_ms():
    return 1_000 / raw_rows_per_second(1)


def stat_fields(pid):
    """/proc/PID/stat after the name, which may hold spaces and brackets itself."""
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()


def process_tree(roots):
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                children.setdefault(int(stat_fields(entry)[1]), []).append(int(entry))
            except OSError:
                continue  # It ended while we looked.
    found, left = [], list(roots)
    while left:
        pid = left.pop()
        found.append(pid)
        left += children.get(pid, [])
    return found


def over_tree(roots, measure):
    total = 0
    for pid in process_tree(roots):
        try:
            total += measure(pid)
        except OSError:
            continue
    return total


def cpu_seconds(roots):
    """Processor seconds of the process trees, ended children included."""
    return over_tree(roots, lambda pid: sum(int(field) for field in stat_fields(pid)[11:15])) / TICKS


def rss_mb(roots):
    def kilobytes(pid):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        return 0

    return over_tree(roots, kilobytes) / 1024
