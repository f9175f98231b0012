//! Resuming rollouts of other releases, and broken ones.
#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

use std::path::{Path, PathBuf};

use codex_files::testing::{Endless, soon};
use codex_log::history::{ForkPoint, History};
use codex_log::line::Fault;
use codex_log::state::{HistoryStart, Interrupted};
use codex_log::store::Entry;
use codex_store::{ReadError, RolloutFile, RolloutLines, count_turns, fork};
use codex_wire::ids::ThreadId;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

fn sample(release: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../wire/tests/samples/rollout-{release}.jsonl"))
}

/// A file with the given lines, and its folder.
fn written(text: impl AsRef<[u8]>) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rollout.jsonl");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

fn line(kind: &str, payload: Value) -> String {
    json!({"timestamp": "2026-01-02T03:04:05.006Z", "type": kind, "payload": payload}).to_string() + "\n"
}

fn meta() -> String {
    let id = "01a1de3b-14fd-7922-828f-0d0916245388";
    let meta = json!({"id": id, "timestamp": "t", "cwd": "/w", "originator": "o", "cli_version": "1"});
    line("session_meta", meta)
}

/// The lines of a turn with a user message and an answer.
fn turn(text: &str) -> String {
    let said = json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let answer = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "ok"}]});
    line("response_item", said)
        + &line("event_msg", json!({"type": "user_message", "message": text}))
        + &line("response_item", answer)
}

fn read_history(path: &Path) -> Result<History, ReadError> {
    codex_store::read_history(path, Interrupted::Kept)
}

fn texts(history: &History) -> Vec<String> {
    let text = |item: &Value| match item["type"].as_str() {
        Some("message") => {
            format!("{}: {}", item["role"].as_str().unwrap(), item["content"][0]["text"].as_str().unwrap())
        }
        other => other.unwrap_or_default().to_owned(),
    };
    raw_items(history).iter().map(|item| text(&serde_json::from_str(item).unwrap())).collect()
}

fn raw_items(history: &History) -> Vec<String> {
    history.state.conversation.items().iter().map(|item| item.json().into_owned()).collect()
}

#[track_caller]
fn check(text: &str, expected: Expect) {
    let (_folder, path) = written(text);
    let history = read_history(&path).unwrap();
    let conversation = &history.state.conversation;
    let said = conversation.said();
    let calls: Vec<&str> = conversation.open_calls().iter().map(|call| call.call_id).collect();
    let bad: Vec<String> = history.bad_lines.iter().map(|bad| format!("{} {:?}", bad.number, bad.fault)).collect();
    let shown = format!(
        "{:?}, {} replaced, said {said:?}, unfinished {}, open {calls:?}, bad {bad:?}\n{}\n",
        conversation.begins(),
        conversation.replaced(),
        history.state.turn.is_some(),
        texts(&history).join("\n")
    );
    expected.assert_eq(&shown);
}

#[track_caller]
fn check_sample(release: &str, expected: Expect) {
    let path = sample(release);
    let history = read_history(&path).unwrap();
    let (state, conversation) = (&history.state, &history.state.conversation);
    let context = state.settings.as_ref().map(|context| (&context.model, &context.sandbox_policy));
    let tokens = state.tokens.info.as_ref();
    let mut lines = RolloutLines::open(&path).unwrap();
    let mut all = 0;
    while let Some(entry) = lines.next_entry().unwrap() {
        let Entry::Line(line) = entry else { panic!("{entry:?}") };
        assert!(line.decode().is_some(), "{}", line.text);
        all += 1;
    }
    let shown = format!(
        "{} of {}: {:?}, {all} lines, {} items, {} turns of {}, unfinished {}, open {:?}\n{context:?}\n{:?}\n",
        state.meta.cli_version,
        state.meta.id,
        conversation.begins(),
        conversation.items().len(),
        conversation.said().len(),
        count_turns(&path).unwrap(),
        state.turn.is_some(),
        conversation.open_calls(),
        tokens.map(|tokens| tokens.total_token_usage.total_tokens),
    );
    assert_eq!(history.bad_lines, []);
    for item in raw_items(&history) {
        let item: Value = serde_json::from_str(&item).unwrap();
        assert!(item.get("id").is_none() && item["type"] != "ghost_snapshot", "{item}");
        assert!(item.get("internal_chat_message_metadata_passthrough").is_none(), "{item}");
    }
    expected.assert_eq(&shown);
}

#[test]
fn rollouts_of_042_continue() {
    check_sample(
        "0.42",
        expect![[r#"
        0.42.0 of 01a1de3b-14fd-7922-828f-0d0916245388: Summary, 78 lines, 11 items, 1 turns of 6, unfinished false, open []
        Some(("mock-model", WorkspaceWrite(WorkspaceWrite { writable_roots: [], network_access: false, exclude_tmpdir_env_var: false, exclude_slash_tmp: false })))
        Some(1650)
    "#]],
    );
}

#[test]
fn rollouts_of_077_continue() {
    check_sample(
        "0.77",
        expect![[r#"
        0.77.0 of 01a1de24-b076-79d3-9052-69f181098fa6: Start, 98 lines, 32 items, 9 turns of 9, unfinished false, open []
        Some(("mock-model", DangerFullAccess))
        Some(1800)
    "#]],
    );
}

#[test]
fn rollouts_of_0166_continue() {
    check_sample(
        "0.166",
        expect![[r#"
        0.166.0 of 01a1de25-2746-77a2-898a-88026f72a56b: Start, 111 lines, 33 items, 9 turns of 9, unfinished false, open []
        Some(("mock-model", DangerFullAccess))
        Some(1800)
    "#]],
    );
    check_sample(
        "0.166-child-agent",
        expect![[r#"
        0.166.0 of 01a1de3d-da70-71e1-82d0-f8f026c05c25: Start, 23 lines, 6 items, 2 turns of 2, unfinished false, open []
        Some(("mock-model", DangerFullAccess))
        Some(300)
    "#]],
    );
}

#[test]
fn the_result_of_a_compaction_replaces_the_conversation() {
    let left = json!([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "left"}]}]);
    let compacted = line("compacted", json!({"message": "sum", "replacement_history": left}));
    check(
        &(meta() + &turn("one") + &compacted + &turn("two")),
        expect![[r"
        Replacement, 1 replaced, said [1], unfinished false, open [], bad []
        user: left
        user: two
        assistant: ok
    "]],
    );
}

/// Other releases do not repeat after a compaction which agents there are. This one does.
#[test]
fn agents_from_before_the_compaction_of_another_release_are_found() {
    let child = |last: char| format!("01a1de3d-da70-71e1-82d0-f8f026c05c2{last}");
    let called = |last: char, state: Value| {
        let (root, child) = ("01a1de3b-14fd-7922-828f-0d0916245388", child(last));
        let item = json!({
            "type": "CollabAgentToolCall", "id": "i", "tool": "spawn_agent", "status": "completed",
            "sender_thread_id": root, "receiver_thread_ids": [child], "prompt": "look",
            "receiver_agents": [{"thread_id": child, "agent_nickname": "Nash"}], "agents_states": {&child: state},
        });
        line("event_msg", json!({"type": "item_completed", "thread_id": root, "turn_id": "t", "item": item}))
    };
    let compacted = line("compacted", json!({"message": "s", "replacement_history": []}));
    let before = called('1', json!("running")) + &turn("one") + &called('1', json!({"completed": "done"}));
    let text =
        meta() + &before + &called('2', json!("running")) + &compacted + &turn("two") + &called('3', json!("running"));
    let known = |text: &str| {
        let (_folder, path) = written(text);
        let children = read_history(&path).unwrap().state.agents.unnumbered;
        let shown = |child: codex_log::agents::UnnumberedChild| (child.thread.to_string(), child.completion.is_some());
        children.into_iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(known(&text), [(child('1'), true), (child('2'), false), (child('3'), false)]);
    let ours = text.replace(r#""cli_version":"1""#, &format!(r#""cli_version":"{}""#, env!("CARGO_PKG_VERSION")));
    assert_eq!(known(&ours), [(child('3'), false)], "a file of ours tells it, and is not searched");
}

#[test]
fn a_compaction_of_an_older_release_leaves_the_users_messages_and_the_summary() {
    let compacted = line("compacted", json!({"message": "the summary"}));
    check(
        &(meta() + &turn("one") + &turn("two") + &compacted + &turn("three")),
        expect![[r"
        Summary, 3 replaced, said [3], unfinished false, open [], bad []
        user: one
        user: two
        user: the summary
        user: three
        assistant: ok
    "]],
    );
}

#[test]
fn turns_that_were_taken_back_are_gone_and_so_is_their_compaction() {
    let back = |turns: usize| line("event_msg", json!({"type": "thread_rolled_back", "num_turns": turns}));
    let compacted = line("compacted", json!({"message": "sum", "replacement_history": []}));
    check(
        &(meta() + &turn("one") + &turn("two") + &back(1) + &turn("three")),
        expect![[r"
        Start, 0 replaced, said [0, 2], unfinished false, open [], bad []
        user: one
        assistant: ok
        user: three
        assistant: ok
    "]],
    );
    check(
        &(meta() + &turn("one") + &turn("two") + &compacted + &back(1) + &turn("three")),
        expect![[r"
        Start, 0 replaced, said [0, 2], unfinished false, open [], bad []
        user: one
        assistant: ok
        user: three
        assistant: ok
    "]],
    );
    check(
        &(meta() + &turn("one") + &back(7)),
        expect![[r"
        Start, 0 replaced, said [], unfinished false, open [], bad []

    "]],
    );
}

#[test]
fn turns_are_taken_back_from_the_one_that_is_named() {
    let started = |turn: &str| line("event_msg", json!({"type": "task_started", "turn_id": turn}));
    let ended = |turn: &str| line("event_msg", json!({"type": "task_complete", "turn_id": turn}));
    let back = |count: usize, turn: &str| {
        line("event_msg", json!({"type": "thread_rolled_back", "num_turns": count, "turn_id": turn}))
    };
    let said = |id: &str, text: &str| started(id) + &turn(text) + &ended(id);
    let content = json!([{"type": "output_text", "text": "by myself"}]);
    let answer = json!({"type": "message", "role": "assistant", "content": content});
    let unasked = started("b") + &line("response_item", answer) + &ended("b");
    check(
        &(meta() + &said("a", "one") + &unasked + &said("c", "two") + &back(1, "b") + &said("d", "three")),
        expect![[r"
            Start, 0 replaced, said [0, 2], unfinished false, open [], bad []
            user: one
            assistant: ok
            user: three
            assistant: ok
        "]],
    );
    check(
        &(meta() + &said("a", "one") + &unasked + &back(0, "b") + &said("d", "three")),
        expect![[r"
        Start, 0 replaced, said [0, 2], unfinished false, open [], bad []
        user: one
        assistant: ok
        user: three
        assistant: ok
    "]],
    );
    check(
        &(meta() + &said("a", "one") + &said("c", "two") + &back(1, "unknown")),
        expect![[r"
        Start, 0 replaced, said [0], unfinished false, open [], bad []
        user: one
        assistant: ok
    "]],
    );
}

#[test]
fn the_goal_of_a_thread_is_the_last_one_in_its_file() {
    let changed = |objective: &str, status: &str| {
        line(
            "event_msg",
            json!({"type": "goal_changed", "goal": {"objective": objective, "status": status, "tokens_used": 7}}),
        )
    };
    let cleared = line("event_msg", json!({"type": "goal_cleared"}));
    let compacted = line("compacted", json!({"message": "sum", "replacement_history": []}));
    let back = line("event_msg", json!({"type": "thread_rolled_back", "num_turns": 1}));
    let goal = |text: String| {
        let (_folder, path) = written(text);
        let goal = read_history(&path).unwrap().state.goal;
        goal.map(|goal| (goal.objective.clone(), goal.status.as_str(), goal.tokens_used))
    };
    let told = |objective: &str, status| Some((objective.to_owned(), status, 7));
    assert_eq!(goal(meta() + &turn("one")), None);
    assert_eq!(goal(meta() + &changed("a", "active") + &changed("b", "usageLimited")), told("b", "usageLimited"));
    assert_eq!(goal(meta() + &changed("a", "budget_limited")), told("a", "budgetLimited"));
    assert_eq!(goal(meta() + &changed("a", "active") + &cleared), None);
    assert_eq!(goal(meta() + &turn("one") + &changed("a", "paused") + &back), told("a", "paused"));
    assert_eq!(goal(meta() + &turn("one") + &compacted + &changed("a", "paused")), told("a", "paused"));
    assert_eq!(goal(meta() + &changed("a", "some day")), None, "what cannot be understood is not followed");
}

#[test]
fn calls_without_output_and_unfinished_turns_are_reported() {
    let call = |id: &str| json!({"type": "function_call", "name": "shell", "arguments": "{}", "call_id": id});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": "x"});
    let calls = line("response_item", call("a")) + &line("response_item", call("b"));
    let text = meta() + &turn("one") + &calls + &line("response_item", output("a"));
    check(
        &text,
        expect![[r#"
        Start, 0 replaced, said [0], unfinished true, open ["b"], bad []
        user: one
        assistant: ok
        function_call
        function_call
        function_call_output
    "#]],
    );
    check(
        &(text + &line("event_msg", json!({"type": "turn_aborted", "reason": "interrupted"}))),
        expect![[r#"
        Start, 0 replaced, said [0], unfinished false, open ["b"], bad []
        user: one
        assistant: ok
        function_call
        function_call
        function_call_output
    "#]],
    );
    let started = line("event_msg", json!({"type": "task_started"}));
    check(
        &(meta() + &started + &turn("one")),
        expect![[r"
        Start, 0 replaced, said [0], unfinished true, open [], bad []
        user: one
        assistant: ok
    "]],
    );
    let complete = line("event_msg", json!({"type": "task_complete"}));
    check(
        &(meta() + &started + &turn("one") + &complete),
        expect![[r"
        Start, 0 replaced, said [0], unfinished false, open [], bad []
        user: one
        assistant: ok
    "]],
    );
}

#[test]
fn bad_lines_are_reported_with_their_number_and_unknown_ones_are_passed_over() {
    let left = json!([]);
    let compacted = line("compacted", json!({"message": "sum", "replacement_history": left}));
    let text = meta() + &turn("one") + "oops\n" + &compacted + "garbage\n" + &line("future", json!([1])) + &turn("two");
    check(
        &(text + "{\"timestamp\":\"2026"),
        expect![[r#"
        Replacement, 0 replaced, said [0], unfinished false, open [], bad ["7 NotALine", "12 Torn"]
        user: two
        assistant: ok
    "#]],
    );
}

#[test]
fn a_compaction_that_cannot_be_read_is_no_place_to_start() {
    let broken = line("compacted", json!({"message": "sum"})).replace("}}", "");
    check(
        &(meta() + &turn("one") + &broken + &turn("two")),
        expect![[r#"
        Start, 0 replaced, said [0, 2], unfinished false, open [], bad ["5 NotALine"]
        user: one
        assistant: ok
        user: two
        assistant: ok
    "#]],
    );
}

#[test]
fn a_file_that_names_no_thread_is_refused() {
    let (_folder, path) = written(turn("one"));
    let error = read_history(&path).unwrap_err();
    assert!(error.to_string().ends_with("does not name its thread"), "{error}");
    let error = read_history(&path.with_extension("gone")).unwrap_err();
    assert!(error.to_string().starts_with("could not open the rollout"), "{error}");
}

#[test]
fn a_torn_last_line_is_cut_off_when_the_thread_continues() {
    let whole = meta() + &turn("one");
    let (_folder, path) = written(whole.clone() + "{\"timestamp\":\"2026");
    let mut file = RolloutFile::reopen(path.clone()).unwrap();
    assert_eq!((file.cut_bytes(), file.is_locked()), (18, true));
    file.append("event_msg", &json!({"type": "turn_aborted", "reason": "interrupted"})).unwrap();
    file.flush().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with(&whole) && text.lines().count() == 5, "{text}");
    assert_eq!(read_history(&path).unwrap().bad_lines, []);
}

#[test]
fn a_last_line_that_only_lacks_its_end_gets_it() {
    let whole = meta() + &turn("one");
    let (_folder, path) = written(whole.trim_end());
    assert_eq!(RolloutFile::reopen(path.clone()).unwrap().cut_bytes(), 0);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), whole);
}

#[test]
fn a_fork_copies_the_first_turns_under_a_name_of_its_own() {
    for release in ["0.42", "0.77", "0.166"] {
        let source = sample(release);
        let turns = count_turns(&source).unwrap();
        let whole = read_history(&source).unwrap();
        for keep in [0, 1, 2, turns - 1, turns, turns + 5] {
            let folder = tempfile::tempdir().unwrap();
            let into = folder.path().join("copy.jsonl");
            let mut meta = whole.state.meta.clone();
            meta.lineage.forked_from_id = Some(meta.id);
            meta.id = ThreadId::fresh();
            let file = fork(folder.path(), &source, ForkPoint::Turns(keep), &meta, &into).unwrap();
            assert_eq!(count_turns(&into).unwrap(), keep.min(turns), "{release} {keep}");
            let copy = read_history(&into).unwrap();
            let copied = &copy.state.meta;
            assert_eq!((copied.id, copied.lineage.forked_from_id), (meta.id, Some(whole.state.meta.id)));
            if whole.state.conversation.begins() == HistoryStart::Start {
                let (copied, all) = (texts(&copy), texts(&whole));
                assert_eq!(copied, all[..copied.len()], "{release} {keep}");
                assert_eq!(copied.len() == all.len(), keep >= turns, "{release} {keep}");
            }
            assert!(file.is_locked());
        }
    }
}

#[test]
fn a_fork_of_all_is_a_copy_without_what_cannot_be_read() {
    let (folder, path) = written(meta() + "oops\n" + &turn("one") + "{torn");
    let into = path.with_extension("copy");
    let mut meta = read_history(&path).unwrap().state.meta;
    meta.id = ThreadId::fresh();
    drop(fork(folder.path(), &path, ForkPoint::End, &meta, &into).unwrap());
    let text = std::fs::read_to_string(&into).unwrap();
    assert!(text.ends_with(&turn("one")) && text.lines().count() == 4, "{text}");
    let error = fork(folder.path(), &path, ForkPoint::End, &meta, &into).unwrap_err();
    assert!(error.to_string().starts_with("could not create the thread's file"), "{error}");
    assert_eq!(std::fs::read_to_string(&into).unwrap(), text, "what is there already stays");
}

/// Copies a file up to a position, and returns the text of the copy after its first line, and of the source.
fn copied(text: &str, end: usize) -> (String, String) {
    let (folder, path) = written(text);
    let mut meta = read_history(&path).unwrap().state.meta;
    meta.id = ThreadId::fresh();
    let into = path.with_extension("copy");
    let mut file = fork(folder.path(), &path, ForkPoint::Position(end as u64), &meta, &into).unwrap();
    file.append("event_msg", &serde_json::json!({"type": "added"})).unwrap();
    file.flush().unwrap();
    assert_eq!(read_history(&into).unwrap().state.meta.id, meta.id);
    let copy = std::fs::read_to_string(&into).unwrap();
    let (first, rest) = copy.split_once('\n').unwrap();
    let source_start = text.find('\n').unwrap() + 1;
    if rest.len() > 64 << 10 {
        assert_eq!((first.len() + 1) % 4096, source_start % 4096, "blocks can be shared");
    }
    (rest.to_owned(), text[source_start..end].to_owned())
}

#[test]
fn a_fork_up_to_a_position_copies_the_bytes() {
    let short = meta() + &turn("one") + &turn("two");
    let long = meta() + &turn(&"long \u{fc} ".repeat(20_000)) + &turn("two");
    for text in [&short, &long] {
        for end in [text.find('\n').unwrap() + 1, text.len() - turn("two").len(), text.len()] {
            let (copy, source) = copied(text, end);
            assert!(copy.starts_with(&source), "{copy}");
            assert_eq!(copy[source.len()..].lines().count(), 1, "it goes on after them");
        }
    }
    let numbered = |number: u64, kind: &str| {
        format!("{{\"timestamp\":\"t\",\"ordinal\":{number},\"type\":\"{kind}\",\"payload\":{{}}}}\n")
    };
    let text = meta() + &numbered(7, "event_msg") + &numbered(8, "event_msg");
    assert!(copied(&text, text.len()).0.contains("\"ordinal\":9"), "numbers of lines are continued");
}

#[test]
fn a_line_that_names_another_thread_is_not_copied() {
    let text = meta() + &turn("says \"session_meta\"") + &meta() + &turn("two");
    let (copy, source) = copied(&text, text.len());
    assert!(copy.starts_with(&source.replace(&meta(), "")), "{copy}");
    let text = meta() + &turn("says \"session_meta\"");
    let (copy, source) = copied(&text, text.len());
    assert!(copy.starts_with(&source));
}

#[test]
fn a_fork_ends_where_a_line_ends() {
    let (folder, path) = written(meta() + &turn("one"));
    let meta = read_history(&path).unwrap().state.meta;
    let into = path.with_extension("copy");
    for position in [20, path.metadata().unwrap().len() + 1] {
        let error = fork(folder.path(), &path, ForkPoint::Position(position), &meta, &into).unwrap_err();
        assert!(error.to_string().contains("ends at"), "{error}");
        assert!(!into.exists());
    }
}

/// Cuts a sample anywhere and compares the rest with the whole.
fn cut_anywhere(release: &str, place: usize) {
    let whole = std::fs::read(sample(release)).unwrap();
    let place = place % (whole.len() + 1);
    let (_folder, path) = written(&whole[..place]);
    let lines_before = whole[..place].split(|byte| *byte == b'\n').count() - 1;
    let mut lines = RolloutLines::open(&path).unwrap();
    let mut read = 0;
    while let Some(entry) = lines.next_entry().unwrap() {
        match entry {
            Entry::Line(line) => {
                read += 1;
                let range = usize::try_from(line.range.start).unwrap()..usize::try_from(line.range.end).unwrap();
                assert_eq!(line.text.as_bytes(), whole[range].trim_ascii_end());
            }
            Entry::Bad(bad) => assert_eq!(bad.fault, Fault::Torn),
        }
    }
    assert!(read == lines_before || read == lines_before + 1);
    match read_history(&path) {
        Err(_) => assert_eq!(read, 0),
        Ok(history) => {
            let reopened = RolloutFile::reopen(path.clone()).unwrap();
            assert_eq!(reopened.cut_bytes() > 0, history.bad_lines.len() == 1);
            drop(reopened);
            let healed = std::fs::read(&path).unwrap();
            assert!(
                healed.ends_with(b"\n")
                    && healed.trim_ascii_end() == whole[..healed.trim_ascii_end().len()].trim_ascii_end()
            );
            let again = read_history(&path).unwrap();
            assert_eq!(texts(&again), texts(&history));
            assert_eq!(again.bad_lines, []);
            let told = |history: &History| {
                let conversation = &history.state.conversation;
                let calls = conversation.open_calls().len();
                (conversation.said().to_vec(), history.state.turn.clone(), calls)
            };
            assert_eq!(told(&again), told(&history));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cut_anywhere_a_rollout_reads_as_a_prefix(release in prop::sample::select(vec!["0.42", "0.77", "0.166"]), place: usize) {
        cut_anywhere(release, place);
    }

    #[test]
    fn damage_anywhere_is_survived_and_reopening_changes_nothing_else(
        release in prop::sample::select(vec!["0.42", "0.77", "0.166"]),
        damage in prop::collection::vec((any::<usize>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = std::fs::read(sample(release)).unwrap();
        for (place, byte) in damage {
            let place = place % bytes.len();
            bytes[place] = byte;
        }
        let (_folder, path) = written(&bytes);
        count_turns(&path).unwrap();
        if let Ok(before) = read_history(&path) {
            drop(RolloutFile::reopen(path.clone()).unwrap());
            let after = read_history(&path).unwrap();
            prop_assert_eq!(raw_items(&before), raw_items(&after));
        }
    }

    #[test]
    fn any_bytes_can_be_read(tail in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut bytes = meta().into_bytes();
        bytes.extend_from_slice(turn("one").as_bytes());
        bytes.extend_from_slice(&tail);
        let (_folder, path) = written(&bytes);
        let history = read_history(&path).unwrap();
        prop_assert_eq!(history.state.conversation.items().len(), 2);
    }
}

#[test]
fn a_thread_that_never_ends_is_not_gone_on_with() {
    for kind in Endless::ALL {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rollout.jsonl");
        kind.make(&path).unwrap();
        let error = soon(move || {
            drop(RolloutFile::reopen(path.clone()));
            read_history(&path)
        });
        assert!(matches!(error.unwrap(), Err(ReadError::Open { .. })), "{kind:?}");
    }
}
