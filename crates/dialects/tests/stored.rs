//! The messages for clients about threads of five releases, in every dialect.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::path::{Path, PathBuf};

use codex_dialects::eq::{self, Vocabulary};
use codex_dialects::replay::Player;
use codex_dialects::v2::project::{ProjectionOptions, Projector};
use codex_dialects::{ProtocolRelease, exec, v1, v2};
use codex_log::line::Line;
use expect_test::{ExpectFile, expect_file};
use serde::Serialize;

/// The number of messages that are shown; the others are covered by a checksum.
const SHOWN: usize = 200;

const RELEASES: [&str; 6] = ["0.42", "0.58", "0.77", "0.166", "0.166-child-agent", "ours"];

fn text(release: &str) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = if release == "ours" { "tests/samples" } else { "../wire/tests/samples" };
    std::fs::read_to_string(here.join(format!("{folder}/rollout-{release}.jsonl"))).unwrap()
}

fn each_line(release: &str, mut take: impl FnMut(&Line<'_>)) {
    for line in text(release).lines() {
        take(&Line::parse(line).unwrap());
    }
}

/// Adds a message as one line.
fn told(all: &mut Vec<String>, what: &impl Serialize) {
    let line = serde_json::to_string(what).unwrap();
    match line.char_indices().nth(SHOWN) {
        Some((end, _)) => {
            let sum = line.bytes().fold(0_u32, |sum, byte| sum.rotate_left(5) ^ u32::from(byte));
            all.push(format!("{}… {sum:08x}", &line[..end]));
        }
        None => all.push(line),
    }
}

fn check(tell: impl Fn(&str, &mut Vec<String>), expected: ExpectFile) {
    let mut all = Vec::new();
    for release in RELEASES {
        all.push(format!("# {release}"));
        tell(release, &mut all);
    }
    expected.assert_eq(&(all.join("\n") + "\n"));
}

fn turns(release: &str, told_as: ProtocolRelease, all: &mut Vec<String>) {
    let mut reader = v2::TurnReader::new(told_as);
    each_line(release, |line| reader.take(line));
    for mut turn in reader.into_turns() {
        let items = std::mem::take(&mut turn.items);
        told(all, &turn);
        for item in &items {
            told(all, item);
        }
    }
}

#[test]
fn the_turns_of_stored_threads_for_0_77() {
    check(|release, all| turns(release, ProtocolRelease::V077, all), expect_file!["./stored/turns-0.77.txt"]);
}

#[test]
fn the_turns_of_stored_threads_for_0_166() {
    check(|release, all| turns(release, ProtocolRelease::V0166, all), expect_file!["./stored/turns-0.166.txt"]);
}

#[test]
fn the_messages_of_stored_threads() {
    let messages = |release: &str, all: &mut Vec<String>| {
        let mut reader = v1::MessageReader::new(true);
        each_line(release, |line| reader.take(line));
        for message in reader.into_messages() {
            told(all, &message);
        }
    };
    check(messages, expect_file!["./stored/messages.txt"]);
}

/// Replays a stored thread: each event in all dialects.
#[test]
fn stored_threads_played_again() {
    let play = |release: &str, all: &mut Vec<String>| {
        let mut player = Player::new(&PathBuf::from("/rollout.jsonl"), None);
        let mut events = Vec::new();
        each_line(release, |line| player.take(line, &mut events));
        player.finish(&mut events);
        let mut runs = exec::Projector::default();
        let mut projector = Projector::new("thread".to_owned(), ProtocolRelease::V0166, ProjectionOptions::default());
        for (number, event) in events.iter().enumerate() {
            let turn = event.turn.as_ref().map_or("", |turn| turn.as_str());
            all.push(format!("## {number} {} {turn}", event.at_ms));
            let (mut messages, mut notifications, mut lines) = (Vec::new(), Vec::new(), Vec::new());
            eq::project(event, Vocabulary::default(), &mut messages);
            projector.project(event, &mut notifications);
            runs.project(event, &mut lines);
            for message in &messages {
                told(all, message);
            }
            for notification in &notifications {
                told(all, &(notification.method(), notification));
            }
            for line in &lines {
                told(all, line);
            }
        }
    };
    check(play, expect_file!["./stored/played.txt"]);
}
