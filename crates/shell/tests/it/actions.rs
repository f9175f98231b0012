//! Compares the displayed steps of commands with recorded transcripts.

use std::collections::BTreeMap;

use codex_shell::{parsed_commands, parsed_commands_or_whole, propose_amendment};
use codex_wire::command_line::join;
use expect_test::{Expect, expect, expect_file};
use serde_json::Value;

use crate::{argv, lines, script, strings};

fn shown(argv: &[String]) -> Value {
    serde_json::to_value(parsed_commands(argv)).unwrap()
}

#[test]
fn transcripts_are_shown_as_recorded() {
    for case in lines(include_str!("../data/transcripts.jsonl")) {
        assert_eq!(shown(&strings(&case["argv"])), case["parsed"], "{}", case["argv"]);
    }
}

#[test]
fn command_lines_are_joined_as_recorded() {
    for case in lines(include_str!("../data/recorded.jsonl")) {
        if let Some(command) = case["command"].as_str() {
            assert_eq!(join(&strings(&case["argv"])), command);
        }
    }
}

/// A short form of a step.
fn brief(steps: &Value) -> String {
    let steps = steps.as_array().unwrap().iter().map(|step| {
        let kind = &step["type"].as_str().unwrap()[..1];
        let members = ["cmd", "name", "query", "path"].map(|member| step[member].as_str().unwrap_or("-"));
        format!("{kind}:{}", members.join("|"))
    });
    steps.collect::<Vec<_>>().join(" ; ")
}

/// Every difference from codex 0.77. Each line is a decision: values of options are not shown as search terms, `tee`
/// and `xargs` are not left out, and more programs are known to read and list.
#[test]
fn other_commands_are_shown_as_recorded_but_for_these() {
    let mut differences = BTreeMap::new();
    for case in lines(include_str!("../data/recorded.jsonl")) {
        let argv = strings(&case["argv"]);
        let ours = shown(&argv);
        if !case["parsed"].is_null() && ours != case["parsed"] {
            differences.insert(join(&argv[argv.len().min(3) - 1..]), brief(&ours));
        }
    }
    let shown: Vec<_> = differences.iter().map(|(argv, ours)| format!("{argv}\n    {ours}\n")).collect();
    expect_file!["../data/shown_otherwise.txt"].assert_eq(&shown.concat());
}

#[test]
fn newer_clients_see_one_unknown_step_for_a_script() {
    let steps = serde_json::to_value(parsed_commands_or_whole(&script("sleep 1; echo slept"))).unwrap();
    assert_eq!(brief(&steps), "u:sleep 1; echo slept|-|-|-");
    let steps = serde_json::to_value(parsed_commands_or_whole(&script("ls; cat x"))).unwrap();
    assert_eq!(brief(&steps), "l:ls|-|-|- ; r:cat x|x|-|x");
}

#[track_caller]
fn check_proposal(argv: &[String], expected: Expect) {
    expected.assert_eq(&propose_amendment(argv).map_or_else(|| "nothing".to_owned(), |words| join(&words)));
}

#[test]
fn rules_are_proposed_as_recorded_where_they_are_of_use() {
    check_proposal(&script("touch one.txt"), expect!["touch one.txt"]);
    check_proposal(&script("echo made > out.txt"), expect!["bash -lc 'echo made > out.txt'"]);
    check_proposal(&argv(&["/bin/bash", "-lc", "x $(y)"]), expect!["/bin/bash -lc 'x $(y)'"]);
    check_proposal(&script("ls && cargo test | tail -n 5"), expect!["cargo test"]);
    check_proposal(&script("ls"), expect!["ls"]);
    check_proposal(&argv(&["make", "all"]), expect!["make all"]);
    for useless in [
        "cargo build && cargo test",
        "rm -rf x",
        "sudo make",
        "ls && git status",
        "x | sh",
        "env make",
        "python3",
        "bash",
        "xargs ls",
        "rm -rf $X",
        "eval x",
    ] {
        check_proposal(&script(useless), expect!["nothing"]);
    }
}
