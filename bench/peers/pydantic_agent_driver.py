"""Runs agents on Pydantic AI with DBOS on SQLite: each model request and each tool call is a step that is kept.

Usage: pydantic_agent_driver.py DATABASE URL. DBOS takes up what was unfinished by itself when it starts.
"""

import asyncio
import os
import sqlite3

from dbos import DBOS, SetWorkflowID
from pydantic_ai import Agent
from pydantic_ai.durable_exec.dbos import DBOSDurability
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.usage import UsageLimits

import agent_driver as common
import driver

database = sqlite3.connect(common.DATABASE)
database.execute("PRAGMA journal_mode = WAL")
database.close()
DBOS(config={
    "name": "bench",
    "system_database_url": f"sqlite:///{common.DATABASE}",
    "log_level": "ERROR",
    "application_version": "1",
    "executor_id": "bench",
})
provider = OpenAIProvider(base_url=f"{common.URL}/v1", api_key=common.KEY)
agent = Agent(OpenAIChatModel("scripted", provider=provider), name="bench", capabilities=[DBOSDurability()])


@agent.tool_plain
@DBOS.step()
async def note(text: str) -> str:
    """Notes it."""
    # A call that hangs must not hold up the event loop of the others.
    return await asyncio.to_thread(common.noted) if common.REACHED else common.noted()


@DBOS.workflow()
async def run():
    return (await agent.run(common.PROMPT, usage_limits=UsageLimits(request_limit=None))).output


DBOS.launch()
loop = asyncio.new_event_loop()


async def crowd(agents):
    await asyncio.gather(*[run() for _ in range(agents)])


def begin(_):
    def killed():
        with SetWorkflowID(driver.CRASHED):
            asyncio.run(run())

    driver.background(killed)


def finish(_):
    DBOS.retrieve_workflow(driver.CRASHED).get_result(polling_interval_sec=0.02)
    return {}


driver.serve({
    "turns": lambda _: common.turns(lambda: loop.run_until_complete(run())),
    "crowd": lambda request: common.crowd(lambda: loop.run_until_complete(crowd(request["n"]))),
    "begin": begin,
    "finish": finish,
})
# Its threads would keep the process.
os._exit(0)
