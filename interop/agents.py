#!/usr/bin/env python3
"""Kills a server while child agents work, and looks at what is left of them.

    interop/agents.py target/release/codex [--rounds 200] [--children 20]

Each round starts children that stream or run a command, kills the server with SIGKILL at a random moment, and resumes the root with a new
server. Then no process of a command may be left, each child that a client was told about must be listed, one that had completed must still
be `idle`, and one that was at work must be `failed` or have completed.

Needs Python 3.11 and nothing else; the model is a server on the loopback interface. Not part of the tests of the workspace, because it
takes minutes.
"""

import argparse
import json
import pathlib
import random
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import agents  # noqa: E402
from compare import Server, binary_of  # noqa: E402

# A duration that no other program sleeps for.
SLEEP = "31415.92"
PATIENCE = 5


class Model(agents.Model):
    """As in the bench; children may run a command, and a root may list its children."""

    listed = {}

    def answer(self, items, arrived):
        texts = [part.get("text", "") for item in items if item.get("role") == "user" for part in item["content"]]
        if any(text.startswith("do child run") for text in texts) and items[-1]["type"] != "function_call_output":
            return self.one_call("shell", {"command": ["sleep", SLEEP]}, "run")
        if texts and texts[-1].startswith("list "):
            name = "list_" + texts[-1].split()[1]
            outputs = {item["call_id"]: item["output"] for item in items if item["type"] == "function_call_output"}
            if name not in outputs:
                return self.one_call("subagent_list", {}, name)
            self.listed[name] = json.loads(outputs[name])["sessions"]
        return super().answer(items, arrived)

    def one_call(self, tool, arguments, name):
        self.event({"type": "response.created", "response": {"id": "r1"}})
        call = {"type": "function_call", "id": f"fc_{name}", "call_id": name, "name": tool, "arguments": json.dumps(arguments)}
        self.event({"type": "response.output_item.done", "output_index": 0, "item": call})
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}
        self.event({"type": "response.completed", "response": {"id": "r1", "usage": {**usage, "total_tokens": 2}}})
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()


def sleepers():
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if SLEEP.encode() in folder.joinpath("cmdline").read_bytes():
                found.append(int(folder.name))
        except OSError:
            pass
    return found


class Listener(Server):
    """An app-server; the last status of each child that it has told is kept."""

    def __init__(self, *args):
        super().__init__(*args)
        self.told = {}

    def until(self, is_it):
        return super().until(lambda message: self.note(message) or is_it(message))

    def note(self, message):
        event = message.get("params", {}).get("msg", {})
        if event.get("type") == "subagent_lifecycle":
            child = event.get("subagent", event)
            self.told[child["session_id"]] = child.get("status") or self.told.get(child["session_id"])

    def read_to_end(self):
        while line := self.process.stdout.readline():
            try:
                self.note(json.loads(line))
            except ValueError:
                return


def begin(binary, home, project):
    server = Listener(binary, home, project)
    server.call("initialize", {"clientInfo": {"name": "kills", "version": "1"}})
    server.write({"method": "initialized"})
    return server


def play(server, children):
    """Starts the children; returns the root."""
    root = server.call("thread/start", {"approvalPolicy": "never", "sandbox": "danger-full-access"})["thread"]["id"]
    for first in range(0, children, 4):
        manner = random.choice(["stream", "run", "say"])
        params = {"threadId": root, "input": [{"type": "text", "text": f"do spawn {manner} {first} 4"}]}
        server.call("turn/start", params)
        server.until(lambda message: message.get("method") == "turn/completed" and message["params"]["threadId"] == root)
    return root


def check(told, listed):
    known = {child["session_id"]: child["status"] for child in listed}
    for thread, status in told.items():
        allowed = {"idle": {"idle"}, "failed": {"failed"}, "canceled": {"canceled"}}.get(status, {"failed", "idle", "ready"})
        if known.get(thread) not in allowed:
            yield f"{thread} was told to be {status} and is {known.get(thread)}"


def round_(binary, address, number, children):
    with tempfile.TemporaryDirectory() as folder:
        home, project = pathlib.Path(folder, "home"), pathlib.Path(folder, "project")
        home.mkdir()
        project.mkdir()
        home.joinpath("config.toml").write_text(
            'model = "gpt-5.1-codex"\nmodel_provider = "bench"\nfeatures.subagent_tools = true\nmax_active_subagents = 64\n'
            'subagent_root_inbox_autosubmit = false\nagents.concurrent_turns = 64\n[model_providers.bench]\nname = "bench"\n'
            f'base_url = "{address}"\nenv_key = "BENCH_KEY"\nwire_api = "responses"\n')
        server = begin(binary, home, project)
        root = play(server, children)
        reader = threading.Thread(target=server.read_to_end)
        reader.start()
        time.sleep(random.random())
        server.process.kill()
        reader.join(PATIENCE)
        server.watchdog.cancel()
        told, faults = server.told, []
        late = time.monotonic() + PATIENCE
        while (left := sleepers()) and time.monotonic() < late:
            time.sleep(0.05)
        if left:
            faults.append(f"processes are left: {left}")
        server = begin(binary, home, project)
        try:
            server.call("thread/resume", {"threadId": root})
            params = {"threadId": root, "input": [{"type": "text", "text": f"list {number}"}]}
            server.call("turn/start", params)
            server.until(lambda message: message.get("method") == "turn/completed" and message["params"]["threadId"] == root)
        finally:
            server.close()
        listed = Model.listed.get(f"list_{number}", [])
        if len(listed) != children:
            faults.append(f"{len(listed)} of {children} children are listed")
        return faults + list(check(told, listed))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", type=binary_of)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--children", type=int, default=20)
    options = parser.parse_args()
    model = agents.ModelServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{model.server_address[1]}/v1"
    broken = 0
    for number in range(options.rounds):
        faults = round_(options.binary, address, number, options.children)
        for fault in faults:
            print(f"round {number}: {fault}")
        broken += bool(faults)
    print(f"{options.rounds} kills with {options.children} children each, {broken} with faults")
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()
