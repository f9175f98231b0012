//! Approval prompts that are answered with one key.
//!
//! Invariant: a key counts only if it was pressed after the choices were shown. Earlier input is discarded, and the
//! choices are not shown while the user is typing. Text that does not fit the screen is paged, and nothing can be
//! approved before its last page was shown.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use codex_wire::ids::RequestId;
use serde::Deserialize;
use serde_json::Value;

use crate::key::Key;
use crate::pager::Pager;
use crate::{Ink, Row, Span, Style, visible};

/// The time for which the keyboard must be idle before the choices are shown.
const QUIET: Duration = Duration::from_millis(300);

/// The longest command that a person can be expected to read. A longer one can only be declined.
const MOST_BYTES: usize = 64 * 1024;

/// The number of rows that a page leaves free, for the keys and earlier output.
const BESIDE_PAGE: usize = 3;

/// The prefix of each row of the request, so that none of it looks like a line of ours.
const GUTTER: &str = "  | ";

/// The progress of a prompt towards accepting an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// The user may still be typing.
    Quiet { until: Instant },
    /// Earlier input is being discarded.
    Discarding { number: u64 },
    /// The choices can be shown.
    Ready,
    /// The choices are shown.
    Open { since: Instant },
}

impl Readiness {
    #[must_use]
    pub fn begin(now: Instant) -> Self {
        Self::Quiet { until: now + QUIET }
    }

    /// The time of the next [`Readiness::wake`].
    #[must_use]
    pub fn deadline(self) -> Option<Instant> {
        match self {
            Self::Quiet { until } => Some(until),
            Self::Discarding { .. } | Self::Ready | Self::Open { .. } => None,
        }
    }

    /// Whether the choices should be visible.
    #[must_use]
    pub fn has_choices(self) -> bool {
        matches!(self, Self::Ready | Self::Open { .. })
    }

    /// Records when the choices were drawn.
    pub fn drawn(&mut self, since: Instant) {
        if *self == Self::Ready {
            *self = Self::Open { since };
        }
    }

    /// Handles the timer. `discard` drops earlier input.
    pub fn wake(&mut self, now: Instant, discard: impl FnOnce() -> u64) {
        if self.deadline().is_some_and(|until| until <= now) {
            *self = Self::Discarding { number: discard() };
        }
    }

    /// Records that earlier input is gone.
    pub fn discarded(&mut self, which: u64) {
        if *self == (Self::Discarding { number: which }) {
            *self = Self::Ready;
        }
    }

    /// Handles a key press and returns whether it counts.
    pub fn pressed(&mut self, at: Instant) -> bool {
        match self {
            Self::Open { since } => *since <= at,
            Self::Quiet { .. } | Self::Discarding { .. } | Self::Ready => {
                *self = Self::begin(at);
                false
            }
        }
    }
}

/// Open prompts, and the state of the first one.
#[derive(Debug)]
pub struct QuestionQueue {
    waiting: VecDeque<Question>,
    pub arming: Readiness,
    /// The text of the first prompt.
    pages: Pager,
}

/// The effect of a key.
#[derive(Debug)]
pub enum KeyOutcome {
    Nothing,
    /// There is another page.
    More(Vec<Span>),
    /// The prompt is answered.
    Decided(Question, Decision),
}

impl Default for QuestionQueue {
    fn default() -> Self {
        Self { waiting: VecDeque::new(), arming: Readiness::Ready, pages: Pager::default() }
    }
}

impl QuestionQueue {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    #[must_use]
    pub fn first(&self) -> Option<&Question> {
        self.waiting.front()
    }

    /// Queues a prompt. Returns whether it is the first.
    pub fn add(&mut self, question: Question) -> bool {
        self.waiting.push_back(question);
        self.waiting.len() == 1
    }

    /// Withdraws obsolete prompts. Returns them, and whether another one is first now.
    pub fn withdraw(&mut self, is_over: impl Fn(&Question) -> bool) -> (Vec<Question>, bool) {
        let was_first = self.waiting.front().is_some_and(&is_over);
        let (over, waiting): (Vec<_>, Vec<_>) = self.waiting.drain(..).partition(is_over);
        self.waiting = waiting.into();
        (over, was_first)
    }

    /// Starts the first prompt, and returns the first page of its text.
    pub fn begin(&mut self, about: &[Span], (width, height): (usize, usize), now: Instant) -> Vec<Span> {
        self.pages = Pager::new(about, width, height.saturating_sub(BESIDE_PAGE));
        self.arming = Readiness::begin(now);
        self.pages.next_page()
    }

    /// The available keys, as text.
    #[must_use]
    pub fn choices(&self) -> Row {
        let Some(question) = self.first().filter(|_| self.arming.has_choices()) else {
            return vec![Span::new(Style::Dim, "…")];
        };
        if self.pages.is_over() {
            return question.choices();
        }
        let (shown, count) = self.pages.progress();
        let mut row = Vec::from(choice("space", &format!("more (page {shown} of {count})  ")));
        row.extend(refusals());
        row
    }

    /// Handles a key with the time of its press.
    pub fn press(&mut self, key: &Key, at: Instant) -> KeyOutcome {
        if !self.arming.pressed(at) {
            return KeyOutcome::Nothing;
        }
        let is_seen = self.pages.is_over();
        if !is_seen && matches!(key, Key::Char(' ') | Key::Enter | Key::PageDown | Key::Down) {
            self.arming = Readiness::begin(at);
            return KeyOutcome::More(self.pages.next_page());
        }
        let decision = self.first().and_then(|question| question.decide(key));
        let decision = decision.filter(|decision| is_seen || decision.refuses());
        match decision.and_then(|decision| Some((self.waiting.pop_front()?, decision))) {
            Some((question, decision)) => KeyOutcome::Decided(question, decision),
            None => KeyOutcome::Nothing,
        }
    }
}

/// A person's decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Accept,
    AcceptForSession,
    /// Yes, and commands that begin like this one are not asked about again.
    AcceptAlways,
    Decline,
    Cancel,
}

impl Decision {
    fn refuses(self) -> bool {
        matches!(self, Self::Decline | Self::Cancel)
    }

    /// The line that stays on the page.
    #[must_use]
    pub fn past(self) -> &'static str {
        match self {
            Self::Accept => "yes",
            Self::AcceptForSession => "yes, for this session",
            Self::AcceptAlways => "yes, always",
            Self::Decline => "no",
            Self::Cancel => "no, and stop",
        }
    }
}

/// A request for approval.
#[derive(Debug)]
pub struct Question {
    pub id: RequestId,
    subject: Subject,
    /// Whether it can be approved: one that cannot be shown in full cannot.
    may_be_allowed: bool,
}

#[derive(Debug)]
enum Subject {
    Command(CommandAsked),
    Changes(ChangesAsked),
    Server(Box<ServerAsked>),
}

#[derive(Debug, Deserialize)]
struct CommandAsked {
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
struct ServerAsked {
    server_name: String,
    message: String,
    #[serde(default)]
    requested_schema: Value,
    url: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Value,
}

impl ServerAsked {
    /// The names of the values that it wants.
    fn fields(&self) -> Vec<&str> {
        let fields = self.requested_schema.get("properties").and_then(Value::as_object);
        fields.into_iter().flatten().map(|(name, _)| name.as_str()).collect()
    }

    /// The arguments of the tool that it is about.
    fn arguments(&self) -> Option<&Value> {
        self.meta.get("tool_params").filter(|arguments| !arguments.is_null())
    }

    /// The size of everything that is shown.
    fn bytes(&self) -> usize {
        self.message.len() + self.arguments().map_or(0, |arguments| arguments.to_string().len())
    }

    fn describe(&self, write: &mut impl FnMut(Style, &str)) {
        write(Style::Yellow, "Question of the MCP server ");
        write(Style::Yellow, &format!("{}\n", on_one_line(&self.server_name)));
        let arguments = self.arguments().map(|arguments| format!("\n{arguments}")).unwrap_or_default();
        let address = self.url.as_ref().map(|url| format!("\nopen {url}")).unwrap_or_default();
        let text = format!("{}{arguments}{address}", self.message);
        let end = (0..=MOST_BYTES.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
        for line in visible(&text[..end.unwrap_or(0)]).lines() {
            write(Style::Gutter, GUTTER);
            write(Style::Plain, line);
            write(Style::Plain, "\n");
        }
        let fields = self.fields();
        if !fields.is_empty() {
            let names = on_one_line(&fields.join(", "));
            write(
                Style::Red,
                &format!("  it wants values ({names}), which cannot be entered here, so it can only be declined\n"),
            );
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChangesAsked {
    item_id: String,
    reason: Option<String>,
    grant_root: Option<String>,
}

impl Question {
    /// Parses a server request; `None` for an unknown kind. `is_whole` tells whether an item was shown in full.
    pub fn read(
        id: RequestId,
        method: &str,
        params: &Value,
        is_whole: impl FnOnce(&str) -> bool,
    ) -> Result<Self, RequestId> {
        let subject = match method {
            "item/commandExecution/requestApproval" => CommandAsked::deserialize(params).map(Subject::Command),
            "item/fileChange/requestApproval" => ChangesAsked::deserialize(params).map(Subject::Changes),
            "mcpServer/elicitation/request" => {
                ServerAsked::deserialize(params).map(|asked| Subject::Server(Box::new(asked)))
            }
            _ => return Err(id),
        };
        let Ok(subject) = subject else { return Err(id) };
        let may_be_allowed = match &subject {
            Subject::Command(asked) => asked.command.len() <= MOST_BYTES,
            Subject::Changes(asked) => is_whole(&asked.item_id),
            Subject::Server(asked) => asked.bytes() <= MOST_BYTES && asked.fields().is_empty(),
        };
        Ok(Self { id, subject, may_be_allowed })
    }

    /// The start of the commands that a rule would allow.
    #[must_use]
    pub fn rule(&self) -> Option<&[String]> {
        match &self.subject {
            Subject::Command(asked) => asked.rule.as_deref().filter(|words| !words.is_empty()),
            Subject::Changes(_) | Subject::Server(_) => None,
        }
    }

    /// The patch in question.
    #[must_use]
    pub fn patch(&self) -> Option<&str> {
        match &self.subject {
            Subject::Command(_) | Subject::Server(_) => None,
            Subject::Changes(asked) => Some(&asked.item_id),
        }
    }

    /// The request in full.
    #[must_use]
    pub fn describe(&self) -> Vec<Span> {
        let mut shown = Vec::new();
        let mut write = |style, text: &str| {
            let _: std::io::Result<()> = shown.write(style, text);
        };
        let reason = |reason: &Option<String>| reason.as_deref().map(|reason| format!(" {}", why(reason)));
        match &self.subject {
            Subject::Command(CommandAsked { command, cwd, reason: why, .. }) => {
                write(Style::Yellow, "Approve this command?");
                write(Style::Plain, &format!("{}\n", reason(why).unwrap_or_default()));
                let end = (0..=MOST_BYTES.min(command.len())).rev().find(|at| command.is_char_boundary(*at));
                for line in visible(&command[..end.unwrap_or(0)]).lines() {
                    write(Style::Gutter, GUTTER);
                    write(Style::Bold, line);
                    write(Style::Plain, "\n");
                }
                if !self.may_be_allowed {
                    write(Style::Red, "  the command is too long to be shown in full, so it can only be declined\n");
                }
                write(Style::Dim, &format!("  in {}\n", on_one_line(cwd)));
                if let Some(rule) = self.rule() {
                    let start = on_one_line(&codex_wire::command_line::join(rule));
                    write(
                        Style::Dim,
                        &format!("  always: a rule that allows every command that begins with {start}\n"),
                    );
                }
            }
            Subject::Server(asked) => asked.describe(&mut write),
            Subject::Changes(ChangesAsked { reason: why, grant_root, .. }) => {
                write(Style::Yellow, "Approve these changes?");
                write(Style::Plain, &format!("{}\n", reason(why).unwrap_or_default()));
                if let Some(root) = grant_root {
                    let root = on_one_line(root);
                    write(Style::Dim, &format!("  for this session: all changes below {root}\n"));
                }
                if !self.may_be_allowed {
                    write(Style::Red, "  the changes are too long to be shown in full, so they can only be declined\n");
                }
            }
        }
        shown
    }

    /// The available keys, as text.
    #[must_use]
    pub fn choices(&self) -> Row {
        let mut row = Vec::new();
        if self.may_be_allowed {
            row.extend(choice("y", "yes  "));
            row.extend(choice("a", "yes, for this session  "));
        }
        row.extend(refusals());
        if self.may_be_allowed && self.rule().is_some() {
            row.extend(choice("p", "always").map(|span| Span::new(span.style, span.text.replacen('[', "  [", 1))));
        }
        row
    }

    /// The meaning of a key.
    #[must_use]
    pub fn decide(&self, key: &Key) -> Option<Decision> {
        match key {
            Key::Char('y' | 'Y') if self.may_be_allowed => Some(Decision::Accept),
            Key::Char('a' | 'A') if self.may_be_allowed => Some(Decision::AcceptForSession),
            Key::Char('p' | 'P') if self.may_be_allowed && self.rule().is_some() => Some(Decision::AcceptAlways),
            Key::Char('n' | 'N') => Some(Decision::Decline),
            Key::Char('q' | 'Q') | Key::Esc | Key::Ctrl('c' | 'd') => Some(Decision::Cancel),
            _ => None,
        }
    }
}

fn refusals() -> impl Iterator<Item = Span> {
    choice("n", "no  ").into_iter().chain(choice("esc", "no, and stop"))
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

/// A key and its meaning.
#[must_use]
pub fn choice(key: &str, meaning: &str) -> [Span; 2] {
    [Span::new(Style::Bold, format!("[{key}] ")), Span::new(Style::Plain, meaning)]
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    fn text(spans: &[Span]) -> String {
        spans.iter().map(|span| span.text.as_str()).collect()
    }

    fn command(command: &str) -> Question {
        let params = json!({"command": command, "cwd": "/w\x1b[8m", "reason": "it asks\nto"});
        Question::read(RequestId::Integer(1), "item/commandExecution/requestApproval", &params, |_| true).unwrap()
    }

    #[test]
    fn keys_before_the_choices_are_ignored() {
        let start = Instant::now();
        let mut arming = Readiness::begin(start);
        assert!(!arming.pressed(start + QUIET / 2), "somebody types");
        arming.wake(start + QUIET, || unreachable!("it has not been quiet for long enough"));
        arming.wake(start + QUIET * 2, || 7);
        assert!(!arming.pressed(start + QUIET * 2), "this key was typed before those behind it were thrown away");
        arming.discarded(7);
        assert!(!arming.has_choices(), "somebody typed meanwhile");
        arming.wake(start + QUIET * 4, || 8);
        arming.discarded(7);
        assert!(!arming.has_choices(), "an earlier request is no answer to a later one");
        arming.discarded(8);
        assert!(arming.has_choices());
        assert!(!arming.pressed(start + QUIET * 4), "they can be shown and are not yet");
        arming.wake(start + QUIET * 6, || 9);
        arming.discarded(9);
        arming.drawn(start + QUIET * 7);
        assert!(!arming.pressed(start + QUIET * 6), "this key is older than what is shown");
        assert!(arming.pressed(start + QUIET * 8));
    }

    #[test]
    fn a_command_cannot_disguise_itself() {
        let question = command("ls\r\x1b[2Krm -rf ~\n[y] harmless \u{202e}dne");
        expect![[r#"
            Approve this command? it asks\nto
              | ls\r\u{1b}[2Krm -rf ~
              | [y] harmless \u{202e}dne
              in /w\u{1b}[8m
        "#]]
        .assert_eq(&text(&question.describe()));
        expect!["[y] yes  [a] yes, for this session  [n] no  [esc] no, and stop"].assert_eq(&text(&question.choices()));
    }

    #[test]
    fn nothing_is_allowed_before_its_last_page_was_shown() {
        let now = Instant::now();
        let mut asking = QuestionQueue::default();
        assert!(asking.add(command("one\ntwo\nthree\nfour\nrm -rf ~")));
        let about = asking.first().unwrap().describe();
        let mut shown = text(&asking.begin(&about, (40, 6), now));
        let open = |asking: &mut QuestionQueue| asking.arming = Readiness::Open { since: now };
        open(&mut asking);
        assert_eq!(text(&asking.choices()), "[space] more (page 1 of 3)  [n] no  [esc] no, and stop");
        for key in [Key::Char('y'), Key::Char('a')] {
            assert!(matches!(asking.press(&key, now), KeyOutcome::Nothing), "{key:?}");
        }
        for _ in 0..2 {
            open(&mut asking);
            let KeyOutcome::More(page) = asking.press(&Key::Char(' '), now) else { panic!("there is more") };
            assert!(!asking.arming.has_choices(), "what is new has to be looked at first");
            shown.push_str(&text(&page));
        }
        assert_eq!(shown, text(&about));
        open(&mut asking);
        assert!(matches!(asking.press(&Key::Char(' '), now), KeyOutcome::Nothing));
        assert!(matches!(asking.press(&Key::Char('y'), now), KeyOutcome::Decided(_, Decision::Accept)));
        assert!(asking.is_empty());
        // It can be declined at any time.
        asking.add(command("a\nb\nc\nd\ne"));
        let about = asking.first().unwrap().describe();
        asking.begin(&about, (40, 6), now);
        open(&mut asking);
        assert!(matches!(asking.press(&Key::Esc, now), KeyOutcome::Decided(_, Decision::Cancel)));
    }

    #[test]
    fn a_question_that_cannot_be_shown_completely_can_only_be_refused() {
        let question = command(&"x".repeat(MOST_BYTES + 1));
        assert_eq!(question.decide(&Key::Char('y')), None);
        assert_eq!(question.decide(&Key::Char('a')), None);
        assert_eq!(question.decide(&Key::Char('n')), Some(Decision::Decline));
        let changes = json!({"itemId": "p", "reason": null, "grantRoot": null});
        let read = |is_whole| {
            Question::read(RequestId::Integer(2), "item/fileChange/requestApproval", &changes, |_| is_whole).unwrap()
        };
        assert_eq!(read(false).decide(&Key::Char('y')), None);
        assert_eq!(read(true).decide(&Key::Char('y')), Some(Decision::Accept));
    }

    #[test]
    fn only_the_named_keys_answer() {
        let question = command("ls");
        for key in
            [Key::Enter, Key::Char(' '), Key::Char('j'), Key::Paste("y".to_owned()), Key::Ctrl('y'), Key::Alt('y')]
        {
            assert_eq!(question.decide(&key), None, "{key:?}");
        }
        assert_eq!(question.decide(&Key::Esc), Some(Decision::Cancel));
        assert_eq!(question.decide(&Key::Ctrl('c')), Some(Decision::Cancel));
    }

    #[test]
    fn a_rule_is_shown_before_it_is_written() {
        let params = json!({"command": "npm test", "cwd": "/w", "reason": null, "proposedExecpolicyAmendment": ["npm", "te\u{202e}st"]});
        let method = "item/commandExecution/requestApproval";
        let question = Question::read(RequestId::Integer(1), method, &params, |_| true).unwrap();
        assert!(text(&question.describe()).contains("begins with npm"), "{}", text(&question.describe()));
        assert!(!text(&question.describe()).contains('\u{202e}'));
        assert!(text(&question.choices()).contains("[p] always"));
        assert_eq!(question.decide(&Key::Char('p')), Some(Decision::AcceptAlways));
        assert_eq!(question.rule().map(<[_]>::len), Some(2));
        assert_eq!(command("ls").decide(&Key::Char('p')), None, "without a rule there is no such key");
    }

    #[test]
    fn a_server_asks_in_full_and_gets_no_values() {
        let read = |schema: Value| {
            let params = json!({"serverName": "do\u{1b}cs", "message": "Run it?\n[y] yes", "mode": "form",
                "requestedSchema": schema, "_meta": {"tool_params": {"q": "rm"}}});
            Question::read(RequestId::Integer(1), "mcpServer/elicitation/request", &params, |_| true).unwrap()
        };
        let plain = read(json!({"type": "object", "properties": {}}));
        expect![[r#"
            Question of the MCP server do\u{1b}cs
              | Run it?
              | [y] yes
              | {"q":"rm"}
        "#]]
        .assert_eq(&text(&plain.describe()));
        assert_eq!(plain.decide(&Key::Char('y')), Some(Decision::Accept));
        let form = read(json!({"properties": {"token": {"type": "string"}}}));
        assert_eq!(form.decide(&Key::Char('y')), None);
        assert_eq!(form.decide(&Key::Char('n')), Some(Decision::Decline));
    }

    #[test]
    fn a_question_that_is_not_understood_is_none() {
        let read = |method, params| Question::read(RequestId::Integer(1), method, &params, |_| true);
        assert!(read("item/tool/requestUserInput", json!({})).is_err());
        assert!(read("item/commandExecution/requestApproval", json!({"command": 1})).is_err());
    }
}
