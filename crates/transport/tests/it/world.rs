//! A server with its own home, and the sockets it listens on.

use std::path::PathBuf;
use std::sync::Arc;

use codex_config::{ConfigSource, Env, Home, Overrides};
use codex_dialects::ProtocolRelease;
use codex_engine::{CredentialsSource, HostOptions, LocalHost};
use codex_server::app::{AppServer, Start};
use codex_store::FileStore;
use codex_transport::{Address, BindError, Limits, Listener, Options, Shortage, Slots, Token};
use codex_wire::rollout::SessionSource;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::Client;

/// The token of all tests.
pub(crate) const TOKEN: &str = "a-token-for-tests-0123456789";

/// Every command needs an approval, and none is sandboxed.
pub(crate) const ASKS: &str = "approval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'";
/// No command needs an approval, and none is sandboxed.
pub(crate) const RUNS: &str = "approval_policy = 'never'\nsandbox_mode = 'danger-full-access'";

pub(crate) struct World {
    folder: TempDir,
    pub(crate) server: AppServer,
    pub(crate) limits: Limits,
    pub(crate) slots: Slots,
    stop: watch::Sender<bool>,
    listening: Vec<JoinHandle<()>>,
    /// Whether clients may send the token.
    pub(crate) takes_bearer: bool,
}

impl World {
    /// A server whose model plays a script, from the start for each thread.
    pub(crate) fn new(config: &str, script: &Value) -> Self {
        Self::remembering(256 * 1024, config, script)
    }

    /// The same, with a replay buffer of `recent_bytes` per thread.
    pub(crate) fn remembering(recent_bytes: usize, config: &str, script: &Value) -> Self {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let root = folder.path().canonicalize().expect("it exists");
        for name in ["home", "work"] {
            std::fs::create_dir(root.join(name)).expect("a folder can be made");
        }
        let provider = "model_provider = 'mine'\n[model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\n\
                        script = 'script.json'\n";
        std::fs::write(root.join("home/config.toml"), format!("{config}\n{provider}")).expect("it can be written");
        std::fs::write(root.join("home/script.json"), script.to_string()).expect("it can be written");
        let env = Env::from_iter([("TERM", "dumb"), ("PATH", "/usr/bin:/bin")]);
        let home = Home::at(root.join("home"));
        let store = Arc::new(FileStore::of(home.path()));
        let config = Arc::new(ConfigSource::new(home, env, Overrides::default()));
        let (cwd, originator) = (root.join("work"), "codex_cli_rs".to_owned());
        let threads = LocalHost::new(HostOptions {
            agents: None,
            servers: None,
            config: Arc::clone(&config),
            store: store.clone(),
            cwd: cwd.clone(),
            programs: None,
            credentials: CredentialsSource::none(),
            originator: originator.clone(),
            source: SessionSource::VsCode,
            recent_bytes,
        });
        let server = AppServer::new(Start {
            servers: None,
            threads: Arc::new(threads),
            accounts: Arc::new(codex_login::Accounts::new(config.home(), config.env())),
            store,
            config,
            cwd,
            programs: None,
            originator,
            release: Some(ProtocolRelease::V0166),
            dialect: None,
            delta_interval: None,
        });
        let (stop, _) = watch::channel(false);
        let (limits, slots) = (Limits::default(), Slots::new(64));
        Self { folder, server, limits, slots, stop, listening: Vec::new(), takes_bearer: true }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("it exists").join(name)
    }

    pub(crate) fn token() -> Token {
        Token::new(TOKEN).expect("it is one")
    }

    pub(crate) fn options(&self) -> Options {
        let (slots, limits) = (self.slots.clone(), self.limits);
        Options {
            token: Some(Self::token()),
            slots,
            limits,
            shortage: Shortage::default(),
            allows_remote: false,
            takes_bearer: self.takes_bearer,
        }
    }

    /// Listens, and returns the address.
    pub(crate) async fn listen(&mut self, url: &str) -> Address {
        let url = if url == "unix://" {
            format!("unix://{}", self.path("home/run/socket").display())
        } else {
            url.to_owned()
        };
        let address: Address = url.parse().expect("it is an address");
        let listener = Listener::bind(&address, self.options()).await.expect("it can be listened on");
        let (address, server) = (listener.address().clone(), self.server.clone());
        let service = move |input, output| {
            let server = server.clone();
            async move {
                // The way in which a client disconnects does not matter.
                let _: std::io::Result<()> = server.serve(input, output).await;
            }
        };
        self.listening.push(tokio::spawn(listener.serve(service, self.stop.subscribe())));
        address
    }

    /// Tries to listen where that should fail.
    pub(crate) async fn refused(&self, url: &str, options: Options) -> BindError {
        let address: Address = url.parse().expect("it is an address");
        Listener::bind(&address, options).await.expect_err("it is refused")
    }

    /// Listens, and connects a client.
    pub(crate) async fn client(&mut self, url: &str) -> Client {
        let address = self.listen(url).await;
        Client::connect(&address, &Self::token()).await
    }

    /// Stops the server as a signal would.
    pub(crate) async fn end(&mut self) {
        self.server.close().await;
        self.stop.send_replace(true);
        for listening in self.listening.drain(..) {
            listening.await.expect("a listener does not panic");
        }
    }
}
