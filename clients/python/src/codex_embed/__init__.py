"""A client of the Codex app-server: supervisor, JSON-RPC, events of every release, and the state of threads."""

from . import approvals, diff, events, markdown
from .aio import AsyncCodex, AsyncLogin, AsyncThread, LoginResult
from .blocking import Codex, Login, Thread, Turn
from .connection import Client, Options, connect
from .dial import dial
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
from .replay import replay, replayed
from .router import notification, request, response
from .state import State
from .supervisor import Launch, Listening, Pipe, ServerState, Supervisor
from .tables import METHODS, NOTIFICATIONS, SERVER_REQUESTS
from .timeline import Entry, Filter, timeline
from .transcript import Question, Transcript, event_of, read_line
from .turns import AsyncTurn, TurnResult
from .usage import Limits, Prices, ThreadUsage, Tokens
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
    "Entry",
    "Events",
    "Filter",
    "ImageInput",
    "InputItem",
    "LateError",
    "Launch",
    "Listening",
    "Life",
    "Limits",
    "LocalImageInput",
    "Login",
    "LoginResult",
    "MentionInput",
    "Options",
    "Pipe",
    "Prices",
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
    "ThreadUsage",
    "Tokens",
    "Transcript",
    "Turn",
    "TurnError",
    "TurnResult",
    "approvals",
    "connect",
    "dial",
    "diff",
    "event_of",
    "events",
    "markdown",
    "notification",
    "read_line",
    "replay",
    "replayed",
    "request",
    "response",
    "timeline",
]
