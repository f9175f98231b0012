//! The chat in a real terminal multiplexer: what a person would see.
//!
//! Without tmux there is nothing to test; `CODEX_TEST_TMUX` in the environment makes that a failure.

use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::chat::{asked_about, full_place, place};
use crate::program::Place;

/// The time to wait for output.
const PATIENCE: Duration = Duration::from_secs(30);
/// The polling interval.
const GLANCE: Duration = Duration::from_millis(50);

/// A separate tmux server with one window. It ends when dropped.
struct Tmux {
    socket: PathBuf,
}

impl Tmux {
    fn is_there() -> bool {
        let is_there = Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success());
        assert!(is_there || std::env::var_os("CODEX_TEST_TMUX").is_none(), "tmux is wanted and not installed");
        is_there
    }

    /// Runs the program in a window of 72 columns and 20 rows, and shows its exit status when it has ended.
    fn start(place: &Place, args: &str) -> Self {
        let tmux = Self { socket: place.path(&format!("tmp/tmux-{}", args.len())) };
        let program = env!("CARGO_BIN_EXE_codex");
        let script = format!(
            "cd '{}' && CODEX_HOME='{}' HOME='{}' '{program}' {args}; echo \"exit status $?\"; exec cat",
            place.path("project").display(),
            place.path("home").display(),
            place.path("user").display(),
        );
        tmux.run(&["-f", "/dev/null", "new-session", "-d", "-x", "72", "-y", "20", "sh", "-c", &script]);
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let mut command = Command::new("tmux");
        let output = command.arg("-S").arg(&self.socket).args(args).output().expect("tmux runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn keys(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Waits until the window shows all of these texts.
    #[track_caller]
    fn until(&self, wanted: &[&str]) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let screen = self.run(&["capture-pane", "-p", "-J"]);
            if wanted.iter().all(|text| screen.contains(text)) {
                return screen;
            }
            assert!(Instant::now() < deadline, "waited in vain for {wanted:?} in\n{screen}");
            thread::park_timeout(GLANCE);
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        // It may have ended already.
        let _: std::io::Result<std::process::Output> =
            Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output();
    }
}

const CHOICES: &str = "[y] yes  [a] yes, for this session  [n] no  [esc] no, and stop";

#[test]
fn a_person_sees_the_answer_the_questions_and_a_prompt_below() {
    if !Tmux::is_there() {
        return;
    }
    let streamed =
        json!({"items": [{"text": "It rains in Bergen.", "deltas": ["It rains ", {"pause_ms": 200}, "in Bergen."]}]});
    let hang = json!({"items": [{"text": "Thinking", "done": false}, {"hang": true}]});
    let done = |text: &str| json!({"items": [{"text": text}]});
    let script = json!([
        streamed,
        asked_about("touch yes"),
        done("It is there."),
        asked_about("touch no"),
        done("It is not there."),
        hang,
    ]);
    let place = place("", &script);
    let tmux = Tmux::start(&place, "");
    tmux.until(&["sandbox  workspace-write", "\n>"]);
    tmux.keys(&["-l", "what is the weather?"]);
    tmux.until(&["> what is the weather?"]);
    tmux.keys(&["Enter"]);
    tmux.until(&["> what is the weather?", "It rains in Bergen.", "tokens: ", "\n>"]);

    tmux.keys(&["-l", "touch yes"]);
    tmux.keys(&["Enter"]);
    tmux.until(&["Approve this command? must", "| sh -c 'touch yes'", CHOICES]);
    tmux.keys(&["y"]);
    tmux.until(&["exit 0", "It is there."]);
    assert!(place.path("project/yes").exists());

    tmux.keys(&["-l", "touch no"]);
    tmux.keys(&["Enter"]);
    tmux.until(&["| sh -c 'touch no'"]);
    tmux.keys(&["-l", "yyy"]);
    tmux.until(&["| sh -c 'touch no'", CHOICES]);
    assert!(!place.path("project/no").exists(), "what was typed before the choices were shown is no answer");
    tmux.keys(&["n"]);
    tmux.until(&["declined", "It is not there."]);
    assert!(!place.path("project/no").exists());

    tmux.keys(&["-l", "hang"]);
    tmux.keys(&["Enter"]);
    tmux.until(&["Thinking", "Ctrl-C to stop"]);
    tmux.run(&["resize-window", "-x", "50", "-y", "20"]);
    tmux.keys(&["-l", "a draft with 日本語 that is long enough to be broken"]);
    tmux.until(&["Thinking", "> a draft with 日本語"]);
    tmux.keys(&["C-c"]);
    tmux.until(&["Interrupted", "> a draft with 日本語"]);
    tmux.keys(&["C-c"]);
    tmux.until(&["To continue this session: codex resume ", "exit status 0"]);
    drop(tmux);

    let tmux = Tmux::start(&place, "resume --last");
    tmux.until(&["It is not there.", "> hang", "\n\n>"]);
    tmux.keys(&["C-d"]);
    tmux.until(&["exit status 0"]);
}

#[test]
fn a_cleared_screen_leaves_no_copies_behind() {
    if !Tmux::is_there() {
        return;
    }
    let place = place("", &json!([]));
    let tmux = Tmux::start(&place, "");
    tmux.until(&["sandbox  workspace-write", "\n>"]);
    tmux.keys(&["-l", "a draft"]);
    tmux.until(&["> a draft"]);
    tmux.keys(&["C-l"]);
    tmux.keys(&["-l", " of mine"]);
    let screen = tmux.until(&["> a draft of mine"]);
    assert!(!screen.contains("sandbox"), "{screen}");
    let all = tmux.run(&["capture-pane", "-p", "-J", "-S", "-"]);
    assert_eq!(all.matches("> a draft").count(), 1, "{all}");
    tmux.keys(&["C-c", "C-c"]);
    tmux.until(&["exit status 0"]);
}

#[test]
fn a_capable_terminal_gets_the_whole_screen_and_its_own_back() {
    if !Tmux::is_there() {
        return;
    }
    let script =
        json!([asked_about("touch yes"), {"items": [{"text": "It is there."}]}, {"items": [{"text": "Goodbye."}]}]);
    let place = full_place("", &script);
    let tmux = Tmux::start(&place, "");
    tmux.until(&["sandbox  workspace-write", "\n>", "workspace-write/on-request"]);
    tmux.keys(&["-l", "touch 日本"]);
    tmux.until(&["> touch 日本"]);
    tmux.keys(&["Enter"]);
    tmux.until(&["| sh -c 'touch yes'", "[y] yes"]);
    tmux.keys(&["y"]);
    tmux.until(&["It is there."]);
    assert!(place.path("project/yes").exists());
    tmux.run(&["resize-window", "-x", "50", "-y", "16"]);
    tmux.until(&["It is there.", "\n>"]);
    tmux.keys(&["-l", "bye"]);
    tmux.keys(&["Enter"]);
    tmux.until(&["Goodbye."]);
    tmux.keys(&["C-d"]);
    tmux.until(&["It is there.", "Goodbye.", "To continue this session: codex resume ", "exit status 0"]);
    let all = tmux.run(&["capture-pane", "-p", "-J", "-S", "-"]);
    assert_eq!((all.matches("It is there.").count(), all.matches("Goodbye.").count()), (1, 1), "{all}");
}

/// The numbers of the lines of the answer that a screen shows, in order.
fn numbers(screen: &str) -> Vec<usize> {
    let number = |row: &str| row.trim().strip_prefix("line ")?.split(' ').next()?.parse().ok();
    screen.lines().filter_map(number).collect()
}

/// The lines of the answer that is watched through resizes.
const LINES: usize = 200;

#[test]
fn a_hundred_resizes_while_it_streams_lose_and_double_no_line() {
    if !Tmux::is_there() {
        return;
    }
    let line = |number: usize| format!("line {number} of the answer\n\n");
    let whole: String = (0..LINES).map(line).collect();
    let deltas: Vec<_> = (0..LINES).flat_map(|number| [json!(line(number)), json!({"pause_ms": 10})]).collect();
    let place = full_place("", &json!([{"items": [{"text": whole, "deltas": deltas}]}]));
    let tmux = Tmux::start(&place, "go");
    tmux.until(&["line 3 "]);
    let mut random = 7_u32;
    for _ in 0..100 {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (width, height) = (40 + (random >> 8) % 260, 10 + (random >> 20) % 40);
        tmux.run(&["resize-window", "-x", &width.to_string(), "-y", &height.to_string()]);
    }
    tmux.run(&["resize-window", "-x", "72", "-y", "20"]);
    let last = format!("line {} ", LINES - 1);
    let shown = numbers(&tmux.until(&[&last, "\n>"]));
    let first = *shown.first().expect("lines are on the screen");
    assert_eq!(shown, (first..LINES).collect::<Vec<_>>());
    tmux.keys(&["C-d"]);
    tmux.until(&["exit status 0"]);
    let printed = numbers(&tmux.run(&["capture-pane", "-p", "-J", "-S", "-"]));
    assert_eq!(printed, (0..LINES).collect::<Vec<_>>(), "each line is printed once, in order");
}

#[test]
fn copied_text_reaches_the_clipboard_of_tmux_without_wrapped_line_ends() {
    if !Tmux::is_there() {
        return;
    }
    let text = "A sentence that is much longer than this window is wide, so it is wrapped more than once on its way.";
    let place = full_place("", &json!([{"items": [{"text": text}]}]));
    let tmux = Tmux::start(&place, "go");
    tmux.run(&["set-option", "-s", "set-clipboard", "on"]);
    tmux.until(&["on its way.", "\n>"]);
    tmux.keys(&["-l", "/copy"]);
    tmux.until(&["> /copy"]);
    tmux.keys(&["Escape"]);
    tmux.keys(&["Enter"]);
    tmux.until(&["Copied the last answer"]);
    let deadline = Instant::now() + PATIENCE;
    while !tmux.run(&["list-buffers", "-F", "#{buffer_size}"]).contains(&text.len().to_string()) {
        assert!(Instant::now() < deadline, "nothing is in the clipboard");
        thread::park_timeout(GLANCE);
    }
    assert_eq!(tmux.run(&["show-buffer"]), text);
    tmux.keys(&["C-d"]);
    tmux.until(&["exit status 0"]);
}
