"""W1 to W6 of the specification against one peer, each beside the raw limit of the same moment.

Fast workloads run three times, slow ones until a time is spent; every value is kept, medians are the table's.
W5 and W6 have processes and data of their own, so that memory and recovery are not those of earlier runs.
"""

import time

from common import DATA, cpu_seconds, percentile, raw_commit_ms, raw_rows_per_second, rss_mb, scaled
from session import Clock, Failure, Session

TIMES = 3
# A workload that has taken so long is not repeated.
ENOUGH_SECONDS = 40
SETTLE_SECONDS = 3
LIMITS = {"chain": 90, "many": 150, "fan": 90, "latency": 90, "park": 150, "answer": 150, "crash": 90}


class Measured:
    """The figures of one peer, by name, and the reasons of those that are missing."""

    def __init__(self):
        self.figures, self.failures, self.sizes = {}, {}, {}

    def add(self, **figures):
        for name, value in figures.items():
            self.figures.setdefault(name, []).append(value)

    def repeated(self, work, once):
        """Whether it went well. What was measured before a failure is kept, and the failure is said beside it."""
        began = time.monotonic()
        for _ in range(TIMES):
            try:
                self.add(**once())
            except Failure as failure:
                self.failures[work] = str(failure)
                return False
            if time.monotonic() - began > ENOUGH_SECONDS:
                break
        return True


def idle(session):
    session.ask("chain", LIMITS["chain"], n=1)
    time.sleep(SETTLE_SECONDS)
    return {"idle_mb": rss_mb(session.counted())}


def beside_raw(work):
    """What the work measured, and the raw limit around it: the disk changes from one moment to the next."""
    before = raw_commit_ms()
    figure = work()
    return figure, (before + raw_commit_ms()) / 2


def w1(session):
    nodes = scaled(1_000)
    answer, raw = beside_raw(lambda: session.ask("chain", LIMITS["chain"], n=nodes))
    ms = answer["seconds"] * 1_000 / nodes
    return {"raw_ms": raw, "w1_ms": ms, "w1_raw": ms / raw}


def w2(session):
    runs, nodes, raw = scaled(500), 10, raw_rows_per_second(64)
    before = cpu_seconds(session.counted())
    seconds = session.ask("many", LIMITS["many"], n=runs, nodes=nodes)["seconds"]
    used = cpu_seconds(session.counted()) - before
    rate = runs * nodes / seconds
    return {"w2_rate": rate, "w2_share": rate / raw, "w2_cpu": used / (runs * nodes) * 1_000}


def w3(session):
    return {"w3_ms": session.ask("fan", LIMITS["fan"], n=scaled(1_000))["seconds"] * 1_000}


def w4(session):
    answer, raw = beside_raw(lambda: session.ask("latency", LIMITS["latency"], n=scaled(200)))
    p50, p99 = percentile(answer["ms"], 50), percentile(answer["ms"], 99)
    return {"raw_ms": raw, "w4_p50": p50, "w4_p99": p99, "w4_p50_raw": p50 / raw, "w4_p99_raw": p99 / raw}


def w5(session, runs):
    session.ask("chain", LIMITS["chain"], n=1)
    before = rss_mb(session.counted())
    park_s = session.ask("park", LIMITS["park"], n=runs)["seconds"]
    growth = rss_mb(session.counted()) - before
    parked = {"w5_park_ms": park_s * 1_000 / runs, "w5_kb": growth * 1_024 / runs}
    try:
        answer_s = session.ask("answer", LIMITS["answer"])["seconds"]
    except Failure as failure:
        return parked, f"answering: {failure}"
    return parked | {"w5_answer_ms": answer_s * 1_000 / runs}, None


def steps_done(side):
    """Pairs of a step and the moment it ran; a line torn by the kill is no step."""
    lines = side.read_text().split("\n")[:-1] if side.exists() else []
    pairs = (line.split() for line in lines)
    return [(int(pair[0]), float(pair[1])) for pair in pairs if len(pair) == 2]


def wait_for_steps(side, wanted, session):
    limit = session.clock.at_most(LIMITS["crash"])
    began = time.monotonic()
    while len(steps_done(side)) < wanted:
        if time.monotonic() - began > limit:
            raise Failure(f"{wanted} steps were not done in {limit:.0f} s")
        time.sleep(0.005)


def w6(peer, clock):
    nodes = scaled(1_000, least=100)
    side = DATA / f"{peer.name}-steps"
    side.unlink(missing_ok=True)
    with Session(peer, clock, side) as session:
        session.ask("begin", LIMITS["crash"], n=nodes)
        wait_for_steps(side, nodes * 4 // 10, session)
        session.kill()
        before = len(steps_done(side))
        began = time.time()
        session.start()
        session.ask("resume", LIMITS["crash"], n=nodes)
        finish_s = time.time() - began
    steps = steps_done(side)
    side.unlink()
    if len({step for step, _ in steps}) != nodes or len(steps) == before:
        raise Failure("it says that it ended, but not every step ran")
    return {"w6_begin_s": steps[before][1] - began, "w6_finish_s": finish_s, "w6_twice": len(steps) - nodes}


def measure_fast(peer, clock, measured):
    """W1 to W4 in one session; a failure ends the session, and the next workload gets a new one."""
    left = [("w1", w1), ("w2", w2), ("w3", w3), ("w4", w4)]
    while left:
        with Session(peer, clock) as session:
            measured.add(**idle(session))
            whole = True
            while left and whole:
                work, once = left.pop(0)
                whole = measured.repeated(work, lambda: once(session))


def measure_parked(peer, clock, measured):
    runs = measured.sizes["w5"] = scaled(peer.parks)
    with Session(peer, clock) as session:
        figures, failure = w5(session, runs)
    measured.add(**figures)
    if failure:
        measured.failures["w5"] = failure


def measure(peer):
    measured, clock = Measured(), Clock()
    parts = {
        "start": lambda: measure_fast(peer, clock, measured),
        "w6": lambda: measured.repeated("w6", lambda: w6(peer, clock)),
        "w5": lambda: measure_parked(peer, clock, measured),
    }
    for work, part in parts.items():
        try:
            part()
        except Failure as failure:
            measured.failures.setdefault(work, str(failure))
    return {"figures": measured.figures, "failures": measured.failures, "sizes": measured.sizes}
