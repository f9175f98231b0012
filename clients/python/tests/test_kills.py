"""Servers that are killed at random moments of a turn.

Opt-in: CODEX_TEST_KILLS is the number of kills.
"""

import asyncio
import collections
import os
import random
import signal
import unittest
from pathlib import Path

from codex_embed import AsyncCodex, events
from server import ScriptedTest, needs_program, says

KILLS = int(os.environ.get("CODEX_TEST_KILLS", "0"))
AT_ONCE = 8
DELTAS = {"text": "one two three", "deltas": ["one ", {"pause_ms": 20}, "two ", {"pause_ms": 20}, "three"]}
CALL = {"call": "shell", "args": {"command": ["bash", "-lc", "echo out; sleep 0.02; echo put"]}}
ANSWERS = [
    says("Again.", when="Once more", repeat=True),
    {"items": [{"reasoning": ["Hm."]}, DELTAS, CALL]},
    {"items": [DELTAS]},
]


def children():
    """The processes of this program that have not ended."""
    found = set()
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = status.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if parent == str(os.getpid()) and state != "Z":
            found.add(status.parent.name)
    return found


@needs_program
@unittest.skipUnless(KILLS, "set CODEX_TEST_KILLS to a number of kills")
class KillTest(ScriptedTest, unittest.IsolatedAsyncioTestCase):
    async def one(self, chance):
        """Runs a turn, kills its server at some moment, and runs another one; the end of the first."""
        async with AsyncCodex(self.settings) as codex:
            thread = await codex.thread_start(sandbox="read-only")
            killing = asyncio.get_running_loop().call_later(chance.uniform(0, 0.5), os.kill, codex.pid, signal.SIGKILL)
            turn = await thread.turn("Begin.")
            seen = [event async for event in turn.stream()]
            if killing.when() > asyncio.get_running_loop().time():
                # The turn was faster; then the server dies between turns.
                killing.cancel()
                os.kill(codex.pid, signal.SIGKILL)
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
            return ends[0].status

    async def test_every_turn_has_one_end_and_no_child_is_left(self):
        self.settings = self.config(ANSWERS)
        before, chance, ends = children(), random.Random(7), collections.Counter()
        for start in range(0, KILLS, AT_ONCE):
            ends.update(await asyncio.gather(*(self.one(chance) for _ in range(min(AT_ONCE, KILLS - start)))))
        print(f"{KILLS} kills: {dict(ends)}")
        self.assertEqual(children() - before, set())


if __name__ == "__main__":
    unittest.main()
