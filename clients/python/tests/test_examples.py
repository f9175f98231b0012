"""The examples, with the real program and a scripted model."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

import codex_embed
from server import PROGRAM, ScriptedTest, needs_program, runs, says

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
CONFIG = """model_provider = "scripted"
approval_policy = "untrusted"
sandbox_mode = "workspace-write"
[model_providers.scripted]
script = {script}
"""


def commit_change(folder):
    """Makes a repository with a change since `main`."""

    def git(*args):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *args], cwd=folder, check=True)

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "first")
    git("checkout", "-q", "-b", "change")
    (folder / "new.txt").write_text("new\n")
    git("add", ".")
    git("commit", "-q", "-m", "second")


@needs_program
class ExampleTest(ScriptedTest, unittest.TestCase):
    def run_example(self, answers, name, *args, input=""):
        """Runs an example in the workspace, where `codex` plays a script."""
        script = self.folder / "answers.json"
        script.write_text(json.dumps(answers))
        (self.folder / "home" / "config.toml").write_text(CONFIG.format(script=json.dumps(str(script))))
        link = self.folder / "codex"
        if not link.exists():
            link.symlink_to(Path(PROGRAM).resolve())
        env = {
            **os.environ,
            "PATH": f"{self.folder}{os.pathsep}{os.environ['PATH']}",
            "CODEX_HOME": str(self.folder / "home"),
            "PYTHONPATH": str(Path(codex_embed.__file__).parents[1]),
            "PYTHONIOENCODING": "utf-8",
        }
        command = [sys.executable, str(EXAMPLES / name), *args]
        return subprocess.run(
            command, cwd=self.folder / "work", env=env, input=input, capture_output=True, text=True, timeout=60
        )

    def test_quickstart_has_at_most_20_lines_and_answers(self):
        self.assertLessEqual(len((EXAMPLES / "quickstart.py").read_text().splitlines()), 20)
        done = self.run_example([says("- one\n- two\n- three")], "quickstart.py")
        self.assertEqual((done.returncode, done.stdout), (0, "- one\n- two\n- three\n"), done.stderr)

    def test_the_gate_opens_and_closes(self):
        def verdict(word):
            return [says(json.dumps({"verdict": word, "reasons": ["because"]}), when="new.txt")]

        commit_change(self.folder / "work")
        cases = [
            (verdict("merge"), (0, "- because\nmerge\n")),
            (verdict("reject"), (1, "- because\nreject\n")),
            ([says("I follow the diff."), says("Again."), says("Again.")], (2, "")),
        ]
        for answers, expected in cases:
            done = self.run_example(answers, "gate.py", "main")
            self.assertEqual((done.returncode, done.stdout), expected, done.stderr)

    def test_the_chat_answers_asks_and_keeps_control_characters_to_itself(self):
        answers = [says("Hello\x1b]0;evil\x07."), runs("touch made"), says("Made.")]
        done = self.run_example(answers, "chat.py", input="Hi.\nMake it.\ny\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("> Hello]0;evil.\n", done.stdout)
        self.assertRegex(done.stdout, r"allow .*touch made.*\? \[y/N\] ")
        self.assertIn("Made.\n", done.stdout)
        self.assertTrue((self.folder / "work" / "made").exists())


if __name__ == "__main__":
    unittest.main()
