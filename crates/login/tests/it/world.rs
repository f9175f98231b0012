//! A home, an issuer, a network between them, and a clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use codex_config::{Auth, CredentialsStore, Env, Home, ProviderConfig, Tokens};
use codex_login::{Accounts, Answer, Body, HttpError, Issuer, Keyring, LoginOptions, LoginStore, Request, Transport};
use codex_testkit::FakeIssuer;
use futures_util::future::BoxFuture;
use tempfile::TempDir;

/// The start time of tests, in seconds of Unix time.
pub(crate) const BEGIN: u64 = 1_800_000_000;

pub(crate) struct World {
    pub(crate) folder: TempDir,
    pub(crate) issuer: FakeIssuer,
    pub(crate) kind: CredentialsStore,
    pub(crate) keyring: Option<Arc<dyn Keyring>>,
    now: Arc<AtomicU64>,
    is_down: Arc<AtomicBool>,
}

/// The network to the issuer, without sockets, so that the clock of a test can be paused.
struct Line {
    issuer: FakeIssuer,
    is_down: Arc<AtomicBool>,
}

impl Transport for Line {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Answer, HttpError>> {
        Box::pin(async move {
            // Another task may come first.
            tokio::task::yield_now().await;
            let rest = request.url.strip_prefix(self.issuer.url());
            let (Some(target), false) = (rest, self.is_down.load(Ordering::Relaxed)) else {
                return Err(HttpError { host: "nowhere".to_owned(), source: "no way".into() });
            };
            let (method, is_json, body) = match &request.body {
                Body::None => ("GET", false, Vec::new()),
                Body::Json(json) => ("POST", true, json.to_string().into_bytes()),
                Body::Form(fields) => {
                    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
                    ("POST", false, fields.join("&").into_bytes())
                }
            };
            let answer = self.issuer.answer(method, target, is_json, &body);
            Ok(Answer { status: answer.status, body: answer.body.to_string().into_bytes(), challenges: Vec::new() })
        })
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let issuer = FakeIssuer::new("http://localhost:9");
        issuer.set_now(BEGIN);
        let folder = tempfile::tempdir().unwrap();
        let now = Arc::new(AtomicU64::new(BEGIN));
        Self { folder, issuer, kind: CredentialsStore::File, keyring: None, now, is_down: Arc::default() }
    }

    pub(crate) fn home(&self) -> Home {
        Home::at(self.folder.path().join("home"))
    }

    /// The accounts of a process: each has its own, and they share the home.
    pub(crate) fn accounts(&self) -> Accounts {
        let now = Arc::clone(&self.now);
        let line = Line { issuer: self.issuer.clone(), is_down: Arc::clone(&self.is_down) };
        let clock = move || UNIX_EPOCH + Duration::from_secs(now.load(Ordering::Relaxed));
        let store = LoginStore::new(&self.home(), self.kind, self.keyring.clone());
        Accounts::with(store, &env(), line, clock)
    }

    pub(crate) fn options(&self) -> LoginOptions {
        LoginOptions {
            issuer: Issuer::new(Some(self.issuer.url()), None, &env()),
            originator: "tests".to_owned(),
            workspaces: Vec::new(),
            ports: vec![0],
        }
    }

    /// Advances the time of all clocks.
    pub(crate) fn advance(&self, seconds: u64) {
        let now = self.now.fetch_add(seconds, Ordering::Relaxed) + seconds;
        self.issuer.set_now(now);
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.is_down.store(is_down, Ordering::Relaxed);
    }

    pub(crate) fn stored(&self) -> Auth {
        Auth::load(&self.home()).unwrap()
    }

    pub(crate) fn tokens(&self) -> Tokens {
        self.stored().tokens.unwrap()
    }

    /// Logs in with a code.
    pub(crate) async fn log_in(&self) -> Accounts {
        let accounts = self.accounts();
        accounts.begin_device(self.options()).await.unwrap().finish().await.unwrap();
        accounts
    }
}

pub(crate) fn env() -> Env {
    Env::from_iter::<[(&str, &str); 0]>([])
}

/// The provider that a login is for.
pub(crate) fn openai() -> ProviderConfig {
    ProviderConfig {
        base_url: Some("https://api.openai.com/v1".to_owned()),
        requires_openai_auth: true,
        ..ProviderConfig::new("openai")
    }
}
