#!/usr/bin/env python3
"""Measures what MCP servers cost, and fails if a figure is above its limit.

usage: bench/mcp.py BINARY [--rounds N]

The binary serves `app-server` over stdin and stdout, with a home of its own and a model server in this process. This script is also the
MCP server: `bench/mcp.py serve N` has one tool that echoes and N others, and `bench/mcp.py silent` never answers. Nothing leaves the
machine. Needs Linux, because processes and their wake-ups are read from /proc.
"""
import argparse
import http.server
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import compare

SCRIPT = str(pathlib.Path(__file__).resolve())
IDLE_SECONDS = 5


def serve(further):
    """An MCP server on stdin and stdout."""
    schema = {"type": "object", "properties": {"text": {"type": "string", "description": "some text"}}, "required": ["text"]}
    tools = [{"name": name, "description": "Says what it is told.", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
             for name in ["echo", *(f"tool{number}" for number in range(further))]]
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        if message["method"] == "initialize":
            result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                      "serverInfo": {"name": "bench", "version": "1"}}
        elif message["method"] == "tools/list":
            result = {"tools": tools}
        else:
            result = {"content": [{"type": "text", "text": message["params"].get("arguments", {}).get("text", "")}]}
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}) + "\n")
        sys.stdout.flush()


class Place:
    """A home with MCP servers, and an app-server that uses it."""

    def __init__(self, options, servers):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        home, project = pathlib.Path(self.folder.name, "home"), pathlib.Path(self.folder.name, "project")
        home.mkdir()
        project.mkdir()
        tables = "".join(f'[mcp_servers.{name}]\ncommand = "{sys.executable}"\nargs = {json.dumps([SCRIPT, *arguments])}\n'
                         f'env = {{ MCP_BENCH = "{self.folder.name}" }}\n' for name, arguments in servers.items())
        home.joinpath("config.toml").write_text(
            f'model = "gpt-5.1-codex"\nmodel_provider = "bench"\n{tables}[model_providers.bench]\nname = "bench"\n'
            f'base_url = "{options.address}"\nenv_key = "BENCH_KEY"\nwire_api = "responses"\n')
        self.server = compare.Server(options.binary, home, project)
        self.server.call("initialize", {"clientInfo": {"name": "bench", "version": "1"}})
        self.server.write({"method": "initialized"})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()
        self.folder.cleanup()

    def thread(self):
        began = time.perf_counter()
        thread = self.server.call("thread/start", {})["thread"]["id"]
        return thread, since(began)

    def turn(self, thread):
        began = time.perf_counter()
        self.server.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "hello"}]})
        self.server.until(lambda message: message.get("method") == "turn/completed")
        return since(began)

    def echo(self, thread):
        began = time.perf_counter()
        result = self.server.call("mcpServer/tool/call", {"threadId": thread, "server": "s", "tool": "echo", "arguments": {"text": "hi"}})
        assert result["content"][0]["text"] == "hi", result
        return since(began)

    def processes(self):
        """The MCP servers that this place has started."""
        wanted, found = f"MCP_BENCH={self.folder.name}".encode(), []
        for folder in pathlib.Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:
                continue
        return found

    def wake_ups(self):
        tasks = pathlib.Path(f"/proc/{self.server.process.pid}/task").iterdir()
        lines = [line for task in tasks for line in (task / "status").read_text().splitlines()]
        return sum(int(line.split()[1]) for line in lines if "ctxt_switches" in line)


def since(began):
    return (time.perf_counter() - began) * 1000


def dead(options):
    """A server that never answers: `thread/start` and the first turn, beside those without a server."""
    starts, turns = {True: [], False: []}, {True: [], False: []}
    for _ in range(options.rounds):
        for is_dead in (True, False):
            with Place(options, {"s": ["silent"]} if is_dead else {}) as place:
                thread, took = place.thread()
                starts[is_dead].append(took)
                turns[is_dead].append(place.turn(thread))
    delay = {name: statistics.median(figures[True]) - statistics.median(figures[False])
             for name, figures in (("start", starts), ("turn", turns))}
    yield "delay of `thread/start` by a dead server, ms", delay["start"], 50
    yield "delay of the first turn by a dead server, ms", delay["turn"], 250


def pool(options):
    """A hundred threads with three servers, and the end of the program by SIGKILL."""
    with Place(options, {name: ["serve", "0", name] for name in "abc"}) as place:
        for _ in range(100):
            place.thread()
        place.server.call("mcpServerStatus/list", {})
        yield "processes of 3 servers for 100 threads", len(place.processes()), 3
        place.server.process.send_signal(signal.SIGKILL)
        began = time.perf_counter()
        while place.processes() and since(began) < 10_000:
            time.sleep(0.01)
        yield "time until none is left after SIGKILL, ms", since(began), 2_000


def echo(options):
    """A call of a tool, beside the same call without Codex."""
    direct = subprocess.Popen([sys.executable, SCRIPT, "serve", "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with Place(options, {"s": ["serve", "0"]}) as place, direct:
        thread, _ = place.thread()
        line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "hi"}}})
        own, through = [], []
        for _ in range(500):
            began = time.perf_counter()
            direct.stdin.write(line.encode() + b"\n")
            direct.stdin.flush()
            json.loads(direct.stdout.readline())
            own.append(since(began))
            through.append(place.echo(thread))
        direct.stdin.close()
        yield "call of a tool beyond the server's own answer, ms", statistics.median(through) - statistics.median(own), 1


def many(options):
    """A turn with a thousand tools, beside one without."""
    turns = {1000: [], 0: []}
    with Place(options, {"s": ["serve", "1000"]}) as full, Place(options, {"s": ["serve", "0"]}) as empty:
        threads = {}
        for tools, place in ((1000, full), (0, empty)):
            threads[tools], _ = place.thread()
            place.echo(threads[tools])
            place.turn(threads[tools])
        for _ in range(options.rounds * 10):
            for tools, place in ((1000, full), (0, empty)):
                turns[tools].append(place.turn(threads[tools]))
    yield "time that 1,000 tools add to a turn, ms", statistics.median(turns[1000]) - statistics.median(turns[0]), 2


def idle(options):
    """The wake-ups of a program with an idle server, beside one without."""
    woken = []
    for servers in ({"s": ["serve", "0"]}, {}):
        with Place(options, servers) as place:
            thread, _ = place.thread()
            place.turn(thread)
            place.server.call("mcpServerStatus/list", {})
            time.sleep(1)
            before = place.wake_ups()
            time.sleep(IDLE_SECONDS)
            woken.append(place.wake_ups() - before)
    yield f"wake-ups that an idle server adds in {IDLE_SECONDS} s", woken[0] - woken[1], 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", type=compare.binary_of)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), compare.Model)
    model.daemon_threads = True
    threading.Thread(target=model.serve_forever, daemon=True).start()
    options.address = f"http://127.0.0.1:{model.server_address[1]}/v1"
    print("| | measured | limit |\n|---|---|---|")
    is_good = True
    for part in (dead, pool, echo, many, idle):
        for name, figure, limit in part(options):
            is_good &= figure <= limit
            print(f"| {name} | {figure:.3g} | {limit}{'' if figure <= limit else ' **exceeded**'} |", flush=True)
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]))
    elif sys.argv[1:2] == ["silent"]:
        sys.stdin.read()
    else:
        main()
