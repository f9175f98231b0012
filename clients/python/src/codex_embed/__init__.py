"""A client of the Codex app-server: supervisor, JSON-RPC, events of every release, and the state of threads."""

from . import approvals, events
from .aio import AsyncCodex, AsyncLogin, AsyncThread, LoginResult
from .blocking import Codex, Login, Thread, Turn
from .connection import Client, Options, connect
from .errors import CallError, ClosedError, CodexError, LateError, RefusedError, StartError, TurnError
from .feed import Events
from .options import (
    ApprovalMode,
    CodexConfig,
    ImageInput,
    InputItem,
    LocalImageInput,
    MentionInput,
    RunInput,
    Sandbox,
    SkillInput,
    TextInput,
)
from .registry import Life, Registry
from .router import notification, request, response
from .state import State
from .supervisor import Launch, ServerState, Supervisor
from .tables import METHODS, NOTIFICATIONS, SERVER_REQUESTS
from .transcript import Question, Transcript, event_of, read_line
from .turns import AsyncTurn, TurnResult
from .version import VERSION

__version__ = VERSION

__all__ = [
    "METHODS",
    "NOTIFICATIONS",
    "SERVER_REQUESTS",
    "ApprovalMode",
    "AsyncCodex",
    "AsyncLogin",
    "AsyncThread",
    "AsyncTurn",
    "CallError",
    "Client",
    "ClosedError",
    "Codex",
    "CodexConfig",
    "CodexError",
    "Events",
    "ImageInput",
    "InputItem",
    "LateError",
    "Launch",
    "Life",
    "LocalImageInput",
    "Login",
    "LoginResult",
    "MentionInput",
    "Options",
    "Question",
    "RefusedError",
    "Registry",
    "RunInput",
    "Sandbox",
    "ServerState",
    "SkillInput",
    "StartError",
    "State",
    "Supervisor",
    "TextInput",
    "Thread",
    "Transcript",
    "Turn",
    "TurnError",
    "TurnResult",
    "approvals",
    "connect",
    "event_of",
    "events",
    "notification",
    "read_line",
    "request",
    "response",
]
