//! Approval prompts that are answered with one key.
//!
//! Invariant: a key counts only if it was pressed after the choices were shown. Earlier input is discarded, and the
//! choices are not shown while the user is typing. Text that does not fit the screen is paged, and nothing can be
//! approved before its last page was shown.

mod subject;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use codex_wire::ids::RequestId;
use serde_json::Value;

use self::subject::Subject;
use crate::form::{Filled, Filling, Form};
use crate::key::Key;
use crate::pager::Pager;
use crate::{Row, Span, Style};

/// The time for which the keyboard must be idle before the choices are shown.
const QUIET: Duration = Duration::from_millis(300);

/// The number of rows that a page leaves free, for the keys and earlier output.
const BESIDE_PAGE: usize = 3;

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

    /// Handles a key that is no choice. A character means that somebody types a text, in which the letters of choices may
    /// follow: the choices are gone until nothing is typed.
    pub fn missed(&mut self, key: &Key, at: Instant) {
        if matches!(key, Key::Char(c) if !c.is_whitespace()) {
            *self = Self::begin(at);
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
    /// The form of the first prompt.
    filling: Option<Filling>,
    /// Whether choices have numbers instead of letters, which are easier to hear.
    is_numbered: bool,
}

/// The effect of a key.
#[derive(Debug)]
pub enum KeyOutcome {
    Nothing,
    /// There is another page.
    More(Vec<Span>),
    /// The prompt is answered.
    Decided(Question, Decision),
    /// Its form is filled in.
    Filled(Question, Value),
}

impl Default for QuestionQueue {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            arming: Readiness::Ready,
            pages: Pager::default(),
            filling: None,
            is_numbered: false,
        }
    }
}

impl QuestionQueue {
    /// A queue whose choices have numbers or letters.
    #[must_use]
    pub fn new(is_numbered: bool) -> Self {
        Self { is_numbered, ..Self::default() }
    }

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
        self.filling = self.first().and_then(Question::form).map(Filling::new);
        let mut about = about.to_vec();
        about.extend(self.filling.as_ref().map(Filling::told).unwrap_or_default());
        self.pages = Pager::new(&about, width, height.saturating_sub(BESIDE_PAGE));
        self.arming = Readiness::begin(now);
        self.pages.next_page()
    }

    /// The text being typed into a form, and its cursor.
    #[must_use]
    pub fn typed(&self) -> Option<(String, usize)> {
        let is_open = self.arming.has_choices() && self.pages.is_over();
        self.filling.as_ref().filter(|_| is_open).map(Filling::shown)
    }

    /// The available keys, as text.
    #[must_use]
    pub fn choices(&self) -> Row {
        let Some(question) = self.first().filter(|_| self.arming.has_choices()) else {
            return vec![Span::new(Style::Dim, "…")];
        };
        if self.pages.is_over() && self.filling.is_some() {
            let mut row = Vec::from(choice("enter", "go on  "));
            row.extend(choice("esc", "no, and stop"));
            return row;
        }
        if self.pages.is_over() {
            return if self.is_numbered { question.numbered() } else { question.choices() };
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
        if let Some(filling) = self.filling.as_mut().filter(|_| is_seen && !matches!(key, Key::Esc | Key::Ctrl('c'))) {
            let values = match filling.press(key) {
                Filled::Typing => return KeyOutcome::Nothing,
                Filled::Told(spans) => return KeyOutcome::More(spans),
                Filled::Decline => None,
                Filled::Send(values) => Some(values),
            };
            return match (self.waiting.pop_front(), values) {
                (Some(question), Some(values)) => KeyOutcome::Filled(question, values),
                (Some(question), None) => KeyOutcome::Decided(question, Decision::Decline),
                (None, _) => KeyOutcome::Nothing,
            };
        }
        let is_numbered = self.is_numbered && is_seen;
        let decision = self.first().and_then(|question| {
            let numbered = is_numbered.then(|| question.decide_by_number(key)).flatten();
            numbered.or_else(|| question.decide(key))
        });
        if decision.is_none() {
            self.arming.missed(key, at);
        }
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

/// A request for approval, or a question with fields.
#[derive(Debug)]
pub struct Question {
    pub id: RequestId,
    subject: Subject,
    /// Whether it can be approved with a key: one that cannot be shown in full cannot, and one with fields wants values.
    may_be_allowed: bool,
}

impl Question {
    /// Parses a server request; an unknown kind is an error. `is_whole` tells whether an item was shown in full.
    pub fn read(
        id: RequestId,
        method: &str,
        params: &Value,
        is_whole: impl FnOnce(&str) -> bool,
    ) -> Result<Self, RequestId> {
        let Some(subject) = Subject::read(method, params) else { return Err(id) };
        let may_be_allowed = subject.may_be_allowed(is_whole);
        Ok(Self { id, subject, may_be_allowed })
    }

    /// The start of the commands that a rule would allow.
    #[must_use]
    pub fn rule(&self) -> Option<&[String]> {
        self.subject.rule()
    }

    /// The patch in question.
    #[must_use]
    pub fn patch(&self) -> Option<&str> {
        self.subject.patch()
    }

    /// The form to fill in, if it has fields.
    #[must_use]
    pub fn form(&self) -> Option<Form> {
        self.subject.form()
    }

    /// The address that a server wants to be opened.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.subject.address()
    }

    /// The permissions that are asked for.
    #[must_use]
    pub fn permissions(&self) -> Option<&Value> {
        self.subject.permissions()
    }

    /// Whether the model asks, and wants answers rather than consent.
    #[must_use]
    pub fn is_of_model(&self) -> bool {
        matches!(self.subject, Subject::Model(_))
    }

    /// The time after which the server continues without an answer.
    #[must_use]
    pub fn patience(&self) -> Option<Duration> {
        self.subject.patience()
    }

    /// Its subject, on one line.
    #[must_use]
    pub fn title(&self) -> String {
        self.subject.title()
    }

    /// The request in full.
    #[must_use]
    pub fn describe(&self) -> Vec<Span> {
        self.subject.describe(self.may_be_allowed)
    }

    /// The available decisions, with their keys and their meanings.
    fn options(&self) -> Vec<(&'static str, &'static str, Decision)> {
        let mut options = Vec::new();
        if self.may_be_allowed {
            let yes = if self.permissions().is_some() { "yes, for this turn" } else { "yes" };
            options.push(("y", yes, Decision::Accept));
        }
        if self.may_be_allowed && self.address().is_none() {
            options.push(("a", "yes, for this session", Decision::AcceptForSession));
        }
        options.push(("n", "no", Decision::Decline));
        options.push(("esc", "no, and stop", Decision::Cancel));
        if self.may_be_allowed && self.rule().is_some() {
            options.push(("p", "always", Decision::AcceptAlways));
        }
        options
    }

    /// The available keys, as text.
    #[must_use]
    pub fn choices(&self) -> Row {
        row_of(self.options().iter().map(|(key, meaning, _)| ((*key).to_owned(), *meaning)))
    }

    /// The available numbers, as text.
    #[must_use]
    pub fn numbered(&self) -> Row {
        row_of(self.options().iter().zip(1..).map(|((_, meaning, _), number)| (format!("{number}"), *meaning)))
    }

    /// The meaning of a number.
    #[must_use]
    pub fn decide_by_number(&self, key: &Key) -> Option<Decision> {
        let Key::Char(c) = key else { return None };
        let place = (c.to_digit(10)? as usize).checked_sub(1)?;
        self.options().get(place).map(|(_, _, decision)| *decision)
    }

    /// The meaning of a key.
    #[must_use]
    pub fn decide(&self, key: &Key) -> Option<Decision> {
        match key {
            Key::Char('y' | 'Y') if self.may_be_allowed => Some(Decision::Accept),
            Key::Char('a' | 'A') if self.may_be_allowed && self.address().is_none() => Some(Decision::AcceptForSession),
            Key::Char('p' | 'P') if self.may_be_allowed && self.rule().is_some() => Some(Decision::AcceptAlways),
            Key::Char('n' | 'N') => Some(Decision::Decline),
            Key::Char('q' | 'Q') | Key::Esc | Key::Ctrl('c' | 'd') => Some(Decision::Cancel),
            _ => None,
        }
    }
}

/// Keys with their meanings, two blanks between them.
fn row_of(options: impl Iterator<Item = (String, &'static str)>) -> Row {
    let mut row = Row::new();
    for (key, meaning) in options {
        if let Some(last) = row.last_mut() {
            last.text.push_str("  ");
        }
        row.extend(choice(&key, meaning));
    }
    row
}

fn refusals() -> impl Iterator<Item = Span> {
    choice("n", "no  ").into_iter().chain(choice("esc", "no, and stop"))
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
        let question = command(&"x".repeat(subject::MOST_BYTES + 1));
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
    fn choices_have_numbers_if_that_is_wanted() {
        let now = Instant::now();
        let mut asking = QuestionQueue::new(true);
        asking.add(command("ls"));
        let about = asking.first().unwrap().describe();
        asking.begin(&about, (80, 24), now);
        assert!(matches!(asking.press(&Key::Char('1'), now), KeyOutcome::Nothing), "the choices are not shown yet");
        asking.arming = Readiness::Open { since: now };
        assert_eq!(text(&asking.choices()), "[1] yes  [2] yes, for this session  [3] no  [4] no, and stop");
        assert!(matches!(asking.press(&Key::Char('9'), now), KeyOutcome::Nothing));
        assert!(matches!(asking.press(&Key::Char('3'), now), KeyOutcome::Nothing), "it belongs to what is typed");
        asking.arming = Readiness::Open { since: now };
        assert!(matches!(asking.press(&Key::Char('3'), now), KeyOutcome::Decided(_, Decision::Decline)));
    }

    #[test]
    fn a_form_is_filled_in_line_by_line() {
        let now = Instant::now();
        let schema = json!({"properties": {"name": {"type": "string"}}});
        let params = json!({"serverName": "docs", "message": "Who?", "requestedSchema": schema});
        let read =
            || Question::read(RequestId::Integer(1), "mcpServer/elicitation/request", &params, |_| true).unwrap();
        let mut asking = QuestionQueue::default();
        asking.add(read());
        let about = asking.first().unwrap().describe();
        let told = text(&asking.begin(&about, (80, 24), now));
        assert!(told.contains("Field 1 of 1: name"), "{told}");
        assert_eq!(asking.typed(), None, "nothing can be typed yet");
        assert!(matches!(asking.press(&Key::Char('x'), now), KeyOutcome::Nothing));
        asking.arming = Readiness::Open { since: now };
        for key in [Key::Char('A'), Key::Char('d'), Key::Char('a')] {
            asking.press(&key, now);
        }
        assert_eq!(asking.typed(), Some(("Ada".to_owned(), 3)));
        assert!(matches!(asking.press(&Key::Enter, now), KeyOutcome::More(_)));
        asking.press(&Key::Char('1'), now);
        let KeyOutcome::Filled(_, values) = asking.press(&Key::Enter, now) else { panic!("it is sent") };
        assert_eq!(values, json!({"name": "Ada"}));
        asking.add(read());
        asking.begin(&about, (80, 24), now);
        asking.arming = Readiness::Open { since: now };
        assert!(matches!(asking.press(&Key::Esc, now), KeyOutcome::Decided(_, Decision::Cancel)));
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
        assert!(form.form().is_some() && plain.form().is_none());
        let odd = read(json!({"properties": {"token": {"type": "object"}}}));
        assert!(odd.form().is_none());
        assert!(text(&odd.describe()).contains("it can only be declined"), "{}", text(&odd.describe()));
    }

    #[test]
    fn an_address_is_shown_in_full_and_for_once() {
        let params = json!({"serverName": "docs", "message": "Log in", "mode": "url",
            "url": "https://ex\u{430}mple.org/\u{202e}x"});
        let question =
            Question::read(RequestId::Integer(1), "mcpServer/elicitation/request", &params, |_| true).unwrap();
        let shown = text(&question.describe());
        assert!(shown.contains("open https://ex\u{430}mple.org/\\u{202e}x"), "{shown}");
        assert_eq!(question.decide(&Key::Char('a')), None);
        assert_eq!(question.decide(&Key::Char('y')), Some(Decision::Accept));
    }

    #[test]
    fn permissions_are_listed_one_by_one() {
        let params = json!({"cwd": "/w", "reason": "to\nbuild", "permissions": {
            "fileSystem": {"read": ["/etc"], "write": ["/srv/\u{202e}data"], "globScanMaxDepth": 3},
            "network": {"enabled": true}}});
        let question =
            Question::read(RequestId::Integer(1), "item/permissions/requestApproval", &params, |_| true).unwrap();
        expect![[r#"
            Grant these permissions? to\nbuild
              | read /etc
              | write /srv/\u{202e}data
              | fileSystem {"globScanMaxDepth":3}
              | network access
              in /w
        "#]]
        .assert_eq(&text(&question.describe()));
        assert!(text(&question.choices()).starts_with("[y] yes, for this turn  [a] yes, for this session"));
    }

    #[test]
    fn a_model_asks_for_answers() {
        let params = json!({"autoResolutionMs": 60000, "questions": [{"id": "q", "header": "", "question": "Why?"}]});
        let question = Question::read(RequestId::Integer(1), "item/tool/requestUserInput", &params, |_| true).unwrap();
        assert!(question.is_of_model() && question.form().is_some());
        assert_eq!(question.patience(), Some(Duration::from_secs(60)));
        assert_eq!(question.decide(&Key::Char('y')), None);
    }

    #[test]
    fn a_question_that_is_not_understood_is_none() {
        let read = |method, params| Question::read(RequestId::Integer(1), method, &params, |_| true);
        assert!(read("item/tool/requestUserInput", json!({})).is_err());
        assert!(read("item/tool/call", json!({})).is_err());
        assert!(read("item/commandExecution/requestApproval", json!({"command": 1})).is_err());
    }
}
