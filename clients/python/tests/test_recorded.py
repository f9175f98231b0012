"""Recorded sessions of several releases, as `clients/vectors/record.py` has built them."""

import gzip
import json
import random
import unittest
from pathlib import Path

from folding import cut, state_of

PACKED = Path(__file__).resolve().parents[2] / "vectors" / "recorded.json.gz"


class RecordedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        recorded = json.loads(gzip.decompress(PACKED.read_bytes()))
        cls.states = recorded["states"]
        lines = [f"{line}\n".encode() for line in recorded["lines"]]
        cls.sessions = {
            name: b"".join(lines[place] for place in places) for name, places in recorded["sessions"].items()
        }

    def check(self, sizes, why):
        """Checks all sessions in pieces of these sizes, over and over."""
        for name, data in self.sessions.items():
            with self.subTest(name):
                self.assertEqual(state_of(cut(data, sizes)), self.states[name], why)

    def test_each_session_leaves_its_state(self):
        self.assertGreater(len(self.sessions), 100)
        self.check([1 << 20], "in one piece")

    def test_the_state_does_not_depend_on_the_cuts(self):
        # One byte at a time cuts every character in every place.
        self.check([1], "byte by byte")
        for bound in (7, 300, 2000):
            seed = random.randrange(1 << 31)
            chance = random.Random(seed)
            sizes = [chance.randint(1, bound) for _ in range(97)]
            self.check(sizes, f"cut with seed {seed} below {bound}")


if __name__ == "__main__":
    unittest.main()
