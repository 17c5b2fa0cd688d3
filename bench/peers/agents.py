"""Agents on the peers, on ours, and on nothing: the same scripted provider, the same conversations, the same moment.

Usage: agents.py [PEER ...]. Writes target/peers/agents.json, which run.py --table puts into the table. Standard library
only. A peer that fails is a cell of the table.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from statistics import median

from common import DATA, PEERS, ROOT, raw_commit_ms, scaled
from install import install
from peers import Peer, python_driver
from session import Clock, Failure, Session, die_with_the_runner

RELEASE = ROOT / "target/release"
RESULTS = PEERS / "agents.json"
TURNS = scaled(100, least=30)
AGENTS = scaled(50, least=4)
TURNS_EACH = 10
TIMES = 3
# The call in whose middle everything is killed, and so the turns that were answered by then.
HANGS_AT = 5


class Provider:
    """The scripted model server with one script, until it is left."""

    def __init__(self, *script):
        DATA.mkdir(parents=True, exist_ok=True)
        path = DATA / "script.json"
        path.write_text(part("script", *script))
        self.process = subprocess.Popen(
            [RELEASE / "wonder-modelserver", "--script", path], stdout=subprocess.PIPE, text=True,
            preexec_fn=die_with_the_runner,
        )
        self.url = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def asked(self):
        return json.load(urllib.request.urlopen(f"{self.url}/count"))["count"]


def part(*arguments):
    """What one part of our own benchmark says."""
    command = [RELEASE / "wonder-bench", "part", *map(str, arguments)]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def peer(name, title, folder, url):
    return Peer(
        name=name, title=title, durability="", runs="", recovery="", parks=0,
        services=lambda data, ports: [],
        driver=lambda data, ports: python_driver(
            name, data / "agents.db", url, python=PEERS / folder / "bin/python"
        ),
        driver_counts=True,
    )


PEER_NAMES = {
    "langgraph_agent": ("LangGraph, SQLite", "langgraph-agent"),
    "pydantic_agent": ("Pydantic AI on DBOS, SQLite", "pydantic-agent"),
}


def per_turn(marks, turn, field):
    """The middle one of ten turns around this one. Pages are counted in whole ones, so bytes are a mean."""
    last = min(turn + 5, len(marks) - 1)
    each = [marks[at][field] - marks[at - 1][field] for at in range(max(1, last - 9), last + 1)]
    return sum(each) / len(each) if field == "bytes" else median(each)


def of_marks(marks, bare):
    figures = {}
    for turn in (10, TURNS):
        for field in ("at_ms", "cpu_ms"):
            figures[f"{field}_{turn}"] = per_turn(marks, turn, field)
            figures[f"{field}_{turn}_bare"] = per_turn(bare, turn, field)
        figures[f"bytes_{turn}"] = per_turn(marks, turn, "bytes")
    return figures


def of_crowd(seconds, cpu_s, growth_mb, bare):
    count = AGENTS * TURNS_EACH
    return {
        "rate": count / seconds, "rate_bare": count / bare["seconds"],
        "over_ms": (seconds - bare["seconds"]) * 1_000 / count, "cpu_ms": cpu_s * 1_000 / count,
        "growth_mb": growth_mb,
    }


def wonder_turns():
    with Provider("long", TURNS) as provider:
        bare = json.loads(part("bare-conversation", provider.url, TURNS))
        return of_marks(json.loads(part("conversation", provider.url, TURNS, DATA)), bare)


def wonder_crowd():
    with Provider("short") as provider:
        bare = json.loads(part("bare-crowd", provider.url, AGENTS))
        own = json.loads(part("crowd", provider.url, AGENTS, DATA))
        return of_crowd(own["seconds"], own["cpu_ms"] / 1_000, own["growth_mb"], bare)


WORKFLOW = """wonder: 1
name: killed
nodes:
  work: {{agent: {{model: m, prompt: Note it., tools: [note], approve: {{default: never}}}}}}
tools:
  note:
    description: Notes it.
    shell: {{command: 'echo x >> calls; [ $(wc -l < calls) -ne {at} ] || sleep 60', timeout: 2m}}
    effects: idempotent
    requires: {{type: object, required: [text], properties: {{text: {{type: string}}}}}}
models:
  m: {{provider: openai_compatible, model: scripted, base_url: '{url}/v1', api_key: '{{{{ secret.BENCH_KEY }}}}'}}
"""


def wonder_crash():
    folder = DATA / "killed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with Provider("long", 8) as provider:
        (folder / "killed.yaml").write_text(WORKFLOW.format(at=HANGS_AT, url=provider.url))
        (folder / "wonder.toml").write_text(f'allow_hosts = ["{provider.url.removeprefix("http://")}"]\n')
        wonder = str(RELEASE / "wonder")
        options = {
            "cwd": folder, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL,
            "env": dict(os.environ, WONDER_HOME=str(folder / "home"), BENCH_KEY="sk-bench-0123456789abcdef"),
        }
        running = subprocess.Popen([wonder, "run", "killed.yaml"], **options)
        calls = folder / "calls"
        wait_until(lambda: calls.exists() and calls.read_text().count("x") >= HANGS_AT)
        running.kill()
        running.wait()
        subprocess.run([wonder, "resume", "last"], check=True, timeout=60, **options)
        asked = provider.asked()
    shutil.rmtree(folder)
    return {"paid_again": asked - 9}


def wait_until(is_so, seconds=60):
    ends = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > ends:
            raise Failure(f"not in {seconds} s")
        time.sleep(0.01)


def peer_turns(name):
    title, folder = PEER_NAMES[name]
    with Provider("long", TURNS) as provider:
        bare = json.loads(part("bare-conversation", provider.url, TURNS))
        with Session(peer(name, title, folder, provider.url), Clock()) as session:
            return of_marks(session.ask("turns", 300)["marks"], bare)


def peer_crowd(name):
    title, folder = PEER_NAMES[name]
    with Provider("short") as provider:
        bare = json.loads(part("bare-crowd", provider.url, AGENTS))
        with Session(peer(name, title, folder, provider.url), Clock()) as session:
            answer = session.ask("crowd", 300, n=AGENTS)
    return of_crowd(answer["crowd_s"], answer["cpu_s"], answer["growth_mb"], bare)


def peer_crash(name):
    title, folder = PEER_NAMES[name]
    reached = DATA / f"{name}-reached"
    reached.unlink(missing_ok=True)
    with Provider("long", 8) as provider:
        with Session(peer(name, title, folder, provider.url), Clock(), reached) as session:
            session.ask("begin", 60)
            wait_until(reached.exists)
            session.kill()
            session.start()
            session.ask("finish", 120)
        asked = provider.asked()
    reached.unlink()
    return {"paid_again": asked - 9}


def measured(works):
    """Each three times but for the kill; what was measured before a failure stays."""
    figures, failures = {"raw_ms": [raw_commit_ms()]}, {}
    for work, once in works.items():
        try:
            for _ in range(1 if work == "kill -9" else TIMES):
                for name, value in once().items():
                    figures.setdefault(name, []).append(value)
        except (Failure, subprocess.SubprocessError, OSError, RuntimeError) as failure:
            failures[work] = str(failure)[:300]
    figures["raw_ms"].append(raw_commit_ms())
    return {"figures": figures, "failures": failures}


def main():
    wanted = sys.argv[1:] or ["wonder", *PEER_NAMES]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() and sys.argv[1:] else {}
    for name in wanted:
        print(f"measuring agents on {name}", flush=True)
        if name == "wonder":
            works = {"turns": wonder_turns, "at once": wonder_crowd, "kill -9": wonder_crash}
        else:
            install(PEER_NAMES[name][1])
            works = {
                "turns": lambda: peer_turns(name), "at once": lambda: peer_crowd(name),
                "kill -9": lambda: peer_crash(name),
            }
        results[name] = measured(works) | {"turns": TURNS, "agents": AGENTS}
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
