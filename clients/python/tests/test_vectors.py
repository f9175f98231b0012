"""The vectors that hold the clients of all languages together."""

import asyncio
import json
import random
import time
import unittest
from pathlib import Path

from codex_embed import approvals, markdown
from codex_embed.events import Delta, Teller
from codex_embed.shapes import any_text, duration_ms, thread_id, turn_id
from codex_embed.state import State
from codex_embed.transcript import Question
from folding import cut, folded, state_of

VECTORS = sorted((Path(__file__).resolve().parents[2] / "vectors").glob("*.json"))


class VectorTest(unittest.TestCase):
    def test_each_vector_leaves_its_state_however_it_is_cut(self):
        self.assertGreater(len(VECTORS), 20)
        for path in VECTORS:
            vector = json.loads(path.read_text(encoding="utf-8"))
            data = "".join(f"{line}\n" for line in vector["lines"]).encode()
            with self.subTest(path.name):
                self.assertEqual(state_of([data]), vector["state"])
                threads = sorted(folded([data]).threads.items())
                self.assertEqual("".join(markdown.export(thread) for _, thread in threads), vector["markdown"])
                for seed, bound in enumerate((3, 60, 700, 5000)):
                    chance = random.Random(seed)
                    sizes = [chance.randint(1, bound) for _ in range(97)]
                    self.assertEqual(state_of(cut(data, sizes)), vector["state"], f"cut with seed {seed}")

    def test_each_decision_has_its_answer(self):
        folder = Path(__file__).resolve().parents[2] / "vectors" / "answers"
        vector = json.loads((folder / "decisions.json").read_text(encoding="utf-8"))
        self.assertGreater(len(vector["questions"]), 5)
        for method, params in vector["questions"].items():
            question = Question(1, method, params)
            decisions = {
                "allow": approvals.allow(),
                "allowForSession": approvals.allow_for_session(),
                "allowWithAmendment": approvals.allow_with_amendment(["npm"]),
                "emptyAmendment": approvals.allow_with_amendment([]),
                "deny": approvals.deny("no"),
                "cancel": approvals.cancel(),
                "toolResult": approvals.tool_result("seven"),
                "toolFailure": approvals.tool_result("there is no 8", False),
                "grant": approvals.grant(question),
                "grantForSession": approvals.grant(question, True),
            }
            encoded = {name: approvals.encode(method, decision) for name, decision in decisions.items()}
            self.assertEqual(encoded, vector["answers"][method], method)

    def test_an_approval_that_cannot_be_read_is_denied_whatever_the_policy(self):
        folder = Path(__file__).resolve().parents[2] / "vectors" / "answers"
        questions = json.loads((folder / "readable.json").read_text(encoding="utf-8"))["questions"]
        self.assertGreater(len(questions), 5)
        for question in questions:
            with self.subTest(question):
                asked = []

                async def handler(asked_question):
                    asked.append(asked_question)
                    return approvals.allow_all(asked_question)

                method, readable = question["method"], question["readable"]
                asking = approvals.Approvals(handler).answer(Question(1, method, question["params"]))
                answer, note = asyncio.run(asking)
                self.assertEqual(len(asked), int(readable))
                expected = approvals.allow() if readable else approvals.deny()
                self.assertEqual(answer, approvals.encode(method, expected))
                self.assertEqual(note is None, readable, note)

    def test_durations_texts_and_ids_are_read_in_all_shapes(self):
        folder = Path(__file__).resolve().parents[2] / "vectors" / "answers"
        vector = json.loads((folder / "shapes.json").read_text(encoding="utf-8"))
        for value, expected in vector["durations"]:
            self.assertEqual(duration_ms(value), expected, value)
        for value, expected in vector["texts"]:
            self.assertEqual(any_text(value), expected, value)
        for params, *expected in vector["ids"]:
            self.assertEqual([thread_id(params), turn_id(params)], expected, params)

    def test_many_deltas_take_linear_time(self):
        state, count = State(), 200_000
        started = time.process_time()
        for _ in range(count):
            state.apply(Delta("t", "u", "a", "message", 0, "some forty bytes of an answer, as it streams", Teller.ITEMS))
        text = state.threads["t"].turns[0].items[0].members["text"]
        self.assertEqual(len(text), 44 * count)
        self.assertLess(time.process_time() - started, 20)


if __name__ == "__main__":
    unittest.main()
