//! The subject of a request, and its text for people.

use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use crate::form::{self, Form};
use crate::{Ink, Span, Style, visible};

/// The longest command that a person can be expected to read. A longer one can only be declined.
pub(super) const MOST_BYTES: usize = 64 * 1024;

/// The prefix of each row of the request, so that none of it looks like a line of ours.
const GUTTER: &str = "  | ";

#[derive(Debug)]
pub(super) enum Subject {
    Command(CommandAsked),
    Changes(ChangesAsked),
    Server(Box<ServerAsked>),
    Model(ModelAsked),
    Permissions(PermissionsAsked),
}

#[derive(Debug, Deserialize)]
pub(super) struct CommandAsked {
    command: String,
    cwd: String,
    reason: Option<String>,
    /// The start of commands that a rule could allow.
    #[serde(default, rename = "proposedExecpolicyAmendment")]
    rule: Option<Vec<String>>,
}

/// A question of an MCP server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ServerAsked {
    server_name: String,
    message: String,
    #[serde(default)]
    requested_schema: Value,
    url: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ChangesAsked {
    item_id: String,
    reason: Option<String>,
    grant_root: Option<String>,
}

/// Questions of the model.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelAsked {
    questions: Value,
    auto_resolution_ms: Option<u64>,
}

/// More permissions, for a turn or for the session.
#[derive(Debug, Deserialize)]
pub(super) struct PermissionsAsked {
    permissions: Value,
    cwd: String,
    reason: Option<String>,
}

impl PermissionsAsked {
    /// Each permission on a line. Members that are not understood are shown as they came.
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let Some(kinds) = self.permissions.as_object() else { return vec![self.permissions.to_string()] };
        for (kind, wanted) in kinds.iter().filter(|(_, wanted)| !wanted.is_null()) {
            match (kind.as_str(), wanted.as_object()) {
                ("network", _) if *wanted == serde_json::json!({"enabled": true}) => {
                    lines.push("network access".to_owned());
                }
                ("fileSystem", Some(members)) => {
                    let mut rest = members.clone();
                    for access in ["read", "write"] {
                        let paths = rest.shift_remove(access).unwrap_or_default();
                        let shown = |path: &Value| path.as_str().map_or_else(|| path.to_string(), str::to_owned);
                        let paths = paths.as_array().into_iter().flatten();
                        lines.extend(paths.map(|path| format!("{access} {}", shown(path))));
                    }
                    rest.retain(|_, value| !value.is_null());
                    if !rest.is_empty() {
                        lines.push(format!("{kind} {}", Value::Object(rest)));
                    }
                }
                _ => lines.push(format!("{kind} {wanted}")),
            }
        }
        lines
    }
}

impl ServerAsked {
    fn has_fields(&self) -> bool {
        let fields = self.requested_schema.get("properties").and_then(Value::as_object);
        fields.is_some_and(|fields| !fields.is_empty())
    }

    /// The arguments of the tool that it is about.
    fn arguments(&self) -> Option<&Value> {
        self.meta.get("tool_params").filter(|arguments| !arguments.is_null())
    }

    /// The size of everything that is shown.
    fn bytes(&self) -> usize {
        let schema = if self.has_fields() { self.requested_schema.to_string().len() } else { 0 };
        let url = self.url.as_ref().map_or(0, String::len);
        self.message.len() + url + schema + self.arguments().map_or(0, |arguments| arguments.to_string().len())
    }

    fn text(&self) -> String {
        let arguments = self.arguments().map(|arguments| format!("\n{arguments}")).unwrap_or_default();
        let address = self.url.as_ref().map(|url| format!("\nopen {url}")).unwrap_or_default();
        format!("{}{arguments}{address}", self.message)
    }
}

impl Subject {
    pub(super) fn read(method: &str, params: &Value) -> Option<Self> {
        match method {
            "item/commandExecution/requestApproval" => CommandAsked::deserialize(params).ok().map(Self::Command),
            "item/fileChange/requestApproval" => ChangesAsked::deserialize(params).ok().map(Self::Changes),
            "mcpServer/elicitation/request" => {
                ServerAsked::deserialize(params).ok().map(|asked| Self::Server(Box::new(asked)))
            }
            "item/tool/requestUserInput" => {
                let asked = ModelAsked::deserialize(params).ok()?;
                // Questions that cannot be answered here are left to others.
                form::from_questions(&asked.questions)?;
                (asked.questions.to_string().len() <= MOST_BYTES).then_some(Self::Model(asked))
            }
            "item/permissions/requestApproval" => PermissionsAsked::deserialize(params).ok().map(Self::Permissions),
            _ => None,
        }
    }

    pub(super) fn may_be_allowed(&self, is_whole: impl FnOnce(&str) -> bool) -> bool {
        match self {
            Self::Command(asked) => asked.command.len() <= MOST_BYTES,
            Self::Changes(asked) => is_whole(&asked.item_id),
            Self::Server(asked) => asked.bytes() <= MOST_BYTES && !asked.has_fields(),
            Self::Model(_) => false,
            Self::Permissions(asked) => {
                let lines = asked.lines();
                !lines.is_empty() && lines.iter().map(String::len).sum::<usize>() <= MOST_BYTES
            }
        }
    }

    pub(super) fn rule(&self) -> Option<&[String]> {
        match self {
            Self::Command(asked) => asked.rule.as_deref().filter(|words| !words.is_empty()),
            Self::Changes(_) | Self::Server(_) | Self::Model(_) | Self::Permissions(_) => None,
        }
    }

    pub(super) fn patch(&self) -> Option<&str> {
        match self {
            Self::Changes(asked) => Some(&asked.item_id),
            Self::Command(_) | Self::Server(_) | Self::Model(_) | Self::Permissions(_) => None,
        }
    }

    pub(super) fn form(&self) -> Option<Form> {
        match self {
            Self::Server(asked) => form::from_schema(&asked.requested_schema).filter(|_| asked.bytes() <= MOST_BYTES),
            Self::Model(asked) => form::from_questions(&asked.questions),
            Self::Command(_) | Self::Changes(_) | Self::Permissions(_) => None,
        }
    }

    pub(super) fn address(&self) -> Option<&str> {
        match self {
            Self::Server(asked) => asked.url.as_deref(),
            Self::Command(_) | Self::Changes(_) | Self::Model(_) | Self::Permissions(_) => None,
        }
    }

    pub(super) fn permissions(&self) -> Option<&Value> {
        match self {
            Self::Permissions(asked) => Some(&asked.permissions),
            Self::Command(_) | Self::Changes(_) | Self::Server(_) | Self::Model(_) => None,
        }
    }

    pub(super) fn patience(&self) -> Option<Duration> {
        match self {
            Self::Model(asked) => asked.auto_resolution_ms.map(Duration::from_millis),
            Self::Command(_) | Self::Changes(_) | Self::Server(_) | Self::Permissions(_) => None,
        }
    }

    pub(super) fn title(&self) -> String {
        match self {
            Self::Command(asked) => format!("command {}", crate::one_line(&on_one_line(&asked.command))),
            Self::Changes(_) => "changes of files".to_owned(),
            Self::Server(asked) => format!("question of {}", crate::one_line(&on_one_line(&asked.server_name))),
            Self::Model(_) => "question of the model".to_owned(),
            Self::Permissions(_) => "permissions".to_owned(),
        }
    }

    pub(super) fn describe(&self, may_be_allowed: bool) -> Vec<Span> {
        let mut text = Text::default();
        match self {
            Self::Command(asked) => self.describe_command(asked, may_be_allowed, &mut text),
            Self::Server(asked) => {
                text.write(Style::Yellow, "Question of the MCP server ");
                text.write(Style::Yellow, &format!("{}\n", on_one_line(&asked.server_name)));
                text.barred(Style::Plain, &asked.text());
                if asked.has_fields() && self.form().is_none() {
                    let what = "  it wants values that cannot be entered here, so it can only be declined\n";
                    text.write(Style::Red, what);
                }
            }
            Self::Model(_) => text.write(Style::Yellow, "The model asks\n"),
            Self::Permissions(asked) => {
                text.write(Style::Yellow, "Grant these permissions?");
                text.reason(asked.reason.as_deref());
                text.barred(Style::Bold, &asked.lines().join("\n"));
                text.write(Style::Dim, &format!("  in {}\n", on_one_line(&asked.cwd)));
                if !may_be_allowed {
                    text.write(Style::Red, "  they cannot be shown in full, so they can only be declined\n");
                }
            }
            Self::Changes(asked) => {
                text.write(Style::Yellow, "Approve these changes?");
                text.reason(asked.reason.as_deref());
                if let Some(root) = &asked.grant_root {
                    let root = on_one_line(root);
                    text.write(Style::Dim, &format!("  for this session: all changes below {root}\n"));
                }
                if !may_be_allowed {
                    let what = "  the changes are too long to be shown in full, so they can only be declined\n";
                    text.write(Style::Red, what);
                }
            }
        }
        text.0
    }

    fn describe_command(&self, asked: &CommandAsked, may_be_allowed: bool, text: &mut Text) {
        text.write(Style::Yellow, "Approve this command?");
        text.reason(asked.reason.as_deref());
        text.barred(Style::Bold, &asked.command);
        if !may_be_allowed {
            text.write(Style::Red, "  the command is too long to be shown in full, so it can only be declined\n");
        }
        text.write(Style::Dim, &format!("  in {}\n", on_one_line(&asked.cwd)));
        if let Some(rule) = self.rule() {
            let start = on_one_line(&codex_wire::command_line::join(rule));
            let what = format!("  always: a rule that allows every command that begins with {start}\n");
            text.write(Style::Dim, &what);
        }
    }
}

/// Text for people.
#[derive(Default)]
struct Text(Vec<Span>);

impl Text {
    fn write(&mut self, style: Style, text: &str) {
        let _: std::io::Result<()> = self.0.write(style, text);
    }

    /// The reason for the request, if one is given, and the end of the line.
    fn reason(&mut self, reason: Option<&str>) {
        let reason = reason.map(|reason| format!(" {}", why(reason))).unwrap_or_default();
        self.write(Style::Plain, &format!("{reason}\n"));
    }

    /// Foreign text, as much of it as a person can be expected to read, with a bar before each line.
    fn barred(&mut self, style: Style, text: &str) {
        let end = (0..=MOST_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        for line in visible(&text[..end.unwrap_or(0)]).lines() {
            self.write(Style::Gutter, GUTTER);
            self.write(style, line);
            self.write(Style::Plain, "\n");
        }
    }
}

/// The reason for the request, on one line.
fn why(reason: &str) -> String {
    // Protocol texts, rephrased for people.
    match reason {
        "the patch writes outside of what the sandbox lets it write" => {
            "The sandbox does not allow writing here".into()
        }
        reason => on_one_line(reason),
    }
}

/// Text that cannot be mistaken for a line of ours.
fn on_one_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}
