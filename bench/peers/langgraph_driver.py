"""Runs LangGraph with its SQLite saver inside this process, durability "sync": each step saved before the next.

Usage: langgraph_driver.py DATABASE. A run is a thread of one compiled graph; a crashed one is resumed by
invoking its thread again, which is the caller's task there.
"""

import operator
import sqlite3
import sys
import uuid
from typing import Annotated, TypedDict

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, Send, interrupt

import driver


class Line(TypedDict):
    at: int
    nodes: int
    last: dict


class Wide(TypedDict):
    branches: int
    all: Annotated[list, operator.add]


def chain_graph(saver):
    graph = StateGraph(Line)
    graph.add_node("step", lambda state: {"at": state["at"] + 1, "last": driver.step(state["at"])})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda state: "step" if state["at"] < state["nodes"] else END)
    return graph.compile(checkpointer=saver)


def fan_graph(saver):
    graph = StateGraph(Wide)
    graph.add_node("spread", lambda state: {})
    graph.add_node("branch", lambda state: {"all": [driver.step(0)]})
    graph.add_node("join", lambda state: {})
    graph.add_edge(START, "spread")
    graph.add_conditional_edges("spread", lambda state: [Send("branch", {})] * state["branches"], ["branch"])
    graph.add_edge("branch", "join")
    graph.add_edge("join", END)
    return graph.compile(checkpointer=saver)


def gate_graph(saver):
    graph = StateGraph(Line)
    graph.add_node("ask", lambda state: {"at": interrupt("well?")})
    graph.add_node("done", lambda state: {"last": driver.step(0)})
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "done")
    graph.add_edge("done", END)
    return graph.compile(checkpointer=saver)


saver = SqliteSaver(sqlite3.connect(sys.argv[1], check_same_thread=False))
saver.setup()
line, wide, gate = chain_graph(saver), fan_graph(saver), gate_graph(saver)
waiting = []


def invoke(graph, given, thread=None):
    config = {"configurable": {"thread_id": thread or str(uuid.uuid4())}, "recursion_limit": 100_000}
    return graph.invoke(given, config, durability="sync")


def chain(nodes, thread=None):
    invoke(line, {"at": 0, "nodes": nodes, "last": {}}, thread)


def fan(request):
    merged = invoke(wide, {"branches": request["n"], "all": []})["all"]
    assert len(merged) == request["n"]


def park(request):
    waiting[:] = [str(uuid.uuid4()) for _ in range(request["n"])]
    driver.in_flight(lambda thread: invoke(gate, {"at": 0, "nodes": 1, "last": {}}, thread), waiting)


def answer(_):
    driver.in_flight(lambda thread: invoke(gate, Command(resume=1), thread), waiting)


driver.serve({
    "chain": lambda request: chain(request["n"]),
    "many": lambda request: driver.in_flight(lambda _: chain(request["nodes"]), range(request["n"])),
    "fan": fan,
    "latency": lambda request: driver.latencies(lambda: chain(1), request["n"]),
    "park": park,
    "answer": answer,
    "begin": lambda request: driver.background(lambda: chain(request["n"], driver.CRASHED)),
    "resume": lambda request: invoke(line, None, driver.CRASHED),
})
