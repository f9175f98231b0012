#!/usr/bin/env python3
"""Compares binaries of Codex in one run: size, start, memory, threads and turns.

usage: bench/compare.py BINARY... [--threads N] [--turns N] [--rounds N]

Each binary serves `app-server` over stdin and stdout, with a home of its own and a model server in this process that answers
every request with "All done.". The binaries take turns, round by round, and the median of all rounds is printed as a table in
Markdown. Nothing leaves the machine. A script that starts a binary, as npm installs one, is followed to the binary.
"""
import argparse
import http.server
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import threading
import time

DEADLINE = 60
ANSWER = [
    {"type": "response.created", "response": {"id": "resp_1"}},
    {"type": "response.output_item.added", "output_index": 0,
     "item": {"type": "message", "id": "msg_1", "role": "assistant", "content": []}},
    {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": "All done."},
    {"type": "response.output_item.done", "output_index": 0,
     "item": {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
              "content": [{"type": "output_text", "text": "All done.", "annotations": []}]}},
    {"type": "response.completed", "response": {"id": "resp_1", "usage": {
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 12}}},
]
BODY = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in ANSWER).encode()


class Model(http.server.BaseHTTPRequestHandler):
    """A model with the Responses API that always says the same."""

    protocol_version = "HTTP/1.1"
    # Head and body in one write: otherwise the answer waits for an acknowledgement, and that is all one would measure.
    wbufsize = 65536
    disable_nagle_algorithm = True

    def do_GET(self):
        self.answer("application/json", b'{"models": [], "data": []}')

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.answer("text/event-stream", BODY)

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server:
    """An app-server, driven over its pipes."""

    def __init__(self, binary, home, project):
        env = {**os.environ, "CODEX_HOME": str(home), "BENCH_KEY": "none"}
        self.began = time.perf_counter()
        self.process = subprocess.Popen([binary, "app-server"], env=env, cwd=project, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.watchdog = threading.Timer(DEADLINE * 5, self.process.kill)
        self.watchdog.start()
        self.next = 0

    def call(self, method, params):
        self.next += 1
        self.write({"id": self.next, "method": method, "params": params})
        answer = self.until(lambda message: message.get("id") == self.next and "method" not in message)
        if "error" in answer:
            raise SystemExit(f"{method}: {answer['error']}")
        return answer["result"]

    def write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def until(self, is_it):
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise SystemExit("the server has ended")
            message = json.loads(line)
            if is_it(message):
                return message

    def memory(self, field):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line.split()[1] for line in status.splitlines() if line.startswith(field)))

    def close(self):
        self.watchdog.cancel()
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def is_program(path):
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def binary_of(path):
    """The program that a script of npm starts, or the file itself."""
    path = pathlib.Path(path).resolve()
    if is_program(path):
        return path
    for folder in path.parents:
        found = [found for found in folder.glob("**/x86_64-unknown-linux-musl/**/codex") if is_program(found)]
        if found:
            return found[0]
    raise SystemExit(f"{path}: no program and no package of one")


def measure(binary, address, options):
    with tempfile.TemporaryDirectory() as folder:
        home, project = pathlib.Path(folder, "home"), pathlib.Path(folder, "project")
        home.mkdir()
        project.mkdir()
        home.joinpath("config.toml").write_text(
            f'model = "gpt-5.1-codex"\nmodel_provider = "bench"\n[model_providers.bench]\nname = "bench"\n'
            f'base_url = "{address}"\nenv_key = "BENCH_KEY"\nwire_api = "responses"\n')
        server = Server(binary, home, project)
        try:
            server.call("initialize", {"clientInfo": {"name": "bench", "version": "1"}})
            start = (time.perf_counter() - server.began) * 1000
            server.write({"method": "initialized"})
            idle = server.memory("VmRSS") / 1000
            took, threads = [], []
            before = server.memory("RssAnon")
            for _ in range(options.threads):
                began = time.perf_counter()
                threads.append(server.call("thread/start", {})["thread"]["id"])
                took.append((time.perf_counter() - began) * 1000)
            each = (server.memory("RssAnon") - before) / options.threads
            turns = []
            for _ in range(options.turns):
                began = time.perf_counter()
                server.call("turn/start", {"threadId": threads[0], "input": [{"type": "text", "text": "hello"}]})
                server.until(lambda message: message.get("method") == "turn/completed")
                turns.append((time.perf_counter() - began) * 1000)
            return {"start": start, "idle": idle, "thread": statistics.median(took), "each": each,
                    "turn": statistics.median(turns)}
        finally:
            server.close()


def version(binary):
    with tempfile.TemporaryDirectory() as home:
        said = subprocess.run([binary, "--version"], capture_output=True, text=True, env={**os.environ, "CODEX_HOME": home})
    return said.stdout.split()[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("binaries", nargs="+", type=binary_of)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--turns", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    model.daemon_threads = True
    threading.Thread(target=model.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{model.server_address[1]}/v1"
    figures = {binary: [] for binary in options.binaries}
    for _ in range(options.rounds):
        for binary in options.binaries:
            figures[binary].append(measure(binary, address, options))
    median = {binary: {name: statistics.median(round_[name] for round_ in rounds) for name in rounds[0]}
              for binary, rounds in figures.items()}
    rows = [("size of the binary, MB", lambda b: b.stat().st_size / 1e6),
            ("start until `initialize` is answered, ms", lambda b: median[b]["start"]),
            ("memory after `initialize`, MB", lambda b: median[b]["idle"]),
            ("`thread/start`, ms", lambda b: median[b]["thread"]),
            (f"memory for each of {options.threads} idle threads, KB", lambda b: median[b]["each"]),
            ("a turn with an instant model, ms", lambda b: median[b]["turn"])]
    print("| | " + " | ".join(version(binary) for binary in options.binaries) + " |")
    print("|---|" + "---|" * len(options.binaries))
    for name, figure in rows:
        print(f"| {name} | " + " | ".join(f"{figure(binary):.3g}" for binary in options.binaries) + " |")


if __name__ == "__main__":
    main()
