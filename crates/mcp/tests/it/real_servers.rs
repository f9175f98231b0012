//! Real servers of others, if `CODEX_TEST_MCP` names a folder in which npm has installed
//! `@modelcontextprotocol/server-everything` and `@modelcontextprotocol/sdk`. Needs node.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use codex_log::{Answer, ElicitationForm, QuestionKind, Status};
use codex_wire::decision::ElicitationDecision;
use serde_json::json;

use crate::world::{ThreadOf, World};

/// The folder with the servers, unless the tests are not wanted.
fn folder() -> Option<PathBuf> {
    std::env::var_os("CODEX_TEST_MCP").map(PathBuf::from)
}

fn everything(folder: &std::path::Path) -> String {
    let program = folder.join("node_modules/.bin/mcp-server-everything");
    format!(
        "[mcp_servers.s]\ncommand = '{}'\nargs = ['stdio']\nstartup_timeout_sec = 60\n\
         default_tools_approval_mode = 'approve'\n",
        program.display()
    )
}

/// A server at an address, which ends with the test.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    fn start(folder: &std::path::Path) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let port = free.local_addr().expect("it has an address").port();
        drop(free);
        let mut command = Command::new(folder.join("node_modules/.bin/mcp-server-everything"));
        command.arg("streamableHttp").env("PORT", port.to_string()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it can be started");
        let mut lines = BufReader::new(child.stderr.take().expect("it has stderr")).lines();
        let is_up = lines.any(|line| line.is_ok_and(|line| line.contains("listening on port")));
        assert!(is_up, "the server listens");
        Self { child, url: format!("http://127.0.0.1:{port}/mcp") }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

async fn until_offered(thread: &ThreadOf, tool: &str) {
    while !thread.offered().iter().any(|offered| offered == tool) {
        thread.until("ready").await;
    }
}

/// Every kind of result, progress, both kinds of questions, and a server that wants to sample.
async fn uses_everything(thread: &mut ThreadOf) {
    // Some tools come only after the server has asked for our roots, and tells of the change.
    until_offered(thread, "mcp__s__trigger-elicitation-request").await;
    let echo = thread.call("mcp__s__echo", &json!({"message": "hi"})).await;
    assert!(echo.output.contains("Echo: hi"), "{}", echo.output);
    let image = thread.call("mcp__s__get-tiny-image", &json!({})).await;
    assert!(image.output.contains("data:image/png;base64,"), "{}", image.output);
    let structured = thread.call("mcp__s__get-structured-content", &json!({"location": "New York"})).await;
    assert!(structured.output.contains("temperature"), "{}", structured.output);
    let links = thread.call("mcp__s__get-resource-links", &json!({"count": 2})).await;
    assert!(links.output.contains("resource_link"), "{}", links.output);
    let embedded = json!({"resourceType": "Text", "resourceId": 1});
    let embedded = thread.call("mcp__s__get-resource-reference", &embedded).await;
    assert!(embedded.output.contains("resource"), "{}", embedded.output);
    let slow = thread.call("mcp__s__trigger-long-running-operation", &json!({"duration": 1, "steps": 3})).await;
    assert_eq!((slow.progress().len(), slow.call().status), (3, Status::Completed), "{:?}", slow.progress());
    let question = thread.asked("mcp__s__trigger-elicitation-request", &json!({})).await;
    let QuestionKind::Elicitation(asked) = &question.kind else { panic!("a server asks") };
    assert!(matches!(asked.form, ElicitationForm::Schema(_)), "{asked:?}");
    let given = Answer::Given { action: ElicitationDecision::Accept, content: Some(json!({"name": "Ann"})) };
    let answered = thread.answer(&question, given).await.ended();
    assert!(answered.output.contains("Ann"), "{}", answered.output);
    let sampling = thread.call("mcp__s__trigger-sampling-request", &json!({"prompt": "hello"})).await;
    assert!(sampling.output.contains("unsupported call"), "it is not offered: {}", sampling.output);
}

#[tokio::test]
async fn a_real_server_on_standard_streams_can_be_used() {
    let Some(folder) = folder() else { return };
    let world = World::new(&everything(&folder));
    uses_everything(&mut world.thread()).await;
}

#[tokio::test]
async fn a_real_server_at_an_address_can_be_used() {
    let Some(folder) = folder() else { return };
    let served = Served::start(&folder);
    let world =
        World::new(&format!("[mcp_servers.s]\nurl = '{}'\ndefault_tools_approval_mode = 'approve'\n", served.url));
    uses_everything(&mut world.thread()).await;
}

#[tokio::test]
async fn a_real_server_asks_for_a_visit_to_an_address() {
    let Some(folder) = folder() else { return };
    let world = World::new(&everything(&folder));
    let mut thread = world.thread();
    until_offered(&thread, "mcp__s__trigger-url-elicitation").await;
    let question = thread.asked("mcp__s__trigger-url-elicitation", &json!({"url": "https://example.com/x"})).await;
    let QuestionKind::Elicitation(asked) = &question.kind else { panic!("a server asks") };
    let ElicitationForm::Url { url, .. } = &asked.form else { panic!("{asked:?}") };
    assert_eq!(url, "https://example.com/x");
    let declined = Answer::Given { action: ElicitationDecision::Decline, content: None };
    thread.answer(&question, declined).await.ended();
}

#[tokio::test]
async fn a_real_server_whose_tools_change_crashes_and_comes_back() {
    let Some(folder) = folder() else { return };
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/changing_server.mjs");
    let world = World::new(&format!(
        "[mcp_servers.s]\ncommand = 'node'\nargs = ['{}', '{}']\nstartup_timeout_sec = 60\n\
         default_tools_approval_mode = 'approve'\n",
        script.display(),
        folder.display()
    ));
    let mut thread = world.thread();
    thread.until("ready").await;
    thread.call("mcp__s__add", &json!({"name": "fresh"})).await;
    until_offered(&thread, "mcp__s__fresh").await;
    assert!(thread.call("mcp__s__fresh", &json!({})).await.output.contains("fresh ran"));
    let failed = thread.call("mcp__s__fail", &json!({})).await;
    assert_eq!(failed.call().status, Status::Failed);
    let crashed = thread.call("mcp__s__crash", &json!({})).await;
    assert!(crashed.output.contains("the server has ended"), "{}", crashed.output);
    thread.until("starting").await;
    thread.until("ready").await;
    assert!(!thread.offered().contains(&"mcp__s__fresh".to_owned()), "it begins again without the tool");
}
