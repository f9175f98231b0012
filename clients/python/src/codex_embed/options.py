"""Options of programs, threads and turns, and the parameters of the protocol that they stand for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, TypedDict

from .approvals import DEADLINE, Handler
from .version import VERSION


class Sandbox(str, Enum):
    """The limits of commands."""

    read_only = "read-only"
    workspace_write = "workspace-write"
    full_access = "full-access"


class ApprovalMode(str, Enum):
    """Whether the server asks: never, or for a reviewer. Without a mode the configuration decides."""

    deny_all = "deny_all"
    auto_review = "auto_review"


@dataclass(slots=True)
class TextInput:
    text: str


@dataclass(slots=True)
class ImageInput:
    url: str


@dataclass(slots=True)
class LocalImageInput:
    path: str


@dataclass(slots=True)
class SkillInput:
    name: str
    path: str


@dataclass(slots=True)
class MentionInput:
    name: str
    path: str


InputItem: TypeAlias = "TextInput | ImageInput | LocalImageInput | SkillInput | MentionInput"
#: The input of a turn: a text, or parts.
RunInput: TypeAlias = "str | InputItem | Sequence[InputItem]"


@dataclass
class CodexConfig:
    """The server to run, and the name of this program for it."""

    #: The program; by default `codex`, found by `PATH`.
    codex_bin: str | None = None
    #: The whole command line instead of that of `codex app-server`.
    launch_args_override: Sequence[str] | None = None
    #: Overrides of configuration values, such as `model="gpt-5.1-codex"`.
    config_overrides: Sequence[str] = ()
    cwd: str | None = None
    #: Variables in addition to those of this program.
    env: Mapping[str, str] | None = None
    client_name: str = "codex-embed"
    client_title: str | None = None
    client_version: str = VERSION
    experimental_api: bool = True
    #: The time limit of a call in seconds.
    deadline: float = 60.0
    #: Decides about questions of the server; without one, each is denied.
    approvals: Handler | None = None
    approval_deadline: float = DEADLINE
    #: Takes the lines of the server's standard error.
    on_stderr: Callable[[str], None] | None = None


class ThreadOptions(TypedDict, total=False):
    """Options of `thread_start`, `thread_resume` and `thread_fork`."""

    approval_mode: ApprovalMode | None
    #: `untrusted`, `on-failure`, `on-request` or `never`.
    approval_policy: str | None
    base_instructions: str | None
    config: Mapping[str, Any] | None
    cwd: str | None
    developer_instructions: str | None
    ephemeral: bool | None
    model: str | None
    model_provider: str | None
    personality: str | None
    sandbox: Sandbox | None
    service_name: str | None
    service_tier: str | None
    thread_source: str | None


class TurnOptions(TypedDict, total=False):
    """Options of `run` and `turn`. All but the schema hold for later turns too."""

    approval_mode: ApprovalMode | None
    approval_policy: str | None
    cwd: str | None
    effort: str | None
    model: str | None
    #: The JSON Schema that the last message follows.
    output_schema: Mapping[str, Any] | None
    personality: str | None
    sandbox: Sandbox | None
    service_tier: str | None
    summary: str | None


class ListOptions(TypedDict, total=False):
    """Options of `thread_list`."""

    archived: bool | None
    cursor: str | None
    cwd: str | Sequence[str] | None
    limit: int | None
    model_providers: Sequence[str] | None
    search_term: str | None
    section_id: str | None
    sort_direction: str | None
    sort_key: str | None
    source_kinds: Sequence[str] | None


_SANDBOX_MODES = {"read-only": "read-only", "workspace-write": "workspace-write", "full-access": "danger-full-access"}
_SANDBOX_POLICIES = {"read-only": "readOnly", "workspace-write": "workspaceWrite", "full-access": "dangerFullAccess"}


def camel(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options that are set, with the names of the protocol."""
    named = {}
    for name, value in options.items():
        if value is not None:
            first, *rest = name.split("_")
            named[first + "".join(word.capitalize() for word in rest)] = value
    return named


def _approvals(params: dict[str, Any]) -> dict[str, Any]:
    mode = params.pop("approvalMode", None)
    if mode is not None:
        if ApprovalMode(mode) is ApprovalMode.deny_all:
            params.setdefault("approvalPolicy", "never")
        else:
            params.setdefault("approvalPolicy", "on-request")
            params["approvalsReviewer"] = "auto_review"
    return params


def thread_params(options: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of `thread/start`, `thread/resume` and `thread/fork`."""
    params = _approvals(camel(options))
    if "sandbox" in params:
        params["sandbox"] = _SANDBOX_MODES[Sandbox(params["sandbox"]).value]
    return params


def turn_params(options: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of `turn/start` besides the thread and the input."""
    params = _approvals(camel(options))
    sandbox = params.pop("sandbox", None)
    if sandbox is not None:
        params["sandboxPolicy"] = {"type": _SANDBOX_POLICIES[Sandbox(sandbox).value]}
    return params


def input_params(value: RunInput) -> list[dict[str, Any]]:
    """The input of a turn in the form of the protocol."""
    if isinstance(value, str):
        return [{"type": "text", "text": value}]
    if isinstance(value, Sequence):
        return [_input_part(part) for part in value]
    return [_input_part(value)]


def _input_part(part: str | InputItem) -> dict[str, Any]:
    match part:
        case str():
            return {"type": "text", "text": part}
        case TextInput(text=text):
            return {"type": "text", "text": text}
        case ImageInput(url=url):
            return {"type": "image", "url": url}
        case LocalImageInput(path=path):
            return {"type": "localImage", "path": path}
        case SkillInput(name=name, path=path):
            return {"type": "skill", "name": name, "path": path}
        case MentionInput(name=name, path=path):
            return {"type": "mention", "name": name, "path": path}
    raise TypeError(f"{type(part).__name__} is no input of a turn")
