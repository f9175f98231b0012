#!/usr/bin/env python3
"""Kills, halts and cuts off servers that share one database, and compares what clients saw with what is stored.

    interop/servers.py target/release/codex [--seconds 600] [--seed N] [--trace FILE]

Three servers serve three threads in a private PostgreSQL cluster (with fsync). Five clients follow the threads, each at a random server,
and three of them start turns: answers that stream, and commands that leave a mark. Meanwhile servers are killed, ended, and halted for up
to 30 s; their connections to the database are cut and slowed down; and the database is restarted. In the end

- the view of each client is equal to the stored thread, and every item that it was told as completed is there; an answer that broke off is
  stored as far as the client has read it, or not at all;
- no turn was run twice: the model was asked once for each message, and each command left one mark at most;
- lines have the epochs of their owners in order, and `codex store check` finds no fault;
- no command of a halted server outlives the time after which another server may take over.

`--trace` writes what clients received and what was done to servers. Needs Python 3.11 and PostgreSQL. Nothing leaves the machine.
"""

import argparse
import glob
import http.server
import json
import os
import pwd
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

NAMES = ("a", "b", "c")
# Commands of a halted server end 12 s after its last renewal at the latest; the machine may be busy.
COMMANDS_END = 14
USAGE = {"input_tokens": 1, "input_tokens_details": None, "output_tokens": 1, "output_tokens_details": None, "total_tokens": 2}


class Model(http.server.BaseHTTPRequestHandler):
    """Does what the last message says, and counts how often each message began a turn."""

    protocol_version = "HTTP/1.1"
    asked, lock = {}, threading.Lock()

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.send_response(404)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        items = body["input"]
        last = max(place for place, item in enumerate(items) if item.get("role") == "user")
        words = items[last]["content"][-1]["text"].split()
        is_first = all(item.get("type") != "function_call_output" for item in items[last:])
        if is_first:
            with self.lock:
                self.asked[words[-1]] = self.asked.get(words[-1], 0) + 1
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            self.event({"type": "response.created", "response": {"id": "r1"}})
            if words[0] == "run" and is_first:
                self.call(body, words)
            else:
                self.say([f"{words[-1]}.{number} " for number in range(20)])
            self.event({"type": "response.completed", "response": {"id": "r1", "usage": USAGE}})
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            pass

    def call(self, body, words):
        command = f"echo {words[-1]} >> runs; sleep {words[1]}"
        offered = {tool.get("name") for tool in body["tools"]}
        forms = {"exec_command": {"cmd": command}, "shell_command": {"command": command}, "shell": {"command": ["sh", "-c", command]}}
        name = next(name for name in forms if name in offered)
        item = {"type": "function_call", "id": "fc_1", "call_id": f"call_{words[-1]}", "name": name, "arguments": json.dumps(forms[name])}
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item})

    def say(self, pieces):
        item = {"type": "message", "role": "assistant", "id": f"msg_{uuid.uuid4().hex}", "content": []}
        self.event({"type": "response.output_item.added", "output_index": 0, "item": item})
        for piece in pieces:
            self.event({"type": "response.output_text.delta", "item_id": item["id"], "output_index": 0, "content_index": 0, "delta": piece})
            time.sleep(0.01)
        item = {**item, "content": [{"type": "output_text", "text": "".join(pieces)}]}
        self.event({"type": "response.output_item.done", "output_index": 0, "item": item})

    def event(self, event):
        text = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(text), text))
        self.wfile.flush()


class ModelServer(http.server.ThreadingHTTPServer):
    """Serves the model to servers that may be killed while it answers."""

    daemon_threads = True

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class Database:
    """A private cluster on the loopback interface."""

    def __init__(self, root):
        self.folder = os.path.join(root, "database")
        self.programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1:] or [os.path.dirname(shutil.which("initdb") or "")]
        os.makedirs(self.folder)
        if os.getuid() == 0:
            shutil.chown(self.folder, "postgres")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.run("initdb", "-D", f"{self.folder}/data", "-A", "trust", "-U", "postgres")
        self.run("pg_ctl", "-w", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log",
                 "-o", f"-p {self.port} -h 127.0.0.1 -k {self.folder} -c max_connections=200", "start")

    def run(self, program, *arguments):
        as_user = {"user": pwd.getpwnam("postgres").pw_uid, "group": pwd.getpwnam("postgres").pw_gid, "extra_groups": []} if os.getuid() == 0 else {}
        command = [os.path.join(self.programs[0], program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder, **as_user)

    def restart(self):
        self.run("pg_ctl", "-w", "-D", f"{self.folder}/data", "-l", f"{self.folder}/log", "-m", "fast", "restart")

    def stop(self):
        self.run("pg_ctl", "-w", "-D", f"{self.folder}/data", "-m", "immediate", "stop")

    def rows(self, statement):
        command = ["psql", "-At", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-c", statement, "postgres"]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()


class Proxy:
    """The connections of one server to the database, which can be cut and slowed down."""

    def __init__(self, port):
        self.port, self.pairs, self.delay, self.lock = port, set(), 0.0, threading.Lock()
        # The number of times that the server has sent something.
        self.sent = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            near, _ = self.listener.accept()
            try:
                far = socket.create_connection(("127.0.0.1", self.port), timeout=5)
                far.settimeout(None)
            except OSError:
                near.close()
                continue
            with self.lock:
                self.pairs.add((near, far))
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self.pass_on, args=(source, target, source is near), daemon=True).start()

    def pass_on(self, source, target, is_request):
        try:
            while data := source.recv(1 << 16):
                self.sent += is_request
                if self.delay:
                    time.sleep(self.delay)
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def cut(self):
        with self.lock:
            pairs, self.pairs = self.pairs, set()
        for pair in pairs:
            for end in pair:
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass


class Server:
    """One server, started again whenever it has ended."""

    def __init__(self, program, name, root, config, database):
        self.program, self.name, self.proxy = program, name, Proxy(database.port)
        self.home, self.folder = os.path.join(root, name), os.path.join(root, "work")
        os.makedirs(self.home)
        with open(os.path.join(self.home, "config.toml"), "w") as file:
            file.write(config)
        self.socket, self.woken = os.path.join(self.home, "run", "app-server.sock"), 0.0
        self.start()

    def start(self):
        env = {**os.environ, "CODEX_HOME": self.home, "CODEX_STORE_URL": f"postgres://postgres@127.0.0.1:{self.proxy.address}/postgres"}
        settings = [f"store.server_name={self.name}", f"store.advertise=unix://{self.socket}", "store.drain_sec=1"]
        # One of them uses rows alone, beside those that also use notifications and advisory locks.
        settings += ["store.plain_sql=true"] if self.name == "c" else []
        command = [self.program, "app-server", "--listen", "unix://", *(word for setting in settings for word in ("-c", setting))]
        with open(os.path.join(self.home, "stderr"), "ab") as stderr:
            self.is_ending, self.child = False, subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=stderr, env=env, cwd=self.folder)

    def wake(self, child):
        self.woken = time.monotonic()
        child.send_signal(signal.SIGCONT)

    @staticmethod
    def sleepers(child):
        """The commands that run below a process."""
        below = {child.pid}
        processes = {}
        for stat in glob.glob("/proc/[0-9]*/stat"):
            try:
                text = open(stat).read()
            except OSError:
                continue
            name, rest = text[text.index("(") + 1:text.rindex(")")], text[text.rindex(")") + 2:].split()
            processes[int(stat.split("/")[2])] = (int(rest[1]), name)
        grown = True
        while grown:
            grown = {pid for pid, (parent, _) in processes.items() if parent in below} - below
            below |= grown
        return [pid for pid in below if processes.get(pid, (0, ""))[1] == "sleep"]


class Gone(Exception):
    """The connection has broken, or the server does not answer."""


class Connection:
    """A connection to one server."""

    def __init__(self, server):
        self.server, self.stream = server.name, socket.socket(socket.AF_UNIX)
        self.stream.settimeout(5)
        try:
            self.stream.connect(server.socket)
        except OSError as error:
            raise Gone from error
        # The beginning of a line, in pieces: joining them at once would take quadratic time for a long line.
        self.pieces, self.last_id, self.waiting = [], 0, []
        self.call("initialize", {"clientInfo": {"name": "interop", "version": "1"}, "capabilities": {"experimentalApi": True}})
        self.send({"method": "initialized"})

    def send(self, message):
        try:
            self.stream.sendall(json.dumps(message).encode() + b"\n")
        except OSError as error:
            raise Gone from error

    def next(self, seconds):
        """The next message, or nothing within that time."""
        deadline = time.monotonic() + seconds
        while not self.waiting:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.stream], [], [], left)[0]:
                return None
            self.waiting.extend(json.loads(line) for line in self.read())
        return self.waiting.pop(0)

    def read(self):
        """The lines that are complete after reading once."""
        try:
            read = self.stream.recv(1 << 20)
        except OSError as error:
            raise Gone from error
        if not read:
            raise Gone
        self.pieces.append(read)
        if b"\n" not in read:
            return []
        *lines, rest = b"".join(self.pieces).split(b"\n")
        self.pieces = [rest]
        return lines

    def call(self, method, params, take=None, seconds=40):
        self.last_id += 1
        self.send({"id": self.last_id, "method": method, "params": params})
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            message = self.next(max(0.0, deadline - time.monotonic()))
            if message is None:
                break
            if message.get("id") == self.last_id and "method" not in message:
                if "error" in message:
                    raise Gone(message["error"]["message"])
                return message["result"]
            if take:
                take(message)
        raise Gone(f"no answer to {method}")


class View:
    """What one client knows of a thread: items, as far as it has read them, and ended turns."""

    is_traced = False

    def __init__(self):
        self.items, self.open, self.turns, self.seq, self.log, self.seen = {}, {}, {}, None, None, {}
        self.trace, self.is_closed = [], False

    def note(self, what):
        if View.is_traced:
            self.trace.append((time.time(), what))

    def take(self, message):
        method, params = message.get("method"), message.get("params") or {}
        self.note(message)
        if "seq" in message:
            self.seq = message["seq"]
        if method == "item/started":
            self.open[params["item"]["id"]] = text_of(params["item"])
        elif method == "item/agentMessage/delta":
            self.open[params["itemId"]] = self.open.get(params["itemId"], "") + params["delta"]
        elif method == "item/completed":
            self.open.pop(params["item"]["id"], None)
            self.keep(params["item"])
            self.seen[params["item"]["id"]] = text_of(params["item"])
        elif method == "turn/completed":
            self.turns[params["turn"]["id"]] = params["turn"]["status"]
        elif method in ("thread/closed", "server/moved"):
            self.is_closed = True

    def is_equal(self, stored):
        """Whether a stored thread has what was told. An answer that broke off may be stored; it is never told as completed."""
        broken_off = {item: text for item, text in self.open.items() if item in stored.items}
        return {**self.items, **broken_off} == stored.items

    def keep(self, item):
        self.items[item["id"]] = text_of(item)

    def replace(self, thread):
        self.items, self.open, self.turns = {}, {}, {}
        for turn in thread["turns"]:
            self.turns[turn["id"]] = turn["status"]
            for item in turn["items"]:
                self.keep(item)


def text_of(item):
    if item["type"] == "userMessage":
        return "".join(part.get("text", "") for part in item["content"])
    return item.get("text") or item.get("status") or ""


class Client(threading.Thread):
    """Follows a thread from server to server; the first one of a thread also starts turns in it."""

    def __init__(self, number, servers, thread, starts, over, chance):
        super().__init__(daemon=True)
        self.number, self.servers, self.thread_id, self.starts, self.over = number, servers, thread, starts, over
        self.chance, self.view, self.connection, self.moves = chance, View(), None, 0
        self.accepted, self.told, self.due = {}, [], None

    def subscribe(self):
        """Connects to a random server and catches up."""
        self.view.is_closed = False
        self.connection, self.moves = Connection(self.chance.choice(self.servers)), self.moves + 1
        params = {"threadId": self.thread_id}
        if self.view.seq is not None:
            params |= {"after": self.view.seq, "logId": self.view.log}
        answer = self.connection.call("thread/subscribe", params, self.view.take)
        self.view.note({"subscribed": self.connection.server, "after": params.get("after"), "seq": answer["seq"], "reset": answer["reset"]})
        self.view.log = answer["logId"]
        if answer["reset"]:
            self.view.replace(answer["thread"])
            self.view.seq = answer["seq"]

    def step(self):
        if self.connection is None:
            self.subscribe()
        if self.view.is_closed:
            raise Gone
        if not self.starts:
            return self.watch(0.5)
        if self.due is None:
            key = uuid.uuid4().hex[:12]
            kind = self.chance.choice(["say", "say", "run 0.2", "run 20"])
            self.due = (key, f"{kind} {key}")
        key, text = self.due
        if key not in self.accepted:
            params = {"threadId": self.thread_id, "clientUserMessageId": key, "input": [{"type": "text", "text": text}]}
            answer = self.connection.call("turn/start", params, self.view.take)
            self.accepted[key] = answer["turn"]["id"]
        self.watch(0.2)
        if self.accepted[key] in self.view.turns:
            self.due = None

    def watch(self, seconds):
        message = self.connection.next(seconds)
        if message is not None:
            self.view.take(message)
        if self.view.is_closed:
            raise Gone

    def run(self):
        while not (self.over.is_set() and self.due is None):
            try:
                self.step()
            except Gone as gone:
                if gone.args:
                    self.told.append(str(gone))
                self.connection = None
                # An interrupted turn has ended, whether this client was told or not.
                time.sleep(self.chance.uniform(0.1, 1.0))


def disturb(servers, database, chance, seconds, faults, trace):
    """Does something bad every few seconds."""
    counts, end = {}, time.monotonic() + seconds
    actions = ["kill", "kill", "end", "halt", "cut", "cut", "slow", "restart the database"]

    def halt(server, pause):
        child, begun = server.child, time.monotonic()
        child.send_signal(signal.SIGSTOP)
        time.sleep(min(pause, COMMANDS_END))
        left = server.sleepers(child) if pause > COMMANDS_END else []
        # It may have been woken by another pause that has ended, and run new commands.
        if left and server.woken < begun:
            faults.append(f"commands of a halted server still run: {left}")
        time.sleep(max(0.0, pause - COMMANDS_END))
        server.wake(child)

    while time.monotonic() < end:
        time.sleep(chance.uniform(1.0, 5.0))
        server, action = chance.choice(servers), chance.choice(actions)
        counts[action] = counts.get(action, 0) + 1
        trace.append((time.time(), {"action": action, "server": server.name}))
        if action == "kill":
            server.child.kill()
        elif action == "end":
            server.is_ending = True
            server.child.terminate()
        elif action == "halt":
            threading.Thread(target=halt, args=(server, chance.choice([5, 12, 30])), daemon=True).start()
        elif action == "cut":
            server.proxy.cut()
        elif action == "slow":
            server.proxy.delay = 0.2
            threading.Timer(5, lambda proxy=server.proxy: setattr(proxy, "delay", 0.0)).start()
        else:
            database.restart()
        for other in servers:
            if other.child.poll() is not None:
                other.start()
    return counts


def settle(servers):
    """Brings all servers back, and waits until they answer."""
    deadline = time.monotonic() + 60
    for server in servers:
        server.wake(server.child)
        # A server that was told to end while it was halted ends only now.
        if server.is_ending:
            server.child.wait(60)
    while time.monotonic() < deadline:
        for server in servers:
            if server.child.poll() is not None:
                server.start()
        try:
            for server in servers:
                Connection(server).call("thread/list", {})
            return
        except Gone:
            time.sleep(0.5)
    raise SystemExit("FAIL: the servers do not answer")


def stored(servers, thread):
    """The thread as a server reads it."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return Connection(servers[0]).call("thread/read", {"threadId": thread, "includeTurns": True})["thread"]
        except Gone:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def check_views(clients, servers, faults):
    for client in clients:
        truth = View()
        truth.replace(stored(servers, client.thread_id))
        # What has happened last may still be on its way to the client.
        deadline = time.monotonic() + 30
        while not client.view.is_equal(truth) and time.monotonic() < deadline:
            try:
                if client.connection is None:
                    client.subscribe()
                client.watch(0.5)
            except Gone:
                client.connection = None
        if missing := {item: text for item, text in client.view.seen.items() if truth.items.get(item) != text}:
            faults.append(f"client {client.number} saw what is not stored: {missing}")
        if not client.view.is_equal(truth):
            told = {**client.view.open, **client.view.items}
            more, less = client.view.items.keys() - truth.items.keys(), truth.items.keys() - told.keys()
            other = {item: (told[item], text) for item, text in truth.items.items() if told.get(item, text) != text}
            faults.append(f"the view of client {client.number} differs: {sorted(more)} only there, {sorted(less)} only stored, other text: {other}")
        for key, turn in client.accepted.items():
            if truth.turns.get(turn) not in ("completed", "interrupted", "failed"):
                faults.append(f"turn {turn} of client {client.number} has no end: {truth.turns.get(turn)}")


def write_trace(path, clients, actions):
    """Everything in the order of time, one line each."""
    rows = [(moment, "-", what) for moment, what in actions]
    rows += [(moment, client.number, message) for client in clients for moment, message in client.view.trace]
    with open(path, "w") as file:
        for moment, client, what in sorted(rows, key=lambda row: row[0]):
            file.write(f"{moment:.3f} {client} {json.dumps(what)}\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--trace")
    options = parser.parse_args()
    chance, faults, actions = random.Random(options.seed), [], []
    View.is_traced = options.trace is not None
    model = ModelServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as root:
        os.chmod(root, 0o755)
        os.makedirs(os.path.join(root, "work"))
        config = ('model = "m"\nmodel_provider = "p"\napproval_policy = "never"\nsandbox_mode = "danger-full-access"\n'
                  '[model_providers.p]\nname = "p"\nwire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
                  f'base_url = "http://127.0.0.1:{model.server_port}/v1"\n')
        database = Database(root)
        servers = [Server(os.path.abspath(options.program), name, root, config, database) for name in NAMES]
        settle(servers)
        try:
            first, over = Connection(servers[0]), threading.Event()
            threads = [first.call("thread/start", {"cwd": servers[0].folder})["thread"]["id"] for _ in range(3)]
            for thread in threads:
                first.call("turn/start", {"threadId": thread, "input": [{"type": "text", "text": f"say first-{thread}"}]})
            while not all(stored(servers, thread)["turns"][0]["status"] == "completed" for thread in threads):
                time.sleep(0.1)
            first.stream.close()
            clients = [Client(number, servers, threads[number % 3], number < 3, over, random.Random(chance.random())) for number in range(5)]
            for client in clients:
                client.start()
            counts = disturb(servers, database, chance, options.seconds, faults, actions)
            settle(servers)
            over.set()
            for client in clients:
                client.join(120)
                if client.is_alive():
                    faults.append(f"client {client.number} waits for a turn that never ends: {client.due}; last: {client.told[-3:]}")
            check_views(clients, servers, faults)
            if options.trace:
                write_trace(options.trace, clients, actions)
            faults += [f"the model was asked {times} times for {key}" for key, times in Model.asked.items() if times > 1]
            runs = open(os.path.join(root, "work", "runs")).read().split()
            faults += [f"the command of {key} ran {runs.count(key)} times" for key in set(runs) if runs.count(key) > 1]
            behind = "SELECT count(*) FROM (SELECT epoch, max(epoch) OVER (PARTITION BY thread ORDER BY number) AS top FROM codex.lines) AS l WHERE epoch < top"
            if (late := database.rows(behind)) != ["0"]:
                faults.append(f"{late[0]} lines have an old epoch")
            check = subprocess.run([servers[0].program, "store", "check"], capture_output=True, text=True,
                                   env={**os.environ, "CODEX_HOME": servers[0].home, "CODEX_STORE_URL": f"postgres://postgres@127.0.0.1:{database.port}/postgres"})
            if check.returncode != 0:
                faults.append(f"codex store check: {check.stdout}{check.stderr}")
        finally:
            for server in servers:
                server.child.kill()
                server.child.wait()
            database.stop()
        ends = {}
        for client in clients[:3]:
            for turn in client.accepted.values():
                ends[client.view.turns.get(turn)] = ends.get(client.view.turns.get(turn), 0) + 1
        print(f"seed {options.seed}: {counts}; turns {ends}; {len(runs)} commands; connections of clients {[client.moves for client in clients]}")
        for fault in faults:
            print(f"FAIL: {fault}")
        print(f"{len(faults)} faults")
        sys.exit(bool(faults))


if __name__ == "__main__":
    main()
