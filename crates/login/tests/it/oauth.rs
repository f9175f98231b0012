//! Logins to MCP servers: finding the authorization server, the login itself, and what becomes of its tokens.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use codex_config::{CredentialsStore, Env, Home, McpOauth, read_mcp_credentials};
use codex_login::{
    Answer, Body, Challenge, HttpError, Keyring, LoginRequest, OauthError, OauthServer, PendingServerLogin, Request,
    ServerCredentials, ServerLogin, ServerLogins, Transport,
};
use codex_testkit::{ProtectedOptions, ProtectedRequest, ProtectedServer};
use futures_util::future::BoxFuture;
use serde_json::json;
use tempfile::TempDir;

use crate::browser::open;
use crate::store::{MemoryKeyring, absent};
use crate::world::BEGIN;

struct World {
    folder: TempDir,
    server: ProtectedServer,
    options: McpOauth,
    kind: CredentialsStore,
    keyring: Option<Arc<MemoryKeyring>>,
    env: Env,
    now: Arc<AtomicU64>,
    is_down: Arc<AtomicBool>,
}

/// The way to the server, without sockets.
struct Line {
    server: ProtectedServer,
    is_down: Arc<AtomicBool>,
}

impl Transport for Line {
    fn send(&self, request: Request) -> BoxFuture<'_, Result<Answer, HttpError>> {
        Box::pin(async move {
            // Somebody else may come first.
            tokio::task::yield_now().await;
            let rest = request.url.strip_prefix(self.server.url());
            let (Some(target), false) = (rest, self.is_down.load(Ordering::Relaxed)) else {
                return Err(HttpError { host: "nowhere".to_owned(), source: "no way".into() });
            };
            let authorization = request.basic.map(|basic| {
                use base64::Engine as _;
                format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(basic.reveal()))
            });
            let (method, body) = match &request.body {
                Body::None => ("GET", Vec::new()),
                Body::Json(json) => ("POST", json.to_string().into_bytes()),
                Body::Form(fields) => {
                    let mut url = reqwest::Url::parse("http://localhost").unwrap();
                    url.query_pairs_mut().extend_pairs(fields);
                    ("POST", url.query().unwrap_or_default().as_bytes().to_vec())
                }
            };
            let (method, target) = (method.to_owned(), target.to_owned());
            let answer = self.server.answer(&ProtectedRequest { method, target, authorization, body });
            let challenges = answer.challenge.into_iter().collect();
            Ok(Answer { status: answer.status, body: answer.body.into_bytes(), challenges })
        })
    }
}

impl World {
    fn new(options: ProtectedOptions) -> Self {
        let now = Arc::new(AtomicU64::new(BEGIN));
        Self {
            folder: tempfile::tempdir().unwrap(),
            server: ProtectedServer::new("http://localhost:9", options),
            options: McpOauth::default(),
            kind: CredentialsStore::File,
            keyring: None,
            env: crate::world::env(),
            now,
            is_down: Arc::default(),
        }
    }

    fn home(&self) -> Home {
        Home::at(self.folder.path().join("home"))
    }

    /// The login as a process sees it: each has its own, and they share the home.
    fn login(&self) -> ServerLogin {
        let line = Line { server: self.server.clone(), is_down: Arc::clone(&self.is_down) };
        let now = Arc::clone(&self.now);
        let clock = move || UNIX_EPOCH + Duration::from_secs(now.load(Ordering::Relaxed));
        let logins = ServerLogins::with(&self.env, line, clock);
        let server = OauthServer {
            name: "s".to_owned(),
            url: self.server.mcp_url(),
            options: self.options.clone(),
            callback_port: None,
        };
        let keyring = self.keyring.clone().map(|keyring| keyring as Arc<dyn Keyring>);
        logins.of(ServerCredentials::new(&self.home(), self.kind, keyring), server)
    }

    async fn begin(&self) -> Result<PendingServerLogin, OauthError> {
        self.login().begin(LoginRequest::default()).await
    }

    /// The URL to which the server redirects a browser that opens the login.
    fn sent_to(&self, login: &PendingServerLogin) -> String {
        let target = login.url().strip_prefix(self.server.url()).unwrap().to_owned();
        let request = ProtectedRequest { method: "GET".to_owned(), target, ..ProtectedRequest::default() };
        self.server.answer(&request).location.unwrap()
    }

    /// Logs in as a user would.
    async fn finish(&self, login: PendingServerLogin) -> Result<(), OauthError> {
        let back = self.sent_to(&login);
        let (ended, _) = tokio::join!(login.finish(), open(&back));
        ended
    }

    async fn log_in(&self) -> ServerLogin {
        let login = self.login();
        let pending = login.begin(LoginRequest::default()).await.unwrap();
        self.finish(pending).await.unwrap();
        login
    }

    fn advance(&self, seconds: u64) {
        self.now.fetch_add(seconds, Ordering::Relaxed);
    }

    /// The requests that looked for metadata.
    fn looked_for(&self) -> Vec<String> {
        let requests = self.server.requests().into_iter();
        requests.filter(|request| request.contains("/.well-known/") || request.contains("metadata")).collect()
    }
}

#[track_caller]
fn refusal<T: std::fmt::Debug>(result: Result<T, OauthError>) -> String {
    result.unwrap_err().in_full()
}

#[tokio::test]
async fn a_login_is_bound_to_its_server_and_its_code() {
    let world = World::new(ProtectedOptions::default());
    let login = world.log_in().await;
    let asked = world.server.asked();
    let of = |name: &str| asked.get(name).map(String::as_str);
    assert_eq!(of("response_type"), Some("code"));
    assert_eq!((of("client_id"), of("code_challenge_method")), (Some("client-1"), Some("S256")));
    assert_eq!((of("resource"), of("scope")), (Some("http://localhost:9/mcp"), None));
    assert!(of("redirect_uri").unwrap().starts_with("http://127.0.0.1:"), "{asked:?}");
    assert_eq!(world.server.token_fields()["resource"], "http://localhost:9/mcp");
    let token = login.token().await.unwrap().unwrap();
    assert!(world.server.secrets().contains(&token.reveal().to_owned()));
    assert!(login.is_logged_in().await && world.login().is_logged_in().await);
    assert_eq!(read_mcp_credentials(&world.home()).unwrap().len(), 1);
}

#[tokio::test]
async fn metadata_is_found_wherever_the_standards_put_it() {
    let text = str::to_owned;
    for (options, expected) in [
        (
            ProtectedOptions { metadata_path: Some(text("/custom/metadata")), ..ProtectedOptions::default() },
            vec!["GET /custom/metadata", "GET /.well-known/oauth-authorization-server"],
        ),
        (
            ProtectedOptions {
                metadata_path: Some(text("/.well-known/oauth-protected-resource")),
                names_metadata: false,
                metadata: json!({"resource": "http://localhost:9"}),
                issuer_path: text("/tenant"),
                issuer_metadata_path: Some(text("/tenant/.well-known/openid-configuration")),
                ..ProtectedOptions::default()
            },
            vec![
                "GET /.well-known/oauth-protected-resource/mcp",
                "GET /.well-known/oauth-protected-resource",
                "GET /.well-known/oauth-authorization-server/tenant",
                "GET /.well-known/openid-configuration/tenant",
                "GET /tenant/.well-known/openid-configuration",
            ],
        ),
        (
            ProtectedOptions { metadata_path: None, issuer_metadata_path: None, ..ProtectedOptions::default() },
            vec![
                "GET /.well-known/oauth-protected-resource/mcp",
                "GET /.well-known/oauth-protected-resource",
                "GET /.well-known/oauth-authorization-server",
                "GET /.well-known/openid-configuration",
            ],
        ),
    ] {
        let world = World::new(options);
        world.log_in().await;
        assert_eq!(world.looked_for(), expected);
    }
}

#[tokio::test]
async fn a_server_without_a_login_is_told_apart() {
    let world = World::new(ProtectedOptions { metadata_path: None, ..ProtectedOptions::default() });
    assert!(world.login().is_offered(Duration::from_secs(5)).await);
    let none = ProtectedOptions { metadata_path: None, issuer_metadata_path: None, ..ProtectedOptions::default() };
    let world = World::new(none);
    assert!(!world.login().is_offered(Duration::from_secs(5)).await);
    assert!(world.login().token().await.unwrap().is_none());
}

#[tokio::test]
async fn metadata_that_leads_elsewhere_is_refused() {
    let check = async |options: ProtectedOptions, expected: &str| {
        let world = World::new(options);
        let error = refusal(world.begin().await);
        assert!(error.contains(expected), "{error}");
        assert!(!world.server.requests().iter().any(|request| request.contains("register")), "it went on: {error}");
    };
    let metadata = |metadata| ProtectedOptions { metadata, ..ProtectedOptions::default() };
    let issuer = |issuer_metadata| ProtectedOptions { issuer_metadata, ..ProtectedOptions::default() };
    check(metadata(json!({"resource": "https://evil.example/mcp"})), "is for https://evil.example/mcp, not for").await;
    check(metadata(json!({"authorization_servers": ["http://evil.example"]})), "neither https nor").await;
    check(metadata(json!({"authorization_servers": []})), "offers no login").await;
    check(issuer(json!({"issuer": "http://localhost:9/other"})), "is of the issuer http://localhost:9/other").await;
    check(issuer(json!({"authorization_endpoint": "file:///bin/sh"})), "file:///bin/sh is neither https nor").await;
    check(issuer(json!({"token_endpoint": "http://evil.example/token"})), "neither https nor").await;
    check(issuer(json!({"code_challenge_methods_supported": null})), "PKCE").await;
    check(issuer(json!({"registration_endpoint": null})), "set oauth.client_id").await;
}

#[tokio::test]
async fn a_server_elsewhere_cannot_name_this_machine() {
    let world = World::new(ProtectedOptions::default());
    let (name, url) = ("s".to_owned(), "https://far.example/mcp".to_owned());
    let server = OauthServer { name, url, options: McpOauth::default(), callback_port: None };
    let login =
        ServerLogins::with(&world.env, Line { server: world.server.clone(), is_down: Arc::default() }, || UNIX_EPOCH)
            .of(ServerCredentials::new(&world.home(), CredentialsStore::File, None), server);
    let place = "http://localhost:9/.well-known/oauth-protected-resource/mcp".to_owned();
    let challenge = Challenge { resource_metadata: Some(place), ..Challenge::default() };
    refusal(login.refused(None, challenge).await);
    let error = refusal(login.begin(LoginRequest::default()).await);
    assert!(error.starts_with("http://localhost:9/.well-known/"), "{error}");
    assert_eq!(world.server.requests(), Vec::<String>::new());
}

#[tokio::test]
async fn a_token_is_not_sent_where_others_could_read_it() {
    let world = World::new(ProtectedOptions::default());
    let url = "http://far.example/mcp";
    let entry = json!({"server_name": "s", "server_url": url, "client_id": "c", "access_token": "t"});
    let entries = serde_json::Map::from_iter([("s|1".to_owned(), entry)]);
    codex_config::write_mcp_credentials(&world.home(), &entries).unwrap();
    let server =
        OauthServer { name: "s".to_owned(), url: url.to_owned(), options: McpOauth::default(), callback_port: None };
    let login =
        ServerLogins::new(&world.env).of(ServerCredentials::new(&world.home(), CredentialsStore::File, None), server);
    assert_eq!(login.token().await.unwrap(), None);
    assert!(refusal(login.begin(LoginRequest::default()).await).starts_with("http://far.example/mcp is neither"));
}

#[tokio::test]
async fn a_login_in_the_keyring_is_renewed_and_removed_there() {
    for kind in [CredentialsStore::Keyring, CredentialsStore::Auto] {
        let mut world = World::new(ProtectedOptions::default());
        let keyring = Arc::new(MemoryKeyring::default());
        (world.kind, world.keyring) = (kind, Some(Arc::clone(&keyring)));
        let login = world.log_in().await;
        world.advance(3000);
        login.token().await.unwrap().unwrap();
        assert_eq!((keyring.len(), world.server.renewals()), (1, 1));
        assert!(world.login().is_logged_in().await && !world.home().mcp_credentials_file().exists());
        assert!(login.log_out().await.unwrap().0 && keyring.len() == 0);
    }
}

#[tokio::test]
async fn without_a_keyring_auto_means_the_file_and_keyring_is_an_error() {
    let mut world = World::new(ProtectedOptions::default());
    let keyring = Arc::new(MemoryKeyring::default());
    keyring.fail(Some(absent()));
    (world.kind, world.keyring) = (CredentialsStore::Auto, Some(keyring));
    let login = world.log_in().await;
    assert!(login.token().await.unwrap().is_some() && world.home().mcp_credentials_file().exists());
    (world.kind, world.keyring) = (CredentialsStore::Keyring, None);
    let error = refusal(world.login().token().await);
    assert!(
        error.starts_with("mcp_oauth_credentials_store = \"keyring\": this build has no keyring; build it"),
        "{error}"
    );
}

#[tokio::test]
async fn clients_authenticate_as_the_server_wants() {
    for auth_method in ["none", "client_secret_basic", "client_secret_post"] {
        let world = World::new(ProtectedOptions { auth_method, ..ProtectedOptions::default() });
        let login = world.log_in().await;
        world.advance(3000);
        login.token().await.unwrap().unwrap();
        assert_eq!(world.server.renewals(), 1, "{auth_method}");
        login.log_out().await.unwrap().1.unwrap();
        assert_eq!(world.server.revoked().len(), 1, "{auth_method}");
    }
}

#[tokio::test]
async fn a_configured_client_is_not_registered() {
    let mut world = World::new(ProtectedOptions::default());
    world.options = McpOauth { client_id: Some("mine".to_owned()), ..McpOauth::default() };
    world.log_in().await;
    assert_eq!(world.server.asked()["client_id"], "mine");
    assert!(!world.server.requests().contains(&"POST /register".to_owned()));
    let document = "https://me.example/client.json";
    for (supported, expected) in [(true, document), (false, "client-1")] {
        let issuer_metadata = json!({"client_id_metadata_document_supported": supported});
        let mut world = World::new(ProtectedOptions { issuer_metadata, ..ProtectedOptions::default() });
        world.options.client_id = Some(document.to_owned());
        world.log_in().await;
        assert_eq!(world.server.asked()["client_id"], expected);
    }
    world.options.client_secret_env_var = Some("CLIENT_SECRET".to_owned());
    let error = refusal(world.begin().await);
    assert!(error.contains("CLIENT_SECRET"), "{error}");
}

#[tokio::test]
async fn scopes_come_from_the_user_the_configuration_the_challenge_or_the_server() {
    let asked = async |wanted: Option<&str>, configured: Option<&str>, challenged: Option<&str>, listed: &[&str]| {
        let mut world = World::new(ProtectedOptions {
            scope: challenged.map(str::to_owned),
            metadata: json!({"scopes_supported": listed}),
            ..ProtectedOptions::default()
        });
        let list = |text: &str| vec![text.to_owned()];
        world.options.scopes = configured.map(list);
        let login = world.login();
        let request = LoginRequest { scopes: wanted.map(list), ..LoginRequest::default() };
        let pending = login.begin(request).await.unwrap();
        world.finish(pending).await.unwrap();
        world.server.asked().get("scope").cloned()
    };
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(asked(Some("a"), Some("b"), Some("c"), &["d"]).await, some("a"));
    assert_eq!(asked(None, Some("b"), Some("c"), &["d"]).await, some("b"));
    assert_eq!(asked(None, None, Some("c e"), &["d"]).await, some("c e"));
    assert_eq!(asked(None, None, None, &["d", "f"]).await, some("d f"));
    assert_eq!(asked(None, None, None, &[]).await, None);
}

#[tokio::test]
async fn a_request_that_needs_more_makes_the_next_login_ask_for_it() {
    let issuer_metadata = json!({"scopes_supported": ["read", "offline_access"]});
    let world =
        World::new(ProtectedOptions { scope: Some("read".to_owned()), issuer_metadata, ..ProtectedOptions::default() });
    let login = world.log_in().await;
    assert_eq!(world.server.asked()["scope"], "read offline_access");
    let challenge = Challenge::of(["Bearer error=insufficient_scope, scope=\"write\""]);
    let error = login.lacks_scope(challenge).await.in_full();
    assert!(error.ends_with("run `codex mcp login s --scopes read,offline_access,write`"), "{error}");
    let pending = login.begin(LoginRequest::default()).await.unwrap();
    world.finish(pending).await.unwrap();
    assert_eq!(world.server.asked()["scope"], "read offline_access write");
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused() {
    let answers_as = Some("http://localhost:9/evil".to_owned());
    let world = World::new(ProtectedOptions { answers_as, ..ProtectedOptions::default() });
    let pending = world.begin().await.unwrap();
    let error = refusal(world.finish(pending).await);
    assert_eq!(error, "the login was refused: another issuer answered");
    let issuer_metadata = json!({"authorization_response_iss_parameter_supported": true});
    let world = World::new(ProtectedOptions { issuer_metadata, ..ProtectedOptions::default() });
    let pending = world.begin().await.unwrap();
    assert!(world.finish(pending).await.is_err());
}

#[tokio::test]
async fn tokens_are_renewed_once_and_stored_before_they_are_used() {
    let world = World::new(ProtectedOptions::default());
    let login = world.log_in().await;
    let first = login.token().await.unwrap();
    world.advance(2879);
    assert_eq!(login.token().await.unwrap(), first);
    world.advance(1);
    let other = world.login();
    let (one, two, three) = tokio::join!(login.token(), login.token(), other.token());
    let (one, two, three) = (one.unwrap(), two.unwrap(), three.unwrap());
    assert!(one != first && one == two && two == three);
    assert_eq!(world.server.renewals(), 1);
    let stored = read_mcp_credentials(&world.home()).unwrap();
    assert_eq!(stored.values().next().unwrap()["access_token"], one.unwrap().reveal());
}

#[tokio::test]
async fn a_refused_token_is_renewed_and_a_void_login_ends() {
    let world = World::new(ProtectedOptions::default());
    let login = world.log_in().await;
    let used = login.token().await.unwrap();
    let renewed = login.refused(used.as_ref(), Challenge::default()).await.unwrap();
    assert!(Some(&renewed) != used.as_ref() && world.server.renewals() == 1);
    // Somebody else's request was refused with the same old token.
    assert_eq!(login.refused(used.as_ref(), Challenge::default()).await.unwrap(), renewed);
    assert_eq!(world.server.renewals(), 1);
    world.server.void_refresh_tokens();
    for _ in 0..2 {
        let error = refusal(login.refused(Some(&renewed), Challenge::default()).await);
        assert_eq!(error, "the login has ended (invalid_grant); run `codex mcp login s`");
    }
    let tries = world.server.requests().iter().filter(|request| *request == "POST /token").count();
    assert_eq!(tries, 3, "a void token is tried once");
    assert!(!login.is_logged_in().await);
    let pending = login.begin(LoginRequest::default()).await.unwrap();
    world.finish(pending).await.unwrap();
    assert!(login.is_logged_in().await && login.token().await.unwrap().is_some());
}

#[tokio::test]
async fn an_old_token_is_used_while_the_issuer_cannot_be_reached() {
    let world = World::new(ProtectedOptions::default());
    let login = world.log_in().await;
    let first = login.token().await.unwrap();
    world.advance(3000);
    world.is_down.store(true, Ordering::Relaxed);
    assert_eq!(login.token().await.unwrap(), first);
    world.is_down.store(false, Ordering::Relaxed);
    assert_eq!(login.token().await.unwrap(), first, "a failed renewal is not tried again at once");
    world.advance(61);
    assert!(login.token().await.unwrap() != first);
    world.is_down.store(true, Ordering::Relaxed);
    world.advance(4000);
    let error = refusal(login.token().await);
    assert!(error.starts_with("could not reach the login service at nowhere"), "{error}");
}

#[tokio::test]
async fn a_logout_is_told_to_the_issuer_and_leaves_other_entries() {
    let world = World::new(ProtectedOptions::default());
    let login = world.log_in().await;
    let mut entries = read_mcp_credentials(&world.home()).unwrap();
    entries.insert("other|1".to_owned(), json!({"server_name": "other", "unknown": [1]}));
    codex_config::write_mcp_credentials(&world.home(), &entries).unwrap();
    world.is_down.store(true, Ordering::Relaxed);
    let (was_there, told) = login.log_out().await.unwrap();
    assert!(was_there && told.is_err());
    assert!(login.token().await.unwrap().is_none());
    let left = read_mcp_credentials(&world.home()).unwrap();
    assert_eq!(left.keys().collect::<Vec<_>>(), ["other|1"]);
    assert!(!login.log_out().await.unwrap().0);
}

#[tokio::test]
async fn a_login_of_another_release_is_renewed() {
    let world = World::new(ProtectedOptions::default());
    world.log_in().await;
    let mut entries = read_mcp_credentials(&world.home()).unwrap();
    let entry = entries.values_mut().next().unwrap().as_object_mut().unwrap();
    for name in ["token_endpoint", "revocation_endpoint", "resource", "issued_at", "token_endpoint_auth_method"] {
        entry.remove(name);
    }
    codex_config::write_mcp_credentials(&world.home(), &entries).unwrap();
    world.advance(3590);
    let login = world.login();
    assert!(login.token().await.unwrap().is_some() && world.server.renewals() == 1);
    assert_eq!(world.server.token_fields()["resource"], "http://localhost:9/mcp");
}

#[tokio::test(start_paused = true)]
async fn a_user_who_does_not_come_back_is_not_waited_for() {
    let world = World::new(ProtectedOptions::default());
    let request = LoginRequest { timeout: Some(Duration::from_secs(120)), ..LoginRequest::default() };
    let pending = world.login().begin(request).await.unwrap();
    assert_eq!(refusal(pending.finish().await), "the login was not completed within 2 minutes");
}

#[tokio::test]
async fn no_debug_text_and_no_error_holds_a_secret() {
    let world = World::new(ProtectedOptions { auth_method: "client_secret_basic", ..ProtectedOptions::default() });
    let login = world.login();
    let pending = login.begin(LoginRequest::default()).await.unwrap();
    let mut shown = vec![format!("{pending:?} {login:?}")];
    world.finish(pending).await.unwrap();
    let used = login.token().await.unwrap();
    world.server.void_refresh_tokens();
    let error = login.refused(used.as_ref(), Challenge::default()).await.unwrap_err();
    shown.push(format!("{error:?} {} {used:?}", error.in_full()));
    world.is_down.store(true, Ordering::Relaxed);
    let (_, told) = login.log_out().await.unwrap();
    let error = told.unwrap_err();
    shown.push(format!("{error:?} {}", error.in_full()));
    let (shown, secrets) = (shown.concat(), world.server.secrets());
    assert!(secrets.len() >= 4, "{secrets:?}");
    for secret in secrets {
        assert!(!shown.contains(&secret), "{secret} in {shown}");
    }
}
