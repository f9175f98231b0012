//! A handler that panics costs only its own answer.

use codex_config::{ConfigSource, Env, Home, Overrides};
use codex_engine::{CredentialsSource, HostOptions, LocalHost};
use codex_login::Accounts;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::thread::ThreadParams;
use codex_store::FileStore;
use codex_wire::ids::RequestId;
use codex_wire::rollout::SessionSource;
use tokio::io::{AsyncBufReadExt as _, BufReader, DuplexStream, Lines, duplex};

use super::*;
use crate::app::host::{Host, Start};
use crate::app::outbox::Outbox;

/// A method whose handler panics.
struct Panics;

impl Method for Panics {
    const NAME: &'static str = "test/panics";
    type Params = ThreadParams;
    type Response = Empty;
}

impl Serve for Panics {
    async fn serve(request: Request<Self>, _: ThreadParams) {
        panic!("a bug in {}", request.unanswered.id);
    }
}

impl ServeThread for Panics {
    async fn serve(_: &mut Lane, request: Request<Self>, _: ThreadParams) {
        panic!("a bug in {}", request.unanswered.id);
    }
}

/// A method whose handler answers.
struct Answers;

impl Method for Answers {
    const NAME: &'static str = "test/answers";
    type Params = ThreadParams;
    type Response = Empty;
}

impl ServeThread for Answers {
    async fn serve(_: &mut Lane, request: Request<Self>, _: ThreadParams) {
        request.answer(Ok(Empty {})).await;
    }
}

/// A client of an idle server, and the messages that it receives.
fn client(home: &std::path::Path) -> (Arc<Connection>, Lines<BufReader<DuplexStream>>) {
    let store = Arc::new(FileStore::of(home));
    let env = Env::from_iter::<[(&str, &str); 0]>([]);
    let config = Arc::new(ConfigSource::new(Home::at(home), env, Overrides::default()));
    let (cwd, originator) = (home.to_owned(), "test".to_owned());
    let accounts = Accounts::new(config.home(), config.env());
    let logins = Arc::new(accounts.clone());
    let threads = LocalHost::new(HostOptions {
        agents: None,
        servers: None,
        config: Arc::clone(&config),
        store: store.clone(),
        cwd: cwd.clone(),
        programs: None,
        credentials: CredentialsSource::new(move |config, provider| accounts.credentials(config.login(), provider)),
        originator: originator.clone(),
        source: SessionSource::VsCode,
        recent_bytes: 0,
    });
    let threads = Arc::new(threads);
    let start = Start {
        servers: None,
        threads,
        accounts: logins,
        store,
        config,
        cwd,
        programs: None,
        originator,
        release: None,
        dialect: None,
        delta_interval: None,
    };
    let (output, read) = duplex(4096);
    let (outbox, writer) = Outbox::new(output);
    tokio::spawn(writer.run());
    let (connection, _) = Connection::new(Arc::new(Host::new(start)), outbox);
    (Arc::new(connection), BufReader::new(read).lines())
}

fn request<M: Method>(connection: &Arc<Connection>, id: i64) -> Request<M> {
    Request::new(Unanswered::new(connection, RequestId::Integer(id)))
}

fn params() -> ThreadParams {
    serde_json::from_value(serde_json::json!({"threadId": ThreadId::fresh()})).unwrap()
}

async fn next(lines: &mut Lines<BufReader<DuplexStream>>) -> String {
    lines.next_line().await.unwrap().unwrap()
}

fn refusal(id: i64) -> String {
    format!(r#"{{"error":{{"code":-32603,"message":"the request failed within this program"}},"id":{id}}}"#)
}

#[tokio::test]
async fn a_request_whose_handler_panics_is_refused() {
    let home = tempfile::tempdir().unwrap();
    let (connection, mut lines) = client(home.path());
    at_once(request::<Panics>(&connection, 1), params()).await;
    assert_eq!(next(&mut lines).await, refusal(1));
    aside(request::<Panics>(&connection, 2), params());
    assert_eq!(next(&mut lines).await, refusal(2));
}

#[tokio::test]
async fn requests_behind_one_that_panics_are_served() {
    let home = tempfile::tempdir().unwrap();
    let (connection, mut lines) = client(home.path());
    let params = params();
    assert!(in_lane(request::<Panics>(&connection, 1), params.clone()).is_none());
    assert!(in_lane(request::<Answers>(&connection, 2), params).is_none());
    assert_eq!(next(&mut lines).await, refusal(1));
    assert_eq!(next(&mut lines).await, r#"{"id":2,"result":{}}"#);
}
