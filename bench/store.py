#!/usr/bin/env python3
"""Measures threads in PostgreSQL, with fsync: turns, relays, lists, and the time until other servers continue.

usage: bench/store.py BINARY [--turns N] [--threads N] [--items N] [--listed N] [--running N] [--loaded N] [--only PART...]

Starts a private cluster, up to three servers, and a model in this process that answers at once, slowly or never, as the message says.
Nothing leaves the machine. Use a release build, on a quiet machine. Needs Python 3.11 and PostgreSQL.
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
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "interop"))
from servers import USAGE, Connection, Database, Gone, Server  # noqa: E402

PARTS = ("turns", "relay", "many", "resume", "lists", "takeover", "idle")


class Model(http.server.BaseHTTPRequestHandler):
    """Answers `say N` with N pieces, `wait S` after that many seconds, and `hang` never."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        words = [item for item in body["input"] if item.get("role") == "user"][-1]["content"][-1]["text"].split()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self.answer(words)
        except OSError:
            pass

    def answer(self, words):
        item = {"type": "message", "role": "assistant", "id": "msg_1", "content": []}
        self.event({"type": "response.created", "response": {"id": "r1"}})
        self.event({"type": "response.output_item.added", "output_index": 0, "item": item})
        if words[0] == "hang":
            self.delta("…")
            time.sleep(600)
        if words[0] == "wait":
            time.sleep(float(words[1]))
        pieces = [f"{number} " for number in range(int(words[1]))] if words[0] == "say" else ["done"]
        for piece in pieces:
            self.delta(piece)
            if words[-1] == "slowly":
                time.sleep(0.005)
        item = {**item, "content": [{"type": "output_text", "text": "".join(pieces)}]}
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item})
        self.event({"type": "response.completed", "response": {"id": "r1", "usage": USAGE}})
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def delta(self, text):
        self.event({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text})

    def event(self, event):
        text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()


class World:
    """The database, its servers and their figures."""

    def __init__(self, program, root, port):
        self.program, self.root, self.database, self.servers = program, root, Database(root), []
        os.makedirs(os.path.join(root, "work"))
        self.config = ('model = "m"\nmodel_provider = "p"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
                       '[model_providers.p]\nname = "p"\nwire_api = "responses"\n'
                       f'base_url = "http://127.0.0.1:{port}/v1"\n')

    def server(self, name, is_direct=False):
        server = Server(self.program, name, self.root, self.config, self.database)
        if is_direct:
            # Without the proxy, which costs time of its own.
            server.child.kill()
            server.child.wait()
            server.proxy.address = self.database.port
            server.start()
        self.servers.append(server)
        self.connect(server)
        return server

    def connect(self, server):
        deadline = time.monotonic() + 60
        while True:
            try:
                connection = Connection(server)
                connection.stream.settimeout(120)
                return connection
            except Gone:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def end(self):
        for server in self.servers:
            server.child.kill()
            server.child.wait()
        self.servers = []


def start(connection, folder):
    return connection.call("thread/start", {"cwd": folder}, seconds=120)["thread"]["id"]


def begin(connection, thread, text):
    connection.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": text}]}, connection.later.append, seconds=120)


def until(connection, method, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        message = connection.later.pop(0) if connection.later else connection.next(max(0.0, deadline - time.monotonic()))
        if message and message.get("method") == method:
            return message
    raise SystemExit(f"no {method} in time")


def client(world, server):
    connection = world.connect(server)
    connection.later = []
    return connection


def turns(world, options):
    server = world.server("turns", is_direct=True)
    connection = client(world, server)
    thread, times = start(connection, server.folder), []
    for _ in range(options.turns):
        began = time.perf_counter()
        begin(connection, thread, "say 1")
        until(connection, "turn/completed")
        times.append((time.perf_counter() - began) * 1000)
    times = sorted(times[10:])
    print(f"turn: p50 {statistics.median(times):.2f} ms, p95 {times[len(times) * 95 // 100]:.2f} ms")
    counted = world.server("counted")
    connection = client(world, counted)
    thread = start(connection, counted.folder)
    for pieces in (1, 1000):
        begin(connection, thread, "say 1")
        until(connection, "turn/completed")
        before = counted.proxy.sent
        for _ in range(20):
            begin(connection, thread, f"say {pieces}")
            until(connection, "turn/completed")
        print(f"round trips to the database: {(counted.proxy.sent - before) / 20:.1f} for a turn with {pieces} deltas")


def relay(world, options):
    owner, other = world.server("owner", is_direct=True), world.server("other", is_direct=True)
    near = client(world, owner)
    thread = start(near, owner.folder)
    begin(near, thread, "say 1")
    until(near, "turn/completed")
    far = client(world, other)
    far.call("thread/resume", {"threadId": thread}, seconds=120)
    at = {"near": {}, "far": {}}

    def listen(name, connection):
        while True:
            message = connection.next(30)
            if message is None or message.get("method") == "turn/completed":
                return
            if message.get("method") == "item/agentMessage/delta":
                at[name][message["params"]["delta"]] = time.perf_counter()

    listeners = [threading.Thread(target=listen, args=pair) for pair in (("near", near), ("far", far))]
    near.send({"id": "turn", "method": "turn/start", "params": {"threadId": thread, "input": [{"type": "text", "text": "say 500 slowly"}]}})
    for listener in listeners:
        listener.start()
    for listener in listeners:
        listener.join()
    late = sorted((at["far"][text] - at["near"][text]) * 1e6 for text in at["far"] if text in at["near"])
    print(f"relayed delta: +{statistics.median(late):.0f} µs (p95 {late[len(late) * 95 // 100]:.0f}) over {len(late)} deltas")


def many(world, options):
    servers = [world.server(f"many{number}") for number in range(3)]
    ended, failed = [], []

    def drive(server, count):
        connection = client(world, server)
        threads = [start(connection, server.folder) for _ in range(count)]
        ready.wait()
        for number, thread in enumerate(threads):
            params = {"threadId": thread, "input": [{"type": "text", "text": "wait 0.5"}]}
            connection.send({"id": f"turn{number}", "method": "turn/start", "params": params})
        left = len(threads)
        while left:
            message = connection.next(120)
            if message is None:
                return failed.extend(["no end"] * left)
            if message.get("method") == "turn/completed":
                left -= 1
                (ended if message["params"]["turn"]["status"] == "completed" else failed).append(message)

    ready = threading.Barrier(4)
    count = options.threads // 3
    drivers = [threading.Thread(target=drive, args=(server, count)) for server in servers]
    for driver in drivers:
        driver.start()
    ready.wait()
    began = time.perf_counter()
    for driver in drivers:
        driver.join()
    print(f"{count * 3} turns at once over three servers: {len(ended)} completed, {len(failed)} failed, {time.perf_counter() - began:.1f} s")


def long_thread(home, items):
    """Writes a thread of that many items as a file."""
    name, at = str(uuid.uuid4()), "2026-01-02T03:04:05.000Z"
    folder = pathlib.Path(home, "sessions/2026/01/02")
    folder.mkdir(parents=True)

    def line(kind, payload):
        return json.dumps({"timestamp": at, "type": kind, "payload": payload}) + "\n"

    with open(folder / f"rollout-2026-01-02T03-04-05-{name}.jsonl", "w") as file:
        file.write(line("session_meta", {"id": name, "timestamp": at, "cwd": "/", "originator": "bench", "cli_version": "0.77.0", "source": "cli"}))
        for number in range(items // 2):
            said, answer = f"question {number}", f"answer {number}"
            file.write(line("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}))
            file.write(line("event_msg", {"type": "user_message", "message": said, "images": []}))
            file.write(line("response_item", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]}))
            file.write(line("event_msg", {"type": "agent_message", "message": answer}))
    return name


def resume(world, options):
    home = os.path.join(world.root, "importing")
    name = long_thread(home, options.items)
    env = {**os.environ, "CODEX_HOME": home, "CODEX_STORE_URL": f"postgres://postgres@127.0.0.1:{world.database.port}/postgres"}
    began = time.perf_counter()
    subprocess.run([world.program, "store", "import"], check=True, env=env, stdout=subprocess.DEVNULL)
    print(f"import of {options.items} items: {time.perf_counter() - began:.2f} s")
    connection = client(world, world.server("resuming", is_direct=True))
    began = time.perf_counter()
    connection.send({"id": "resume", "method": "thread/resume", "params": {"threadId": name}})
    # The clock stops with the last byte: decoding the answer is the client's time.
    while not (answers := [line for line in connection.read() if b'"id":"resume"' in line[:1000]]):
        pass
    seconds, thread = time.perf_counter() - began, json.loads(answers[0])["result"]["thread"]
    size = f"{len(thread['turns'])} turns, {len(answers[0]) / 1e6:.0f} MB"
    print(f"resume of {options.items} items: {seconds * 1000:.0f} ms ({size})")


def lists(world, options):
    server = world.server("lists", is_direct=True)
    connection = client(world, server)
    begin(connection, start(connection, server.folder), "say 1")
    until(connection, "turn/completed")
    connection.call("thread/list", {}, connection.later.append)
    copy = ("INSERT INTO codex.threads (id, epoch, end_at, began, updated, scanned, preview, cwd, provider, source_kind, summary) "
            "SELECT gen_random_uuid(), epoch, end_at, began, updated - n, end_at, 'thread ' || n, cwd, provider, source_kind, summary "
            f"FROM (SELECT * FROM codex.threads WHERE summary IS NOT NULL LIMIT 1) AS one, generate_series(1, {options.listed}) AS n")
    world.database.rows(copy)
    world.database.rows("INSERT INTO codex.texts SELECT id, 1, preview || ' says word' || (updated % 1000), "
                        "to_tsvector('simple', preview || ' says word' || (updated % 1000)) FROM codex.threads WHERE preview LIKE 'thread %'")
    world.database.rows("ANALYZE")
    # Only the copied thread has no texts yet; the first search reads its lines.
    connection.call("thread/search", {"searchTerm": "word17"}, connection.later.append, seconds=120)
    for label, method, params in (("first page", "thread/list", {"limit": 25}), ("search", "thread/search", {"searchTerm": "word17", "limit": 25})):
        times = []
        for _ in range(20):
            began = time.perf_counter()
            answer = connection.call(method, params, connection.later.append, seconds=120)
            times.append((time.perf_counter() - began) * 1000)
        print(f"{label} of {options.listed} threads: {statistics.median(times):.1f} ms, {len(answer['data'])} rows")


def takeover(world, options):
    for how, number in (("SIGKILL", signal.SIGKILL), ("SIGTERM", signal.SIGTERM)):
        first, others = world.server(f"first{how}"), [world.server(f"{name}{how}") for name in "bc"]
        connection = client(world, first)
        threads = [start(connection, first.folder) for _ in range(options.running)]
        for thread in threads:
            begin(connection, thread, "hang")
        for _ in threads:
            until(connection, "item/agentMessage/delta")
        first.child.send_signal(number)
        began = time.perf_counter()
        connections = [client(world, other) for other in others]
        for place, thread in enumerate(threads):
            while True:
                try:
                    connections[place % 2].call("thread/resume", {"threadId": thread}, connections[place % 2].later.append, seconds=60)
                    break
                except Gone:
                    if time.perf_counter() - began > 60:
                        raise
                    time.sleep(0.1)
        print(f"{how} of a server with {options.running} running turns: others have all its threads after {time.perf_counter() - began:.1f} s")
        world.end()


def idle(world, options):
    server = world.server("idle")
    connection = client(world, server)
    for _ in range(options.loaded):
        begin(connection, start(connection, server.folder), "say 1")
        until(connection, "turn/completed")
    loaded = len(connection.call("thread/loaded/list", {"limit": options.loaded}, connection.later.append, seconds=120)["data"])
    time.sleep(10)
    before = server.proxy.sent
    time.sleep(60)
    print(f"idle with {loaded} loaded threads: {(server.proxy.sent - before) / 12:.2f} statements every 5 s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    for name, default in (("turns", 200), ("threads", 1000), ("items", 100_000), ("listed", 100_000), ("running", 300), ("loaded", 10_000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    model.daemon_threads, model.request_queue_size = True, 1024
    model.socket.listen(1024)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        os.chmod(root, 0o755)
        world = World(os.path.abspath(options.program), root, model.server_port)
        try:
            for part in options.only:
                globals()[part](world, options)
                world.end()
        finally:
            world.end()
            world.database.stop()


main()
