//! Commands of the model, with real processes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use codex_log::{Abort, Answer, Body, CommandItem, CommandStatus, Delta, Event, Item, ItemId, Outcome, QuestionId};
use codex_wire::decision::ReviewDecision;
use serde_json::{Value, json};

use crate::world::{Client, World, outcome};

/// A script whose model runs shell commands, one per answer, and then is done.
fn script(commands: &[&str]) -> String {
    scripted(&commands.iter().map(|command| json!({"command": ["sh", "-c", command]})).collect::<Vec<_>>())
}

fn scripted(arguments: &[Value]) -> String {
    let mut entries: Vec<Value> =
        arguments.iter().map(|args| json!({"items": [{"call": "shell", "args": args}]})).collect();
    entries.push(json!({"items": [{"text": "done"}]}));
    Value::Array(entries).to_string()
}

fn world(approval: &str, sandbox: &str) -> World {
    World::new().set(&format!("approval_policy={approval}")).set(&format!("sandbox_mode={sandbox}"))
}

/// The commands that have ended.
pub(crate) fn ended(events: &[Arc<Event>]) -> Vec<Arc<CommandItem>> {
    let command = |event: &Arc<Event>| match &event.body {
        Body::ItemCompleted(Item::Command(command)) => Some(Arc::clone(command)),
        _ => None,
    };
    events.iter().filter_map(command).collect()
}

/// The one command that has ended: its status, its exit code, and its output.
fn the_end(events: &[Arc<Event>]) -> (CommandStatus, i32, String) {
    let commands = ended(events);
    assert_eq!(commands.len(), 1, "{commands:?}");
    let end = commands[0].end.clone().expect("a command that is over has an end");
    (commands[0].status, end.exit_code, end.aggregated)
}

/// The outputs of the calls for the model, in order.
pub(crate) fn outputs(client: &Client) -> Vec<String> {
    let last = client.prompts.all().pop().expect("the model was asked");
    let items = last.input.iter().map(|item| serde_json::from_str::<Value>(&item.json()).expect("an item is JSON"));
    let outputs = items.filter(|item| item["type"] == "function_call_output");
    outputs.map(|item| item["output"].as_str().unwrap_or_default().to_owned()).collect()
}

async fn asked(client: &mut Client) {
    client.until(|body| matches!(body, Body::Asked(_))).await;
}

async fn answer(client: &Client, decision: ReviewDecision) {
    assert_eq!(client.thread.answer_named("call-1-1".to_owned(), decision.into()).await, Ok(true));
}

#[tokio::test]
async fn a_command_streams_its_output_and_the_model_gets_it() {
    let mut client = world("never", "danger-full-access").start(&script(&["echo out; echo err >&2; exit 3"])).await;
    let events = client.turn("1", "hi").await;
    let (status, code, text) = the_end(&events);
    assert_eq!((status, code), (CommandStatus::Failed, 3));
    assert!(text.contains("out\n") && text.contains("err\n"), "{text}");
    let streamed: usize = events
        .iter()
        .map(|event| match &event.body {
            Body::ItemDelta { delta: Delta::Output { bytes, .. }, .. } => bytes.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(streamed, 8);
    let output: Value = serde_json::from_str(&outputs(&client)[0]).expect("the output is JSON");
    assert_eq!(output["metadata"]["exit_code"], 3);
}

#[tokio::test]
async fn the_folder_a_model_names_is_where_a_command_starts() {
    let world = world("never", "danger-full-access");
    std::fs::create_dir(world.path("project/sub")).expect("a folder can be made");
    let mut client = world.start(&scripted(&[json!({"command": ["pwd"], "workdir": "sub"})])).await;
    let (_, code, text) = the_end(&client.turn("1", "hi").await);
    assert_eq!(code, 0);
    assert!(text.ends_with("project/sub\n"), "{text}");
}

#[tokio::test]
async fn the_folder_a_model_names_is_not_what_it_may_write() {
    let world = world("never", "workspace-write").set("sandbox_workspace_write.exclude_slash_tmp=true");
    let outside = world.path("outside");
    std::fs::create_dir(&outside).expect("a folder can be made");
    let mut client = world.start(&scripted(&[json!({"command": ["touch", "x"], "workdir": outside})])).await;
    let (_, code, _) = the_end(&client.turn("1", "hi").await);
    assert_ne!(code, 0);
    assert!(!outside.join("x").exists());
}

#[tokio::test]
async fn a_denied_command_leaves_no_trace_and_the_turn_continues() {
    let mut client = world("untrusted", "danger-full-access").start(&script(&["touch x"])).await;
    client.say("1", "hi").await;
    asked(&mut client).await;
    answer(&client, ReviewDecision::Denied).await;
    let events = client.until_ended().await;
    assert_eq!(the_end(&events).0, CommandStatus::Declined);
    assert!(!client.world.path("project/x").exists());
    assert_eq!(outputs(&client), ["exec command rejected by user"]);
}

#[tokio::test]
async fn session_approvals_are_not_asked_again() {
    let mut client = world("untrusted", "danger-full-access").start(&script(&["touch x", "touch x", "touch y"])).await;
    client.say("1", "hi").await;
    asked(&mut client).await;
    answer(&client, ReviewDecision::ApprovedForSession).await;
    // The second call is the same command; the third is another one, so a person is asked.
    let events = client.until(|body| matches!(body, Body::Asked(_))).await;
    assert_eq!(ended(&events).len(), 2);
    assert_eq!(client.thread.answer_named("call-3-1".to_owned(), ReviewDecision::Approved.into()).await, Ok(true));
    client.until_ended().await;
    assert!(client.world.path("project/y").exists());
}

#[tokio::test]
async fn an_amendment_becomes_a_rule_that_holds_at_once_and_later() {
    let mut client = world("untrusted", "danger-full-access").start(&script(&["touch x", "touch x"])).await;
    client.say("1", "hi").await;
    asked(&mut client).await;
    let proposed_execpolicy_amendment = vec!["touch".to_owned(), "x".to_owned()];
    answer(&client, ReviewDecision::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment }).await;
    let events = client.until_ended().await;
    assert_eq!(ended(&events).len(), 2);
    let rules = std::fs::read_to_string(client.world.path("home/rules/default.rules")).expect("there is a rule");
    assert_eq!(rules, "prefix_rule(pattern=[\"touch\", \"x\"], decision=\"allow\")\n");
}

/// The user may have `.` in `PATH`, but a program in the folder may come from a sandboxed command.
#[tokio::test]
async fn no_program_of_the_folder_is_found_outside_of_the_sandbox() {
    use std::os::unix::fs::PermissionsExt as _;

    for (permissions, expected) in [("use_default", ".::bin:/usr/bin:/bin"), ("require_escalated", "/usr/bin:/bin")] {
        let args = json!({"command": ["uname-or-worse"], "sandbox_permissions": permissions});
        let path = json!({"command": ["/bin/sh", "-c", "echo \"$PATH\""], "sandbox_permissions": permissions});
        let world = world("untrusted", "workspace-write").file("project/uname-or-worse", "#!/bin/sh\necho planted\n");
        let planted = world.path("project/uname-or-worse");
        std::fs::set_permissions(planted, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
        let world = world.set("shell_environment_policy.set={PATH=\".::bin:/usr/bin:/bin\"}");
        let mut client = world.start(&scripted(&[args, path])).await;
        client.say("1", "hi").await;
        asked(&mut client).await;
        answer(&client, ReviewDecision::Approved).await;
        let events = client.until(|body| matches!(body, Body::Asked(_))).await;
        let is_planted = the_end(&events).2 == "planted\n";
        assert_eq!(is_planted, permissions == "use_default", "{permissions}");
        assert_eq!(client.thread.answer_named("call-2-1".to_owned(), ReviewDecision::Approved.into()).await, Ok(true));
        assert_eq!(the_end(&client.until_ended().await).2, format!("{expected}\n"));
    }
}

#[tokio::test]
async fn an_abort_ends_the_turn() {
    let mut client = world("untrusted", "danger-full-access").start(&script(&["touch x"])).await;
    client.say("1", "hi").await;
    asked(&mut client).await;
    answer(&client, ReviewDecision::Abort).await;
    let events = client.until_ended().await;
    assert_eq!(outcome(&events), Outcome::Aborted(Abort::Interrupted));
    assert!(!client.world.path("project/x").exists());
}

#[tokio::test]
async fn an_answer_to_nothing_is_distinguished_from_one_that_was_wanted() {
    let mut client = world("untrusted", "danger-full-access").start(&script(&["touch x"])).await;
    let decision = || ReviewDecision::Approved;
    assert_eq!(client.thread.answer_named("1".to_owned(), decision().into()).await, Ok(false));
    client.say("1", "hi").await;
    asked(&mut client).await;
    assert_eq!(client.thread.answer_named("another".to_owned(), decision().into()).await, Ok(false));
    assert_eq!(
        client.thread.answer_named("1".to_owned(), decision().into()).await,
        Ok(true),
        "the turn's name will do"
    );
    assert_eq!(client.thread.answer_named("1".to_owned(), decision().into()).await, Ok(false), "it was answered");
    client.until_ended().await;
}

#[tokio::test]
async fn questions_are_denied_once_the_client_has_disconnected() {
    let mut client = world("untrusted", "danger-full-access").start(&script(&["touch x", "touch y"])).await;
    client.say("1", "hi").await;
    asked(&mut client).await;
    client.thread.finish().await;
    let events = client.rest().await;
    assert_eq!(ended(&events).len(), 2);
    assert!(!client.world.path("project/x").exists());
}

#[tokio::test(start_paused = true)]
async fn a_question_without_an_answer_in_time_is_denied() {
    let world = world("untrusted", "danger-full-access").set("approval_timeout_sec=120");
    let mut client = world.start(&script(&["touch x"])).await;
    let events = client.turn("1", "hi").await;
    assert_eq!(the_end(&events).0, CommandStatus::Declined);
    let warned = |event: &Arc<Event>| matches!(&event.body, Body::Warning { message } if message.contains("120 s"));
    assert!(events.iter().any(warned));
}

#[tokio::test]
async fn a_timeout_ends_the_command_and_is_reported() {
    let slow = json!({"command": ["sh", "-c", "echo begun; exec sleep 600"], "timeout_ms": 100});
    let mut client = world("never", "danger-full-access").start(&scripted(&[slow])).await;
    let (_, code, text) = the_end(&client.turn("1", "hi").await);
    assert_eq!((code, text.as_str()), (124, "begun\n"));
    assert!(outputs(&client)[0].contains("command timed out after"), "{:?}", outputs(&client));
}

/// Waits until a process is gone. It is already killed, so the wait is as short as the kernel allows.
pub(crate) fn wait_until_gone(pid: &str) {
    let deadline = Instant::now() + Duration::from_secs(1);
    while Path::new("/proc").join(pid).exists() {
        assert!(Instant::now() < deadline, "process {pid} is still there");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn an_interrupt_kills_the_process_tree_and_the_model_is_informed() {
    let daemon = "setsid sh -c 'echo $$; trap \"\" TERM HUP; exec sleep 600' & wait";
    let mut client = world("never", "danger-full-access").start(&script(&[daemon])).await;
    client.say("1", "hi").await;
    let events = client.until(|body| matches!(body, Body::ItemDelta { delta: Delta::Output { .. }, .. })).await;
    let Some(Body::ItemDelta { delta: Delta::Output { bytes, .. }, .. }) = events.last().map(|event| &event.body)
    else {
        panic!("the command prints its number")
    };
    let pid = String::from_utf8_lossy(bytes).trim().to_owned();
    assert!(Path::new("/proc").join(&pid).exists());
    assert_eq!(client.thread.interrupt().await, Ok(true));
    wait_until_gone(&pid);
    let events = client.until_ended().await;
    assert_eq!(outcome(&events), Outcome::Aborted(Abort::Interrupted));
    assert_eq!(the_end(&events).0, CommandStatus::Failed);
    client.turn("2", "again").await;
    let output = &outputs(&client)[0];
    assert!(output.starts_with(&pid) && output.ends_with("aborted by user"), "the output is kept: {output:?}");
    let kept = events.iter().find_map(|event| match &event.body {
        Body::ItemCompleted(Item::Command(command)) => command.end.as_ref().map(|end| end.stdout.trim().to_owned()),
        _ => None,
    });
    assert_eq!(kept, Some(pid), "and in the thread's file");
}

#[tokio::test]
async fn the_sandbox_lets_a_command_write_here_and_nowhere_else() {
    let world = world("never", "workspace-write").set("sandbox_workspace_write.exclude_slash_tmp=true");
    let outside = world.path("outside");
    let commands = ["touch here", &format!("touch {}", outside.display())];
    let mut client = world.start(&script(&commands)).await;
    let events = client.turn("1", "hi").await;
    let codes: Vec<i32> = ended(&events).iter().filter_map(|command| Some(command.end.as_ref()?.exit_code)).collect();
    assert_eq!(codes, [0, 1]);
    // The placeholders of protected names are gone when the turn is over.
    let left = std::fs::read_dir(client.world.path("project")).expect("it is there");
    let left: Vec<_> = left.map(|entry| entry.expect("it can be listed").file_name()).collect();
    assert_eq!(left, ["here"]);
    assert!(!outside.exists());
}

#[tokio::test]
async fn on_failure_asks_and_runs_outside_the_sandbox() {
    let mut client = world("on-failure", "read-only").start(&script(&["touch x"])).await;
    client.say("1", "hi").await;
    asked(&mut client).await;
    assert!(!client.world.path("project/x").exists());
    answer(&client, ReviewDecision::Approved).await;
    let events = client.until_ended().await;
    assert_eq!(the_end(&events).1, 0);
    assert!(client.world.path("project/x").exists());
}

#[tokio::test]
async fn an_escalation_is_refused_if_nobody_may_be_asked() {
    let escalated = json!({"command": ["touch", "x"], "sandbox_permissions": "require_escalated"});
    let mut client = world("never", "read-only").start(&scripted(&[escalated])).await;
    let events = client.turn("1", "hi").await;
    assert_eq!(the_end(&events).0, CommandStatus::Declined);
    assert!(outputs(&client)[0].starts_with("approval policy is Never"), "{:?}", outputs(&client));
}

#[tokio::test]
async fn a_command_that_cannot_start_is_reported_to_the_model() {
    let arguments = [json!({"command": ["no-such-program"]}), json!({"command": []}), json!({"command": "ls"})];
    let mut client = world("never", "danger-full-access").start(&scripted(&arguments)).await;
    client.turn("1", "hi").await;
    let outputs = outputs(&client);
    assert!(outputs[0].contains("no-such-program"), "{outputs:?}");
    assert_eq!(outputs[1], "the command is empty");
    assert!(outputs[2].starts_with("failed to parse function arguments"), "{outputs:?}");
}

#[tokio::test]
async fn a_flood_is_cut_for_client_and_model() {
    let flood = "head -c 5242880 /dev/zero | tr '\\0' x";
    let mut client = world("never", "danger-full-access").start(&script(&[flood])).await;
    let events = client.turn("1", "hi").await;
    let (_, code, text) = the_end(&events);
    assert_eq!(code, 0);
    assert!(text.len() < 300 * 1024, "{}", text.len());
    let output: Value = serde_json::from_str(&outputs(&client)[0]).expect("the output is JSON");
    let x = "x".repeat(5000);
    assert_eq!(output["output"], format!("Total output lines: 1\n\n{x}…5232880 chars truncated…{x}"));
}

/// The texts of the warnings of a turn.
fn warnings(events: &[Arc<Event>]) -> Vec<String> {
    let warning = |event: &Arc<Event>| match &event.body {
        Body::Warning { message } => Some(message.clone()),
        _ => None,
    };
    events.iter().filter_map(warning).collect()
}

#[tokio::test]
async fn a_turn_reports_what_was_disarmed_after_its_commands() {
    let world = world("never", "workspace-write").set("sandbox_workspace_write.exclude_slash_tmp=true");
    let world = world.set("sandbox_workspace_write.protected_names=['x.cfg']");
    let world = world.set("sandbox_workspace_write.unprotected_names=['.idea']");
    std::fs::create_dir(world.path("project/sub")).expect("a folder can be made");
    let command = "cd sub; touch .npmrc x.cfg Makefile; mkdir .idea; chmod 600 Makefile";
    let mut client = world.start(&script(&[command])).await;
    let events = client.turn("1", "hi").await;
    let told = warnings(&events);
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("sub/.npmrc: ") && told[0].contains("sub/x.cfg: "), "{told:?}");
    assert!(told[1].ends_with(": sub/Makefile"), "{told:?}");
    assert!(matches!(events.last().map(|event| &event.body), Some(Body::TurnEnded(_))), "it is told before the end");
    let folder = std::fs::read_dir(client.world.path("project/sub")).expect("it is there");
    let names: Vec<String> = folder.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let there = |name: &str| names.iter().any(|found| found == name);
    assert_eq!([".npmrc", "x.cfg", "Makefile", ".idea"].map(there), [false, false, true, true]);
    assert!(names.iter().any(|name| name.starts_with(".npmrc.disabled-by-codex-")), "{names:?}");
}

/// The question whether to run again outside the sandbox is a new one, and an answer to the first may arrive late.
#[tokio::test]
async fn an_answer_to_one_question_about_a_command_is_none_to_the_next() {
    let args = json!({"command": ["/bin/sh", "-c", "echo permission denied; exit 1"]});
    let mut client = world("untrusted", "workspace-write").start(&scripted(&[args])).await;
    client.say("1", "hi").await;
    asked(&mut client).await;
    let first = QuestionId::first(ItemId::new("call-1-1"));
    let yes = || Answer::from(ReviewDecision::Approved);
    assert_eq!(client.thread.answer(first.clone(), yes()).await, Ok(true));
    asked(&mut client).await;
    assert_eq!(client.thread.answer(first.clone(), yes()).await, Ok(false), "that one was answered");
    assert_eq!(client.thread.answer(first.next(), Answer::Declined).await, Ok(true));
    let events = client.until_ended().await;
    let answers = events.iter().filter_map(|event| match &event.body {
        Body::Answered { question, answer, item } => Some((question.to_string(), answer.allows(), item.is_some())),
        _ => None,
    });
    assert_eq!(answers.collect::<Vec<_>>(), [("call-1-1#2".to_owned(), false, false)]);
}
