"""A server for tests: the real program with a scripted model."""

import json
import os
import shutil
import tempfile
import time
import unittest
from pathlib import Path

from codex_embed import CodexConfig

#: The program: `CODEX_BIN`, or `codex` on the `PATH`.
PROGRAM = os.environ.get("CODEX_BIN") or shutil.which("codex")

needs_program = unittest.skipUnless(PROGRAM, "set CODEX_BIN to a codex program")


def is_alive(pid):
    """Whether a process runs; one that has ended and was not waited for has no memory any more."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            return "VmRSS" in status.read()
    except OSError:
        return False


def is_gone(pid):
    """Waits until a process is gone; a signal takes a moment."""
    until = time.monotonic() + 10
    while is_alive(pid):
        if time.monotonic() > until:
            return False
        os.sched_yield()
    return True


class ScriptedTest:
    """A folder with a workspace, a home and the answers of the model."""

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="codex-embed-"))
        self.addCleanup(shutil.rmtree, self.folder, True)
        for name in ("home", "work"):
            (self.folder / name).mkdir()

    def config(self, answers, **more):
        script = self.folder / "answers.json"
        script.write_text(json.dumps(answers))
        overrides = ("model_provider=scripted", f"model_providers.scripted.script={script}")
        return CodexConfig(
            codex_bin=PROGRAM,
            config_overrides=overrides,
            cwd=str(self.folder / "work"),
            env={"CODEX_HOME": str(self.folder / "home")},
            **more,
        )


def says(text, **more):
    """An answer of the model."""
    return {"items": [{"text": text}], **more}


def runs(command):
    """A call of the model that runs a command."""
    return {"items": [{"call": "shell", "args": {"command": ["bash", "-lc", command]}}]}
