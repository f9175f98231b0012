#!/usr/bin/env python3
"""Threads that one release has written are resumed by another, in both directions.

    npm install --prefix /tmp/peer @openai/codex@0.77.0
    interop/threads.py target/release/codex /tmp/peer/node_modules/.bin/codex

Needs Python 3.11 and nothing else; the model is a server on the loopback interface. Not part of the tests of the
workspace, because it needs the other program.
"""

import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading


class Model(http.server.BaseHTTPRequestHandler):
    """Runs a command when the last message says so, else answers with a text."""

    protocol_version = "HTTP/1.1"
    requests = []

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Model.requests.append(body)
        number = len(Model.requests)
        if "RUN" in json.dumps(body["input"][-1]):
            arguments = json.dumps({"command": ["echo", "hello"]})
            item = {"type": "function_call", "call_id": f"c{number}", "name": "shell", "arguments": arguments}
        else:
            content = [{"type": "output_text", "text": f"answer {number}"}]
            item = {"type": "message", "role": "assistant", "id": f"m{number}", "content": content}
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}
        response = {"id": f"r{number}", "usage": {**usage, "total_tokens": 2}}
        events = [
            {"type": "response.created", "response": {"id": f"r{number}"}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": response},
        ]
        text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Client:
    """One run of an app-server."""

    def __init__(self, program, home):
        self.child = subprocess.Popen(
            [program, "app-server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "CODEX_HOME": home},
        )
        self.last_id = 0
        self.call("initialize", {"clientInfo": {"name": "interop", "version": "1"}})
        self.send({"method": "initialized"})

    def send(self, message):
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()

    def wait(self, is_wanted):
        while line := self.child.stdout.readline():
            message = json.loads(line)
            if is_wanted(message):
                return message
        raise SystemExit("the program has ended")

    def call(self, method, params):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        answer = self.wait(lambda message: message.get("id") == self.last_id and "method" not in message)
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']}")
        return answer["result"]

    def turn(self, thread, text):
        self.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
        ended = self.wait(lambda message: message.get("method") == "turn/completed")
        return ended["params"]["turn"]["status"]

    def end(self):
        self.child.stdin.close()
        self.child.wait(30)


def check(writer, reader, home, folder):
    """Lets one program write a thread and the other go on with it."""
    first = Client(writer, home)
    thread = first.call("thread/start", {"cwd": folder})["thread"]["id"]
    first.turn(thread, "first, RUN it")
    first.turn(thread, "second")
    first.end()
    second = Client(reader, home)
    resumed = second.call("thread/resume", {"threadId": thread})
    status = second.turn(thread, "third")
    sent = json.dumps(Model.requests[-1]["input"])
    listed = [entry["id"] for entry in second.call("thread/list", {})["data"]]
    second.end()
    return {
        "both turns are shown": len(resumed["thread"]["turns"]) == 2,
        "the next turn works": status == "completed",
        "everything is remembered": all(text in sent for text in ["first, RUN it", "second", "third"]),
        "calls have their outputs": sent.count('"function_call"') == sent.count('"function_call_output"') == 1,
        "it is listed": thread in listed,
    }


def main():
    ours, peer = sys.argv[1:]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    failed = False
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        home, folder = os.path.join(root, "home"), os.path.join(root, "work")
        os.makedirs(home)
        os.makedirs(folder)
        with open(os.path.join(home, "config.toml"), "w") as config:
            config.write('model = "m"\nmodel_provider = "p"\napproval_policy = "never"\n')
            config.write('sandbox_mode = "danger-full-access"\n[model_providers.p]\nname = "p"\nwire_api = "responses"\n')
            config.write(f'base_url = "http://127.0.0.1:{server.server_port}/v1"\n')
        for name, writer, reader in [("written here, read there", ours, peer), ("written there, read here", peer, ours)]:
            for what, holds in check(writer, reader, home, folder).items():
                print(f"{'ok  ' if holds else 'FAIL'} {name}: {what}")
                failed |= not holds
    sys.exit(1 if failed else 0)


main()
