"""The processes of one peer on a fresh data folder: started, asked, and killed the hard way.

Every wait has a limit; a peer that does not answer in time is a Failure, never a hang. No process outlives
the runner: the kernel kills them with it.
"""

import ctypes
import json
import os
import queue
import shutil
import signal
import socket
import subprocess
import threading
import time

from common import DATA, PEERS, ROOT, process_tree

STARTING_SECONDS = 90
# Bounds the whole of `make bench-peers`: seven minutes for each peer at most.
PEER_SECONDS = 420
PARENT_DEATH_SIGNAL = 1


class Failure(Exception):
    """What the table says instead of a figure."""


class Clock:
    """The time one peer may use in all."""

    def __init__(self):
        self.ends = time.monotonic() + PEER_SECONDS

    def at_most(self, seconds):
        left = self.ends - time.monotonic()
        if left <= 1:
            raise Failure(f"not reached: its {PEER_SECONDS // 60} minutes were used up")
        return min(seconds, left)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def die_with_the_runner():
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


class Session:
    def __init__(self, peer, clock, side=None):
        self.peer, self.clock, self.side = peer, clock, side
        self.data = DATA / peer.name
        self.log = PEERS / f"{peer.name}.log"
        self.ports = free_ports(4)
        self.services, self.driver, self.answers = [], None, None

    def __enter__(self):
        shutil.rmtree(self.data, ignore_errors=True)
        self.data.mkdir(parents=True)
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.data, ignore_errors=True)

    def start(self):
        """Also after a kill: the data is still there, and the ports are the same."""
        self.services = [self.spawn(service) for service in self.peer.services(self.data, self.ports)]
        self.driver = self.spawn(
            self.peer.driver(self.data, self.ports), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.answers = queue.SimpleQueue()
        threading.Thread(target=read_answers, args=(self.driver.stdout, self.answers), daemon=True).start()
        self.receive(STARTING_SECONDS)

    def spawn(self, command, **pipes):
        environment = command.environment | ({"PEERS_SIDE": str(self.side)} if self.side else {})
        with open(self.log, "a") as log:
            pipes = {"stdin": subprocess.DEVNULL, "stdout": log} | pipes
            try:
                return subprocess.Popen(
                    command.arguments, env=environment, stderr=log, preexec_fn=die_with_the_runner, **pipes
                )
            except OSError as problem:
                raise Failure(f"it does not start: {problem.strerror}") from None

    def send(self, do, **fields):
        try:
            self.driver.stdin.write(json.dumps({"do": do, **fields}) + "\n")
            self.driver.stdin.flush()
        except BrokenPipeError:
            raise self.ended() from None

    def receive(self, seconds):
        limit = self.clock.at_most(seconds)
        try:
            line = self.answers.get(timeout=limit)
        except queue.Empty:
            raise Failure(f"no answer in {limit:.0f} s") from None
        if not line:
            raise self.ended()
        answer = json.loads(line)
        if "error" in answer:
            raise Failure(answer["error"])
        return answer

    def ended(self):
        """With its last words, without the paths of this machine."""
        words = self.log.read_text(errors="replace").strip().split("\n")[-1]
        return Failure(f"its driver has ended: {words}".replace(str(ROOT), "")[:200])

    def ask(self, do, seconds, **fields):
        self.send(do, **fields)
        return self.receive(seconds)

    def counted(self):
        """The processes whose time and memory are the peer's."""
        processes = self.services + ([self.driver] if self.peer.driver_counts else [])
        return [process.pid for process in processes]

    def kill(self):
        """kill -9 of everything at once; what was written to the page cache stays, as in any such test."""
        processes = self.services + ([self.driver] if self.driver else [])
        for pid in process_tree([process.pid for process in processes]):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        for process in processes:
            process.wait()
        self.services, self.driver = [], None


def read_answers(stream, answers):
    for line in stream:
        answers.put(line)
    answers.put("")
