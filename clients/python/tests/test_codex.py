"""The conventions of the SDK with the real program and a scripted model."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import unittest

from codex_embed import (
    ApprovalMode,
    AsyncCodex,
    Codex,
    CodexError,
    Launch,
    Sandbox,
    StartError,
    State,
    TurnError,
    approvals,
    events,
    markdown,
    replayed,
    response,
)
from codex_embed.options import CodexConfig, LocalImageInput, TextInput, input_params, thread_params, turn_params
from server import ScriptedTest, is_gone, needs_program, runs, says

HANGS = {"items": [{"text": "Hal", "done": False}, {"hang": True}]}


@needs_program
class BlockingTest(ScriptedTest, unittest.TestCase):
    def test_a_thread_runs_turns(self):
        with Codex(self.config([says("One."), says("Two.")])) as codex:
            self.assertIn("0.200", codex.metadata["userAgent"])
            thread = codex.thread_start(sandbox=Sandbox.read_only)
            first = thread.run("Count.")
            self.assertEqual((first.status, first.final_response), ("completed", "One."))
            self.assertEqual([item["type"] for item in first.items], ["userMessage", "agentMessage"])
            self.assertGreater(first.usage["total"]["totalTokens"], 0)
            self.assertEqual(thread.run([TextInput("More.")]).final_response, "Two.")

    def test_a_turn_streams_its_events(self):
        answer = {"items": [{"text": "Hello", "deltas": ["Hel", "lo"]}]}
        with Codex(self.config([answer])) as codex:
            turn = codex.thread_start().turn("Greet.")
            kinds = [type(event) for event in turn.stream()]
            self.assertIn(events.Delta, kinds)
            self.assertEqual(kinds[-1], events.TurnEnded)

    def test_a_turn_is_steered_and_interrupted(self):
        with Codex(self.config([HANGS])) as codex:
            turn = codex.thread_start().turn("Wait.")
            stream = turn.stream()
            next(event for event in stream if isinstance(event, events.Delta))
            turn.steer("Also this.")
            turn.interrupt()
            self.assertEqual([event for event in stream][-1].status, "interrupted")

    def test_a_turn_that_takes_too_long_is_interrupted(self):
        with Codex(self.config([HANGS, says("Next.")])) as codex:
            thread = codex.thread_start()
            with self.assertRaisesRegex(Exception, "not over within 0.5 s"):
                thread.run("Wait.", timeout=0.5)
            self.assertEqual(thread.run("And now?").final_response, "Next.")

    def test_a_turn_that_fails_says_why(self):
        failing = {"items": [], "end": {"failed": {"code": "invalid_prompt", "message": "not like this"}}}
        with Codex(self.config([failing])) as codex, self.assertRaisesRegex(TurnError, "not like this"):
            codex.thread_start().run("Fail.")

    def test_threads_are_listed_forked_named_resumed_and_deleted(self):
        with Codex(self.config([says("One."), says("Two.")])) as codex:
            thread = codex.thread_start()
            thread.run("First.")
            thread.set_name("a name")
            self.assertEqual(thread.read()["thread"]["name"], "a name")
            fork = thread.fork()
            self.assertNotEqual(fork.id, thread.id)
            self.assertEqual(codex.thread_resume(thread.id).run("Second.").final_response, "Two.")
            self.assertEqual({entry["id"] for entry in codex.thread_list(model_providers=[])["data"]}, {thread.id, fork.id})
            fork.delete()
            self.assertEqual([entry["id"] for entry in codex.thread_list(model_providers=[])["data"]], [thread.id])
            codex.thread_archive(thread.id)
            self.assertEqual(codex.thread_list(model_providers=[])["data"], [])
            self.assertEqual(codex.thread_unarchive(thread.id).id, thread.id)

    def test_a_thread_has_a_goal(self):
        with Codex(self.config([says("Done.", repeat=True)])) as codex:
            thread = codex.thread_start()
            thread.run("Hello.")
            self.assertEqual(thread.set_goal("tidy up", token_budget=1)["objective"], "tidy up")
            self.assertEqual(thread.goal()["tokenBudget"], 1)
            thread.clear_goal()
            self.assertIsNone(thread.goal())

    def test_an_approval_waits_in_its_own_thread(self):
        asked, decided = threading.Event(), threading.Event()

        def decide(question):
            asked.set()
            decided.wait(20)
            return approvals.allow()

        with Codex(self.config([runs("touch made"), says("Made.")]), approvals=decide) as codex:
            turn = codex.thread_start(approval_policy="untrusted", sandbox=Sandbox.workspace_write).turn("Make it.")
            self.assertTrue(asked.wait(20))
            self.assertIsInstance(codex.thread_list()["data"], list, "the connection goes on")
            decided.set()
            self.assertEqual(turn.run().final_response, "Made.")
        self.assertTrue((self.folder / "work" / "made").exists())

    def test_without_a_handler_the_answer_is_no(self):
        with Codex(self.config([runs("touch made"), says("Refused.")])) as codex:
            result = codex.thread_start(approval_policy="untrusted", sandbox=Sandbox.workspace_write).run("Make it.")
            self.assertEqual(result.final_response, "Refused.")
        self.assertFalse((self.folder / "work" / "made").exists())

    def test_the_export_is_that_of_the_program(self):
        patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"
        answers = [
            {"items": [{"reasoning": ["**Look** around"]}, *runs("echo one; exit 3")["items"]]},
            {"items": [{"custom": "apply_patch", "input": patch}]},
            says("It is *done*."),
        ]
        config = self.config(answers)
        with Codex(config) as codex:
            thread = codex.thread_start(sandbox=Sandbox.workspace_write, approval_policy="never")
            thread.run("Do it.")
            state = State()
            state.apply(response(thread.read(include_turns=True)))
        command = [config.codex_bin, "threads", "export", thread.id]
        exported = subprocess.run(command, env={**os.environ, **config.env}, capture_output=True, timeout=60, check=True)
        self.assertEqual(markdown.export(state.threads[thread.id]), exported.stdout.decode())

    def test_a_program_that_forgets_to_close_ends_and_leaves_no_server(self):
        config = self.config([says("Fine.")])
        source = (
            "from codex_embed import Codex, CodexConfig\n"
            f"codex = Codex(CodexConfig(codex_bin={config.codex_bin!r}, config_overrides={config.config_overrides!r},"
            f" cwd={config.cwd!r}, env={config.env!r}))\n"
            "print(codex.thread_start().run('Hello.').final_response, codex.pid)\n"
        )
        command = [sys.executable, "-W", "error", "-c", source]
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        answer, pid = done.stdout.split()
        self.assertEqual(answer, "Fine.")
        self.assertTrue(is_gone(pid))

    def test_a_key_is_stored_and_forgotten(self):
        with Codex(self.config([])) as codex:
            codex.login_api_key("sk-test")
            stored = self.folder / "home" / "auth.json"
            self.assertIn("sk-test", stored.read_text())
            codex.logout()
            self.assertFalse(stored.exists())


@needs_program
class AsyncTest(ScriptedTest, unittest.IsolatedAsyncioTestCase):
    async def test_turns_of_several_threads_run_at_once(self):
        async with AsyncCodex(self.config([says("Yes.", repeat=True)])) as codex:
            threads = [await codex.thread_start() for _ in range(4)]
            results = await asyncio.gather(*(thread.run("Is it so?") for thread in threads))
            self.assertEqual([result.final_response for result in results], ["Yes."] * 4)

    async def test_a_turn_survives_the_death_of_its_server(self):
        async with AsyncCodex(self.config([says("Again.", when="Once more"), HANGS])) as codex:
            thread = await codex.thread_start()
            turn = await thread.turn("Wait.")
            seen = []
            async for event in turn.stream():
                seen.append(event)
                if isinstance(event, events.Delta):
                    os.kill(codex.pid, signal.SIGKILL)
            self.assertEqual(seen[-1].status, "interrupted")
            self.assertEqual(len([event for event in seen if isinstance(event, events.TurnEnded)]), 1)
            self.assertEqual((await thread.run("Once more.")).final_response, "Again.")

    async def test_a_recorded_thread_is_replayed(self):
        config = self.config([runs("echo one; exit 3"), says("It is *done*.")])
        async with AsyncCodex(config) as codex:
            thread = await codex.thread_start(approval_policy="never")
            await thread.run("Do it.")
            state = State()
            state.apply(response(await thread.read(include_turns=True)))
        launch = Launch(config.codex_bin, (), {**os.environ, **config.env})
        again = await replayed(thread.id, launch)
        self.assertEqual(markdown.export(again.threads[thread.id]), markdown.export(state.threads[thread.id]))
        with self.assertRaisesRegex(CodexError, r"ended with status \d+: .*nothing\.jsonl"):
            await replayed("nothing.jsonl", launch)
        with self.assertRaisesRegex(StartError, "cannot start /nowhere/codex"):
            await replayed("x", Launch("/nowhere/codex"))

    async def test_a_subscriber_that_fails_at_once_or_later_costs_one_note(self):
        async def fails_later(_):
            raise ValueError("a later mistake")

        async def hangs(_):
            await asyncio.Event().wait()

        async with AsyncCodex(self.config([says("Fine.")])) as codex:
            seen = []
            codex.subscribe(lambda event: 1 / 0)
            codex.subscribe(fails_later)
            codex.subscribe(hangs)
            end = codex.subscribe(seen.append)
            result = await (await codex.thread_start()).run("Hello.")
            self.assertEqual(result.final_response, "Fine.")
            end()
            self.assertTrue(any(isinstance(event, events.TurnEnded) for event in seen))
            notes = sorted(event.text for event in seen if isinstance(event, events.Note))
            reasons = ["a later mistake", "division by zero"]
            self.assertEqual(notes, [f"a subscriber has failed: {reason}" for reason in reasons])


class SubscriberTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_subscriber_that_hangs_costs_one_note_and_a_bounded_number_of_events(self):
        codex, begun, seen = AsyncCodex(), [], []

        async def hangs(event):
            begun.append(event)
            await asyncio.Event().wait()

        codex.subscribe(hangs)
        codex.subscribe(seen.append)
        warnings = [events.Warning("t", str(number)) for number in range(1500)]
        for warning in warnings:
            codex._dispatch(warning)
            await asyncio.sleep(0)
        self.assertEqual(begun, warnings[:1000])
        self.assertEqual([event for event in seen if isinstance(event, events.Warning)], warnings)
        notes = [event.text for event in seen if isinstance(event, events.Note)]
        self.assertEqual(notes, ["a subscriber has failed: it is too slow"])
        await codex.close()


class OptionsTest(unittest.TestCase):
    def test_options_have_the_names_of_the_protocol(self):
        options = {"sandbox": Sandbox.full_access, "approval_mode": ApprovalMode.deny_all, "model": None}
        self.assertEqual(thread_params(options), {"sandbox": "danger-full-access", "approvalPolicy": "never"})
        turn = turn_params({"sandbox": "workspace-write", "output_schema": {"type": "object"}})
        self.assertEqual(turn, {"outputSchema": {"type": "object"}, "sandboxPolicy": {"type": "workspaceWrite"}})
        parts = input_params(["look", LocalImageInput("a.png")])
        self.assertEqual(parts, [{"type": "text", "text": "look"}, {"type": "localImage", "path": "a.png"}])

    def test_a_program_that_is_missing_is_an_error_at_once(self):
        with self.assertRaisesRegex(StartError, "cannot start /nowhere/codex"):
            Codex(CodexConfig(codex_bin="/nowhere/codex"))


if __name__ == "__main__":
    unittest.main()
