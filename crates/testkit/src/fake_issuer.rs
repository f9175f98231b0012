//! A login issuer for tests: codes with PKCE, device codes, rotating refresh tokens, revocation, and the rate limits of
//! an account.
//!
//! It answers requests without a network, or serves them on the loopback interface to processes under test.

use std::{
    collections::{BTreeMap, VecDeque},
    io,
    net::{Ipv4Addr, TcpListener},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;

use crate::http::{RawRequest, Wire};

/// An issuer. Clones share its state; when the last one that serves is dropped, it stops.
#[derive(Debug, Clone)]
pub struct FakeIssuer {
    url: String,
    state: Arc<Mutex<State>>,
    _stop: Option<Arc<oneshot::Sender<()>>>,
}

#[derive(Debug, Default)]
struct State {
    /// The time in seconds; the system's if unset.
    now: Option<u64>,
    life: u64,
    count: usize,
    /// Issued codes, with their challenge and redirect address.
    codes: BTreeMap<String, (String, String)>,
    refresh_tokens: Vec<String>,
    /// The responses to device polls before the login is granted.
    polls: VecDeque<(u16, Value)>,
    has_device_login: bool,
    denial: Option<String>,
    requests: Vec<String>,
    secrets: Vec<String>,
    renewals: usize,
    revoked: Vec<String>,
}

/// A response.
#[derive(Debug)]
pub struct IssuerAnswer {
    pub status: u16,
    /// The redirect target.
    pub location: Option<String>,
    pub body: Value,
}

impl IssuerAnswer {
    fn json(status: u16, body: Value) -> Self {
        Self { status, location: None, body }
    }
}

impl FakeIssuer {
    /// An issuer at an address that is not served. Its tokens live for an hour.
    #[must_use]
    pub fn new(url: &str) -> Self {
        let state = State { life: 3600, has_device_login: true, ..State::default() };
        Self { url: url.to_owned(), state: Arc::new(Mutex::new(state)), _stop: None }
    }

    /// An issuer that is served on the loopback interface.
    ///
    /// # Panics
    /// If it cannot start.
    #[must_use]
    pub fn serve() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap_or_else(|error| panic!("no issuer: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no issuer: {error}"));
        let issuer = Self::new(&format!("http://{address}"));
        let (stop, stopped) = oneshot::channel();
        start_server(issuer.clone(), listener, stopped).unwrap_or_else(|error| panic!("no issuer: {error}"));
        Self { _stop: Some(Arc::new(stop)), ..issuer }
    }

    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Sets its clock, in seconds since 1970.
    pub fn set_now(&self, now: u64) {
        self.state().now = Some(now);
    }

    /// Sets the lifetime of its access tokens in seconds.
    pub fn set_life(&self, seconds: u64) {
        self.state().life = seconds;
    }

    /// Sets the responses to device polls before the login is granted.
    pub fn set_polls(&self, polls: &[(u16, &str)]) {
        self.state().polls = polls.iter().map(|(status, error)| (*status, json!({ "error": error }))).collect();
    }

    /// Disables the device login.
    pub fn without_device_login(&self) {
        self.state().has_device_login = false;
    }

    /// Simulates a user who declines in the browser.
    pub fn deny(&self, code: &str) {
        self.state().denial = Some(code.to_owned());
    }

    /// The requests so far: method and path.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// The number of token renewals.
    #[must_use]
    pub fn renewals(&self) -> usize {
        self.state().renewals
    }

    /// The revoked tokens.
    #[must_use]
    pub fn revoked(&self) -> Vec<String> {
        self.state().revoked.clone()
    }

    /// All issued secrets.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        self.state().secrets.clone()
    }

    /// Invalidates a refresh token, as if another program had used it.
    pub fn void(&self, refresh_token: &str) {
        self.state().refresh_tokens.retain(|known| known != refresh_token);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a request.
    #[must_use]
    pub fn answer(&self, method: &str, target: &str, is_json: bool, body: &[u8]) -> IssuerAnswer {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let fields = if is_json { from_json(body) } else { from_form(&String::from_utf8_lossy(body)) };
        let mut state = self.state();
        state.requests.push(format!("{method} {path}"));
        match (method, path) {
            ("GET", "/oauth/authorize") => state.authorize(&from_form(query)),
            ("POST", "/oauth/token") => state.token(&self.url, &fields),
            ("POST", "/oauth/revoke") => {
                let token = fields.get("token").cloned().unwrap_or_default();
                state.refresh_tokens.retain(|known| *known != token);
                state.revoked.push(token);
                IssuerAnswer::json(200, json!({}))
            }
            ("POST", "/api/accounts/deviceauth/usercode") if state.has_device_login => {
                let body = json!({"device_auth_id": "device-1", "user_code": "ABCD-1234", "interval": "1"});
                IssuerAnswer::json(200, body)
            }
            ("POST", "/api/accounts/deviceauth/token") => state.poll(&self.url),
            ("GET", "/api/codex/usage") => IssuerAnswer::json(
                200,
                json!({"plan_type": "pro", "rate_limit": {"primary_window": {
                    "used_percent": 12, "limit_window_seconds": 18000, "reset_at": 1_800_000_000,
                }}}),
            ),
            _ => IssuerAnswer::json(404, json!({"error": "not_found"})),
        }
    }
}

impl State {
    fn secret(&mut self, kind: &str) -> String {
        self.count += 1;
        let secret = format!("canary-{kind}-{}", self.count);
        self.secrets.push(secret.clone());
        secret
    }

    fn authorize(&mut self, query: &BTreeMap<String, String>) -> IssuerAnswer {
        let field = |name: &str| query.get(name).cloned().unwrap_or_default();
        let (redirect, state) = (field("redirect_uri"), field("state"));
        let location = if let Some(denial) = &self.denial {
            format!("{redirect}?error={denial}&state={state}")
        } else {
            let code = self.secret("code");
            self.codes.insert(code.clone(), (field("code_challenge"), redirect.clone()));
            format!("{redirect}?code={code}&state={state}")
        };
        IssuerAnswer { status: 302, location: Some(location), body: json!({}) }
    }

    fn poll(&mut self, url: &str) -> IssuerAnswer {
        if let Some((status, body)) = self.polls.pop_front() {
            return IssuerAnswer::json(status, body);
        }
        let (code, verifier) = (self.secret("code"), self.secret("verifier"));
        self.codes.insert(code.clone(), (challenge(&verifier), format!("{url}/deviceauth/callback")));
        let body = json!({
            "authorization_code": code, "code_verifier": verifier, "code_challenge": challenge(&verifier),
        });
        IssuerAnswer::json(200, body)
    }

    fn token(&mut self, url: &str, fields: &BTreeMap<String, String>) -> IssuerAnswer {
        let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
        match field("grant_type") {
            "authorization_code" => {
                let Some((expected, redirect)) = self.codes.remove(field("code")) else { return refused() };
                if expected != challenge(field("code_verifier")) || redirect != field("redirect_uri") {
                    return refused();
                }
            }
            "refresh_token" => {
                let used = field("refresh_token");
                let Some(known) = self.refresh_tokens.iter().position(|known| known == used) else { return refused() };
                self.refresh_tokens.remove(known);
                self.renewals += 1;
            }
            _ => return refused(),
        }
        let refresh_token = self.secret("refresh");
        self.refresh_tokens.push(refresh_token.clone());
        let (access_token, id_token) = (self.jwt(url, field("client_id")), self.jwt(url, field("client_id")));
        IssuerAnswer::json(
            200,
            json!({"access_token": access_token, "id_token": id_token, "refresh_token": refresh_token}),
        )
    }

    fn jwt(&mut self, url: &str, client: &str) -> String {
        let system = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
        let now = self.now.unwrap_or_else(system);
        let number = self.count;
        let claims = json!({
            "iss": url, "aud": client, "iat": now, "exp": now + self.life, "email": "user@example.com", "jti": number,
            "https://api.openai.com/auth": {"chatgpt_account_id": "acct-1", "chatgpt_plan_type": "pro"},
        });
        self.count += 1;
        let token = format!("e30.{}.canary{}", URL_SAFE_NO_PAD.encode(claims.to_string()), self.count);
        self.secrets.push(token.clone());
        token
    }
}

fn refused() -> IssuerAnswer {
    IssuerAnswer::json(400, json!({"error": "invalid_grant"}))
}

pub(crate) fn challenge(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()))
}

fn from_json(body: &[u8]) -> BTreeMap<String, String> {
    serde_json::from_slice(body).unwrap_or_default()
}

pub(crate) fn from_form(text: &str) -> BTreeMap<String, String> {
    let pairs = text.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect()
}

fn decoded(value: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        let hex = |byte: Option<u8>| char::from(byte.unwrap_or(b'0')).to_digit(16).unwrap_or_default();
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => u8::try_from(hex(rest.next()) * 16 + hex(rest.next())).unwrap_or_default(),
            byte => byte,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn start_server(issuer: FakeIssuer, listener: TcpListener, stopped: oneshot::Receiver<()>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("fake issuer".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = stopped => {}
                failed = accept(issuer, listener) => { let _ = failed; }
            }
        });
    })?;
    Ok(())
}

async fn accept(issuer: FakeIssuer, listener: TcpListener) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let issuer = issuer.clone();
        tokio::spawn(async move { serve(&issuer, Wire::new(stream)).await });
    }
}

async fn serve(issuer: &FakeIssuer, mut wire: Wire) -> io::Result<()> {
    loop {
        let RawRequest { method, target, headers, body } = wire.read_request().await?;
        let is_json = headers.iter().any(|(name, value)| name == "content-type" && value.contains("json"));
        let answer = issuer.answer(&method, &target, is_json, &body);
        let body = answer.body.to_string();
        let mut headers = vec![("content-length".to_owned(), body.len().to_string())];
        headers.extend(answer.location.map(|location| ("location".to_owned(), location)));
        wire.write_head(answer.status, &headers).await?;
        wire.write(body.as_bytes()).await?;
    }
}
