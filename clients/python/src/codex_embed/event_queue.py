"""Events of the queue: `codex/event/TYPE`, in snake case and in camel case."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from . import router
from .events import (
    Delta,
    Diff,
    Error,
    Event,
    ItemCompleted,
    ItemStarted,
    Other,
    Part,
    Teller,
    TurnEnded,
    TurnStarted,
    Unknown,
    Usage,
    Warning,
)
from .shapes import any_text, duration_ms, get, is_integer, text, thread_id, turn_id
from .tables import EVENT_KINDS

CALL = ("call_id", "callId", "item_id", "itemId", "id")
NAMED = ("item_id", "itemId")
KNOWN = EVENT_KINDS | {"mcp_startup_update", "mcp_startup_complete", "terminal_interaction"}


def queue_event(method: str, params: Any) -> Event:
    """The event of a message of the queue."""
    inner = get(params, "msg")
    message = inner if isinstance(inner, dict) else params
    kind = method.removeprefix("codex/event/") if method != "codex/event" else text(message, ("type",)) or ""
    where = (thread_id(params), turn_id(params))
    event = _turn(kind, where, message, params) or _words(kind, where, message) or _call(kind, where, message)
    if event is not None:
        return event
    return Other(method, params) if kind in KNOWN else Unknown(method, params)


def _turn(kind: str, where: tuple[str, str], message: Any, params: Any) -> Event | None:
    thread, turn = where
    match kind:
        case "session_configured":
            return router.configured(thread, message)
        case "task_started" | "turn_started":
            return TurnStarted(thread, turn)
        case "task_complete" | "turn_complete":
            return router.turn_ended(params)
        case "turn_aborted":
            return TurnEnded(thread, turn, "interrupted", None)
        case "plan_update":
            return router.plan(thread, turn, message)
        case "turn_diff":
            diff = text(message, ("unified_diff", "unifiedDiff", "diff"))
            return None if diff is None else Diff(thread, turn, diff)
        case "token_count":
            return _usage(thread, message)
        case "error" | "stream_error":
            return Error(thread, turn, any_text(message) or "", kind == "stream_error")
        case "warning":
            told = any_text(message)
            return None if told is None else Warning(thread, told)
    return None


def _either(value: Any, snake: str, camel: str) -> Any:
    found = get(value, snake)
    return get(value, camel) if found is None else found


COUNTS = {
    "totalTokens": "total_tokens",
    "inputTokens": "input_tokens",
    "cachedInputTokens": "cached_input_tokens",
    "outputTokens": "output_tokens",
    "reasoningOutputTokens": "reasoning_output_tokens",
}


def _usage(thread: str, message: Any) -> Event | None:
    info = get(message, "info")
    if not isinstance(info, dict):
        return None

    def counts(snake: str, camel: str) -> dict[str, int]:
        told = _either(info, snake, camel)
        numbers = {}
        for camel_name, snake_name in COUNTS.items():
            found = (get(told, name) for name in (snake_name, camel_name))
            numbers[camel_name] = next((int(number) for number in found if is_integer(number)), 0)
        return numbers

    usage = {
        "total": counts("total_token_usage", "totalTokenUsage"),
        "last": counts("last_token_usage", "lastTokenUsage"),
        "modelContextWindow": _either(info, "model_context_window", "modelContextWindow"),
    }
    return Usage(thread, usage)


def _words(kind: str, where: tuple[str, str], message: Any) -> Event | None:
    """Messages and reasoning."""
    more = any_text(get(message, "delta"))

    def grown(item: str | None, part: Part, at: int, teller: Teller) -> Event | None:
        return None if item is None or more is None else Delta(*where, item, part, at, more, teller)

    match kind:
        case "item_started" | "item_completed":
            item = _camel_item(get(message, "item"))
            if item is None:
                return None
            event = ItemStarted if kind == "item_started" else ItemCompleted
            return event(*where, item, Teller.QUEUE)
        case "agent_message_content_delta":
            return grown(text(message, NAMED), "message", 0, Teller.QUEUE)
        case "reasoning_content_delta":
            at = router.index(message, ("summary_index", "summaryIndex"))
            return grown(text(message, NAMED), "summary", at, Teller.QUEUE)
        case "reasoning_raw_content_delta":
            at = router.index(message, ("content_index", "contentIndex"))
            return grown(text(message, NAMED), "reasoning", at, Teller.QUEUE)
        case "agent_message_delta":
            return grown("", "message", 0, Teller.OLD_QUEUE)
        case "agent_reasoning_delta":
            return grown("", "summary", 0, Teller.OLD_QUEUE)
    return _whole(kind, where, message)


def _whole(kind: str, where: tuple[str, str], message: Any) -> Event | None:
    told = any_text(message)
    if told is None:
        return None
    match kind:
        case "agent_message":
            item: dict[str, Any] = {"type": "agentMessage", "text": told}
        case "agent_reasoning":
            item = {"type": "reasoning", "summary": [told], "content": []}
        case "user_message":
            item = {"type": "userMessage", "content": [{"type": "text", "text": told}]}
        case _:
            return None
    return ItemCompleted(*where, item, Teller.OLD_QUEUE)


def _camel_item(item: Any) -> dict[str, Any] | None:
    """An item of the queue in the form of v2."""
    kind = text(item, ("type",))
    if kind is None:
        return None
    members = {**item, "type": kind[0].lower() + kind[1:]}
    if members["type"] == "agentMessage":
        members.pop("content", None)
        members["text"] = any_text(item.get("content")) or ""
    elif members["type"] == "reasoning":
        summary, content = members.pop("summary_text", None), members.pop("raw_content", None)
        members["summary"] = [] if summary is None else summary
        members["content"] = [] if content is None else content
    return members


def _call(kind: str, where: tuple[str, str], message: Any) -> Event | None:
    """Calls of tools: commands, patches, tools of MCP servers, searches."""
    id = text(message, CALL)
    if id is None:
        return None
    match kind:
        case "exec_command_begin":
            return ItemStarted(*where, _command(id, message), Teller.QUEUE)
        case "exec_command_output_delta":
            chunk = text(message, ("chunk",))
            if chunk is None:
                return None
            return Delta(*where, id, "output", 0, _bytes_or_text(message, chunk), Teller.QUEUE)
        case "exec_command_end":
            return ItemCompleted(*where, _command_end(id, message), Teller.QUEUE)
        case "patch_apply_begin":
            patch = {"type": "fileChange", "id": id, "status": "inProgress", "changes": changes_of(message)}
            return ItemStarted(*where, patch, Teller.QUEUE)
        case "patch_apply_end":
            status = "completed" if get(message, "success") is True else "failed"
            patch = {"type": "fileChange", "id": id, "status": status, "changes": changes_of(message)}
            return ItemCompleted(*where, patch, Teller.QUEUE)
        case "mcp_tool_call_begin":
            return ItemStarted(*where, _tool(id, message, "inProgress"), Teller.QUEUE)
        case "mcp_tool_call_end":
            return ItemCompleted(*where, _tool_end(id, message), Teller.QUEUE)
        case "web_search_begin" | "web_search_end":
            search = {"type": "webSearch", "id": id, "query": text(message, ("query",)) or ""}
            event = ItemStarted if kind == "web_search_begin" else ItemCompleted
            return event(*where, search, Teller.QUEUE)
        case "view_image_tool_call":
            return ItemCompleted(*where, {"type": "imageView", "id": id, "path": get(message, "path")}, Teller.QUEUE)
    return None


def _bytes_or_text(message: Any, chunk: str) -> str:
    """A piece of output. Real servers, which spell `call_id`, send its bytes in Base64."""
    if get(message, "call_id") is None:
        return chunk
    try:
        return base64.b64decode(chunk, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return chunk


PLAIN_WORD = re.compile(r"[A-Za-z0-9+\-./:@_=,%]+")


def _quoted(word: str) -> str:
    """A word as a shell reads it; clients in all languages quote alike."""
    return word if PLAIN_WORD.fullmatch(word) else "'" + word.replace("'", "'\\''") + "'"


def _command(id: str, message: Any) -> dict[str, Any]:
    told = get(message, "command")
    if isinstance(told, list):
        told = " ".join(_quoted(word) for word in told if isinstance(word, str))
    return {
        "type": "commandExecution",
        "id": id,
        "command": told if isinstance(told, str) else "",
        "status": "inProgress",
        "cwd": get(message, "cwd"),
        "aggregatedOutput": None,
        "exitCode": None,
        "durationMs": None,
    }


def _command_end(id: str, message: Any) -> dict[str, Any]:
    codes = (get(message, name) for name in ("exit_code", "exitCode"))
    code = next((code for code in codes if is_integer(code)), None)
    streams = [get(message, name) for name in ("stdout", "stderr")]
    texts = [stream for stream in streams if isinstance(stream, str)]
    output = text(message, ("aggregated_output", "aggregatedOutput"))
    if output is None and texts:
        output = "".join(texts)
    members = {
        "type": "commandExecution",
        "id": id,
        "status": "completed" if (code or 0) == 0 else "failed",
        "exitCode": code,
        "durationMs": duration_ms(get(message, "duration")),
    }
    return members if output is None else {**members, "aggregatedOutput": output}


def changes_of(message: Any) -> list[dict[str, Any]]:
    """The changes of a patch as a list in the order of paths."""
    told = (get(message, name) for name in ("changes", "fileChanges", "file_changes"))
    changes = next((change for change in told if isinstance(change, dict)), {})
    read = []
    # The order of code points is that of the bytes.
    for path, change in sorted(changes.items()):
        kind = text(change, ("type",))
        if isinstance(change, dict) and kind is None and len(change) == 1:
            [(kind, change)] = change.items()
        shape: dict[str, Any] = {"type": kind or ""}
        if kind == "update":
            shape["move_path"] = _either(change, "move_path", "movePath")
        diff = text(change, ("unified_diff", "unifiedDiff", "content")) or ""
        read.append({"path": path, "kind": shape, "diff": diff})
    return read


def _tool(id: str, message: Any, status: str) -> dict[str, Any]:
    told = get(message, "invocation")
    invocation = message if told is None else told
    return {
        "type": "mcpToolCall",
        "id": id,
        "status": status,
        "server": text(invocation, ("server",)) or "",
        "tool": text(invocation, ("tool",)) or "",
        "arguments": get(invocation, "arguments"),
        "result": None,
        "error": None,
    }


def _tool_end(id: str, message: Any) -> dict[str, Any]:
    result = get(message, "result")
    failure = get(result, "Err")
    failure = get(message, "error") if failure is None else failure
    inner = get(result, "Ok")
    done = result if inner is None else inner
    has_failed = failure is not None or get(done, "isError") is True
    members = _tool(id, message, "failed" if has_failed else "completed")
    members["durationMs"] = duration_ms(get(message, "duration"))
    if failure is not None:
        members["error"] = {"message": any_text(failure) or ""}
    elif isinstance(done, dict):
        members["result"] = {"content": done.get("content"), "structuredContent": done.get("structuredContent")}
    return members
