"""Drives Restate over its HTTP ingress: each run is one request, as a client of it would make.

Usage: restate_driver.py INGRESS_PORT ADMIN_PORT HANDLER_PORT. The steps run in restate_handler.mjs.
"""

import http.client
import json
import sys
import threading
import time

import driver

INGRESS, ADMIN, HANDLER = map(int, sys.argv[1:4])
STARTING_SECONDS = 60
local = threading.local()


def post(port, path, body=None, headers=None):
    """One request on this thread's connection; the connection is made again after a failure."""
    connections = local.__dict__.setdefault("connections", {})
    connection = connections.get(port)
    if connection is None:
        connection = connections[port] = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        sent = {"content-type": "application/json", **(headers or {})} if body is not None else (headers or {})
        connection.request("POST", path, None if body is None else json.dumps(body), sent)
        response = connection.getresponse()
        text = response.read()
    except OSError:
        connections.pop(port).close()
        raise
    if response.status >= 300:
        raise RuntimeError(f"{response.status} {text[:200]!r}")
    return json.loads(text) if text else None


def call(handler, body=None, **options):
    return post(INGRESS, f"/bench/{handler}", body, **options)


def wait_until_served():
    """Registers the handler when the server does not know it yet; after a crash it does."""
    began = time.monotonic()
    while True:
        try:
            return call("noop")
        except (OSError, RuntimeError) as problem:
            if time.monotonic() - began > STARTING_SECONDS:
                raise
            if str(problem).startswith("404"):
                post(ADMIN, "/deployments", {"uri": f"http://127.0.0.1:{HANDLER}"})
            time.sleep(0.02)


def wait_for(count, wanted):
    while call("counts")[count] < wanted:
        time.sleep(0.05)


def park(request):
    driver.in_flight(lambda _: call("gate/send"), range(request["n"]))
    wait_for("parked", request["n"])


def answer(_):
    waiting = call("waiting")
    driver.in_flight(lambda gate: post(INGRESS, f"/restate/awakeables/{gate}/resolve", {"ok": True}), waiting)
    wait_for("finished", len(waiting))


def crashing(request):
    """Submits once: the same key is attached to the run that exists."""
    return {"headers": {"idempotency-key": driver.CRASHED}, "body": request["n"]}


wait_until_served()
driver.serve({
    "chain": lambda request: call("chain", request["n"]),
    "many": lambda request: driver.in_flight(lambda _: call("chain", request["nodes"]), range(request["n"])),
    "fan": lambda request: call("fan", request["n"]),
    "latency": lambda request: driver.latencies(lambda: call("chain", 1), request["n"]),
    "park": park,
    "answer": answer,
    "begin": lambda request: call("chain/send", **crashing(request)),
    "resume": lambda request: call("chain", **crashing(request)),
})
