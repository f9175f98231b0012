"""Texts and lists of a server that are made to cost a client much time or to make it fail."""

import asyncio
import time
import unittest
from contextlib import contextmanager

from codex_embed import diff, markdown
from codex_embed.events import Asked, Delta, ItemCompleted, ItemStarted, Teller, TurnStarted
from codex_embed.feed import DELTA_BYTES, Events
from codex_embed.shapes import duration_ms
from codex_embed.state import Item, State
from codex_embed.transcript import Noise, read_line

#: Many times more than it takes, and many times less than a quadratic pattern would.
ENOUGH = 5.0
MANY = 20_000


class HostileTest(unittest.TestCase):
    @contextmanager
    def quickly(self):
        began = time.monotonic()
        yield
        self.assertLess(time.monotonic() - began, ENOUGH)

    def test_blanks_within_a_line_cost_no_time(self):
        with self.quickly():
            self.assertIsInstance(read_line(b" " * 1_000_000 + b"|"), Noise)

    def test_a_long_duration_costs_no_time(self):
        with self.quickly():
            self.assertIsNone(duration_ms("1" * 1_000_000 + ".."))
            self.assertEqual(duration_ms("1s " * 300_000), 300_000_000)
        self.assertEqual(duration_ms("1.5s"), 1500)
        self.assertEqual(duration_ms(".5s 1."), 501)

    def test_quotes_within_the_name_of_a_file_cost_no_time(self):
        name = "x" + '"' * 300_000 + "x"
        with self.quickly():
            [file] = diff.of_text(f'diff --git a/x b/x\n--- "a/{name}"\n+++ "b/{name}"\n@@ -1 +1 @@\n-a\n+b\n')
        self.assertEqual(file.path, name)

    def test_a_turn_may_have_many_items_and_a_thread_many_turns(self):
        state = State()
        with self.quickly():
            for at in range(MANY):
                item = {"type": "agentMessage", "id": f"i{at}", "text": ""}
                state.apply(ItemStarted("t", "u", item, Teller.ITEMS))
                state.apply(ItemCompleted("t", "u", {**item, "text": "x"}, Teller.ITEMS))
                state.apply(Delta("t", "u", "", "summary", at % 9000, "y", Teller.OLD_QUEUE))
                state.apply(Asked("t", at, "m", {}))
            for at in range(MANY):
                state.apply(TurnStarted("t", f"v{at}"))
        thread = state.threads["t"]
        self.assertEqual(len(thread.turns), MANY + 1)
        self.assertEqual(sum(item.kind == "agentMessage" for item in thread.turns[0].items), MANY)
        self.assertEqual(len(thread.questions), 1000)

    def test_arguments_that_are_nested_deep_are_shown_as_a_note(self):
        deep = []
        for _ in range(200_000):
            deep = [deep]
        members = {"type": "mcpToolCall", "id": "i", "server": "s", "tool": "t", "arguments": deep}
        state = State()
        state.apply(ItemCompleted("t", "u", members, Teller.ITEMS))
        self.assertIn("nested too deep", markdown.export(state.threads["t"]))
        line = b'{"method":"x","params":' + b"[" * 200_000 + b"]" * 200_000 + b"}"
        self.assertIsInstance(read_line(line), Noise)

    def test_texts_that_wait_are_counted_in_bytes(self):
        events = Events()
        for _ in range(5):
            events.push(Delta("t", "u", "i", "message", 0, "漢" * (1 << 19), Teller.ITEMS))
        events.close()

        async def read() -> int:
            return sum([len(event.text.encode()) async for event in events if isinstance(event, Delta)])

        self.assertLessEqual(asyncio.run(read()), DELTA_BYTES)
