#!/usr/bin/env python3
"""Kills a server while the model writes, and looks at what is left of the answer.

    interop/kills.py target/release/codex [PEER...] [--rounds 200]

Each round streams an answer, kills the server with SIGKILL at a random moment, and reads the thread with a new server. Everything that
a client was told more than 100 ms before the kill must be there. Every tenth file is resumed by each of the other programs (releases
0.42, 0.77 and 0.166, as npm installs them), which must go on with it.

Needs Python 3.11 and nothing else; the model is a server on the loopback interface. Not part of the tests of the workspace, because it
needs the other programs.
"""

import argparse
import collections
import http.server
import json
import os
import random
import select
import signal
import subprocess
import tempfile
import threading
import time

GRACE = 0.1
PIECES, PAUSE = 200, 0.005
# Between a write of the model and the moment in which the client looks at the clock, the machine may do other things.
SLACK = 0.02


class Model(http.server.BaseHTTPRequestHandler):
    """Writes a long answer slowly when it is asked to, else a short one."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_long = "WRITE" in json.dumps(body["input"][-1])
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self.answer([f"word{number} " for number in range(PIECES)] if is_long else ["short"], PAUSE if is_long else 0)
        except OSError:
            pass

    def answer(self, pieces, pause):
        item = {"type": "message", "role": "assistant", "id": "msg_1", "content": []}
        self.event({"type": "response.created", "response": {"id": "r1"}})
        self.event({"type": "response.output_item.added", "output_index": 0, "item": item})
        for piece in pieces:
            self.event({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
                        "delta": piece})
            time.sleep(pause)
        item = {**item, "content": [{"type": "output_text", "text": "".join(pieces)}]}
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item})
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}
        self.event({"type": "response.completed", "response": {"id": "r1", "usage": {**usage, "total_tokens": 2}}})
        self.wfile.write(b"0\r\n\r\n")

    def event(self, event):
        text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()


class Client:
    """One run of a server."""

    def __init__(self, command, home):
        env = {**os.environ, "CODEX_HOME": home}
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)
        self.last_id, self.rest, self.waiting = 0, b"", collections.deque()
        # The oldest release takes these methods on its MCP server, which is strict about both.
        mcp = {"protocolVersion": "2025-06-18", "capabilities": {}} if command[-1] == "mcp" else {}
        self.call("initialize", {"clientInfo": {"name": "interop", "version": "1"}, **mcp})
        self.send({"method": "notifications/initialized" if mcp else "initialized"})

    def send(self, message):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.child.stdin.flush()

    def lines(self, deadline):
        """What comes until a moment."""
        while True:
            # Whoever stops in the middle of what was read at once goes on with the rest.
            while self.waiting:
                yield json.loads(self.waiting.popleft())
            if (left := deadline - time.monotonic()) <= 0:
                return
            if not select.select([self.child.stdout], [], [], left)[0]:
                return
            read = os.read(self.child.stdout.fileno(), 1 << 16)
            if not read:
                return
            *lines, self.rest = (self.rest + read).split(b"\n")
            self.waiting.extend(lines)

    def wait(self, is_wanted, seconds=30):
        for message in self.lines(time.monotonic() + seconds):
            if is_wanted(message):
                return message
        raise SystemExit("the program has ended, or said nothing in time")

    def call(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        answer = self.wait(lambda message: message.get("id") == self.last_id and "method" not in message)
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']}")
        return answer["result"]

    def end(self):
        self.child.stdin.close()
        try:
            self.child.wait(10)
        except subprocess.TimeoutExpired:
            self.child.kill()


def cut_off(program, home, folder, after):
    """Kills a server in the middle of an answer. Gives the thread, its file, and the text that has to be there."""
    client = Client([program, "app-server"], home)
    thread = client.call("thread/start", {"cwd": folder})["thread"]
    client.call("turn/start", {"threadId": thread["id"], "input": [{"type": "text", "text": "WRITE"}]})
    told, first = [], client.wait(lambda message: message.get("method") == "item/agentMessage/delta")
    told.append((time.monotonic(), first["params"]["delta"]))
    for message in client.lines(time.monotonic() + after):
        if message.get("method") == "item/agentMessage/delta":
            told.append((time.monotonic(), message["params"]["delta"]))
    client.child.send_signal(signal.SIGKILL)
    killed = time.monotonic()
    client.child.wait()
    return thread["id"], thread["path"], "".join(text for at, text in told if at < killed - GRACE - SLACK), \
        "".join(text for _, text in told)


def shown(program, home, thread):
    """The text of the last answer, as a new server tells it."""
    client = Client([program, "app-server"], home)
    turns = client.call("thread/read", {"threadId": thread, "includeTurns": True})["thread"]["turns"]
    client.end()
    texts = [item["text"] for turn in turns for item in turn["items"] if item["type"] == "agentMessage"]
    return "".join(texts)


def resumed(peer, home, thread, path):
    """Whether another release goes on with the thread."""
    version = subprocess.run([peer, "--version"], capture_output=True, text=True).stdout.split()[-1]
    if version.startswith("0.42"):
        client = Client([peer, "mcp"], home)
        conversation = client.call("resumeConversation", {"path": path})["conversationId"]
        client.call("addConversationListener", {"conversationId": conversation})
        client.call("sendUserMessage", {"conversationId": conversation,
                                        "items": [{"type": "text", "data": {"text": "go on"}}]})
        client.wait(lambda message: message.get("method") == "codex/event/task_complete")
    else:
        client = Client([peer, "app-server"], home)
        client.call("thread/resume", {"threadId": thread})
        client.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "go on"}]})
        client.wait(lambda message: message.get("method") == "turn/completed")
    client.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("peers", nargs="*")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chance, lost, resumes = random.Random(17), 0, 0
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        home, folder = os.path.join(root, "home"), os.path.join(root, "work")
        os.makedirs(home)
        os.makedirs(folder)
        with open(os.path.join(home, "config.toml"), "w") as config:
            config.write('model = "m"\nmodel_provider = "p"\napproval_policy = "never"\n')
            config.write('[model_providers.p]\nname = "p"\nwire_api = "responses"\n')
            config.write(f'base_url = "http://127.0.0.1:{server.server_port}/v1"\n')
        for number in range(options.rounds):
            thread, path, due, told = cut_off(options.program, home, folder, chance.uniform(0.0, 0.9))
            found = shown(options.program, home, thread)
            if not found.startswith(due):
                lost += 1
                print(f"FAIL round {number}: of {len(told)} characters {len(due)} were due and {len(found)} are there")
            if number % 10 == 0:
                for peer in options.peers:
                    resumed(peer, home, thread, path)
                    resumes += 1
    print(f"{options.rounds} kills, {lost} lost text that was told {GRACE * 1000:.0f} ms before; "
          f"{resumes} files were resumed by other releases")
    raise SystemExit(1 if lost else 0)


main()
