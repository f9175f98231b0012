"""The generated types."""

import typing
import unittest

from codex_embed.calls import Calls
from codex_embed.protocol import base, exec_events, v2
from codex_embed.tables import METHODS


class ProtocolTest(unittest.TestCase):
    def test_every_type_can_be_evaluated(self):
        count = 0
        for module in (base, v2, exec_events):
            for name, value in vars(module).items():
                if isinstance(value, type) and typing.is_typeddict(value):
                    with self.subTest(f"{module.__name__}.{name}"):
                        self.assertIsInstance(typing.get_type_hints(value), dict)
                    count += 1
        self.assertGreater(count, 500)

    def test_every_method_has_a_call(self):
        calls = [name for name in vars(Calls) if not name.startswith("_")]
        self.assertEqual(len(calls), len(METHODS) - 1, "all but `initialize`")


if __name__ == "__main__":
    unittest.main()
