"""A thread as readable text, with the headings of `codex threads export`. A text cannot end the block that it is shown
in."""

from __future__ import annotations

import json
import re
from datetime import datetime, timezone
from typing import Any

from .events import Members
from .shapes import get, is_integer
from .state import Item, Thread, Turn
from .timeline import status

#: The most bytes that are shown of an output.
OUTPUT_BYTES = 8 << 10


def export(thread: Thread) -> str:
    """A whole thread."""
    return title(thread.members) + "".join(map(turn_text, thread.turns))


def title(members: Members) -> str:
    """The title of a thread, and the facts about it."""
    lines = [f"# Thread {_text(members, 'id')}\n\n"]
    began = members.get("createdAt")
    if is_integer(began):
        lines.append(f"- began: {_time(began)}\n")
    facts = {
        "folder": members.get("cwd"),
        "branch": get(members.get("gitInfo"), "branch"),
        "provider": members.get("modelProvider"),
        "release": members.get("cliVersion"),
    }
    lines += [f"- {name}: {code(value)}\n" for name, value in facts.items() if isinstance(value, str) and value]
    return "".join(lines) + "\n"


def turn_text(turn: Turn) -> str:
    """A turn: its items, and its end unless it is complete."""
    text = "".join(map(item_text, turn.items))
    if turn.status == "interrupted":
        text += "*The turn was interrupted.*\n\n"
    elif turn.status == "failed":
        why = (_lines(_text(turn.error, "message")) or [""])[0]
        text += f"*The turn failed{f': {why}' if why else ''}*\n\n"
    return text


def item_text(item: Item) -> str:
    """An item; nothing if it has no text."""
    members = item.members
    match item.kind:
        case "userMessage":
            return _section("User", _input(members.get("content")))
        case "agentMessage":
            return _section("Assistant", _text(members, "text"))
        case "plan":
            return _section("Plan", _text(members, "text"))
        case "exitedReviewMode":
            return _section("Review", _text(members, "review"))
        case "enteredReviewMode":
            return f"*A review begins: {_text(members, 'review')}*\n\n"
        case "reasoning":
            return _quoted(_strings(members.get("summary"))) or _quoted(_strings(members.get("content")))
        case "commandExecution":
            output = _cut(_text(members, "aggregatedOutput"))
            return f"**Command**{_outcome(item)}\n\n{_fenced(_text(members, 'command'))}{output}"
        case "fileChange":
            return _changes(item)
        case "mcpToolCall":
            return _call(f"{_text(members, 'server')}.{_text(members, 'tool')}", item)
        case "dynamicToolCall" | "collabAgentToolCall":
            return _call(_text(members, "tool"), item)
        case "webSearch":
            return f"**Web search** {code(_text(members, 'query'))}\n\n"
        case "imageView":
            return f"**Image** {code(_text(members, 'path'))}\n\n"
        case "contextCompaction":
            return "---\n\n*The conversation above was compacted for the model.*\n\n"
    return f"**{item.kind}**\n\n"


def code(text: str) -> str:
    """Inline code."""
    mark = "`" * (_longest_run(text) + 1)
    text = text.replace("\n", " ")
    return f"{mark} {text} {mark}" if "`" in text else f"{mark}{text}{mark}"


def _text(value: Any, name: str) -> str:
    found = get(value, name)
    return found if isinstance(found, str) else ""


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _section(heading: str, text: str) -> str:
    text = text.strip()
    return f"## {heading}\n\n{text}\n\n" if text else ""


def _input(content: Any) -> str:
    """The texts of a message; pictures and others by their names."""
    parts = []
    for part in content if isinstance(content, list) else []:
        kind = get(part, "type")
        if kind == "text":
            parts.append(_text(part, "text"))
        elif kind == "image":
            parts.append("*image*")
        elif kind == "localImage":
            parts.append(f"*image* {code(_text(part, 'path'))}")
        elif name := _text(part, "name") or _text(part, "path"):
            parts.append(code(name))
    return "\n".join(parts)


def _strings(parts: Any) -> str:
    return "\n\n".join(part for part in (parts if isinstance(parts, list) else []) if isinstance(part, str))


def _quoted(text: str) -> str:
    quoted = "".join(f"> {line}\n" for line in _lines(text.strip()))
    return quoted and quoted + "\n"


def _outcome(item: Item) -> str:
    """The end of a call that was not simply completed."""
    exit_code = item.members.get("exitCode")
    if is_integer(exit_code) and exit_code != 0:
        return f" (exit code {exit_code})"
    end = status(item)
    return "" if end in ("completed", "inProgress") else f" ({end})"


def _changes(item: Item) -> str:
    shown = [f"**Changes**{_outcome(item)}\n\n"]
    changes = item.members.get("changes")
    for change in changes if isinstance(changes, list) else []:
        kind = get(change, "kind")
        word, moved = _text(kind, "type"), _text(kind, "move_path")
        to = f" to {code(moved)}" if moved else ""
        diff = _cut(_text(change, "diff"), "diff" if word == "update" else "")
        shown.append(f"{word} {code(_text(change, 'path'))}{to}\n\n{diff}")
    return "".join(shown)


def _call(name: str, item: Item) -> str:
    members = item.members
    given = members.get("arguments")
    given = members.get("prompt") if given is None else given
    parts = members.get("contentItems")
    parts = get(members.get("result"), "content") if parts is None else parts
    texts = [part["text"] for part in (parts if isinstance(parts, list) else []) if isinstance(get(part, "text"), str)]
    error = get(members.get("error"), "message")
    result = error if isinstance(error, str) else "\n".join(texts)
    return f"**Call of {code(name)}**{_outcome(item)}\n\n{_cut(_shown(given))}{_cut(result)}"


def _shown(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return "(nested too deep to be shown)"


def _cut(text: str, language: str = "") -> str:
    """The beginning of a text between fences; nothing if it is empty."""
    if not text.strip():
        return ""
    data = text.encode("utf-8", "replace")
    shown = data[:OUTPUT_BYTES].decode("utf-8", "ignore")
    rest = len(data) - len(shown.encode())
    return _fenced(shown, language) + (f"*{rest} more bytes*\n\n" if rest else "")


def _fenced(text: str, language: str = "") -> str:
    """Text between fences that nothing in it can close."""
    fence = "`" * (max(_longest_run(text), 2) + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n\n"


def _longest_run(text: str) -> int:
    """The longest run of backticks in a text."""
    return max(map(len, re.findall("`+", text)), default=0)


def _time(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, OSError, ValueError):
        return str(seconds)
