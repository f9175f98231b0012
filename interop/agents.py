#!/usr/bin/env python3
"""Kills a server while child agents work, and looks at what is left of them.

    interop/agents.py target/release/codex [--rounds 200] [--children 20] [--seed 1]

Each round starts children that stream, run a command or ask for an approval, every third in a git worktree of its own, kills the
server with SIGKILL at a random moment, and resumes the root with a new server. Then

- no process of a command is left;
- each child that a client was told about is listed; one that had completed is still `idle`, one that had an open question is still at
  work, and any other one that was at work is `failed` or has completed;
- each question that was open is asked again, once, and only those; once they are answered, their commands run exactly once and the
  children complete;
- when the new server has ended too, no git worktree of an agent is left.

Needs Python 3.11 and nothing else; the model is a server on the loopback interface. Not part of the tests of the workspace, because it
takes minutes.
"""

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "bench"))
import agents  # noqa: E402
from compare import Server, binary_of  # noqa: E402

# A duration that no other program sleeps for.
SLEEP = "31415.92"
PATIENCE = 20
MANNERS = ["stream", "run", "say", "ask", "ask"]


class Model(agents.Model):
    """As in the bench; children may run a command or ask for one, and a root may list its children."""

    listed, project, failures = {}, None, []

    def calls(self, tool, manner, numbers):
        for place, number in enumerate(numbers):
            arguments = {"prompt": f"do child {manner} {number}"}
            if number % 3 == 0:
                arguments["isolation"] = "worktree"
            call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": f"subagent_{tool}",
                    "arguments": json.dumps(arguments)}
            self.event({"type": "response.output_item.done", "output_index": place, "item": call})

    def answer(self, items, arrived):
        texts = [part.get("text", "") for item in items if item.get("role") == "user" for part in item["content"]]
        words = next((text.split() for text in texts if text.startswith("do child ")), [])
        is_called = any(item["type"] == "function_call_output" for item in items)
        outputs = [str(item["output"]) for item in items if item["type"] == "function_call_output"]
        self.failures.extend(output for output in outputs if "failed to start" in output)
        if words[2:3] == ["run"] and not is_called:
            return self.one_call("shell", {"command": ["sleep", SLEEP]}, f"run_{words[3]}")
        if words[2:3] == ["ask"] and not is_called:
            command = f"echo {words[3]} >> '{self.project}/made'"
            return self.one_call("shell", {"command": ["sh", "-c", command]}, f"ask_{words[3]}")
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
    """An app-server; keeps the last status of each child and the questions that it has told, and answers some of them."""

    def __init__(self, *args, answers):
        super().__init__(*args)
        self.answers = answers
        # The last status of each child; the requests by question; the questions that were answered; the turns that have ended.
        self.told, self.asked, self.answered, self.ended = {}, collections.OrderedDict(), set(), collections.Counter()
        self.times_asked = collections.Counter()

    def until(self, is_it):
        return super().until(lambda message: self.note(message) or is_it(message))

    def note(self, message):
        params = message.get("params") or {}
        event = params.get("msg") or {}
        if event.get("type") == "subagent_lifecycle":
            child = event.get("subagent", event)
            self.told[child["session_id"]] = child.get("status") or self.told.get(child["session_id"])
        elif message.get("method") == "item/commandExecution/requestApproval":
            question = (params["threadId"], params["itemId"])
            self.asked[question] = message["id"]
            self.times_asked[question] += 1
            # A command that only sleeps may run; of the others, some are answered at once.
            if self.answers and (params["itemId"].startswith("run_") or random.random() < 0.2):
                self.approve(question)
        elif message.get("method") == "turn/completed":
            self.ended[params["threadId"]] += 1

    def approve(self, question):
        self.answered.add(question)
        try:
            self.write({"id": self.asked[question], "result": {"decision": "accept"}})
        except OSError:
            pass  # It was killed meanwhile.

    def open_questions(self):
        return [question for question in self.asked if question not in self.answered]

    def read_to_end(self):
        while line := self.process.stdout.readline():
            try:
                self.note(json.loads(line))
            except ValueError:
                return


def begin(binary, home, project, answers):
    server = Listener(binary, home, project, answers=answers)
    server.call("initialize", {"clientInfo": {"name": "kills", "version": "1"}})
    server.write({"method": "initialized"})
    return server


def is_end_of(thread):
    return lambda message: message.get("method") == "turn/completed" and message["params"]["threadId"] == thread


def say(server, thread, text):
    server.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
    server.until(is_end_of(thread))


def play(server, children):
    """Starts the children; returns the root."""
    root = server.call("thread/start", {"approvalPolicy": "untrusted", "sandbox": "danger-full-access"})["thread"]["id"]
    for first in range(0, children, 4):
        say(server, root, f"do spawn {random.choice(MANNERS)} {first} 4")
    return root


def check_statuses(told, due, asked, listed):
    known = {child["session_id"]: child["status"] for child in listed}
    asking, may_ask = ({thread for thread, _ in questions} for questions in (due, asked))
    for thread, status in told.items():
        allowed = {"idle": {"idle"}, "failed": {"failed"}, "canceled": {"canceled"}}.get(status, {"failed", "idle", "ready"})
        if thread in asking:
            allowed = {"running", "queued"}
        elif thread in may_ask:
            # Its question was recorded and not told, or its answer was sent and not recorded.
            allowed |= {"running", "queued"}
        if known.get(thread) not in allowed:
            yield f"{thread} was told to be {status} and is {known.get(thread)}, {'asking' if thread in asking else 'not asking'}"


def wait_for_questions(server, due):
    late = time.monotonic() + PATIENCE
    while due - set(server.asked) and time.monotonic() < late:
        # Any answer makes the server write, so that the wait has an end.
        server.call("thread/loaded/list", {})
        time.sleep(0.02)


def check_questions(server, before, due, project):
    """Everything that was open is asked again, once, and can be answered."""
    for question in due - set(server.asked):
        yield f"{question} was open and is not asked again"
    for question in set(server.asked) - due - before.answered:
        # It may have been on its way when the server was killed.
        if question[0] not in before.told:
            yield f"{question} is asked and its thread was never told"
    for question, times in server.times_asked.items():
        if times != 1:
            yield f"{question} was asked {times} times"
    for question in server.open_questions():
        server.approve(question)
    late = time.monotonic() + PATIENCE
    while any(server.ended[thread] == 0 for thread, item in due if item.startswith("ask_")):
        if time.monotonic() > late:
            yield "a child whose question was answered does not end"
            return
        server.call("thread/loaded/list", {})
        time.sleep(0.02)
    made = project.joinpath("made")
    lines = collections.Counter(made.read_text().split()) if made.exists() else {}
    for number, times in lines.items():
        if times != 1:
            yield f"the command of child {number} ran {times} times"
    for thread, item in due:
        if item.startswith("ask_") and not lines.get(item.removeprefix("ask_")):
            yield f"the command of {thread} did not run"


def worktrees(project):
    listed = subprocess.run(["git", "worktree", "list", "--porcelain"], cwd=project, capture_output=True, text=True, check=True)
    return [line.removeprefix("worktree ") for line in listed.stdout.splitlines() if line.startswith("worktree ")][1:]


def git(project, *args):
    command = ["git", "-c", "user.name=kills", "-c", "user.email=kills@localhost", *args]
    subprocess.run(command, cwd=project, check=True, stdout=subprocess.DEVNULL)


def round_(binary, address, number, children):
    """Returns the faults and the number of questions that were open."""
    with tempfile.TemporaryDirectory() as folder:
        home, project = pathlib.Path(folder, "home"), pathlib.Path(folder, "project")
        home.mkdir()
        project.mkdir()
        git(project, "init", "-q")
        git(project, "commit", "-q", "--allow-empty", "-m", "begin")
        home.joinpath("config.toml").write_text(
            'model = "gpt-5.1-codex"\nmodel_provider = "bench"\nfeatures.subagent_tools = true\nmax_active_subagents = 64\n'
            'subagent_root_inbox_autosubmit = false\nagents.concurrent_turns = 64\n[model_providers.bench]\nname = "bench"\n'
            f'base_url = "{address}"\nenv_key = "BENCH_KEY"\nwire_api = "responses"\n')
        Model.project = project
        before = begin(binary, home, project, answers=True)
        root = play(before, children)
        reader = threading.Thread(target=before.read_to_end)
        reader.start()
        time.sleep(random.random())
        before.process.kill()
        reader.join(PATIENCE)
        before.watchdog.cancel()
        faults = []
        late = time.monotonic() + PATIENCE
        while (left := sleepers()) and time.monotonic() < late:
            time.sleep(0.05)
        if left:
            faults.append(f"processes are left: {left}")
        # Answers change the statuses, so they wait until these are checked.
        server = begin(binary, home, project, answers=False)
        try:
            server.call("thread/resume", {"threadId": root})
            say(server, root, f"list {number}")
            listed = Model.listed.get(f"list_{number}", [])
            if len(listed) != children:
                faults.append(f"{len(listed)} of {children} children are listed")
            faults += {f"a child did not start: {failure}" for failure in Model.failures}
            Model.failures.clear()
            due = set(before.open_questions())
            wait_for_questions(server, due)
            faults += check_statuses(before.told, due, server.asked, listed)
            faults += check_questions(server, before, due, project)
        finally:
            server.close()
        if left := worktrees(project):
            faults.append(f"worktrees are left: {left}")
        return faults, len(before.open_questions())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", type=binary_of)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--children", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None, help="repeat the choices of a run")
    options = parser.parse_args()
    random.seed(options.seed)
    model = agents.ModelServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{model.server_address[1]}/v1"
    broken = questions = 0
    for number in range(options.rounds):
        faults, asked = round_(options.binary, address, number, options.children)
        questions += asked
        for fault in faults:
            print(f"round {number}: {fault}", flush=True)
        broken += bool(faults)
    print(f"{options.rounds} kills with {options.children} children each and {questions} open questions, {broken} with faults")
    raise SystemExit(broken > 0)


if __name__ == "__main__":
    main()
