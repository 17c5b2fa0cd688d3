"""Runs DBOS on SQLite inside this process. It takes up unfinished workflows by itself when it starts.

Usage: dbos_driver.py DATABASE. The file is put in WAL mode first, which DBOS keeps: its own default, a rollback
journal, is as durable and about half as fast.
"""

import asyncio
import os
import sqlite3
import sys

from dbos import DBOS, SetWorkflowID

import driver

A_DAY = 86_400
parked = set()
handles = []


@DBOS.step()
def step(at):
    return driver.step(at)


@DBOS.step()
async def async_step(at):
    return driver.step(at)


@DBOS.workflow()
def chain(nodes):
    for at in range(nodes):
        last = step(at)
    return last


@DBOS.workflow()
async def fan(branches):
    return len(await asyncio.gather(*[async_step(at) for at in range(branches)]))


@DBOS.workflow()
async def gate():
    parked.add(DBOS.workflow_id)
    await DBOS.recv_async("answer", timeout_seconds=A_DAY)
    return await async_step(0)


async def limited(call, items):
    """So many at a time, like the threads of the other drivers."""
    slots = asyncio.Semaphore(driver.IN_FLIGHT)

    async def one(item):
        async with slots:
            return await call(item)

    return await asyncio.gather(*[one(item) for item in items])


async def park(runs):
    parked.clear()
    handles[:] = await limited(lambda _: DBOS.start_workflow_async(gate), range(runs))
    while len(parked) < runs:
        await asyncio.sleep(0.01)


async def answer():
    async def one(handle):
        await DBOS.send_async(handle.workflow_id, "yes", "answer")
        await handle.get_result()

    await limited(one, handles)


def begin(request):
    with SetWorkflowID(driver.CRASHED):
        DBOS.start_workflow(chain, request["n"])


def resume(_):
    DBOS.retrieve_workflow(driver.CRASHED).get_result(polling_interval_sec=0.02)


def use_wal(path):
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = WAL")
    database.close()


use_wal(sys.argv[1])
DBOS(config={
    "name": "bench",
    "system_database_url": f"sqlite:///{sys.argv[1]}",
    "log_level": "ERROR",
    "max_executor_threads": 2 * driver.IN_FLIGHT,
    "application_version": "1",
    "executor_id": "bench",
})
DBOS.launch()
loop = asyncio.new_event_loop()
driver.serve({
    "chain": lambda request: chain(request["n"]),
    "many": lambda request: driver.in_flight(lambda _: chain(request["nodes"]), range(request["n"])),
    "fan": lambda request: loop.run_until_complete(fan(request["n"])),
    "latency": lambda request: driver.latencies(lambda: chain(1), request["n"]),
    "park": lambda request: loop.run_until_complete(park(request["n"])),
    "answer": lambda _: loop.run_until_complete(answer()),
    "begin": begin,
    "resume": resume,
})
# Its threads would keep the process.
os._exit(0)
