"""The code in the README of the official SDK `openai-codex`, with only the import changed.

Opt-in: CODEX_TEST_SDK_PY is the folder in which the package is installed or unpacked; its README is in its metadata.
"""

import json
import os
import re
import subprocess
import sys
import threading
import unittest
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import codex_embed
from server import PROGRAM, ScriptedTest, needs_program, says

SDK = os.environ.get("CODEX_TEST_SDK_PY")


class Issuer(BaseHTTPRequestHandler):
    """Gives out a code for another device, and refuses it."""

    def do_POST(self):
        answers = {
            "/api/accounts/deviceauth/usercode": (200, {"device_auth_id": "d", "user_code": "AB-12", "interval": "1"}),
        }
        status, body = answers.get(self.path, (400, {"error": {"code": "access_denied", "message": "no"}}))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        return


def refuse(url):
    """Ends a login as the browser of a user who refuses it."""
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlparse(url).query))
    back = urllib.parse.urlencode({"error": "access_denied", "state": query["state"]})
    try:
        urllib.request.urlopen(f"{query['redirect_uri']}?{back}", timeout=20).read()
    except urllib.error.HTTPError as error:
        error.close()


@needs_program
@unittest.skipUnless(SDK, "set CODEX_TEST_SDK_PY to the folder of the official SDK")
class OfficialReadmeTest(ScriptedTest, unittest.TestCase):
    def blocks(self):
        [metadata] = Path(SDK).glob("openai_codex-*.dist-info/METADATA")
        return re.findall(r"```python\n(.*?)```", metadata.read_text(encoding="utf-8"), re.S)

    def environment(self, issuer):
        script = self.folder / "answers.json"
        script.write_text(json.dumps([says("Three bullets.", repeat=True)]))
        config = f'model_provider = "scripted"\n[model_providers.scripted]\nscript = {json.dumps(str(script))}\n'
        (self.folder / "home" / "config.toml").write_text(config)
        (self.folder / "codex").symlink_to(Path(PROGRAM).resolve())
        return {
            **os.environ,
            "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
            "CODEX_HOME": str(self.folder / "home"),
            "CODEX_APP_SERVER_LOGIN_ISSUER": issuer,
            "PYTHONPATH": str(Path(codex_embed.__file__).parents[1]),
            "PYTHONUNBUFFERED": "1",
        }

    def run_block(self, block, env):
        code = block.replace("openai_codex", "codex_embed")
        if "import" not in code:
            # Later blocks continue the first one.
            code = f"from codex_embed import Codex\n{code}"
        command = [sys.executable, "-c", code]
        program = subprocess.Popen(
            command, cwd=self.folder / "work", env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        first = program.stdout.readline()
        if "redirect_uri=" in first:
            refuse(first.strip())
        rest, errors = program.communicate(timeout=60)
        self.assertEqual(program.returncode, 0, f"{code}\n{errors}")
        return first + rest

    def test_every_block_runs(self):
        server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        env = self.environment(f"http://127.0.0.1:{server.server_port}")
        printed = [self.run_block(block, env) for block in self.blocks()]
        self.assertEqual(len(printed), 4)
        self.assertEqual(printed[0], "Three bullets.\n")
        self.assertRegex(printed[1], r"redirect_uri=.*\nFalse\n")
        self.assertIn("AB-12", printed[2])
        self.assertEqual(printed[3], "")


if __name__ == "__main__":
    unittest.main()
