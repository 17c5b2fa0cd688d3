"""Runs agents on LangGraph: its prebuilt agent, langchain-openai, the SQLite saver, durability "sync".

Usage: langgraph_agent_driver.py DATABASE URL. An agent is a thread; a killed one is gone on with by the caller.
"""

import sqlite3
import uuid
import warnings
from concurrent.futures import ThreadPoolExecutor

from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.prebuilt import create_react_agent

import agent_driver as common
import driver

# The agent has moved to another package; this one is what its documentation still calls prebuilt.
warnings.filterwarnings("ignore", category=DeprecationWarning)


@tool
def note(text: str) -> str:
    """Notes it."""
    return common.noted()


saver = SqliteSaver(sqlite3.connect(common.DATABASE, check_same_thread=False))
saver.setup()
model = ChatOpenAI(model="scripted", base_url=f"{common.URL}/v1", api_key=common.KEY, max_retries=0, streaming=True)
agent = create_react_agent(model, [note], checkpointer=saver)


def run(thread=None, given=True):
    config = {"configurable": {"thread_id": thread or str(uuid.uuid4())}, "recursion_limit": 100_000}
    said = {"messages": [("user", common.PROMPT)]} if given else None
    return agent.invoke(said, config, durability="sync")


def crowd(agents):
    with ThreadPoolExecutor(agents) as pool:
        list(pool.map(lambda _: run(), range(agents)))


driver.serve({
    "turns": lambda _: common.turns(run),
    "crowd": lambda request: common.crowd(lambda: crowd(request["n"])),
    "begin": lambda _: driver.background(lambda: run(driver.CRASHED)),
    "finish": lambda _: run(driver.CRASHED, given=False) and {},
})
