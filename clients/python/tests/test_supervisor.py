"""A supervisor with servers that are small shell scripts."""

import asyncio
import json
import os
import selectors
import signal
import socket
import sys
import unittest

from codex_embed.connection import Options
from codex_embed.errors import ClosedError, RefusedError, StartError
from codex_embed import events
from codex_embed.registry import Life, NoStep, Registry
from codex_embed.supervisor import Launch, Pipe, Supervisor
from server import is_alive, is_gone

#: Answers each request with the process ids of itself and of a child that it has started.
SERVER = r"""
sleep 1000 & child=$!
echo "server starts" >&2
n=1
while read -r line; do
  case "$line" in
    *'"id":'*) echo "{\"id\":$n,\"result\":{\"userAgent\":\"sh\",\"pids\":[$$,$child]}}"; n=$((n+1));;
  esac
done
AFTER
"""


def launch(after, **more):
    return Launch("/bin/sh", ["-c", SERVER.replace("AFTER", after)], **more)


async def state(supervisor, name):
    async for found in supervisor.states():
        if found.name == name:
            return found


@unittest.skipUnless(sys.platform == "linux", "the scripts are for Linux")
class SupervisorTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_server_runs_until_it_is_stopped_and_leaves_no_child(self):
        lines = asyncio.Queue()
        # It does not end with its input, so it has to be killed.
        supervisor = Supervisor(launch("sleep 1000", on_stderr=lines.put_nowait), Options(deadline=20))
        client = await supervisor.connection()
        self.assertEqual(await asyncio.wait_for(lines.get(), 20), "server starts")
        pids = (await client.call("pids"))["pids"]
        self.assertTrue(all(map(is_alive, pids)), pids)
        self.assertEqual(supervisor.state.name, "running")
        await supervisor.stop()
        self.assertEqual(supervisor.state.name, "stopped")
        for pid in pids:
            self.assertTrue(is_gone(pid))
        with self.assertRaises(StartError):
            await supervisor.connection()

    async def test_a_server_that_is_killed_is_restarted(self):
        async with Supervisor(launch("kill $child"), Options(deadline=20)) as supervisor:
            client = await supervisor.connection()
            first = (await client.call("pids"))["pids"]
            os.kill(first[0], signal.SIGKILL)
            restarting = await asyncio.wait_for(state(supervisor, "restarting"), 20)
            self.assertEqual(restarting.attempt, 1)
            while await client.events.next() is not None:
                pass
            second = (await (await supervisor.connection()).call("pids"))["pids"]
            self.assertNotEqual(first[0], second[0])
            self.assertTrue(is_gone(first[1]), "the child of the first went with it")

    async def test_a_program_or_a_folder_that_is_missing_is_named(self):
        for launch, expected in [
            (Launch("/nowhere/codex"), "cannot start /nowhere/codex: there is no such program"),
            (Launch("/bin/sh", cwd="/nowhere"), "cannot start /bin/sh: there is no folder /nowhere"),
        ]:
            async with Supervisor(launch) as supervisor:
                failed = await asyncio.wait_for(state(supervisor, "failed"), 20)
                self.assertEqual(failed.error, expected)
                self.assertLessEqual(failed.delay, 1)

    async def test_a_program_that_is_no_server_is_reported(self):
        async with Supervisor(Launch("/bin/sh", ["-c", "echo hello; exit 3"])) as supervisor:
            failed = await asyncio.wait_for(state(supervisor, "failed"), 20)
            self.assertRegex(failed.error, "the handshake with /bin/sh has failed: initialize")

    async def test_a_sink_that_fails_stops_nothing(self):
        supervisor = Supervisor(launch("exit", on_stderr=lambda line: 1 / 0), Options(deadline=20))
        client = await supervisor.connection()
        self.assertIn("pids", await client.call("pids"))
        await supervisor.stop()


class _Leaps(selectors.DefaultSelector):
    """Lets the clock of its loop leap to the next timer when there is nothing else to do."""

    def __init__(self):
        super().__init__()
        self.now = 0.0

    def select(self, timeout=None):
        ready = super().select(timeout if timeout is None else 0)
        if not ready and timeout:
            self.now += timeout
        return ready


class WaitsTest(unittest.TestCase):
    def test_a_server_that_never_starts_is_tried_ten_times_after_growing_waits(self):
        selector = _Leaps()
        loop = asyncio.SelectorEventLoop(selector)
        loop.time = lambda: selector.now
        waits = []

        async def watch():
            supervisor = Supervisor(Launch("/nowhere/codex"))
            supervisor.start()
            async for found in supervisor.states():
                if found.name == "failed":
                    if found.delay is None:
                        return
                    waits.append(found.delay)

        loop.run_until_complete(watch())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        longest = [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]
        self.assertEqual(len(waits), len(longest))
        self.assertTrue(all(most * 0.8 <= wait <= most for wait, most in zip(waits, longest)), waits)
        self.assertGreaterEqual(selector.now, sum(waits) - 0.001)


class PipeTest(unittest.IsolatedAsyncioTestCase):
    async def test_the_two_halves_of_a_pipe_are_used_once(self):
        near, far = socket.socketpair()

        async def serve():
            reader, writer = await asyncio.open_connection(sock=far)
            while line := await reader.readline():
                message = json.loads(line)
                if message["method"] == "leave":
                    break
                if "id" in message:
                    writer.write(json.dumps({"id": message["id"], "result": {"number": 7}}).encode() + b"\n")
            writer.close()

        serving = asyncio.ensure_future(serve())
        async with Supervisor(Pipe(*await asyncio.open_connection(sock=near))) as supervisor:
            client = await supervisor.connection()
            self.assertEqual(await client.call("number"), {"number": 7})
            with self.assertRaises(ClosedError):
                await client.call("leave")
            with self.assertRaisesRegex(StartError, "the other end of the pipe is gone"):
                await supervisor.connection()
            self.assertIsNone(supervisor.state.delay)
        await serving


class Calls:
    """A server that answers from a list."""

    def __init__(self, *answers):
        self.answers, self.calls = list(answers), []

    async def call(self, method, params=None):
        self.calls.append((method, dict(params)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class RegistryTest(unittest.IsolatedAsyncioTestCase):
    def test_only_known_steps_are_taken(self):
        steps = [f"{one.value} {to.value}" for one in Life for to in Life if one.may_become(to)]
        self.assertEqual(
            ", ".join(steps),
            "created configured, configured active, configured archived, active completed, active interrupted, "
            "completed active, completed archived, interrupted active, interrupted archived",
        )

    def test_a_step_that_is_refused_changes_nothing(self):
        registry = Registry()
        registry.follow("t")
        with self.assertRaisesRegex(NoStep, "thread t is created and cannot become active"):
            registry.step("t", Life.ACTIVE)
        self.assertEqual(registry.life("t"), Life.CREATED)
        with self.assertRaises(NoStep):
            registry.step("nobody", Life.CONFIGURED)

    async def test_a_break_is_recovered_from_the_last_number(self):
        registry = Registry()
        registry.subscribed("t", {"logId": "one", "seq": 5, "reset": True})
        self.assertEqual([registry.saw("t", seq) for seq in (6, 6, 2, 7)], [True, False, False, True])
        params = {"threadId": "t", "input": []}
        name = registry.sending("t", params)
        self.assertEqual(registry.sending("t", params), name, "a name that it has stays")
        # The thread was loaded anew: its numbers count in another log, and earlier ones come again.
        server = Calls({"logId": "two", "seq": 9, "reset": False}, {"turn": {}})
        await registry.recover(server)
        self.assertEqual(server.calls[0], ("thread/subscribe", {"threadId": "t", "after": 7, "logId": "one"}))
        self.assertEqual(server.calls[1], ("turn/start", params))
        self.assertEqual([registry.saw("t", seq) for seq in (3, 4, 4)], [True, True, False])
        again = Calls({"logId": "two", "seq": 9, "reset": False})
        await registry.recover(again)
        self.assertEqual(again.calls, [("thread/subscribe", {"threadId": "t", "after": 4, "logId": "two"})])
        self.assertFalse(registry.saw("t", 4))

    async def test_the_number_of_being_caught_up_counts(self):
        registry = Registry()
        registry.subscribed("t", {"logId": "one", "seq": 5, "reset": False})

        def caught_up(log, seq):
            registry.note(events.Other("thread/caughtUp", {"threadId": "t", "logId": log, "seq": seq}))

        async def last():
            server = Calls({"logId": "one", "seq": 9, "reset": False})
            await registry.recover(server)
            return server.calls[0][1]["after"]

        caught_up("two", 5)
        self.assertIsNone(await last(), "it counts in another log")
        caught_up("one", 5)
        caught_up("one", 4)
        self.assertEqual(await last(), 5, "it does not go back")
        self.assertEqual([registry.saw("t", seq) for seq in (5, 6)], [False, True])

    def test_a_turn_that_runs_nowhere_any_more_has_ended(self):
        registry = Registry()
        registry.follow("t")
        caught_up = events.Other("thread/caughtUp", {"threadId": "t"})
        registry.note(events.TurnStarted("t", "u"), 3)
        answer = {"logId": "one", "seq": 5, "reset": False, "thread": {"status": {"type": "active"}}}
        registry.subscribed("t", answer)
        self.assertIsNone(registry.note(caught_up), "it runs")
        registry.subscribed("t", {**answer, "thread": {"status": {"type": "idle"}}})
        self.assertEqual(registry.note(caught_up), events.TurnEnded("t", "u", "interrupted", None))
        self.assertIsNone(registry.note(caught_up), "it ends once")
        idle = {**answer, "thread": {"status": {"type": "idle"}}}
        registry.subscribed("t", idle)
        registry.note(events.TurnStarted("t", "v"), 5)
        self.assertEqual(registry.note(caught_up).turn, "v", "its start was missed, and it does not run")
        # A server may say that it has caught up only after its next event, which may be the start of a turn.
        for is_reset in (False, True):
            registry.subscribed("t", {**idle, "logId": "two", "reset": is_reset})
            registry.note(events.TurnStarted("t", "v"), 6)
            self.assertIsNone(registry.note(caught_up), "it has started since, and runs")
            registry.note(events.TurnEnded("t", "v", "completed", None))

    async def test_a_server_of_another_release_sends_the_whole_thread(self):
        registry = Registry()
        registry.follow("t")
        server = Calls(RefusedError("thread/subscribe", -32600, "unknown variant"), {})
        await registry.recover(server)
        self.assertEqual([method for method, _ in server.calls], ["thread/subscribe", "thread/resume"])


if __name__ == "__main__":
    unittest.main()
