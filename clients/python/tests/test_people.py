"""Threads for people: timeline, Markdown, diffs, usage."""

import unittest

from codex_embed import diff, markdown
from codex_embed.events import Asked, ItemCompleted, ItemStarted, Teller
from codex_embed.router import response
from codex_embed.state import State
from codex_embed.timeline import Filter, _find, timeline
from codex_embed.usage import Limits, Prices, ThreadUsage, Tokens

ITEMS = [
    ("1", {"type": "userMessage", "id": "a", "content": [{"type": "text", "text": "Baue das ÄRGERNIS"}]}),
    (
        "1",
        {"type": "commandExecution", "id": "b", "command": "make", "status": "failed", "aggregatedOutput": "no rule"},
    ),
    (
        "2",
        {
            "type": "fileChange",
            "id": "c",
            "status": "completed",
            "changes": [{"path": "src/lib.rs", "kind": {"type": "add"}, "diff": "fn main"}],
        },
    ),
    ("2", {"type": "agentMessage", "id": "d", "text": "Made it."}),
]


def state():
    made = State()
    for place, (turn, item) in enumerate(ITEMS):
        made.apply(ItemCompleted("t", turn, item, Teller.ITEMS, place * 10))
    return made


class TimelineTest(unittest.TestCase):
    def test_a_filter_wants_what_it_names(self):
        thread = state().threads["t"]
        cases = [
            (Filter(), "abcd"),
            (Filter(kinds=["fileChange", "agentMessage"]), "cd"),
            (Filter(turn="1"), "ab"),
            (Filter(statuses=["failed"]), "b"),
            (Filter(since_ms=10, until_ms=30), "bc"),
            (Filter(text="LIB.rs"), "c"),
            (Filter(text="update"), ""),
            (Filter(text="make", turn="2"), ""),
        ]
        for wanted, expected in cases:
            self.assertEqual("".join(entry.item.id for entry in timeline(thread, wanted)), expected, wanted)

    def test_a_match_is_shown_where_it_is(self):
        [entry] = timeline(state().threads["t"], Filter(text="ärger"))
        self.assertEqual(entry.found.text[entry.found.start : entry.found.end], "ÄRGER")
        found = _find("aİx", "i\u0307x")
        self.assertEqual((found.start, found.end), (1, 3), "a letter may have a longer lower case")
        self.assertIsNone(_find("ab", "abc"))


def shown(turns):
    members = {"id": "t", "createdAt": 1_763_330_400, "cwd": "/w", "modelProvider": "p`q", "cliVersion": "1.0"}
    made = State()
    made.apply(response({"thread": {**members, "gitInfo": {"branch": "main"}, "turns": turns}}))
    return markdown.export(made.threads["t"])


class MarkdownTest(unittest.TestCase):
    def test_every_kind_of_item_is_shown(self):
        change = {"path": "x", "kind": {"type": "update", "move_path": None}, "diff": "@@ -1 +1 @@\n-a\n+b\n"}
        content = [{"type": "text", "text": "Do it"}, {"type": "localImage", "path": "p.png"}]
        command = {"command": "make", "status": "failed", "exitCode": 2, "aggregatedOutput": "```\nno\n"}
        result = {"content": [{"type": "text", "text": "found"}]}
        call = {"server": "s", "tool": "t", "status": "completed", "arguments": {"k": 1}, "result": result}
        items = [
            {"type": "userMessage", "id": "a", "content": content},
            {"type": "reasoning", "id": "b", "summary": ["one", "two"], "content": []},
            {"type": "commandExecution", "id": "c", **command},
            {"type": "fileChange", "id": "d", "status": "declined", "changes": [change]},
            {"type": "mcpToolCall", "id": "e", **call},
            {"type": "webSearch", "id": "f", "query": "q"},
            {"type": "contextCompaction", "id": "g"},
            {"type": "fromTheFuture", "id": "h"},
            {"type": "agentMessage", "id": "i", "text": " Done. \n"},
        ]
        text = shown(
            [
                {"id": "1", "status": "completed", "items": items},
                {"id": "2", "status": "failed", "error": {"message": "no answer\nhint"}, "items": []},
                {"id": "3", "status": "interrupted", "items": []},
            ]
        )
        expected = (
            "# Thread t\n\n- began: 2025-11-16T22:00:00Z\n- folder: `/w`\n- branch: `main`\n"
            "- provider: `` p`q ``\n- release: `1.0`\n\n"
            "## User\n\nDo it\n*image* `p.png`\n\n> one\n> \n> two\n\n"
            "**Command** (exit code 2)\n\n```\nmake\n```\n\n````\n```\nno\n````\n\n"
            "**Changes** (declined)\n\nupdate `x`\n\n```diff\n@@ -1 +1 @@\n-a\n+b\n```\n\n"
            '**Call of `s.t`**\n\n```\n{"k":1}\n```\n\n```\nfound\n```\n\n'
            "**Web search** `q`\n\n---\n\n*The conversation above was compacted for the model.*\n\n**fromTheFuture**\n\n"
            "## Assistant\n\nDone.\n\n*The turn failed: no answer*\n\n*The turn was interrupted.*\n\n"
        )
        self.assertEqual(text, expected)

    def test_a_long_output_is_cut_between_characters(self):
        output = "x" + "ä" * markdown.OUTPUT_BYTES
        item = {"type": "commandExecution", "id": "c", "command": "x", "aggregatedOutput": output}
        text = shown([{"id": "1", "status": "completed", "items": [item]}])
        self.assertTrue(text.endswith(f"*{markdown.OUTPUT_BYTES + 2} more bytes*\n\n"), text[-60:])


def drawn(files):
    """A diff as text, with changed words in brackets."""
    out = []
    for file in files:
        out.append(f"{file.kind} {file.path}{f' -> {file.moved_to}' if file.moved_to else ''} +{file.added} -{file.removed}")
        for hunk in file.hunks:
            out.append(f"@ {hunk.heading}")
            for line in hunk.lines:
                text = line.text
                for start, end in reversed(line.changed):
                    text = f"{text[:start]}[{text[start:end]}]{text[end:]}"
                out.append(f"{line.old or '-'} {line.new or '-'} {line.side} {text}")
    return out


class DiffTest(unittest.TestCase):
    def test_a_patch_shows_numbers_and_changed_words(self):
        update = "@@ -3,3 +3,3 @@ fn a()\n let x = 1;\n-    call(one, two);\n+    call(one, three);\n }\n"
        changes = [
            {"path": "a.rs", "kind": {"type": "update", "move_path": "b.rs"}, "diff": update},
            {"path": "new.txt", "kind": {"type": "add"}, "diff": "first\nsecond\n"},
            {"path": "old.txt", "kind": {"type": "delete"}, "diff": "gone\n"},
        ]
        self.assertEqual(
            drawn(diff.of_item({"changes": changes})),
            [
                "update a.rs -> b.rs +1 -1",
                "@ fn a()",
                "3 3 both let x = 1;",
                "4 - old     call(one, [two]);",
                "- 4 new     call(one, [three]);",
                "5 5 both }",
                "add new.txt +2 -0",
                "@ ",
                "- 1 new first",
                "- 2 new second",
                "delete old.txt +0 -1",
                "@ ",
                "1 - old gone",
            ],
        )

    def test_lines_with_little_in_common_have_no_marks(self):
        text = "@@ -1 +1 @@\n-the quick brown fox\n+nothing of that is left\n"
        [file] = diff.of_item({"changes": [{"path": "a", "kind": {"type": "update"}, "diff": text}]})
        self.assertFalse(any(line.changed for line in file.hunks[0].lines))

    def test_a_diff_of_several_files_is_cut_at_them(self):
        text = (
            "diff --git a/x b/x\nindex 1..2 100644\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"
            "diff --git a/y b/y\nnew file mode 100644\n--- /dev/null\n+++ b/y\n@@ -0,0 +1 @@\n+y\n"
            "diff --git a/p b/q\nsimilarity index 100%\nrename from p\nrename to q\n"
        )
        files = diff.of_text(text)
        kinds = [(file.kind, file.path, file.moved_to) for file in files]
        self.assertEqual(kinds, [("update", "x", None), ("add", "y", None), ("update", "p", "q")])
        self.assertEqual((files[0].added, files[0].removed, files[1].added), (1, 1, 1))

    def test_a_question_shows_the_changes_that_it_is_about(self):
        made = State()
        change = {"path": "n", "kind": {"type": "add"}, "diff": "one\n"}
        item = {"type": "fileChange", "id": "c", "status": "inProgress", "changes": [change]}
        made.apply(ItemStarted("t", "u", item, Teller.ITEMS))
        thread = made.threads["t"]
        newer = Asked("t", 1, "item/fileChange/requestApproval", {"threadId": "t", "itemId": "c"})
        older = Asked("t", 1, "applyPatchApproval", {"fileChanges": {"n": {"add": {"content": "one\n"}}}})
        for question in (newer, older):
            self.assertEqual(drawn(diff.of_question(question, thread)), ["add n +1 -0", "@ ", "- 1 new one"])
        self.assertEqual(diff.of_question(Asked("t", 1, "x", {}), thread), [])

    def test_odd_and_large_input_is_bounded(self):
        wide = "a b " * 90 + "\n"
        many = "@@ -1 +1 @@\n" + ("-" + wide) * 5000 + ("+" + wide) * 5000
        changes = [
            {"path": "long", "kind": {"type": "update"}, "diff": "@@ -1 +1 @@\n" + "+x\n" * (diff.MOST_LINES + 5)},
            {"path": "odd", "kind": 7, "diff": "no diff\nat all"},
            {"kind": {"type": "add"}},
            "text",
            {"path": "many", "kind": {"type": "update"}, "diff": many},
        ]
        long, odd, marked = diff.of_item({"changes": changes})
        self.assertEqual((long.is_cut, long.added), (True, diff.MOST_LINES + 5))
        self.assertEqual(len(long.hunks[0].lines), diff.MOST_LINES)
        self.assertEqual(odd.hunks, [])
        self.assertEqual((marked.added, marked.removed), (5000, 5000))


class UsageTest(unittest.TestCase):
    def test_usage_is_read_in_both_spellings(self):
        total = {"totalTokens": 1100, "inputTokens": 1000, "cachedInputTokens": 400, "outputTokens": 100}
        told = {"total": total, "last": {"totalTokens": 250}, "modelContextWindow": 1000, "threadCost": 0.5}
        usage = ThreadUsage.read(told)
        self.assertEqual((usage.total.input, usage.total.cached, usage.window_left), (1000, 400, 0.75))
        self.assertEqual((usage.thread_cost, usage.turn_cost), (0.5, None))
        self.assertAlmostEqual(usage.total.cost(Prices(10, 1, 12, 100)), 0.0164)
        snake = Tokens.read({"input_tokens": 7, "reasoning_output_tokens": 3})
        self.assertEqual((snake.input, snake.reasoning), (7, 3))
        self.assertIsNone(ThreadUsage.read(None))

    def test_a_reset_is_a_time_in_every_release(self):
        newer = {"primary": {"usedPercent": 100, "windowDurationMins": 300, "resetsAt": 1060}, "planType": "pro"}
        older = {"primary": {"used_percent": 100.0, "window_minutes": 300, "resets_in_seconds": 60}}
        for told in (newer, older):
            limits = Limits.read(told, 1000)
            self.assertEqual((limits.primary.resets_at, limits.primary.length), (1060, 18000))
            self.assertEqual((limits.wait(1000), limits.wait(2000)), (60, 0))
        half = Limits.read({"primary": {"usedPercent": 50, "resetsAt": 1060}, "secondary": None}, 1000)
        self.assertEqual((half.wait(1000), half.secondary), (None, None))
        self.assertEqual(Limits.read("odd", 0), Limits())


if __name__ == "__main__":
    unittest.main()
