#!/usr/bin/env python3
"""Records which functions the program runs in its most common jobs, for the linker to lay them side by side.

Usage: packaging/record.py     (from anywhere; needs valgrind and nm)

Builds the release program with its symbols, runs it under callgrind, and writes `used.txt` beside this file, which
`build.sh` hands to the linker. Names are written without the hashes that compilers add where that is possible, so the list
outlives changes of code, versions and compilers: a name that no longer exists matches nothing.
"""
import http.server
import json
import os
import pathlib
import re
import subprocess
import tempfile
import threading

FOLDER = pathlib.Path(__file__).resolve().parent
ROOT = FOLDER.parent
PROGRAM = ROOT / "target/release/codex"

# Callgrind does not follow the processes that share memory with the program, in which commands are confined.
UNSEEN = ["_ZN13codex_sandbox3run*", "_ZN13codex_sandbox6launch*", "_ZN13codex_sandbox5linux*"]


class Model(http.server.BaseHTTPRequestHandler):
    """Asks for one patch, then says something."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        outputs = sum(item["type"].endswith("_output") for item in request["input"])
        events = [{"type": "response.created", "response": {"id": "r"}}]
        if outputs == 0:
            patch = "*** Begin Patch\n*** Add File: a.txt\n+a\n*** End Patch"
            item = {"type": "custom_tool_call", "name": "apply_patch", "input": patch, "call_id": "patch"}
        else:
            item = {"type": "message", "role": "assistant", "id": "m", "content": [{"type": "output_text", "text": "Done."}]}
            events.append({"type": "response.output_item.added", "item": {**item, "content": []}})
            events.append({"type": "response.output_text.delta", "item_id": "m", "delta": "Done."})
        events.append({"type": "response.output_item.done", "item": item})
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        events.append({"type": "response.completed", "response": {"id": "r", "usage": usage}})
        body = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def home(port):
    """A home whose model is the one above."""
    folder = tempfile.mkdtemp()
    provider = f'name = "Mine"\nbase_url = "http://127.0.0.1:{port}/v1"\nwire_api = "responses"\n'
    config = f'model = "mine"\nmodel_provider = "mine"\n[model_providers.mine]\n{provider}'
    pathlib.Path(folder, "config.toml").write_text(config)
    return folder


def watched(output, *arguments):
    return ["valgrind", "--tool=callgrind", "--demangle=no", f"--callgrind-out-file={output}", str(PROGRAM), *arguments]


def run(output, environment, *arguments):
    """A command from its start to its end."""
    folder = tempfile.mkdtemp()
    subprocess.run(watched(output, *arguments), cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    return output


def serve(output, environment, turn):
    """A server, up to the answer to `initialize`, or through a whole turn to its end."""
    folder = tempfile.mkdtemp()
    server = subprocess.Popen(
        watched(output, "app-server"),
        cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )

    def ask(message, answered):
        server.stdin.write(json.dumps(message).encode() + b"\n")
        server.stdin.flush()
        for line in server.stdout:
            message = json.loads(line)
            if answered(message):
                return message
        raise SystemExit("the server has ended too early")

    client = {"clientInfo": {"name": "layout", "version": "1"}}
    ask({"id": 1, "method": "initialize", "params": client}, lambda message: message.get("id") == 1)
    if not turn:
        subprocess.run(["callgrind_control", "-d", str(server.pid)], capture_output=True, check=True)
        server.kill()
        server.wait()
        return f"{output}.1"
    options = {"cwd": folder, "approvalPolicy": "never", "sandbox": "danger-full-access"}
    thread = ask({"id": 2, "method": "thread/start", "params": options}, lambda message: message.get("id") == 2)
    words = {"threadId": thread["result"]["thread"]["id"], "input": [{"type": "text", "text": "Hello"}]}
    ask({"id": 3, "method": "turn/start", "params": words}, lambda message: message.get("method") == "turn/completed")
    server.stdin.close()
    server.wait()
    return output


def functions(output):
    """The names of all functions in a file of callgrind."""
    names = re.findall(r"^c?fn=\(\d+\) (\S+)$", pathlib.Path(output).read_text(), re.MULTILINE)
    return {re.sub(r"'\d+$", "", name) for name in names}


def pattern(name):
    """A name without what differs from build to build."""
    name = re.sub(r"\.llvm\.\d+$", "", name)
    name = re.sub(r"17h[0-9a-f]{16}E$", "17h*", name)
    return re.sub(r"Cs[0-9A-Za-z]+_", "Cs*_", name)


def shared(names, sizes):
    """The patterns that would bring along much that was not run: those of generic functions, of which there is one
    instance for each of many types, told apart by their hashes alone."""
    used, all_of = {}, {}
    for name in names:
        used[pattern(name)] = used.get(pattern(name), 0) + sizes[name]
    for name, size in sizes.items():
        all_of[pattern(name)] = all_of.get(pattern(name), 0) + size
    return {name for name in used if all_of[name] > 2 * used[name] + 4096}


def main():
    options = ["--release", "--locked", "--package", "codex-cli", "--bin", "codex"]
    subprocess.run(["cargo", "rustc", *options, "--", "-C", "strip=none"], cwd=ROOT, check=True)
    table = subprocess.run(["nm", "-S", str(PROGRAM)], capture_output=True, text=True, check=True).stdout
    rows = [line.split() for line in table.splitlines()]
    sizes = {row[3]: int(row[1], 16) for row in rows if len(row) == 4 and row[2] in "tT"}

    model = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    environment = {**os.environ, "CODEX_HOME": home(model.server_port)}
    output = tempfile.mkdtemp()
    recorded = [
        run(f"{output}/sandbox", environment, "sandbox", "linux", "--", "true"),
        serve(f"{output}/start", environment, turn=False),
        serve(f"{output}/turn", environment, turn=True),
        run(f"{output}/judged", environment, "execpolicy", "check", "bash", "-lc", "ls | head -1"),
        run(f"{output}/exec", environment, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "Hello"),
    ]
    jobs = [functions(file) & sizes.keys() for file in recorded]
    generic = shared(set().union(*jobs), sizes)
    lines = dict.fromkeys(UNSEEN)
    for names in jobs:
        print(f"{len(names)} functions, {sum(sizes[name] for name in names)} bytes")
        lines.update(dict.fromkeys(sorted(name if pattern(name) in generic else pattern(name) for name in names)))
    # When the hashes of generic functions are others, their patterns still find them, and more.
    lines.update(dict.fromkeys(sorted(generic)))
    (FOLDER / "used.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
