"""Servers and clients that are killed at random moments of a turn, in turns.

CODEX_TEST_KILLS is the number of kills.
"""

import asyncio
import collections
import dataclasses
import json
import os
import random
import signal
import sys
import time
import unittest
import uuid
from pathlib import Path

from codex_embed import AsyncCodex, CodexError, events
from server import ScriptedTest, is_alive, needs_program, says

KILLS = int(os.environ.get("CODEX_TEST_KILLS", "4"))
AT_ONCE = 8
WITHIN = 0.5
PATIENCE = 60
DELTAS = {"text": "one two three", "deltas": ["one ", {"pause_ms": 20}, "two ", {"pause_ms": 20}, "three"]}
CALL = {"call": "shell", "args": {"command": ["bash", "-lc", "echo out; sleep 0.02; echo put"]}}
ANSWERS = [
    says("Again.", when="Once more", repeat=True),
    {"items": [{"reasoning": ["Hm."]}, DELTAS, CALL]},
    {"items": [DELTAS]},
]


def processes(folder):
    """The processes that work in a folder, or have it in their environment."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            is_there = str(folder).encode() in environment or os.readlink(process / "cwd").startswith(str(folder))
        except OSError:
            continue
        if is_there and is_alive(process.name):
            found.append(process.name)
    return found


@needs_program
@unittest.skipUnless(sys.platform == "linux", "it reads /proc")
class KillTest(ScriptedTest, unittest.IsolatedAsyncioTestCase):
    async def kill_server(self, chance):
        """Runs a turn, kills its server at some moment, and runs another one; the end of the first."""
        async with AsyncCodex(self.settings) as codex:
            thread = await codex.thread_start(sandbox="read-only")
            killed = []

            def kill():
                killed.append(codex.pid)
                os.kill(codex.pid, signal.SIGKILL)

            killing = asyncio.get_running_loop().call_later(chance.uniform(0, WITHIN), kill)
            turn = await thread.turn("Begin.")
            seen = [event async for event in turn.stream()]
            killing.cancel()
            if not killed:
                # The turn was faster; then the server dies between turns.
                kill()
            ends = [event for event in seen if isinstance(event, events.TurnEnded)]
            self.assertEqual((len(ends), seen[-1]), (1, ends[0]))
            self.assertIn(ends[0].status, ("completed", "interrupted"))
            completed = [event.item["id"] for event in seen if isinstance(event, events.ItemCompleted)]
            self.assertEqual(len(completed), len(set(completed)), "no item is reported twice")
            again = await thread.run("Once more.")
            self.assertEqual(again.final_response, "Again.")
            stored = (await thread.read(include_turns=True))["thread"]["turns"]
            self.assertEqual(len(stored), 2, "no turn is lost or doubled")
            if ends[0].status == "completed":
                whole = [item["id"] for item in stored[0]["items"]]
                self.assertEqual(sorted(completed), sorted(whole), "no item of a complete turn is missing")
            return f"server killed, {ends[0].status}"

    async def kill_client(self, chance):
        """Kills a client in a process of its own; another one sends its turn again, and goes on."""
        name = str(uuid.uuid4())
        config = {key: value for key, value in dataclasses.asdict(self.settings).items() if value is not None}
        wish = json.dumps({"config": config, "name": name})
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            str(Path(__file__).with_name("killed_client.py")),
            wish,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=asyncio.subprocess.PIPE,
        )
        thread_id = (await asyncio.wait_for(child.stdout.readline(), PATIENCE)).decode().strip()
        # A random moment is the subject of this test.
        await asyncio.sleep(chance.uniform(0, WITHIN))
        child.kill()
        await child.wait()
        async with AsyncCodex(self.settings) as codex:
            thread = await self.resumed(codex, thread_id)
            ended = asyncio.Event()
            codex.subscribe(lambda event: ended.set() if isinstance(event, events.TurnEnded) else None)
            params = {"threadId": thread_id, "input": [{"type": "text", "text": "Begin."}], "clientUserMessageId": name}
            answer = await (await codex.client()).call("turn/start", params)
            if answer["turn"]["status"] == "inProgress":
                await asyncio.wait_for(ended.wait(), PATIENCE)
            turns = (await thread.read(include_turns=True))["thread"]["turns"]
            self.assertEqual(len(turns), 1, "no turn is lost or doubled")
            self.assertIn(turns[0]["status"], ("completed", "interrupted"))
            items = [item["id"] for item in turns[0]["items"]]
            self.assertEqual(len(items), len(set(items)), "no item is doubled")
            self.assertEqual((await thread.run("Once more.")).final_response, "Again.")
            return f"client killed, {'cut' if turns[0]['completedAt'] is None else turns[0]['status']}"

    async def resumed(self, codex, thread_id):
        """The thread, once the server of the killed client has noticed the end of its input."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                return await codex.thread_resume(thread_id)
            except CodexError:
                if time.monotonic() > until:
                    raise

    async def test_nothing_is_lost_or_doubled_and_no_process_is_left(self):
        self.settings = self.config(ANSWERS)
        chance, ends = random.Random(), collections.Counter()
        for start in range(0, KILLS, AT_ONCE):
            count = min(AT_ONCE, KILLS - start)
            kills = [self.kill_client(chance) if at % 2 else self.kill_server(chance) for at in range(count)]
            ends.update(await asyncio.gather(*kills))
        print(f"{KILLS} kills: {dict(ends)}")
        until = time.monotonic() + PATIENCE
        while left := processes(self.folder):
            self.assertLess(time.monotonic(), until, f"these are left: {left}")


if __name__ == "__main__":
    unittest.main()
