"""Answers to the questions of a server. Each question gets exactly one answer; a handler that fails or is too late has
denied it, and so is an approval that cannot be read."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from .shapes import thread_id
from .transcript import Question

#: The time limit of a handler in seconds, unless the options name another.
DEADLINE = 10 * 60.0
#: The most handlers without `async` that may hang in their threads; further questions are denied.
MOST_THREADS = 256
NO_METHOD = -32601

SECOND = frozenset(("item/commandExecution/requestApproval", "item/fileChange/requestApproval"))
FIRST = frozenset(("execCommandApproval", "applyPatchApproval"))
PERMISSIONS = "item/permissions/requestApproval"


@dataclass(frozen=True, slots=True)
class Decision:
    """An answer; use the functions below to make one."""

    kind: str
    reason: str = ""
    words: tuple[str, ...] = ()
    value: Any = None


#: Decides about a question. A plain function runs in its own thread, so that it may wait for a person.
Handler: TypeAlias = "Callable[[Question], Decision | Awaitable[Decision]]"


def allow() -> Decision:
    """Yes, this once."""
    return Decision("allow")


def allow_for_session() -> Decision:
    """Yes, and the same is not asked again in this session."""
    return Decision("allow_for_session")


def allow_with_amendment(words: list[str] | tuple[str, ...]) -> Decision:
    """Yes, and commands that begin with these words are not asked about again. Without a word it is a denial."""
    return Decision("allow_with_amendment", words=tuple(words))


def deny(reason: str = "") -> Decision:
    """No; the turn continues without it. The protocol has no room for the reason, which is for logs of the program."""
    return Decision("deny", reason=reason)


def cancel() -> Decision:
    """No, and the turn ends."""
    return Decision("cancel")


def result(value: Any) -> Decision:
    """The result of a question that is no approval, as its method defines it."""
    return Decision("result", value=value)


def tool_result(text: str, success: bool = True) -> Decision:
    """The result of a tool that the program supplies (`item/tool/call`), as text."""
    return result({"contentItems": [{"type": "inputText", "text": text}], "success": success})


def grant(question: Question, for_session: bool = False) -> Decision:
    """Everything that a question asks for (`item/permissions/requestApproval`), for the turn or for the session."""
    asked = question.params.get("permissions") if isinstance(question.params, dict) else None
    return result({"permissions": asked or {}, "scope": "session" if for_session else "turn"})


def deny_all(_: Question) -> Decision:
    """A policy that denies everything."""
    return deny("the policy of this program is to deny")


def allow_all(question: Question) -> Decision:
    """A policy that allows every command and every change of files, and denies questions that are no approvals. Only for
    servers whose sandbox is trusted, or in a container."""
    return allow() if question.method in SECOND | FIRST else deny("this is no approval")


def _is_readable(question: Question) -> bool:
    """Whether an approval says which thread it is for."""
    is_approval = question.method in SECOND | FIRST or question.method == PERMISSIONS
    return not is_approval or thread_id(question.params) != ""


Answer: TypeAlias = "dict[str, Any]"


def encode(method: str, decision: Any) -> Answer:
    """A decision in the form of the question's dialect: `result` or `error`."""
    if not isinstance(decision, Decision):
        decision = deny("the handler has returned no decision")
    kind = decision.kind
    if kind == "result":
        return {"result": decision.value}
    words = list(decision.words)
    if kind == "allow_with_amendment" and not (words and all(isinstance(word, str) for word in words)):
        kind = "deny"
    if method in SECOND:
        amended: Any = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}
        spelled = {"allow": "accept", "allow_for_session": "acceptForSession", "cancel": "cancel"}
        return {"result": {"decision": amended if kind == "allow_with_amendment" else spelled.get(kind, "decline")}}
    if method in FIRST:
        amended = {"approved_execpolicy_amendment": {"proposed_execpolicy_amendment": words}}
        spelled = {"allow": "approved", "allow_for_session": "approved_for_session", "cancel": "abort"}
        return {"result": {"decision": amended if kind == "allow_with_amendment" else spelled.get(kind, "denied")}}
    if method == "mcpServer/elicitation/request":
        return {"result": _elicitation(kind)}
    if method == PERMISSIONS:
        # Nothing is granted unless a handler says what.
        return {"result": {"permissions": {}, "scope": "turn"}}
    return {"error": {"code": NO_METHOD, "message": f"this client does not answer {method}"}}


def _elicitation(kind: str) -> dict[str, Any]:
    if kind in ("allow", "allow_with_amendment"):
        return {"action": "accept", "content": {}}
    if kind == "allow_for_session":
        return {"action": "accept", "content": {}, "_meta": {"persist": "session"}}
    return {"action": "cancel" if kind == "cancel" else "decline", "content": None}


def _forget(deciding: asyncio.Future[Any]) -> None:
    """An error of a handler that nobody waits for any more is no news."""
    if not deciding.cancelled():
        deciding.exception()


class Approvals:
    """Asks a handler, within a deadline."""

    def __init__(self, handler: Handler | None = None, deadline: float = DEADLINE) -> None:
        self._handler = handler or deny_all
        self._deadline = deadline
        self._threads = 0

    async def answer(self, question: Question) -> tuple[Answer, str | None]:
        """The answer to a question, and a note if it cannot be read or the handler has failed."""
        method = question.method
        if not _is_readable(question):
            return encode(method, deny()), f"{method}: the question cannot be read"
        # A task of its own, so that a handler which is cancelled, or does not let itself be cancelled, ends only itself.
        deciding = asyncio.ensure_future(self._decide(question))
        deciding.add_done_callback(_forget)
        try:
            await asyncio.wait((deciding,), timeout=self._deadline)
        finally:
            deciding.cancel()
        if not deciding.done():
            return encode(method, deny()), f"{method}: no decision within {self._deadline:g} s"
        error = None if deciding.cancelled() else deciding.exception()
        if error is not None or deciding.cancelled():
            reason = "it was cancelled" if error is None else str(error) or type(error).__name__
            return encode(method, deny()), f"{method}: the handler has failed: {reason}"
        return encode(method, deciding.result()), None

    async def _decide(self, question: Question) -> Any:
        if self._handler in (deny_all, allow_all):
            return self._handler(question)
        if inspect.iscoroutinefunction(self._handler):
            return await self._handler(question)
        decision = await self._in_thread(question)
        return await decision if inspect.isawaitable(decision) else decision

    async def _in_thread(self, question: Question) -> Any:
        """Runs a plain function in a thread that does not keep the program from ending."""
        if self._threads >= MOST_THREADS:
            raise RuntimeError("too many handlers hang")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def finish(decision: Any, error: BaseException | None) -> None:
            self._threads -= 1
            if done.done():
                return
            if error is None:
                done.set_result(decision)
            else:
                done.set_exception(RuntimeError(str(error) or type(error).__name__))

        def run() -> None:
            decision, error = None, None
            try:
                decision = self._handler(question)
            except BaseException as caught:
                error = caught
            try:
                loop.call_soon_threadsafe(finish, decision, error)
            except RuntimeError:
                # The loop is closed: nobody waits for the decision any more.
                return

        self._threads += 1
        threading.Thread(target=run, name="codex-approval", daemon=True).start()
        return await done
