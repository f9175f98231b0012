"""Turns the messages of a server, in any dialect, into events. Pure and total: a message of a method that is not known is
`Unknown`, and one that lacks a member that its method needs is `Other`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import event_queue
from .events import (
    Asked,
    Delta,
    Diff,
    Error,
    Event,
    ItemCompleted,
    ItemStarted,
    Other,
    Part,
    Plan,
    RateLimits,
    RequestId,
    Resolved,
    Teller,
    ThreadChanged,
    ThreadKnown,
    TurnEnded,
    TurnStarted,
    Unknown,
    Usage,
    Warning,
)
from .shapes import any_text, get, has, is_id, is_integer, text, thread_id, turn_id
from .tables import NOTIFICATIONS

#: Notifications of other releases.
KNOWN = NOTIFICATIONS | {
    "remoteControl/status/changed",
    "thread/settings/updated",
    "thread/queue/changed",
    "thread/environment/updated",
    "item/plan/delta",
    "item/autoApprovalReview/started",
    "item/autoApprovalReview/completed",
    "hook/started",
    "hook/completed",
    "model/rerouted",
    "app/list/updated",
    "mcpServer/oauthLogin/completed",
}
ITEM = ("itemId", "item_id")


def notification(method: str, params: Any = None) -> Event:
    """The event of a notification."""
    if method == "codex/event" or method.startswith("codex/event/"):
        return event_queue.queue_event(method, params)
    reader = READERS.get(method)
    event = reader(params) if reader else None
    if event is not None:
        return event
    return Other(method, params) if method in KNOWN else Unknown(method, params)


def request(id: RequestId, method: str, params: Any = None) -> Asked:
    """A request of the server as an event."""
    return Asked(thread_id(params), id, method, params)


def response(result: Any) -> Event | None:
    """The event of a response, if it carries a thread."""
    thread = get(result, "thread")
    return None if thread is None else _thread(thread, get(result, "reset") is True)


def _thread(value: Any, is_reset: bool) -> Event | None:
    id = text(value, ("id",))
    if id is None:
        return None
    turns = value.get("turns")
    return ThreadKnown(id, value, (isinstance(turns, list) and len(turns) > 0) or is_reset)


def configured(id: str, params: Any) -> ThreadKnown:
    """The start of a conversation."""
    members = {"id": id, "model": params["model"]} if has(params, "model") else {"id": id}
    return ThreadKnown(id, members, False)


def turn_ended(params: Any) -> TurnEnded:
    """The end of a turn. Its status is in the turn, or next to it."""
    turn = get(params, "turn")
    status = text(turn, ("status",)) or text(params, ("status",)) or "completed"
    error = turn["error"] if isinstance(turn, dict) and "error" in turn else get(params, "error")
    return TurnEnded(thread_id(params), turn_id(params), status, error)


def plan(thread: str, turn: str, params: Any) -> Plan | None:
    """The plan of a turn, with its steps in the form of v2."""
    steps = get(params, "plan")
    if not isinstance(steps, list):
        return None
    read = []
    for step in steps:
        status = text(step, ("status",)) or "pending"
        words = get(step, "step") if isinstance(step, dict) and "step" in step else step
        read.append({"step": any_text(words) or "", "status": "inProgress" if status == "in_progress" else status})
    return Plan(thread, turn, {"explanation": get(params, "explanation"), "steps": read})


def index(params: Any, names: tuple[str, ...]) -> int:
    """The place of a part among those of its item."""
    numbers = (get(params, name) for name in names)
    return next((int(number) for number in numbers if is_integer(number) and number >= 0), 0)


def _changed(member: str, value_of: Callable[[Any], Any]) -> Callable[[Any], Event | None]:
    return lambda params: ThreadChanged(thread_id(params), member, value_of(params))


def _present(name: str, member: str) -> Callable[[Any], Event | None]:
    def read(params: Any) -> Event | None:
        if not isinstance(params, dict) or name not in params:
            return None
        return ThreadChanged(thread_id(params), member, params[name])

    return read


def _told(params: Any) -> dict[str, Any] | None:
    item = get(params, "item")
    return item if isinstance(item, dict) and isinstance(item.get("type"), str) else None


def _started(params: Any) -> Event | None:
    item = _told(params)
    if item is None:
        return None
    return ItemStarted(thread_id(params), turn_id(params), item, Teller.ITEMS, _time(params, "startedAtMs"))


def _completed(params: Any) -> Event | None:
    item = _told(params)
    if item is None:
        return None
    return ItemCompleted(thread_id(params), turn_id(params), item, Teller.ITEMS, _time(params, "completedAtMs"))


def _time(params: Any, name: str) -> int | None:
    time = get(params, name)
    return time if is_integer(time) else None


def _delta(part: Part, index_name: str = "") -> Callable[[Any], Event | None]:
    def read(params: Any) -> Event | None:
        item, more = text(params, ITEM), get(params, "delta")
        if item is None or not isinstance(more, str):
            return None
        at = index(params, (index_name,)) if index_name else 0
        return Delta(thread_id(params), turn_id(params), item, part, at, more, Teller.ITEMS)

    return read


def _created_kind(item: Any) -> str:
    kind = (text(item, ("type",)) or "").lower()
    purpose = (text(item, ("purpose",)) or "").lower()
    if "reasoning" in kind or purpose == "reasoning":
        return "reasoning"
    if kind == "plan":
        return "plan"
    return "imageView" if kind in ("image", "imageview") else "agentMessage"


def _created(params: Any) -> Event | None:
    """`item/created`, whose items need not have names."""
    if not isinstance(params, dict) or "item" not in params:
        return None
    item, thread, turn = params["item"], thread_id(params), turn_id(params)
    kind = _created_kind(item)
    if kind == "plan" and get(item, "plan") is not None:
        return plan(thread, turn, item)
    words = any_text(item) or ""
    members: dict[str, Any] = {"type": kind, "id": text(item, ("id",)) or text(params, ITEM) or ""}
    if kind == "reasoning":
        members.update(summary=[words], content=[])
    elif kind == "imageView":
        members["path"] = get(item, "path")
    else:
        members["text"] = words
    is_complete = get(item, "text") is not None or kind == "imageView"
    event = ItemCompleted if is_complete else ItemStarted
    return event(thread, turn, members, Teller.CREATED)


def _created_delta(params: Any) -> Event | None:
    inner = get(params, "item")
    item = text(params, ITEM) or text(inner, ("id",)) or ""
    part: Part = "summary" if _created_kind(inner) == "reasoning" else "message"
    more = any_text(get(params, "delta"))
    more = any_text(inner) if more is None else more
    if more is None:
        return None
    return Delta(thread_id(params), turn_id(params), item, part, 0, more, Teller.CREATED)


def _diff(params: Any) -> Event | None:
    diff = get(params, "diff")
    return Diff(thread_id(params), turn_id(params), diff) if isinstance(diff, str) else None


def _usage(params: Any) -> Event | None:
    return Usage(thread_id(params), params["tokenUsage"]) if has(params, "tokenUsage") else None


def _rate_limits(params: Any) -> Event | None:
    return RateLimits(params["rateLimits"]) if has(params, "rateLimits") else None


def _error(params: Any) -> Event | None:
    error = get(params, "error")
    message = any_text(params if error is None else error) or ""
    return Error(thread_id(params), turn_id(params), message, get(params, "willRetry") is True)


def _warning(params: Any) -> Event | None:
    message = any_text(params)
    return None if message is None else Warning(thread_id(params), message)


def _resolved(params: Any) -> Event | None:
    id = get(params, "requestId")
    return Resolved(thread_id(params), id) if is_id(id) else None


def _session(params: Any) -> Event | None:
    id = text(params, ("sessionId", "session_id"))
    return None if id is None else configured(id, params)


READERS: dict[str, Callable[[Any], Event | None]] = {
    "thread/started": lambda params: _thread(get(params, "thread"), False),
    "thread/status/changed": _present("status", "status"),
    "thread/name/updated": _present("threadName", "name"),
    "thread/archived": _changed("archived", lambda _: True),
    "thread/unarchived": _changed("archived", lambda _: False),
    "thread/deleted": _changed("deleted", lambda _: True),
    "thread/closed": _changed("closed", lambda _: True),
    "thread/goal/updated": _present("goal", "goal"),
    "thread/goal/cleared": _changed("goal", lambda _: None),
    "turn/started": lambda params: TurnStarted(thread_id(params), turn_id(params)),
    "turn/completed": turn_ended,
    "item/started": _started,
    "item/completed": _completed,
    "item/created": _created,
    "item/delta": _created_delta,
    "item/agentMessage/delta": _delta("message"),
    "item/plan/delta": _delta("plan"),
    "item/commandExecution/outputDelta": _delta("output"),
    "item/reasoning/summaryTextDelta": _delta("summary", "summaryIndex"),
    "item/reasoning/textDelta": _delta("reasoning", "contentIndex"),
    "turn/plan/updated": lambda params: plan(thread_id(params), turn_id(params), params),
    "turn/diff/updated": _diff,
    "thread/tokenUsage/updated": _usage,
    "account/rateLimits/updated": _rate_limits,
    "error": _error,
    "warning": _warning,
    "serverRequest/resolved": _resolved,
    "sessionConfigured": _session,
}
