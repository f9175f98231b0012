//! The actions and their default keys. The first key of an action is its name in the rest of the program.

use super::name::parse;
use crate::key::Key;

/// A place where keys have a meaning. A key may have another one elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Context {
    /// The prompt and the transcript above it.
    Chat,
    /// A request for an approval.
    Request,
    /// The messages that wait for the next turn.
    Queue,
    /// A page over the transcript.
    Page,
}

impl Context {
    /// The heading of its keys.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Chat => "Prompt and conversation",
            Self::Request => "Requests",
            Self::Queue => "Queue",
            Self::Page => "Pages",
        }
    }
}

/// Something that a key does.
#[derive(Debug, Clone, Copy)]
pub struct Action {
    pub name: &'static str,
    pub context: Context,
    keys: &'static [&'static str],
    pub help: &'static str,
    /// Whether it must have a key.
    pub(super) is_needed: bool,
    /// Whether it gives consent to something, so that keys pressed by habit are no good.
    pub(super) is_consent: bool,
}

impl Action {
    pub(super) fn default_keys(&self) -> Vec<Key> {
        self.keys.iter().filter_map(|key| parse(key)).collect()
    }

    /// The key by which the rest of the program knows it.
    pub(super) fn canonical(&self) -> Option<Key> {
        parse(self.keys.first()?)
    }
}

const fn action(context: Context, name: &'static str, keys: &'static [&'static str], help: &'static str) -> Action {
    Action { name, context, keys, help, is_needed: false, is_consent: false }
}

const fn needed(action: Action) -> Action {
    Action { is_needed: true, ..action }
}

const fn consent(action: Action) -> Action {
    Action { is_consent: true, ..action }
}

use Context::{Chat, Page, Queue, Request};

pub const ACTIONS: &[Action] = &[
    needed(action(Chat, "send", &["enter"], "send; while the model works, the message joins its turn")),
    action(Chat, "queue", &["tab"], "while the model works, queue the message for the next turn; in a list, complete"),
    action(Chat, "edit-queue", &["shift-tab"], "choose a queued message"),
    action(Chat, "new-line", &["ctrl-j"], "new line"),
    action(Chat, "left", &["left", "ctrl-b"], "move to the left"),
    action(Chat, "right", &["right", "ctrl-f"], "move to the right"),
    action(Chat, "word-left", &["ctrl-left", "alt-b"], "move by a word to the left"),
    action(Chat, "word-right", &["ctrl-right", "alt-f"], "move by a word to the right"),
    action(Chat, "line-start", &["home", "ctrl-a"], "move to the start of the line"),
    action(Chat, "line-end", &["end", "ctrl-e"], "move to the end of the line"),
    action(Chat, "up", &["up", "ctrl-p"], "move up; on the first line, an earlier prompt"),
    action(Chat, "down", &["down", "ctrl-n"], "move down; on the last line, a later prompt"),
    action(Chat, "delete-before", &["backspace", "ctrl-h"], "delete the character before the cursor"),
    action(Chat, "delete-after", &["delete"], "delete the character after the cursor"),
    action(Chat, "delete-or-quit", &["ctrl-d"], "delete the character after the cursor; on an empty line, quit"),
    action(Chat, "cut-line-start", &["ctrl-u"], "cut to the start of the line"),
    action(Chat, "cut-line-end", &["ctrl-k"], "cut to the end of the line"),
    action(Chat, "cut-word", &["ctrl-w"], "cut the word before the cursor"),
    action(Chat, "cut-word-after", &["alt-d"], "cut the word after the cursor"),
    action(Chat, "paste-cut", &["ctrl-y"], "insert the last cut"),
    action(Chat, "undo", &["ctrl-/"], "undo"),
    action(Chat, "redo", &["alt-z", "alt-_"], "redo"),
    action(Chat, "search-prompts", &["ctrl-r"], "search earlier prompts"),
    action(Chat, "paste-picture", &["ctrl-v"], "attach the picture on the clipboard of the desktop"),
    action(Chat, "external-editor", &["ctrl-g"], "write in $VISUAL or $EDITOR"),
    action(Chat, "page-up", &["pageup"], "scroll up"),
    action(Chat, "page-down", &["pagedown"], "scroll down"),
    action(Chat, "previous-message", &["alt-up"], "go to your previous message"),
    action(Chat, "next-message", &["alt-down"], "go to your next message"),
    action(Chat, "top", &["alt-<"], "go to the start of the conversation"),
    action(Chat, "bottom", &["alt->", "alt-e"], "go to the end of the conversation"),
    action(Chat, "search", &["ctrl-s"], "search the conversation"),
    action(Chat, "search-again", &["alt-n"], "search again"),
    action(Chat, "fold", &["ctrl-o"], "show commands only, a preview, or all output"),
    action(Chat, "fold-item", &["alt-o"], "show more or less of the last item in view"),
    action(Chat, "copy", &["alt-c"], "copy the last answer"),
    action(Chat, "forward", &["alt-r"], "after going back: return to the newer conversation"),
    action(Chat, "redraw", &["ctrl-l"], "draw the screen again"),
    action(Chat, "stop", &["esc"], "stop the turn; twice, go back to an earlier message"),
    needed(action(Chat, "interrupt", &["ctrl-c"], "stop the turn, or clear the input; again, quit")),
    action(Chat, "suspend", &["ctrl-z"], "suspend; `fg` continues"),
    consent(action(Request, "approve", &["y", "Y"], "yes, this once")),
    consent(action(Request, "approve-session", &["a", "A"], "yes, for this session")),
    consent(action(Request, "approve-always", &["p", "P"], "yes, and save the rule that is shown")),
    needed(action(Request, "decline", &["n", "N"], "no; the model is told and continues")),
    needed(action(Request, "cancel", &["esc", "q", "Q", "ctrl-c", "ctrl-d"], "no, and stop the turn")),
    action(Request, "next-request", &["tab"], "show the next open request"),
    action(Request, "request-up", &["up"], "scroll up"),
    action(Request, "request-down", &["down"], "scroll down"),
    action(Request, "request-page-up", &["pageup"], "scroll up by a page"),
    needed(action(Request, "request-page-down", &["space", "pagedown"], "scroll down by a page")),
    action(Queue, "queue-edit", &["enter"], "edit the message"),
    action(Queue, "queue-drop", &["d", "delete"], "drop it"),
    action(Queue, "queue-send", &["s"], "send it now"),
    action(Queue, "queue-previous", &["up", "shift-tab"], "choose the message before"),
    action(Queue, "queue-next", &["down"], "choose the message after"),
    action(Queue, "queue-move-up", &["alt-up"], "move it up"),
    action(Queue, "queue-move-down", &["alt-down"], "move it down"),
    needed(action(Queue, "queue-close", &["esc", "ctrl-c"], "close the queue")),
    needed(action(Page, "close", &["q", "esc", "ctrl-c", "ctrl-d"], "close the page")),
    action(Page, "line-up", &["up", "k"], "scroll up"),
    action(Page, "line-down", &["down", "j"], "scroll down"),
    action(Page, "page-back", &["pageup"], "scroll up by a page"),
    action(Page, "page-forward", &["pagedown", "space"], "scroll down by a page"),
    action(Page, "page-top", &["home", "g"], "go to the start"),
    action(Page, "page-end", &["end", "G"], "go to the end"),
    action(Page, "find", &["/", "ctrl-f", "ctrl-s"], "search the page"),
    action(Page, "find-next", &["n"], "search again"),
    action(Page, "find-previous", &["N"], "search backwards"),
];
