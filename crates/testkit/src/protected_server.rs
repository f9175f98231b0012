//! An MCP server that wants a login with OAuth, and its authorization server, at one address.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::fake_issuer::{challenge, from_form};
use crate::http::{RawRequest, Wire};
use crate::mcp_server::Server;

/// A variation of the server.
#[derive(Debug, Clone)]
pub struct ProtectedOptions {
    /// The path of its metadata; none if it has no metadata.
    pub metadata_path: Option<String>,
    /// Whether a challenge names that path.
    pub names_metadata: bool,
    /// The path of the issuer, which is also a part of its endpoints.
    pub issuer_path: String,
    /// The path of the issuer's metadata; none if it has no metadata.
    pub issuer_metadata_path: Option<String>,
    /// Members of the metadata and of the issuer's metadata, in place of the usual ones.
    pub metadata: Value,
    pub issuer_metadata: Value,
    /// The only way in which clients may authenticate.
    pub auth_method: &'static str,
    /// The scope of a challenge; none if it names no scope.
    pub scope: Option<String>,
    /// Whether the answer for the browser names the issuer, and which.
    pub answers_as: Option<String>,
}

impl Default for ProtectedOptions {
    fn default() -> Self {
        Self {
            metadata_path: Some("/.well-known/oauth-protected-resource/mcp".to_owned()),
            names_metadata: true,
            issuer_path: String::new(),
            issuer_metadata_path: Some("/.well-known/oauth-authorization-server".to_owned()),
            metadata: json!({}),
            issuer_metadata: json!({}),
            auth_method: "none",
            scope: None,
            answers_as: None,
        }
    }
}

/// A request to the server.
#[derive(Debug, Default)]
pub struct ProtectedRequest {
    pub method: String,
    pub target: String,
    pub authorization: Option<String>,
    pub body: Vec<u8>,
}

/// A response.
#[derive(Debug, Default)]
pub struct ProtectedAnswer {
    pub status: u16,
    pub location: Option<String>,
    pub challenge: Option<String>,
    pub body: String,
}

/// The server. Clones share its state.
#[derive(Debug, Clone)]
pub struct ProtectedServer {
    url: String,
    options: Arc<ProtectedOptions>,
    state: Arc<Mutex<State>>,
    _stop: Option<Arc<oneshot::Sender<()>>>,
}

#[derive(Debug, Default)]
struct State {
    mcp: Server,
    life: u64,
    count: usize,
    /// Issued codes, with the query that they were issued for.
    codes: BTreeMap<String, BTreeMap<String, String>>,
    /// Access tokens that work, with their scopes.
    tokens: BTreeMap<String, String>,
    refresh_tokens: BTreeMap<String, String>,
    secrets: Vec<String>,
    requests: Vec<String>,
    renewals: usize,
    revoked: Vec<String>,
    /// The secret of the registered client.
    client_secret: Option<String>,
    /// The fields of the latest authorization and request for tokens.
    asked: BTreeMap<String, String>,
    token_fields: BTreeMap<String, String>,
}

fn answer(status: u16, body: &Value) -> ProtectedAnswer {
    ProtectedAnswer { status, body: body.to_string(), ..ProtectedAnswer::default() }
}

fn refused(code: &str) -> ProtectedAnswer {
    answer(400, &json!({"error": code}))
}

impl ProtectedServer {
    /// A server at an address that is not served. Its tokens live for an hour.
    #[must_use]
    pub fn new(url: &str, options: ProtectedOptions) -> Self {
        let state = State { life: 3600, ..State::default() };
        Self { url: url.to_owned(), options: Arc::new(options), state: Arc::new(Mutex::new(state)), _stop: None }
    }

    /// A server that is served on the loopback interface until all clones are dropped.
    ///
    /// # Panics
    /// If it cannot start.
    #[must_use]
    pub fn serve(options: ProtectedOptions) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap_or_else(|error| panic!("no server: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no server: {error}"));
        let server = Self::new(&format!("http://{address}"), options);
        let (stop, stopped) = oneshot::channel();
        start(server.clone(), listener, stopped).unwrap_or_else(|error| panic!("no server: {error}"));
        Self { _stop: Some(Arc::new(stop)), ..server }
    }

    /// The address of the host.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The address of the MCP server.
    #[must_use]
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// Plays a user who opens the page of a login and is sent back to the program; returns the status of the last page.
    ///
    /// # Panics
    /// If nobody listens there.
    #[must_use]
    pub fn visit(&self, page: &str) -> String {
        let target = page.strip_prefix(&self.url).unwrap_or_default().to_owned();
        let request = ProtectedRequest { method: "GET".to_owned(), target, ..ProtectedRequest::default() };
        let back = self.answer(&request).location.unwrap_or_default();
        let rest = back.strip_prefix("http://").unwrap_or_default();
        let (host, target) = rest.split_at(rest.find('/').unwrap_or_default());
        let visited = TcpStream::connect(host).and_then(|mut stream| {
            write!(stream, "GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        let answer = visited.unwrap_or_else(|error| panic!("nobody is at {back}: {error}"));
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// Sets the lifetime of access tokens in seconds.
    pub fn set_life(&self, seconds: u64) {
        self.state().life = seconds;
    }

    /// Invalidates all access tokens.
    pub fn void_tokens(&self) {
        self.state().tokens.clear();
    }

    /// Invalidates all refresh tokens.
    pub fn void_refresh_tokens(&self) {
        self.state().refresh_tokens.clear();
    }

    /// The requests so far: method and path.
    #[must_use]
    pub fn requests(&self) -> Vec<String> {
        self.state().requests.clone()
    }

    /// All issued secrets.
    #[must_use]
    pub fn secrets(&self) -> Vec<String> {
        self.state().secrets.clone()
    }

    #[must_use]
    pub fn renewals(&self) -> usize {
        self.state().renewals
    }

    #[must_use]
    pub fn revoked(&self) -> Vec<String> {
        self.state().revoked.clone()
    }

    /// The parameters of the latest authorization.
    #[must_use]
    pub fn asked(&self) -> BTreeMap<String, String> {
        self.state().asked.clone()
    }

    /// The fields of the latest request for tokens.
    #[must_use]
    pub fn token_fields(&self) -> BTreeMap<String, String> {
        self.state().token_fields.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Handles a request.
    #[must_use]
    pub fn answer(&self, request: &ProtectedRequest) -> ProtectedAnswer {
        let ProtectedRequest { method, target, authorization, body } = request;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let mut state = self.state();
        state.requests.push(format!("{method} {path}"));
        let own = Some(path);
        if method == "GET" && own == self.options.metadata_path.as_deref() {
            return answer(200, &self.metadata());
        }
        if method == "GET" && own == self.options.issuer_metadata_path.as_deref() {
            return answer(200, &self.issuer_metadata());
        }
        if path == "/mcp" {
            return self.protected(&mut state, authorization.as_deref(), body);
        }
        let fields = from_form(&String::from_utf8_lossy(body));
        match (method.as_str(), path.strip_prefix(self.options.issuer_path.as_str()).unwrap_or_default()) {
            ("POST", "/register") => state.register(self.options.auth_method, body),
            ("GET", "/authorize") => state.authorize(from_form(query), self.options.answers_as.as_deref()),
            ("POST", "/token" | "/revoke") if !self.knows(&state, authorization.as_deref(), &fields) => {
                answer(401, &json!({"error": "invalid_client"}))
            }
            ("POST", "/token") => state.token(fields),
            ("POST", "/revoke") => {
                state.revoked.push(fields.get("token").cloned().unwrap_or_default());
                answer(200, &json!({}))
            }
            _ => answer(404, &json!({})),
        }
    }

    fn issuer(&self) -> String {
        format!("{}{}", self.url, self.options.issuer_path)
    }

    fn metadata(&self) -> Value {
        let usual = json!({"resource": self.mcp_url(), "authorization_servers": [self.issuer()]});
        with(usual, &self.options.metadata)
    }

    fn issuer_metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.issuer());
        let usual = json!({
            "issuer": self.issuer(), "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
            "registration_endpoint": at("/register"), "revocation_endpoint": at("/revoke"),
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": [self.options.auth_method],
        });
        with(usual, &self.options.issuer_metadata)
    }

    /// The MCP server. Its tool `write` needs the scope `write`.
    fn protected(&self, state: &mut State, authorization: Option<&str>, body: &[u8]) -> ProtectedAnswer {
        let place = self.options.metadata_path.as_ref().filter(|_| self.options.names_metadata);
        let place = place.map(|path| format!(", resource_metadata=\"{}{path}\"", self.url)).unwrap_or_default();
        let token = authorization.and_then(|authorization| authorization.strip_prefix("Bearer "));
        let Some(scopes) = token.and_then(|token| state.tokens.get(token)).cloned() else {
            let scope = self.options.scope.as_ref().map(|scope| format!(", scope=\"{scope}\"")).unwrap_or_default();
            let challenge = Some(format!("Bearer error=\"invalid_token\"{scope}{place}"));
            return ProtectedAnswer { challenge, ..answer(401, &json!({"error": "invalid_token"})) };
        };
        let message: Value = serde_json::from_slice(body).unwrap_or_default();
        if message["params"]["name"] == "write" && !scopes.split(' ').any(|scope| scope == "write") {
            let challenge = Some(format!("Bearer error=\"insufficient_scope\", scope=\"write\"{place}"));
            return ProtectedAnswer { challenge, ..answer(403, &json!({"error": "insufficient_scope"})) };
        }
        match state.mcp.answers(&message).pop() {
            Some(message) => answer(200, &message),
            None => ProtectedAnswer { status: 202, ..ProtectedAnswer::default() },
        }
    }

    /// Whether a client authenticates in the only way that is allowed.
    fn knows(&self, state: &State, authorization: Option<&str>, fields: &BTreeMap<String, String>) -> bool {
        let secret = state.client_secret.as_deref();
        let basic = authorization.and_then(|authorization| authorization.strip_prefix("Basic "));
        let basic = basic.and_then(|text| String::from_utf8(STANDARD.decode(text).ok()?).ok());
        let posted = fields.get("client_secret").map(String::as_str);
        match self.options.auth_method {
            "client_secret_basic" => posted.is_none() && basic == Some(format!("client-1:{}", secret.unwrap_or("?"))),
            "client_secret_post" => basic.is_none() && posted.is_some() && posted == secret,
            _ => basic.is_none() && posted.is_none() && fields.contains_key("client_id"),
        }
    }

    async fn while_connected(&self, mut wire: Wire) -> std::io::Result<()> {
        loop {
            let RawRequest { method, target, headers, body } = wire.read_request().await?;
            let authorization = headers.into_iter().find(|(name, _)| name == "authorization").map(|(_, value)| value);
            let answer = self.answer(&ProtectedRequest { method, target, authorization, body });
            let kind = "application/json".to_owned();
            let mut headers =
                vec![("content-length".to_owned(), answer.body.len().to_string()), ("content-type".to_owned(), kind)];
            headers.extend(answer.location.map(|location| ("location".to_owned(), location)));
            headers.extend(answer.challenge.map(|challenge| ("www-authenticate".to_owned(), challenge)));
            wire.write_head(answer.status, &headers).await?;
            wire.write(answer.body.as_bytes()).await?;
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

    fn register(&mut self, method: &str, body: &[u8]) -> ProtectedAnswer {
        let client: Value = serde_json::from_slice(body).unwrap_or_default();
        if client["token_endpoint_auth_method"] != method || client["redirect_uris"].as_array().is_none() {
            return refused("invalid_client_metadata");
        }
        self.client_secret = (method != "none").then(|| self.secret("client"));
        answer(201, &json!({"client_id": "client-1", "client_secret": self.client_secret}))
    }

    fn authorize(&mut self, query: BTreeMap<String, String>, answers_as: Option<&str>) -> ProtectedAnswer {
        let field = |name: &str| query.get(name).cloned().unwrap_or_default();
        let named = answers_as.map(|issuer| format!("&iss={issuer}")).unwrap_or_default();
        let code = self.secret("code");
        let location = format!("{}?code={code}&state={}{named}", field("redirect_uri"), field("state"));
        self.asked = query.clone();
        self.codes.insert(code, query);
        ProtectedAnswer { location: Some(location), ..answer(302, &json!({})) }
    }

    fn token(&mut self, fields: BTreeMap<String, String>) -> ProtectedAnswer {
        let field = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
        let scope = match field("grant_type") {
            "authorization_code" => {
                let Some(asked) = self.codes.remove(field("code")) else { return refused("invalid_grant") };
                let is = |name: &str, value: &str| asked.get(name).is_some_and(|known| known == value);
                let proof = challenge(field("code_verifier"));
                if !is("code_challenge", &proof)
                    || !is("code_challenge_method", "S256")
                    || !is("redirect_uri", field("redirect_uri"))
                    || !is("resource", field("resource"))
                {
                    return refused("invalid_grant");
                }
                asked.get("scope").cloned().unwrap_or_default()
            }
            "refresh_token" => {
                let Some(scope) = self.refresh_tokens.remove(field("refresh_token")) else {
                    return refused("invalid_grant");
                };
                self.renewals += 1;
                scope
            }
            _ => return refused("unsupported_grant_type"),
        };
        let (access_token, refresh_token) = (self.secret("access"), self.secret("refresh"));
        self.tokens.insert(access_token.clone(), scope.clone());
        self.refresh_tokens.insert(refresh_token.clone(), scope.clone());
        self.token_fields = fields;
        let body = json!({
            "access_token": access_token, "refresh_token": refresh_token, "token_type": "Bearer",
            "expires_in": self.life, "scope": scope,
        });
        answer(200, &body)
    }
}

/// An object with some members in place of the usual ones; null removes a member.
fn with(mut usual: Value, changes: &Value) -> Value {
    for (name, value) in changes.as_object().into_iter().flatten() {
        usual[name] = value.clone();
    }
    if let Some(members) = usual.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    usual
}

/// Serves on a thread of its own until nobody holds the other end of `stopped`.
fn start(server: ProtectedServer, listener: TcpListener, stopped: oneshot::Receiver<()>) -> std::io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("protected server".to_owned()).spawn(move || {
        runtime.block_on(async {
            tokio::select! {
                _ = stopped => {}
                failed = accept(server, listener) => { let _ = failed; }
            }
        });
    })?;
    Ok(())
}

async fn accept(server: ProtectedServer, listener: TcpListener) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let server = server.clone();
        tokio::spawn(async move { server.while_connected(Wire::new(stream)).await });
    }
}
