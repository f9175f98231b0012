"""Changes of files for people: hunks, lines with their numbers, and the words that have changed. A diff that is no diff
has no hunks, and one that is too long is cut and says so."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from .event_queue import changes_of
from .events import Asked, Members
from .shapes import get
from .state import Thread

#: The most lines of a file that are shown.
MOST_LINES = 20_000
#: The most words of a line that are compared.
MOST_WORDS = 400
#: The most pairs of words that are compared for one file; later lines have no marks.
MOST_PAIRS = 2_000_000


@dataclass(slots=True)
class Line:
    """A line of the old file, of the new one, or of both."""

    side: Literal["both", "old", "new"]
    #: Its number in the old file, and in the new one.
    old: int | None
    new: int | None
    text: str
    #: The places that differ from the line that it replaces, or that replaces it; empty if all of it does.
    changed: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class Hunk:
    """Lines that belong together."""

    #: The text after the numbers, often the function that contains it.
    heading: str
    lines: list[Line] = field(default_factory=list)


@dataclass(slots=True)
class FileDiff:
    """The change of a file."""

    path: str
    kind: Literal["add", "delete", "update"] = "update"
    #: Its new path, if it was moved.
    moved_to: str | None = None
    hunks: list[Hunk] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    #: Whether further lines were left out.
    is_cut: bool = False


def of_item(item: Members) -> list[FileDiff]:
    """The changes of an item of the kind `fileChange`."""
    return _of_changes(item.get("changes"))


def of_question(question: Asked, thread: Thread) -> list[FileDiff]:
    """The changes that a question is about. The newer one names the item that has them."""
    changes = changes_of(question.params)
    if changes:
        return _of_changes(changes)
    id = get(question.params, "itemId")
    for turn in reversed(thread.turns):
        for item in turn.items:
            if item.id == id:
                return of_item(item.members)
    return []


def of_text(diff: str) -> list[FileDiff]:
    """The changes of a diff of several files, such as that of a turn."""
    parts = re.split(r"^(?=diff --git )", diff, flags=re.MULTILINE)
    files = (_of_file(part) for part in parts if part.startswith("diff --git "))
    return [file for file in files if file is not None]


def _of_file(text: str) -> FileDiff | None:
    head = text.split("\n@@ ", 1)[0]

    def named(mark: str, side: str) -> str | None:
        line = next((line for line in head.split("\n") if line.startswith(mark)), None)
        name = None if line is None else line.removeprefix(mark).rstrip().strip('"')
        return None if name in (None, "/dev/null") else str(name).removeprefix(side)

    old, new = named("--- ", "a/"), named("+++ ", "b/")
    if old is None and new is None:
        path = named("rename from ", "")
        return None if path is None else _unified(text, FileDiff(path, moved_to=named("rename to ", "")))
    if old is None:
        return _unified(text, FileDiff(new or "", "add"))
    if new is None:
        return _unified(text, FileDiff(old, "delete"))
    return _unified(text, FileDiff(old, moved_to=None if old == new else new))


def _of_changes(changes: Any) -> list[FileDiff]:
    files = []
    for change in changes if isinstance(changes, list) else []:
        path, told, text = get(change, "path"), get(change, "kind"), get(change, "diff")
        if not isinstance(path, str):
            continue
        text = text if isinstance(text, str) else ""
        kind = get(told, "type") if isinstance(told, dict) else told
        if kind == "add" or kind == "delete":
            files.append(_whole(text, FileDiff(path, kind)))
        else:
            moved = next((get(told, name) for name in ("move_path", "movePath") if isinstance(get(told, name), str)), None)
            files.append(_unified(text, FileDiff(path, moved_to=moved)))
    return files


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _whole(text: str, file: FileDiff) -> FileDiff:
    """A file that is new or gone. Some releases report it as a diff."""
    if text.startswith(("@@ ", "--- ")):
        return _unified(text, file)
    lines, is_new = _lines(text), file.kind == "add"
    file.added, file.removed = (len(lines), 0) if is_new else (0, len(lines))
    file.is_cut = len(lines) > MOST_LINES
    shown = [
        Line("new", None, number, line) if is_new else Line("old", number, None, line)
        for number, line in enumerate(lines[:MOST_LINES], 1)
    ]
    file.hunks = [Hunk("", shown)] if shown else []
    return file


HEAD = re.compile(r"@@(?P<numbers>.*?)@@(?P<heading>.*)")
SIDES: dict[str, Literal["both", "old", "new"]] = {"+": "new", "-": "old", " ": "both", "": "both"}


def _unified(text: str, file: FileDiff) -> FileDiff:
    old = new = 1
    shown = 0
    for line in _lines(text):
        head = HEAD.match(line)
        if head is not None:
            old, new = _start(head["numbers"], "-"), _start(head["numbers"], "+")
            file.hunks.append(Hunk(head["heading"].strip()))
            continue
        side = SIDES.get(line[:1])
        if not file.hunks or side is None:
            continue
        in_old, in_new = side != "new", side != "old"
        file.added += side == "new"
        file.removed += side == "old"
        if shown < MOST_LINES:
            file.hunks[-1].lines.append(Line(side, old if in_old else None, new if in_new else None, line[1:]))
        shown += 1
        old += in_old
        new += in_new
    file.is_cut = shown > MOST_LINES
    budget = MOST_PAIRS
    for hunk in file.hunks:
        budget = _mark_words(hunk.lines, budget)
    return file


def _start(numbers: str, mark: str) -> int:
    found = re.search(rf"(?:^|\s){re.escape(mark)}(\d{{1,9}})", numbers)
    return int(found[1]) if found else 1


def _mark_words(lines: list[Line], budget: int) -> int:
    """Marks the words that differ between lines that were removed and the lines that replace them."""
    place = 0
    while place < len(lines):
        removed = _count(lines, place, "old")
        added = _count(lines, place + removed, "new") if removed else 0
        for pair in range(min(removed, added)):
            before, after = lines[place + pair], lines[place + removed + pair]
            old, new = _words(before.text), _words(after.text)
            budget -= len(old) * len(new)
            if budget >= 0 and max(len(old), len(new)) <= MOST_WORDS:
                _mark_pair(before, after, old, new)
        place += max(removed + added, 1)
    return budget


def _count(lines: list[Line], start: int, side: str) -> int:
    end = start
    while end < len(lines) and lines[end].side == side:
        end += 1
    return end - start


#: The words of a line, its white space, and each other character.
WORDS = re.compile(r"\w+|\s+|[^\w\s]")


def _words(line: str) -> list[tuple[int, int]]:
    return [match.span() for match in WORDS.finditer(line)]


def _mark_pair(before: Line, after: Line, old: list[tuple[int, int]], new: list[tuple[int, int]]) -> None:
    """Marks two lines, unless they have so little in common that marks would not help."""
    old_texts = [before.text[start:end] for start, end in old]
    new_texts = [after.text[start:end] for start, end in new]
    kept = _common(old_texts, new_texts)
    same = sum(len(old_texts[at].strip()) for at, _ in kept)
    if same * 3 < max(len(before.text.strip()), len(after.text.strip())):
        return
    at_old = at_new = 0
    for next_old, next_new in [*kept, (len(old), len(new))]:
        if next_old > at_old:
            before.changed.append((old[at_old][0], old[next_old - 1][1]))
        if next_new > at_new:
            after.changed.append((new[at_new][0], new[next_new - 1][1]))
        at_old, at_new = next_old + 1, next_new + 1


def _common(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """The places of the longest common sequence of words."""
    width = len(new) + 1
    longest = [[0] * width for _ in range(len(old) + 1)]
    for i in range(len(old) - 1, -1, -1):
        row, below = longest[i], longest[i + 1]
        for j in range(len(new) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if old[i] == new[j] else max(below[j], row[j + 1])
    places, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if old[i] == new[j]:
            places.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return places
