#!/usr/bin/env python3
"""Measures the chat of Codex binaries in a terminal: start, idle, keys, a stream, a long thread, and search.

usage: bench/tui.py NAME=BINARY[,ARGUMENT...]... [--rounds N] [--items N] [--threads N] [--limit SECONDS] [--answer BYTES]

Each binary runs in a pseudo-terminal of 120 x 40 cells with a home of its own and a model server in this process; the binaries
take turns, and the median of all rounds is printed as a table in Markdown. Nothing leaves the machine. Use release builds:

    bench/tui.py ours=target/release/codex 0.77=/path/to/codex

A long thread has --items items (10,000) in turns of twenty; a binary that does not show its end within --limit seconds (30)
gets "> 30,000 ms" and no further figures of it. --answer N also streams an answer of N bytes at 200 deltas/s. --threads N also measures `thread/search` over N threads, for binaries
that have the method. `others` is the memory of processes that a binary leaves behind, such as a daemon; they are ended.
"""
import argparse
import fcntl
import http.server
import json
import os
import pathlib
import pty
import re
import select
import signal
import statistics
import struct
import subprocess
import tempfile
import termios
import threading
import time
import uuid

COLUMNS, ROWS = 120, 40
DELTAS, PAUSE = 1000, 0.005
KEYS = 300
QUIET, PATIENCE = 1.0, 60
# The bytes of output that are looked at again, so that a text is found across two reads.
OVERLAP = 4096
PASTE_LIMIT = 10
PARAGRAPH = "An answer goes on and on, with **bold words**, `code` and a list of things that somebody has to read.\n\n" * 5
WORDS = "the quick **brown** fox jumps over `lazy` dogs and so on it goes,".split()
QUERIES = re.compile(rb"\x1b\[6n|\x1b\[c|\x1b\[\?u|\x1b\]1[01];\?(?:\x07|\x1b\\)|\x1b\[\?2026\$p")
ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62;22c", b"\x1b[?u": b"\x1b[?0u", b"\x1b[?2026$p": b"\x1b[?2026;2$y"}
SEQUENCE = re.compile(rb"\x1b\[[0-9;:?<>=]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][AB0]|\x1b[=>78M]")


class Model(http.server.BaseHTTPRequestHandler):
    """A model that streams DELTAS pieces, or others that are wanted, one every PAUSE seconds."""

    pieces = None
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        body = b'{"models": [], "data": []}'
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        message = {"type": "message", "id": "msg_1", "role": "assistant"}
        try:
            self.event({"type": "response.created", "response": {"id": "resp_1"}})
            self.event({"type": "response.output_item.added", "output_index": 0, "item": {**message, "content": []}})
            words = (WORDS[number % len(WORDS)] + ("\n\n" if number % 40 == 39 else " ") for number in range(DELTAS))
            pieces = self.pieces or list(words)
            text = "".join(pieces)
            begin = time.perf_counter()
            for number, piece in enumerate(pieces):
                self.event({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0,
                            "content_index": 0, "delta": piece})
                time.sleep(max(0, begin + (number + 1) * PAUSE - time.perf_counter()))
            content = [{"type": "output_text", "text": text, "annotations": []}]
            self.event({"type": "response.output_item.done", "output_index": 0, "item": {**message, "content": content}})
            usage = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
                     "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20}
            self.event({"type": "response.completed", "response": {"id": "resp_1", "usage": usage}})
        except OSError:
            pass
        self.close_connection = True

    def event(self, event):
        self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        pass


class Terminal:
    """A program in a pseudo-terminal that answers the usual queries."""

    def __init__(self, command, env, folder):
        self.begin = self.last = time.perf_counter()
        self.raw, self.count = bytearray(), 0
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(command[0], command, env)
        fcntl.ioctl(self.file, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))

    def read(self, seconds):
        if not select.select([self.file], [], [], seconds)[0]:
            return b""
        try:
            data = os.read(self.file, 1 << 16)
        except OSError:
            return None
        self.last = time.perf_counter()
        self.raw += data
        self.count += len(data)
        for query in QUERIES.findall(data):
            colour = b"rgb:ffff/ffff/ffff" if query.startswith(b"\x1b]10") else b"rgb:0000/0000/0000"
            answer = ANSWERS.get(query) or query[:5] + colour + b"\x1b\\"
            os.write(self.file, answer)
        return data

    def until_quiet(self, quiet=QUIET):
        end = time.perf_counter() + PATIENCE
        while time.perf_counter() < end and time.perf_counter() - self.last < quiet:
            if self.read(0.02) is None:
                raise SystemExit(f"the program has ended:\n{text(self.raw)[-2000:]}")

    def until_idle(self):
        """Waits until nothing is loaded behind the screen any more, for ten seconds at most."""
        until_idle(self.pid, self.wait, 10)

    def until(self, wanted, limit):
        """The seconds since the start until a text is on the screen; None if it is not there in time."""
        end, looked = time.perf_counter() + limit, 0
        while wanted not in text(self.raw[max(0, looked - OVERLAP):]):
            looked = len(self.raw)
            while len(self.raw) == looked:
                if self.read(0.02) is None:
                    raise SystemExit(f"the program has ended:\n{text(self.raw)[-2000:]}")
                if time.perf_counter() > end:
                    return None
        return self.last - self.begin

    def wait(self, seconds):
        end = time.perf_counter() + seconds
        while (left := end - time.perf_counter()) > 0:
            self.read(left)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.file)


def text(raw):
    return SEQUENCE.sub(b"", bytes(raw)).decode(errors="replace")


def tasks(pid):
    try:
        return [f"/proc/{pid}/task/{task}" for task in os.listdir(f"/proc/{pid}/task")]
    except FileNotFoundError:
        return []


def cpu_ms(pid):
    """The CPU time of all threads that run."""
    total = 0
    for task in tasks(pid):
        try:
            total += int(pathlib.Path(task, "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total / 1e6


def until_idle(pid, wait, seconds):
    """Waits until a program does nothing for a second, for this many seconds at most."""
    for _ in range(seconds):
        before = cpu_ms(pid)
        wait(1)
        if cpu_ms(pid) - before < 2:
            return


def wake_ups(pid):
    total = 0
    for task in tasks(pid):
        try:
            status = pathlib.Path(task, "status").read_text()
            total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status, re.M)[1])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total


def memory_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    return 0


def peak_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s*(\d+)", status, re.M)[1]) / 1024


def others(home, pid):
    """Processes that name the home and are not the program itself."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (pid, os.getpid()):
            try:
                if home.encode() in pathlib.Path(f"/proc/{name}/cmdline").read_bytes():
                    found.append(int(name))
            except OSError:
                pass
    return found


def key_latencies(terminal, count):
    """Milliseconds from a key to the output that shows it."""
    letters, spent = b"qwzxvkjQWZXVKJ", []
    end = time.perf_counter() + PATIENCE
    for number in range(count):
        if time.perf_counter() > end and len(spent) > 20:
            break
        while terminal.read(0):
            pass
        letter = letters[number % len(letters):number % len(letters) + 1]
        seen, begin = b"", time.perf_counter()
        os.write(terminal.file, letter)
        while letter not in SEQUENCE.sub(b"", seen) and time.perf_counter() - begin < 1:
            seen += terminal.read(0.5) or b""
        spent.append((time.perf_counter() - begin) * 1000)
        terminal.wait(0.03)
    return sorted(spent[5:])


def part(values, percent):
    return values[min(len(values) - 1, len(values) * percent // 100)]


def stored_thread(home, work, items):
    """Writes a thread with that many items, in turns of twenty, and returns its id and its last text."""
    thread = str(uuid.uuid4())
    stamp = "2026-01-02T03:04:05.000Z"
    folder = pathlib.Path(home, "sessions/2026/01/02")
    folder.mkdir(parents=True, exist_ok=True)
    lines = []

    def add(kind, payload):
        lines.append(json.dumps({"timestamp": stamp, "type": kind, "payload": payload}))

    def message(role, kind, body):
        add("response_item", {"type": "message", "role": role, "content": [{"type": kind, "text": body}]})

    add("session_meta", {"id": thread, "timestamp": stamp, "cwd": work, "originator": "codex_cli_rs", "cli_version": "0.77.0",
                         "instructions": None, "source": "cli", "model_provider": "mock"})
    body = ""
    for number in range(items):
        turn = f"turn-{number // 20}"
        if number % 20 == 0:
            body = f"Question {number // 20}: what about it?"
            add("event_msg", {"type": "task_started", "model_context_window": 200000, "turn_id": turn})
            message("user", "input_text", body)
            add("event_msg", {"type": "user_message", "message": body, "images": [], "turn_id": turn, "item_id": f"i{number}"})
        else:
            body = f"Answer {number} with **bold** and `code`.\n\n- one\n- two\n\n" + "A sentence that goes on. " * 8
            add("event_msg", {"type": "agent_message", "message": body, "turn_id": turn, "item_id": f"i{number}"})
            message("assistant", "output_text", body)
        if number % 20 == 19 or number == items - 1:
            add("event_msg", {"type": "task_complete", "last_agent_message": body, "turn_id": turn})
    path = folder / f"rollout-2026-01-02T03-04-05-{thread}.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return thread, f"Answer {items - 1} with"


class Over(float):
    """A figure that is larger than a limit."""


class Binary:
    def __init__(self, name, command, port, folder):
        self.name, self.command = name, command
        self.home, self.work = f"{folder}/home-{name}", f"{folder}/work"
        pathlib.Path(self.home, "tmp").mkdir(parents=True)
        pathlib.Path(self.work).mkdir(exist_ok=True)
        pathlib.Path(self.home, "config.toml").write_text(
            'model = "mock-model"\nmodel_provider = "mock"\ncheck_for_update_on_startup = false\n'
            'approval_policy = "on-request"\nsandbox_mode = "workspace-write"\n'
            f'[model_providers.mock]\nname = "mock"\nbase_url = "http://127.0.0.1:{port}/v1"\nwire_api = "responses"\n'
            f'request_max_retries = 0\n[projects."{self.work}"]\ntrust_level = "trusted"\n')
        self.env = {"PATH": os.environ["PATH"], "HOME": self.home, "CODEX_HOME": self.home, "TERM": "xterm-256color",
                    "COLORTERM": "truecolor", "LANG": "C.UTF-8", "TMPDIR": f"{self.home}/tmp"}

    def start(self, *arguments):
        return Terminal([*self.command, *arguments], self.env, self.work)

    def end(self, terminal):
        """Ends the program and the processes that it leaves behind, so that the next one does not meet them."""
        left = others(self.home, terminal.pid)
        terminal.close()
        for how, seconds in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
            left = [other for other in left if tasks(other)]
            for other in left:
                try:
                    os.kill(other, how)
                except ProcessLookupError:
                    pass
            end = time.perf_counter() + seconds
            while any(tasks(other) for other in left) and time.perf_counter() < end:
                time.sleep(0.05)

    def short(self):
        terminal = self.start()
        terminal.until_quiet()
        pid, result = terminal.pid, {}
        result["start, CPU ms"] = cpu_ms(pid)
        result["start, MB"] = memory_mb(pid)
        before = cpu_ms(pid), terminal.count, wake_ups(pid)
        terminal.wait(5)
        result["idle, CPU ms/s"] = (cpu_ms(pid) - before[0]) / 5
        result["idle, bytes/s"] = (terminal.count - before[1]) / 5
        result["idle, wake-ups/s"] = (wake_ups(pid) - before[2]) / 5
        keys = key_latencies(terminal, KEYS)
        result["key, p50 ms"], result["key, p99 ms"] = part(keys, 50), part(keys, 99)
        begin, before = len(terminal.raw), cpu_ms(pid)
        os.write(terminal.file, b"\r")
        terminal.wait(DELTAS * PAUSE + 1)
        result["200 deltas/s, % of a core"] = (cpu_ms(pid) - before) / (DELTAS * PAUSE * 10)
        streamed = bytes(terminal.raw[begin:])
        updates = streamed.count(b"\x1b[?2026h")
        outside = re.sub(rb"\x1b\[\?2026h.*?\x1b\[\?2026l", b"", streamed, flags=re.S)
        result["200 deltas/s, updates"] = updates
        result["200 deltas/s, bytes outside of updates"] = len(outside)
        result["others, MB"] = sum(memory_mb(other) for other in others(self.home, pid))
        self.end(terminal)
        return result

    def paste(self, is_marked):
        """Milliseconds from the first byte of a paste of a megabyte to the frame that shows it."""
        terminal = self.start()
        terminal.until_quiet()
        text = (b"some words that are pasted, line after line\r" * 30_000)[:1 << 20]
        left = memoryview(b"\x1b[200~" + text + b"\x1b[201~" if is_marked else text)
        os.set_blocking(terminal.file, False)
        begin, shown = time.perf_counter(), b""
        while b"Pasted" not in shown and (spent := time.perf_counter() - begin) < PASTE_LIMIT:
            readable, writable, _ = select.select([terminal.file], [terminal.file] if left else [], [], 0.05)
            if writable:
                try:
                    left = left[os.write(terminal.file, left[:1 << 16]):]
                except BlockingIOError:
                    pass
            if readable:
                shown = shown[-OVERLAP:] + SEQUENCE.sub(b"", terminal.read(0) or b"")
        spent = (time.perf_counter() - begin) * 1000
        self.end(terminal)
        name = "paste of 1 MB, marked, ms" if is_marked else "paste of 1 MB, not marked, ms"
        return {name: spent if b"Pasted" in shown else Over(PASTE_LIMIT * 1000)}

    def long(self, thread, wanted, limit):
        terminal = self.start("resume", thread)
        seconds = terminal.until(wanted, limit)
        result = {"long thread, first frame ms": Over(limit * 1000) if seconds is None else seconds * 1000}
        if seconds is not None:
            terminal.until_idle()
            result["long thread, MB"] = memory_mb(terminal.pid)
            result["long thread, peak MB"] = peak_mb(terminal.pid)
            keys = key_latencies(terminal, KEYS)
            result["long thread, key p50 ms"], result["long thread, key p99 ms"] = part(keys, 50), part(keys, 99)
        self.end(terminal)
        return result

    def answer(self, size):
        """A long answer: the CPU time of its first and of its last fifth, which has most of it above."""
        count = size // len(PARAGRAPH) + 1
        fifth, name = count * PAUSE / 5, f"answer of {size:,} bytes"
        Model.pieces = [PARAGRAPH] * count
        terminal = self.start("go")
        terminal.until(PARAGRAPH[:20], PATIENCE)
        marks = [cpu_ms(terminal.pid)]
        for fifths in (1, 3, 1):
            terminal.wait(fifth * fifths)
            marks.append(cpu_ms(terminal.pid))
        share = lambda place: (marks[place + 1] - marks[place]) / (fifth * 10)
        result = {f"{name}, % of a core, first fifth": share(0), f"{name}, % of a core, last fifth": share(2),
                  f"{name}, MB": memory_mb(terminal.pid)}
        Model.pieces = None
        self.end(terminal)
        return result

    def search(self, count):
        """The median of ten searches over that many threads, once all of them are known."""
        for _ in range(count):
            stored_thread(self.home, self.work, 2)
        program = subprocess.Popen([self.command[0], "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, env=self.env, cwd=self.work)

        def call(number, method, params):
            begin = time.perf_counter()
            program.stdin.write(json.dumps({"id": number, "method": method, "params": params}).encode() + b"\n")
            program.stdin.flush()
            for line in program.stdout:
                answer = json.loads(line)
                if answer.get("id") == number:
                    return (time.perf_counter() - begin) * 1000, answer
            raise SystemExit("the server has ended")

        info = {"name": "bench", "version": "1"}
        call(0, "initialize", {"clientInfo": info, "capabilities": {"experimentalApi": True}})
        spent = []
        for number in range(1, 12):
            ms, answer = call(number, "thread/search", {"searchTerm": "answer bold", "limit": 100})
            if "error" in answer:
                break
            if number == 1:
                until_idle(program.pid, time.sleep, PATIENCE)
            else:
                spent.append(ms)
        program.kill()
        program.wait()
        return {f"search over {count} threads, ms": statistics.median(spent)} if spent else {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binaries", nargs="+", metavar="NAME=BINARY[,ARGUMENT...]")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--answer", type=int, default=0)
    options = parser.parse_args()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    # Some releases refuse a home below the folder for temporary files.
    folder = tempfile.TemporaryDirectory(dir=os.environ.get("TUI_BENCH_FOLDER", "/var/tmp"))
    binaries = []
    for described in options.binaries:
        name, _, rest = described.partition("=")
        command = rest.split(",")
        command[0] = os.path.abspath(command[0])
        binaries.append(Binary(name, command, server.server_port, folder.name))
    rows = {binary.name: [] for binary in binaries}
    for round_number in range(options.rounds):
        for binary in binaries:
            thread = stored_thread(binary.home, binary.work, options.items)
            figures = {**binary.short(), **binary.paste(True), **binary.paste(False),
                       **binary.long(*thread, options.limit)}
            if options.answer:
                figures.update(binary.answer(options.answer))
            rows[binary.name].append(figures)
            print(f"round {round_number + 1}: {binary.name}", flush=True)
    for binary in binaries:
        if options.threads:
            found = binary.search(options.threads)
            rows[binary.name] = [{**row, **found} for row in rows[binary.name]]
    names = list(dict.fromkeys(name for results in rows.values() for row in results for name in row))
    print("\n| | " + " | ".join(rows) + " |\n|---|" + "---:|" * len(rows))
    for name in names:
        cells = []
        for results in rows.values():
            values = [row[name] for row in results if name in row]
            is_over = any(isinstance(value, Over) for value in values)
            cells.append(f"> {max(values):,.0f}" if is_over else f"{statistics.median(values):.4g}" if values else "–")
        print(f"| {name} | " + " | ".join(cells) + " |")
    folder.cleanup()


if __name__ == "__main__":
    main()
