//! Calls of tools: results, approvals, questions, and servers that misbehave.

use codex_log::{Answer, Body, Item, QuestionKind, Status};
use codex_testkit::mcp_server::config;
use codex_wire::decision::{ElicitationDecision, ReviewDecision};
use codex_wire::policy::{AskForApproval, SandboxPolicy};
use codex_wire::tool_spec::ToolSpec;
use serde_json::json;

use crate::world::{Next, World};

#[tokio::test]
async fn a_tool_is_called_before_and_after_its_server_has_started() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    // The server is starting, and the call waits for it.
    let early = thread.call("mcp__s__echo", &json!({"text": "hi"})).await;
    assert_eq!(early.output, r#"{"text":"hi"}"#);
    assert!(matches!(&early.events[0], Body::ItemStarted(Item::McpCall(call)) if call.status == Status::Running));
    let call = early.call();
    assert_eq!(
        (call.status, call.invocation.server.as_str(), call.invocation.tool.as_str()),
        (Status::Completed, "s", "echo")
    );
    let later = thread.call("s__echo", &json!({"text": "again"})).await;
    assert_eq!(later.output, r#"{"text":"again"}"#);
    assert!(thread.offered().contains(&"mcp__s__echo".to_owned()));
}

#[tokio::test]
async fn the_tools_of_a_server_are_one_namespace_for_newer_clients() {
    let world = World::new(&config("'my server'", "good", "disabled_tools = ['fail']"));
    let mut thread = world.thread();
    thread.settled().await;
    let list = thread.list(true);
    let namespaces: Vec<_> = list.specs().iter().filter(|spec| spec.name().starts_with("mcp__")).collect();
    let [ToolSpec::Namespace(namespace)] = namespaces.as_slice() else { panic!("{namespaces:?}") };
    assert_eq!(namespace.name, "mcp__my_server");
    let names: Vec<_> = namespace.tools.iter().map(ToolSpec::name).collect();
    assert!(names.contains(&"echo") && names.contains(&"wrong-id") && !names.contains(&"fail"), "{names:?}");
    let called = thread.call("mcp__my_server__echo", &json!({"text": "hi"})).await;
    assert_eq!(called.output, r#"{"text":"hi"}"#);
    assert!(thread.offered().contains(&"mcp__my_server__echo".to_owned()), "others see each tool");
}

#[tokio::test]
async fn progress_and_failures_are_reported() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    let counted = thread.call("mcp__s__count", &json!({})).await;
    assert_eq!(counted.progress(), ["counted 1", "counted 2", "counted 3"]);
    let failed = thread.call("mcp__s__fail", &json!({})).await;
    assert_eq!((failed.call().status, failed.output.contains("it failed")), (Status::Failed, true));
}

#[tokio::test]
async fn a_tool_that_claims_nothing_is_asked_about_until_it_changes() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    let question = thread.asked("mcp__s__write", &json!({"text": "x"})).await;
    let QuestionKind::Tool { invocation, description } = &question.kind else { panic!("it is about a tool") };
    assert_eq!((invocation.tool.as_str(), description.as_deref()), ("write", Some("writes")));
    let denied = thread.answer(&question, ReviewDecision::Denied.into()).await.ended();
    assert_eq!((denied.call().status, denied.output.as_str()), (Status::Declined, "user rejected MCP tool call"));
    let question = thread.asked("mcp__s__write", &json!({})).await;
    let written = thread.answer(&question, ReviewDecision::ApprovedForSession.into()).await.ended();
    assert!(written.output.contains("written"), "{}", written.output);
    thread.settled().await;
    thread.until("ready").await;
    assert!(thread.call("mcp__s__write", &json!({})).await.output.contains("written"), "it is granted");
    // Its description changes, so the approval is for another tool.
    thread.call("mcp__s__grow", &json!({})).await;
    thread.until("ready").await;
    thread.asked("mcp__s__write", &json!({})).await;
}

#[tokio::test]
async fn the_policy_decides_if_nobody_is_asked() {
    let more = "tools.write.approval_mode = 'approve'";
    let world = World::new(&format!("{}\n{}", config("s", "good", ""), config("free", "good", more)));
    let mut careful = world.thread_under(AskForApproval::Never, SandboxPolicy::ReadOnly);
    let refused = careful.call("mcp__s__write", &json!({})).await;
    assert_eq!(refused.call().status, Status::Declined);
    assert!(refused.output.contains("approval policy is `never`"), "{}", refused.output);
    assert!(careful.call("mcp__free__write", &json!({})).await.output.contains("written"));
    let mut careless = world.thread_under(AskForApproval::Never, SandboxPolicy::DangerFullAccess);
    assert!(careless.call("mcp__s__write", &json!({})).await.output.contains("written"));
}

#[tokio::test]
async fn a_server_that_does_not_answer_costs_its_time_and_no_more() {
    let world = World::new(&config("s", "good", "tool_timeout_sec = 0.3"));
    let mut thread = world.thread();
    thread.settled().await;
    let hung = thread.call("mcp__s__hang", &json!({})).await;
    assert!(hung.output.ends_with("failed: no answer within 0.3 s"), "{}", hung.output);
    assert_eq!(hung.call().status, Status::Failed);
    assert!(thread.call("mcp__s__cancelled", &json!({})).await.output.contains(r#""text":"1""#), "the server was told");
}

#[tokio::test]
async fn an_interrupted_call_is_cancelled_at_the_server() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    thread.settled().await;
    let nothing = json!({});
    let begun = thread.begin("mcp__s__hang", &nothing);
    // The call has begun when it has been polled once, and never ends.
    tokio::select! {
        biased;
        _ = begun => panic!("it hangs"),
        () = async { for _ in 0..100 { tokio::task::yield_now().await; } } => {}
    }
    let stopped = thread.stop();
    assert!(
        matches!(&stopped[..], [Body::ItemCompleted(Item::McpCall(call))] if call.status == Status::Failed),
        "{stopped:?}"
    );
    assert!(thread.call("mcp__s__cancelled", &json!({})).await.output.contains(r#""text":"1""#));
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_not_ours_costs_nothing_else() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    let big = thread.call("mcp__s__big", &json!({})).await;
    assert!(big.output.contains("bytes, 16777216 are allowed"), "{}", big.output);
    let wrong = thread.call("mcp__s__wrong-id", &json!({})).await;
    assert!(wrong.output.contains("yours") && !wrong.output.contains("not yours"), "{}", wrong.output);
}

#[tokio::test]
async fn a_crash_is_reported_and_the_server_restarts() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    let crashed = thread.call("mcp__s__crash", &json!({})).await;
    assert!(crashed.output.contains("MCP-LAST-WORDS"), "{}", crashed.output);
    thread.until("ready").await;
    thread.until("starting").await;
    thread.until("ready").await;
    assert!(thread.call("mcp__s__echo", &json!({"text": "back"})).await.output.contains("back"));
}

#[tokio::test]
async fn a_question_of_a_server_reaches_a_person_and_the_answer_the_server() {
    for mode in ["good", "stateless"] {
        let world = World::new(&config("s", mode, ""));
        let mut thread = world.thread();
        let question = thread.asked("mcp__s__ask", &json!({})).await;
        let QuestionKind::Elicitation(asked) = &question.kind else { panic!("a server asks") };
        assert_eq!((asked.server.as_str(), asked.message.as_str()), ("s", "Who are you?"));
        let given = Answer::Given { action: ElicitationDecision::Accept, content: Some(json!({"name": "Ann"})) };
        let ended = thread.answer(&question, given).await.ended();
        assert!(ended.output.contains("accept") && ended.output.contains("Ann"), "{mode}: {}", ended.output);
    }
}

#[tokio::test]
async fn a_question_that_the_policy_switches_off_is_declined_at_once() {
    let world = World::new(&config("s", "good", "tools.ask.approval_mode = 'approve'"));
    let silent = json!({"granular": {"sandbox_approval": true, "rules": true, "mcp_elicitations": false}});
    let silent = serde_json::from_value(silent).expect("a policy");
    for policy in [AskForApproval::Never, silent] {
        let mut thread = world.thread_under(policy, SandboxPolicy::DangerFullAccess);
        let Next::Ended(ended) = thread.begin("mcp__s__ask", &json!({})).await else { panic!("nobody is asked") };
        assert!(ended.output.contains("decline"), "{}", ended.output);
        let is_told = |body: &Body| matches!(body, Body::Warning { message } if message.contains("declined"));
        assert!(ended.events.iter().any(is_told), "{:?}", ended.events);
    }
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    let listed = thread.call("list_mcp_resources", &json!({})).await.output;
    assert!(listed.contains("memo://note") && listed.contains(r#""server":"s""#), "{listed}");
    let read = thread.call("read_mcp_resource", &json!({"server": "s", "uri": "memo://note"})).await.output;
    assert!(read.contains("a note"), "{read}");
    let unknown = thread.call("read_mcp_resource", &json!({"server": "t", "uri": "x"})).await.output;
    assert_eq!(unknown, "there is no MCP server `t`");
}

#[tokio::test]
async fn a_tool_that_is_allowed_for_good_is_asked_about_again_after_a_change() {
    let always = || ReviewDecision::ApprovedExecpolicyAmendment { proposed_execpolicy_amendment: Vec::new() };
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    let question = thread.asked("mcp__s__write", &json!({})).await;
    thread.answer(&question, always().into()).await.ended();
    let world = world.again();
    let mut thread = world.thread_under(AskForApproval::Never, SandboxPolicy::ReadOnly);
    assert!(thread.call("mcp__s__write", &json!({})).await.output.contains("written"), "in another run, too");
    let mut thread = world.thread();
    thread.settled().await;
    thread.call("mcp__s__grow", &json!({})).await;
    while !thread.offered().contains(&"mcp__s__extra".to_owned()) {
        thread.until("ready").await;
    }
    thread.asked("mcp__s__write", &json!({})).await;
    for other in [
        config("s", "good", "").replace("env = {", "env = { MORE = '1',"),
        config("s", "good", "cwd = '/'"),
        config("s", "good", "tools.write.approval_mode = 'prompt'"),
    ] {
        let world = World::new(&config("s", "good", ""));
        let mut thread = world.thread();
        let question = thread.asked("mcp__s__write", &json!({})).await;
        thread.answer(&question, always().into()).await.ended();
        let world = world.again();
        world.write(&other);
        world.thread().asked("mcp__s__write", &json!({})).await;
    }
}

#[tokio::test]
async fn a_result_that_is_cut_is_kept_as_a_whole() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    let long = thread.call("mcp__s__long", &json!({})).await.output;
    let path = long.rsplit_once("[the whole result is in ").and_then(|(_, rest)| rest.strip_suffix(']'));
    let path = std::path::PathBuf::from(path.expect("the model is told where it is"));
    assert!(long.len() < 12_000 && path.starts_with(world.path()), "{long}");
    while !path.exists() {
        tokio::task::yield_now().await;
    }
    let kept: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).expect("it can be read")).expect("it is JSON");
    assert_eq!(kept["content"][0]["text"].as_str().map(str::len), Some(50_000));
    assert!(!thread.call("mcp__s__echo", &json!({"text": "x"})).await.output.contains("whole result"));
}

#[tokio::test]
async fn a_flood_costs_nothing_but_itself() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    assert!(thread.call("mcp__s__flood", &json!({})).await.output.contains("after the flood"));
    assert!(thread.call("mcp__s__echo", &json!({"text": "x"})).await.output.contains('x'));
    assert_eq!(thread.call("mcp__s__nothing", &json!({})).await.output, "unsupported call: mcp__s__nothing");
}

#[tokio::test]
async fn a_server_that_asks_for_roots_is_told_the_folder() {
    let world = World::new(&config("s", "good", ""));
    let mut thread = world.thread();
    let told = thread.call("mcp__s__roots", &json!({})).await.output;
    assert!(told.contains(&format!("file://{}", world.path().display())), "{told}");
}
