"""One session with servers of several releases, and a model that a test plays.

Opt-in: CODEX_TEST_PEERS has the programs of other releases, separated by colons.
"""

import json
import os
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from codex_embed import Codex, CodexConfig, Sandbox, approvals, events
from server import PROGRAM, ScriptedTest, needs_program

PEERS = [peer for peer in os.environ.get("CODEX_TEST_PEERS", "").split(":") if peer]
#: The tools that run commands, and the parameters of each.
TOOLS = {
    "shell": {"command": ["bash", "-lc", "touch made"]},
    "shell_command": {"command": "touch made"},
    "exec_command": {"cmd": "touch made"},
}
USAGE = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}


def message(text):
    content = [{"type": "output_text", "text": text}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "content": content}


def answer_to(request):
    """The item that answers a request; None for an answer that never comes."""
    conversation = request["input"]
    asked = max(at for at, item in enumerate(conversation) if item.get("role") == "user")
    text = json.dumps(conversation[asked])
    if "Wait." in text:
        return None
    if "Run it." not in text:
        return message("Said.")
    if any(item["type"].endswith("_output") for item in conversation[asked:]):
        return message("Ran.")
    offered = {tool.get("name") for tool in request["tools"]}
    name = next(name for name in TOOLS if name in offered)
    return {"type": "function_call", "call_id": "call_1", "name": name, "arguments": json.dumps(TOOLS[name])}


class Model(BaseHTTPRequestHandler):
    """Answers requests of the Responses API."""

    ending = threading.Event()

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        try:
            self.tell("response.created", response={"id": "resp_1"})
            item = answer_to(request)
            if item is None:
                self.ending.wait(60)
                return
            self.tell("response.output_item.done", output_index=0, item=item)
            self.tell("response.completed", response={"id": "resp_1", "usage": USAGE})
        except BrokenPipeError:
            # A server that is stopped does not wait for the rest.
            return

    def tell(self, kind, **members):
        self.wfile.write(f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode())
        self.wfile.flush()

    def log_message(self, *_):
        return


@needs_program
@unittest.skipUnless(PEERS, "set CODEX_TEST_PEERS to programs of other releases")
class ReleaseTest(ScriptedTest, unittest.TestCase):
    def setUp(self):
        super().setUp()
        self.model = ThreadingHTTPServer(("127.0.0.1", 0), Model)
        self.model.daemon_threads = True
        threading.Thread(target=self.model.serve_forever, daemon=True).start()
        self.addCleanup(self.model.server_close)
        self.addCleanup(self.model.shutdown)
        self.addCleanup(Model.ending.set)

    def config_for(self, program, home):
        for name in (home, f"{home}-work", f"{home}-tmp"):
            (self.folder / name).mkdir()
        provider = {
            "name": "played",
            "base_url": f"http://127.0.0.1:{self.model.server_port}/v1",
            "wire_api": "responses",
            "request_max_retries": 0,
            "stream_max_retries": 0,
        }
        lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in provider.items())
        text = f'model = "played"\nmodel_provider = "played"\n[model_providers.played]\n{lines}'
        (self.folder / home / "config.toml").write_text(text)
        # 0.166 does not sandbox commands if its home is below the folder for temporary files.
        env = {"CODEX_HOME": str(self.folder / home), "TMPDIR": str(self.folder / f"{home}-tmp")}
        return CodexConfig(codex_bin=program, cwd=str(self.folder / f"{home}-work"), env=env)

    def session(self, config):
        """What a program sees of a session: the kinds and ends of items and turns."""
        asked, seen = [], []

        def decide(question):
            asked.append(question.method)
            return approvals.allow()

        def note(result):
            items = [(item["type"], item.get("status")) for item in result.items]
            seen.append((result.status, result.final_response, items))

        with Codex(config, approvals=decide) as codex:
            thread = codex.thread_start(approval_policy="untrusted", sandbox=Sandbox.workspace_write)
            note(thread.run("Say it.", timeout=60))
            note(thread.run("Run it.", timeout=60))
            turn = thread.turn("Wait.")
            stream = turn.stream()
            next(event for event in stream if isinstance(event, events.ItemCompleted))
            turn.interrupt()
            seen.append([event for event in stream][-1].status)
        with Codex(config) as codex:
            note(codex.thread_resume(thread.id).run("Say it again.", timeout=60))
        return asked, seen

    def test_a_session_is_the_same_with_every_release(self):
        self.maxDiff = None
        user, said = ("userMessage", None), ("agentMessage", None)
        expected = [
            ("completed", "Said.", [user, said]),
            ("completed", "Ran.", [user, ("commandExecution", "completed"), said]),
            "interrupted",
            ("completed", "Said.", [user, said]),
        ]
        for number, program in enumerate([PROGRAM, *PEERS]):
            with self.subTest(program):
                config = self.config_for(program, f"home{number}")
                self.assertEqual(self.session(config), (["item/commandExecution/requestApproval"], expected))
                self.assertTrue((self.folder / f"home{number}-work" / "made").exists())


if __name__ == "__main__":
    unittest.main()
