"""The side of a driver that talks to the runner: a line of JSON asks, a line of JSON answers.

A driver is a process that starts runs on its peer and says how long they took. Standard output belongs to the
answers alone; what a library prints goes to standard error.
"""

import json
import os
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor

IN_FLIGHT = 64
CRASHED = "crash"
RESULT = {"text": "a result of about a hundred bytes, as a small step of an agent would return it here", "n": 7}
# Actions that return figures by name.
FIGURES = ("turns", "crowd", "finish")
SIDE = os.environ.get("PEERS_SIDE")


def step(at):
    """The work of a node: nothing. What it did is only written down where a crash is measured."""
    if SIDE:
        with open(SIDE, "a") as file:
            file.write(f"{at} {time.time()}\n")
    return RESULT


def in_flight(call, items):
    with ThreadPoolExecutor(IN_FLIGHT) as pool:
        return list(pool.map(call, items))


def latencies(call, times):
    """Milliseconds of each call, one after the other."""
    all_ms = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        all_ms.append((time.perf_counter() - began) * 1_000)
    return all_ms


def background(call):
    """For a run that nobody waits for, because it will be killed."""
    threading.Thread(target=call, daemon=True).start()


def serve(actions):
    """Answers until the runner closes our input: the seconds, what "latency" returns, and figures by name."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    answers.write('{"ready": true}\n')
    for line in sys.stdin:
        request = json.loads(line)
        began = time.perf_counter()
        try:
            done = actions[request["do"]](request)
            answer = {"seconds": time.perf_counter() - began}
            if request["do"] == "latency":
                answer["ms"] = done
            elif isinstance(done, dict) and request["do"] in FIGURES:
                answer |= done
        except Exception as problem:
            traceback.print_exc()
            answer = {"error": f"{type(problem).__name__}: {problem}"[:300]}
        answers.write(json.dumps(answer) + "\n")
