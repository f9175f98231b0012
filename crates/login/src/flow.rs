//! Running logins: the machines of the flows, with a listener, a clock and the network.

use std::time::Duration;

use codex_config::{Config, CredentialsStore, LoginConfig, Tokens};
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use crate::browser::{BrowserFlow, CallbackOutcome, CallbackPage};
use crate::callback::{self, CallbackConnection};
use crate::device::{DevicePolls, Next, PollResponse};
use crate::http::{Body, Request};
use crate::tokens::{Grant, exchange, granted, send};
use crate::{Accounts, Issuer, LoginError};

/// The ports that a browser may return to; the issuer knows them.
pub const PORTS: [u16; 2] = [1455, 1457];

/// The time limit for the user in the browser.
const BROWSER_TIME: Duration = Duration::from_secs(10 * 60);

/// The issuer, and the parameters of a login.
#[derive(Debug, Clone)]
pub struct LoginOptions {
    pub issuer: Issuer,
    /// The name of the client.
    pub originator: String,
    /// The allowed workspaces; empty allows any.
    pub workspaces: Vec<String>,
    /// The ports that a browser may return to, in order.
    pub ports: Vec<u16>,
}

impl LoginOptions {
    /// The login options of the configuration.
    pub fn new(config: &Config, issuer: Issuer, originator: &str) -> Result<Self, LoginError> {
        let login = config.login();
        check_store(&login)?;
        let (originator, workspaces) = (originator.to_owned(), login.forced_workspaces);
        Ok(Self { issuer, originator, workspaces, ports: PORTS.to_vec() })
    }

    /// Refuses a login for a workspace that is not allowed.
    fn check(&self, tokens: &Tokens) -> Result<(), LoginError> {
        let account = tokens.account();
        let is_wanted = |account: &String| self.workspaces.contains(account);
        if self.workspaces.is_empty() || account.as_ref().is_some_and(is_wanted) {
            Ok(())
        } else {
            Err(LoginError::Workspace)
        }
    }
}

/// Whether this build can store a login in the configured place.
pub fn check_store(login: &LoginConfig) -> Result<(), LoginError> {
    match login.store {
        CredentialsStore::File | CredentialsStore::Auto => Ok(()),
        CredentialsStore::Keyring if cfg!(feature = "keyring") => Ok(()),
        CredentialsStore::Keyring => Err(LoginError::NoKeyring),
    }
}

/// A login that waits for a browser. Dropping it cancels it and frees the port.
#[derive(Debug)]
pub struct BrowserLogin {
    accounts: Accounts,
    options: LoginOptions,
    flow: BrowserFlow,
    listener: TcpListener,
    url: String,
}

impl BrowserLogin {
    pub(crate) async fn begin(accounts: Accounts, options: LoginOptions) -> Result<Self, LoginError> {
        let (listener, port) = callback::bind(&options.ports).await?;
        let flow = BrowserFlow::new(port)?;
        let url = flow.url(&options.issuer, &options.originator, &options.workspaces);
        Ok(Self { accounts, options, flow, listener, url })
    }

    /// The URL that the user opens.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Waits for the user, and stores the login.
    pub async fn finish(self) -> Result<(), LoginError> {
        let Self { accounts, options, flow, listener, url: _ } = self;
        receive_grant(listener, flow, BROWSER_TIME, async |grant| accounts.complete(&options, &grant).await).await
    }
}

/// Waits for the browser, redeems what it brings, and shows it how that ended.
pub(crate) async fn receive_grant<E: From<LoginError>>(
    listener: TcpListener,
    flow: BrowserFlow,
    within: Duration,
    redeem: impl AsyncFnOnce(Grant) -> Result<(), E>,
) -> Result<(), E> {
    let (connections, mut waiting) = mpsc::channel(1);
    let listening = tokio::spawn(callback::receive(listener, connections));
    let outcome = wait(&flow, &mut waiting, within).await;
    // New connections are refused from now on.
    drop(waiting);
    let (connection, outcome) = outcome?;
    let (reply, ended) = match outcome {
        CallbackOutcome::Cancelled => (CallbackPage::Cancelled, Err(LoginError::Cancelled.into())),
        CallbackOutcome::Denied { code } => (CallbackPage::Failed, Err(LoginError::Denied { code }.into())),
        CallbackOutcome::Code(code) => {
            let ended = redeem(flow.grant(code)).await;
            (if ended.is_ok() { CallbackPage::Done } else { CallbackPage::Failed }, ended)
        }
    };
    connection.answer(reply).await;
    // The port is free again when this returns.
    let _ = listening.await;
    ended
}

/// Waits for the request that ends the login. Others are answered and ignored.
async fn wait(
    flow: &BrowserFlow,
    waiting: &mut mpsc::Receiver<CallbackConnection>,
    within: Duration,
) -> Result<(CallbackConnection, CallbackOutcome), LoginError> {
    let deadline = Instant::now() + within;
    let expired = || LoginError::Expired { after: within };
    loop {
        let connection = timeout_at(deadline, waiting.recv()).await.map_err(|_| expired())?.ok_or_else(expired)?;
        match flow.receive(&connection.request) {
            Ok(outcome) => return Ok((connection, outcome)),
            // A slow client blocks no other.
            Err(reply) => drop(tokio::spawn(connection.answer(reply))),
        }
    }
}

/// A login that waits for the user to enter a code.
#[derive(Debug)]
pub struct DeviceLogin {
    accounts: Accounts,
    options: LoginOptions,
    polls: DevicePolls,
    device_id: codex_config::Secret,
    user_code: String,
}

impl DeviceLogin {
    pub(crate) async fn begin(accounts: Accounts, options: LoginOptions) -> Result<Self, LoginError> {
        let issuer = &options.issuer;
        let body = Body::Json(json!({"client_id": issuer.client_id()}));
        let answer = send(accounts.http(), Request::post(issuer.user_code_url(), body)).await?;
        if answer.status == 404 {
            return Err(LoginError::NoDeviceLogin { issuer: issuer.url().to_owned() });
        }
        let answer = granted(answer)?;
        let text = |name: &str| answer.get(name).and_then(Json::as_str).filter(|text| !text.is_empty());
        let user_code = text("user_code").or_else(|| text("usercode"));
        let (Some(device_id), Some(user_code)) = (text("device_auth_id"), user_code) else {
            return Err(LoginError::Malformed { what: "it has no code" });
        };
        // It is shown in a terminal.
        if user_code.len() > 64 || !user_code.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(LoginError::Malformed { what: "its code cannot be shown" });
        }
        let polls = DevicePolls::new(answer.get("interval"));
        let (device_id, user_code) = (codex_config::Secret::new(device_id), user_code.to_owned());
        Ok(Self { accounts, options, polls, device_id, user_code })
    }

    /// The code that the user enters.
    #[must_use]
    pub fn user_code(&self) -> &str {
        &self.user_code
    }

    /// The page where the user types it.
    #[must_use]
    pub fn page(&self) -> String {
        self.options.issuer.device_page()
    }

    /// Waits for the user, and stores the login.
    pub async fn finish(mut self) -> Result<(), LoginError> {
        let mut outcome = PollResponse::Pending;
        loop {
            match self.polls.step(outcome) {
                Next::Fail(error) => return Err(error),
                Next::Exchange { code, verifier } => {
                    let redirect_uri = self.options.issuer.device_redirect();
                    return self.accounts.complete(&self.options, &Grant { code, verifier, redirect_uri }).await;
                }
                Next::Ask { after } => sleep(after).await,
            }
            outcome = self.ask().await;
        }
    }

    /// An issuer that cannot be reached for a moment is asked again.
    async fn ask(&self) -> PollResponse {
        let body = json!({"device_auth_id": self.device_id.reveal(), "user_code": self.user_code});
        let request = Request::post(self.options.issuer.device_token_url(), Body::Json(body));
        match send(self.accounts.http(), request).await {
            Ok(answer) => PollResponse::of(&answer),
            Err(_) => PollResponse::Pending,
        }
    }
}

impl Accounts {
    /// Begins a login with a browser.
    pub async fn begin_browser(&self, options: LoginOptions) -> Result<BrowserLogin, LoginError> {
        BrowserLogin::begin(self.clone(), options).await
    }

    /// Begins a login with a code.
    pub async fn begin_device(&self, options: LoginOptions) -> Result<DeviceLogin, LoginError> {
        DeviceLogin::begin(self.clone(), options).await
    }

    /// Exchanges a code and stores the login.
    async fn complete(&self, options: &LoginOptions, grant: &Grant) -> Result<(), LoginError> {
        let tokens = exchange(self.http(), &options.issuer, grant).await?;
        options.check(&tokens)?;
        self.store(tokens).await
    }
}
