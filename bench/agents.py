#!/usr/bin/env python3
"""Measures child agents: their memory, their start, forks, and the delay that many of them cause.

usage: bench/agents.py BINARY [--children N] [--spawns N] [--items N]

The binary serves `app-server` over stdin and stdout with the nine `subagent_*` tools, and a model server in this process answers by
content: a prompt tells which calls to make, and how to stream. Nothing leaves the machine. Use a release build.
"""
import argparse
import http.server
import json
import pathlib
import re
import statistics
import tempfile
import threading
import time

from compare import Server, binary_of

MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant"}
PIECES, PAUSE = 100, 0.02
LONG_BODY = 1 << 18
ITEM = re.compile(rb',\{"type":"(message|function_call|function_call_output)"')


def last_items(body):
    """The last items of a conversation. A long one is not parsed as a whole, which would delay the requests of others."""
    if len(body) < LONG_BODY:
        return json.loads(body)["input"]
    end = body.rindex(b'],"tools":')
    begin = ITEM.search(body, end - LONG_BODY // 4).start() + 1
    return json.loads(b"[%s]" % body[begin:end])


class Model(http.server.BaseHTTPRequestHandler):
    """A model that does what the last message of the user says."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    disable_nagle_algorithm = True
    # The times at which calls were answered and at which children have asked first, by the number of the child.
    called, asked = {}, {}

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def do_POST(self):
        arrived = time.perf_counter()
        items = last_items(self.rfile.read(int(self.headers.get("content-length", 0))))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self.answer(items, arrived)
        except OSError:
            pass

    def answer(self, items, arrived):
        said = [part.get("text", "") for item in items if item.get("role") == "user" for part in item["content"]]
        words = next((text.split() for text in reversed(said) if text.startswith("do ")), ["do", "say"])
        outputs = {item["call_id"] for item in items if item["type"] == "function_call_output"}
        self.event({"type": "response.created", "response": {"id": "r1"}})
        if words[1] == "child":
            self.asked.setdefault(int(words[3]), arrived)
            self.stream(words[2] == "stream")
        elif words[1] in ("spawn", "fork") and f"call_{words[3]}" not in outputs:
            self.calls(words[1], words[2], range(int(words[3]), int(words[3]) + int(words[4])))
        else:
            self.stream(words[1] == "stream")
        usage = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None}
        self.event({"type": "response.completed", "response": {"id": "r1", "usage": {**usage, "total_tokens": 2}}})
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def calls(self, tool, manner, numbers):
        for place, number in enumerate(numbers):
            arguments = json.dumps({"prompt": f"do child {manner} {number}"})
            call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": f"subagent_{tool}",
                    "arguments": arguments}
            self.event({"type": "response.output_item.done", "output_index": place, "item": call})
            self.called[number] = time.perf_counter()

    def stream(self, is_slow):
        self.event({"type": "response.output_item.added", "output_index": 0, "item": {**MESSAGE, "content": []}})
        text = ""
        for _ in range(PIECES if is_slow else 1):
            piece = f"{time.perf_counter()} "
            text += piece
            self.event({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0,
                        "delta": piece})
            if is_slow:
                time.sleep(PAUSE)
        item = {**MESSAGE, "status": "completed", "content": [{"type": "output_text", "text": text, "annotations": []}]}
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item})

    def event(self, event):
        text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()

    def log_message(self, *_):
        pass


class ModelServer(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):
        """A client that is gone is no error."""


class Bench:
    """One app-server, and the threads that it runs."""

    def __init__(self, binary, address, folder, children):
        home, project = pathlib.Path(folder, "home"), pathlib.Path(folder, "project")
        home.mkdir()
        project.mkdir()
        home.joinpath("config.toml").write_text(
            f'model = "gpt-5.1-codex"\nmodel_provider = "bench"\nfeatures.subagent_tools = true\n'
            f'max_active_subagents = {min(children, 64)}\nsubagent_root_inbox_autosubmit = false\n'
            f'agents.concurrent_turns = {min(children, 64)}\n[model_providers.bench]\nname = "bench"\n'
            f'base_url = "{address}"\nenv_key = "BENCH_KEY"\nwire_api = "responses"\n')
        self.server = Server(binary, home, project)
        self.server.call("initialize", {"clientInfo": {"name": "bench", "version": "1"}})
        self.server.write({"method": "initialized"})

    def thread(self, **params):
        return self.server.call("thread/start", {"approvalPolicy": "never", **params})["thread"]["id"]

    def turn(self, thread, text, children=0):
        """Runs a turn until it and that many turns of children have ended; returns the delays of the turn's own deltas."""
        self.server.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]})
        delays, is_over = [], False
        while children > 0 or not is_over:
            message = self.server.until(lambda message: message.get("method") in ("turn/completed", "item/agentMessage/delta"))
            is_own = message["params"]["threadId"] == thread
            if message["method"] == "turn/completed":
                is_over, children = is_over or is_own, children - (not is_own)
            elif is_own:
                now = time.perf_counter()
                delays += [now - float(sent) for sent in message["params"]["delta"].split()]
        return delays

    def anonymous_kb(self):
        return self.server.memory("RssAnon")


def measure(binary, address, options):
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(binary, address, folder, options.children)
        try:
            rows += starts(bench, options.spawns)
            rows += memory(bench, options.children)
            rows += forks(bench, options.items)
            rows += streams(bench, options.children)
        finally:
            bench.server.close()
    return rows


def starts(bench, spawns):
    thread = bench.thread()
    for number in range(spawns):
        bench.turn(thread, f"do spawn say {number} 1", children=1)
    took = sorted((Model.asked[number] - Model.called[number]) * 1000 for number in range(spawns))
    return [("from the call to the child's request, ms (median)", statistics.median(took), 3),
            ("the same, 95 of 100", took[int(len(took) * 0.95) - 1], None)]


def memory(bench, children):
    thread = bench.thread()
    bench.turn(thread, "do say")
    before = bench.anonymous_kb()
    for first in range(0, children, 8):
        bench.turn(thread, f"do spawn say {1000 + first} 8", children=8)
    return [(f"memory for each of {children} children, KB", (bench.anonymous_kb() - before) / children, 100)]


def forks(bench, items):
    thread = bench.thread()
    text = "An item of the conversation that is neither short nor very long, as many are. " * 3
    history = [{"type": "message", "role": "user" if place % 2 == 0 else "assistant",
                "content": [{"type": "input_text" if place % 2 == 0 else "output_text", "text": f"{place} {text}"}]}
               for place in range(items)]
    bench.server.call("thread/inject_items", {"threadId": thread, "items": history})
    bench.turn(thread, "do say")
    before = bench.anonymous_kb()
    bench.turn(thread, "do fork say 5000 1", children=1)
    took = (Model.asked[5000] - Model.called[5000]) * 1000
    return [(f"fork of {items} items, from the call to the child's request, ms", took, 10),
            ("memory for the fork, KB", bench.anonymous_kb() - before, 1000)]


def streams(bench, children):
    thread = bench.thread()
    alone = statistics.median(bench.turn(thread, "do stream")) * 1000
    for first in range(0, children, 8):
        bench.turn(thread, f"do spawn stream {6000 + first} 8")
    among = statistics.median(bench.turn(thread, "do stream")) * 1000
    return [("delay of the root's deltas alone, ms (median)", alone, None),
            (f"the same among {children} children that stream, ms", among, None),
            ("the second divided by the first", among / alone, 1.5)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binary", type=binary_of)
    parser.add_argument("--children", type=int, default=64)
    parser.add_argument("--spawns", type=int, default=20)
    parser.add_argument("--items", type=int, default=5000)
    options = parser.parse_args()
    model = ModelServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    print("| | measured | at most |\n|---|---|---|")
    for name, value, most in measure(options.binary, f"http://127.0.0.1:{model.server_address[1]}/v1", options):
        print(f"| {name} | {value:.3g} | {'–' if most is None else most} |")


if __name__ == "__main__":
    main()
