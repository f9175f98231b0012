//! The owner of the login to one server: it is read when it has changed, renewed once for everybody, and stored before
//! it is used.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use codex_config::{Env, Home, McpLoginConfig, McpOauth, McpServer, McpTransport, Secret};
use reqwest::Url;
use tokio::time::timeout;

use super::addresses::Allowed;
use super::credentials::Credentials;
use super::credentials_store::{ServerCredentials, Stamps, account};
use super::discovery::discover;
use super::token_endpoint::TokenEndpoint;
use super::{Challenge, OauthError};
use crate::http::{Network, Transport};
use crate::lock::lock;
use crate::{LoginError, Renewal};

/// The time before a failed renewal is tried again, while the old token still works.
const PAUSE: Duration = Duration::from_secs(60);

/// The lock around changes of the file.
const FILE_LOCK: &str = "mcp-credentials.lock";

/// Codes that say that a login will never be renewed again.
const FINAL: &[&str] = &["invalid_grant", "invalid_client", "unauthorized_client"];

type Clock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

/// A server that a person can log in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OauthServer {
    /// Its key in `[mcp_servers]`.
    pub name: String,
    pub url: String,
    pub options: McpOauth,
    /// The port that a browser comes back to, unless the server has one of its own.
    pub callback_port: Option<u16>,
}

/// The logins to all servers, shared by everything in a process.
pub struct ServerLogins {
    env: Env,
    http: Arc<dyn Transport>,
    clock: Clock,
    owners: Mutex<HashMap<(PathBuf, String, String), Weak<Owner>>>,
}

/// The login to one server.
#[derive(Clone)]
pub struct ServerLogin {
    pub(super) server: OauthServer,
    pub(super) owner: Arc<Owner>,
}

pub(super) struct Owner {
    name: String,
    url: String,
    pub(super) env: Env,
    pub(super) http: Arc<dyn Transport>,
    clock: Clock,
    store: ServerCredentials,
    /// The latest content, and the state of the place it came from.
    known: Mutex<Option<(Stamps, Option<Credentials>)>>,
    /// Held during a change of the login, so that others wait for its result.
    changing: tokio::sync::Mutex<()>,
    failed_renewal: Mutex<Option<FailedRenewal>>,
    /// The latest challenge of the server.
    challenge: Mutex<Option<Challenge>>,
}

/// A renewal that failed.
struct FailedRenewal {
    of: Secret,
    /// The token cannot be renewed any more, and why.
    ended: Option<String>,
    /// It may be tried again then.
    until: SystemTime,
}

impl fmt::Debug for ServerLogins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServerLogins(…)")
    }
}

impl fmt::Debug for ServerLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerLogin").field("server", &self.server.name).finish_non_exhaustive()
    }
}

impl ServerLogins {
    #[must_use]
    pub fn new(env: &Env) -> Self {
        Self::with(env, Network::new(env), SystemTime::now)
    }

    /// As above, with another network and another clock.
    pub fn with(
        env: &Env,
        http: impl Transport + 'static,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        Self { env: env.clone(), http: Arc::new(http), clock: Arc::new(clock), owners: Mutex::default() }
    }

    /// The login to a configured server. A program, and a server with a token in the configuration, needs none.
    pub fn to(&self, home: &Home, settings: McpLoginConfig, server: &McpServer) -> Option<ServerLogin> {
        let McpTransport::Http(address) = &server.transport else { return None };
        if server.has_bearer_token() {
            return None;
        }
        let (name, url, options) = (server.name.clone(), address.url.clone(), server.oauth.clone());
        let server = OauthServer { name, url, options, callback_port: settings.callback_port };
        Some(self.of(ServerCredentials::of(home, settings.store), server))
    }

    /// The login to a server. Nothing is read yet.
    pub fn of(&self, store: ServerCredentials, server: OauthServer) -> ServerLogin {
        let key = (store.home().path().to_owned(), server.name.clone(), server.url.clone());
        let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
        owners.retain(|_, owner| owner.strong_count() > 0);
        if let Some(owner) = owners.get(&key).and_then(Weak::upgrade) {
            return ServerLogin { server, owner };
        }
        let owner = Arc::new(Owner {
            name: server.name.clone(),
            url: server.url.clone(),
            env: self.env.clone(),
            http: Arc::clone(&self.http),
            clock: Arc::clone(&self.clock),
            store,
            known: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            failed_renewal: Mutex::default(),
            challenge: Mutex::default(),
        });
        owners.insert(key, Arc::downgrade(&owner));
        ServerLogin { server, owner }
    }
}

impl ServerLogin {
    /// The name of the server.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.server.name
    }

    /// The token of the next request, renewed before if it is time; nothing if nobody is logged in.
    pub async fn token(&self) -> Result<Option<Secret>, OauthError> {
        self.owner.working(None).await
    }

    /// Another token in place of one that the server has refused, or of none.
    pub async fn refused(&self, used: Option<&Secret>, challenge: Challenge) -> Result<Secret, OauthError> {
        *locked(&self.owner.challenge) = Some(challenge);
        let name = || self.server.name.clone();
        match self.owner.working(used).await? {
            Some(token) if Some(&token) != used => Ok(token),
            Some(_) => Err(OauthError::Ended { name: name(), code: "invalid_token".to_owned() }),
            None => Err(OauthError::NotLoggedIn { name: name() }),
        }
    }

    /// The error for a request that the login does not allow. The next login asks for the scopes that it needs.
    pub async fn lacks_scope(&self, challenge: Challenge) -> OauthError {
        let scopes = challenge.scopes().unwrap_or_default();
        *locked(&self.owner.challenge) = Some(challenge);
        let mut all = self.granted_scopes().await;
        all.extend(scopes);
        OauthError::Scopes { name: self.server.name.clone(), scopes: distinct(all).join(" ") }
    }

    /// Whether there is a login, as far as is known without asking the server.
    pub async fn is_logged_in(&self) -> bool {
        self.owner.load().await.is_ok_and(|credentials| credentials.is_some()) && !self.owner.has_ended()
    }

    /// Whether the server has asked for a login, or the login has ended.
    #[must_use]
    pub fn is_asked_for(&self) -> bool {
        locked(&self.owner.challenge).is_some() || self.owner.has_ended()
    }

    /// Asks the network whether the server offers a login.
    pub async fn is_offered(&self, within: Duration) -> bool {
        let Ok(url) = Url::parse(&self.server.url) else { return false };
        let found = timeout(within, discover(&*self.owner.http, &self.server.name, &url, None)).await;
        found.is_ok_and(|found| found.is_ok())
    }

    /// Forgets the login, here first and then where it was issued. Says whether there was one; the second part is the
    /// result of telling the issuer, and the login is forgotten either way.
    pub async fn log_out(&self) -> Result<(bool, Result<(), OauthError>), OauthError> {
        let owner = &self.owner;
        let _turn = owner.changing.lock().await;
        let _lock = owner.lock().await?;
        // An unreadable entry is removed too.
        let old = owner.load().await.ok().flatten();
        let (name, url) = (owner.name.clone(), owner.url.clone());
        let was_there = owner.on_disk(move |store| store.remove(&name, &url)).await?;
        let told = match &old {
            Some(old) => owner.revoke(old).await,
            None => Ok(()),
        };
        Ok((was_there, told))
    }

    pub(super) fn latest_challenge(&self) -> Option<Challenge> {
        locked(&self.owner.challenge).clone()
    }

    /// The scopes of the login.
    pub(super) async fn granted_scopes(&self) -> Vec<String> {
        self.owner.load().await.ok().flatten().map(|credentials| credentials.scopes).unwrap_or_default()
    }

    /// Stores a new login in place of any other.
    pub(super) async fn store(&self, credentials: Credentials) -> Result<(), OauthError> {
        let _turn = self.owner.changing.lock().await;
        let _lock = self.owner.lock().await?;
        self.owner.on_disk(move |store| store.save(&credentials)).await?;
        *locked(&self.owner.failed_renewal) = None;
        *locked(&self.owner.challenge) = None;
        Ok(())
    }
}

impl Owner {
    /// A token that works: renewed before if it is time, or if `refused` is the one there is.
    async fn working(self: &Arc<Self>, refused: Option<&Secret>) -> Result<Option<Secret>, OauthError> {
        // Another release may have stored a token that anybody on the way could read.
        if Allowed::server(&self.url).is_err() {
            return Ok(None);
        }
        let Some(credentials) = self.load().await? else { return Ok(None) };
        let due = self.due(&credentials, refused);
        if due == Renewal::NotNeeded {
            return Ok(Some(credentials.access_token));
        }
        // A call that is interrupted must not lose tokens that are issued already.
        let (owner, refused) = (Arc::clone(self), refused.cloned());
        let renewal = tokio::spawn(async move { owner.renew(refused.as_ref()).await });
        let renewed = renewal.await.unwrap_or_else(|_| Err(self.ended("it failed")));
        match renewed {
            Err(_) if due == Renewal::Due => Ok(Some(credentials.access_token)),
            renewed => renewed,
        }
    }

    /// Renews the tokens, unless somebody else has done so meanwhile.
    async fn renew(&self, refused: Option<&Secret>) -> Result<Option<Secret>, OauthError> {
        let _turn = self.changing.lock().await;
        let _lock = self.lock().await?;
        let Some(mut credentials) = self.load().await? else { return Ok(None) };
        if self.due(&credentials, refused) == Renewal::NotNeeded {
            return Ok(Some(credentials.access_token));
        }
        let Some(refresh_token) = credentials.refresh_token.clone() else { return Err(self.ended("expired")) };
        if let Some(FailedRenewal { of, ended: Some(code), .. }) = &*locked(&self.failed_renewal)
            && *of == refresh_token
        {
            return Err(self.ended(code));
        }
        let issued = match self.ask(&mut credentials, &refresh_token).await {
            Ok(issued) => issued,
            Err(error) => return self.failed(refresh_token, error).await,
        };
        credentials.renew(issued, self.now());
        let token = credentials.access_token.clone();
        self.on_disk(move |store| store.save(&credentials)).await?;
        *locked(&self.failed_renewal) = None;
        Ok(Some(token))
    }

    async fn ask(
        &self,
        credentials: &mut Credentials,
        refresh_token: &Secret,
    ) -> Result<super::token_endpoint::Issued, OauthError> {
        if credentials.token_endpoint.is_none() {
            let url = Allowed::server(&self.url)?;
            let found = discover(&*self.http, &self.name, &url, None).await?;
            credentials.token_endpoint = Some(found.issuer.token.to_string());
            credentials.resource = Some(found.resource);
        }
        let url = credentials.token_endpoint.as_deref().unwrap_or_default();
        let (http, client, resource) = (&*self.http, &credentials.client, credentials.resource.as_deref());
        Ok(TokenEndpoint { http, url, client, resource }.renew(refresh_token).await?)
    }

    /// A program that knows nothing of our lock may have renewed them; then its tokens are the ones.
    async fn failed(&self, old: Secret, error: OauthError) -> Result<Option<Secret>, OauthError> {
        *locked(&self.known) = None;
        if let Ok(Some(now)) = self.load().await
            && now.refresh_token.as_ref() != Some(&old)
        {
            return Ok(Some(now.access_token));
        }
        let code = match &error {
            OauthError::Login(LoginError::Status { code: Some(code), .. }) if FINAL.contains(&code.as_str()) => {
                Some(code.clone())
            }
            OauthError::Login(LoginError::Status { status: 401, code }) => {
                Some(code.clone().unwrap_or_else(|| "status 401".to_owned()))
            }
            _ => None,
        };
        *locked(&self.failed_renewal) =
            Some(FailedRenewal { of: old, ended: code.clone(), until: (self.clock)() + PAUSE });
        Err(code.map_or(error, |code| self.ended(&code)))
    }

    /// Keeps other processes from changing this login until the result is dropped.
    async fn lock(&self) -> Result<File, OauthError> {
        let digest = account(&self.name, &self.url);
        let digest = digest.rsplit('|').next().unwrap_or_default();
        Ok(lock(self.store.home(), &format!("mcp-{digest}.lock")).await?)
    }

    fn has_ended(&self) -> bool {
        locked(&self.failed_renewal).as_ref().is_some_and(|failed_renewal| failed_renewal.ended.is_some())
    }

    fn due(&self, credentials: &Credentials, refused: Option<&Secret>) -> Renewal {
        match credentials.due(self.now()) {
            _ if refused == Some(&credentials.access_token) => Renewal::Overdue,
            Renewal::Due if credentials.refresh_token.is_none() || self.is_paused(credentials) => Renewal::NotNeeded,
            due => due,
        }
    }

    /// Whether a renewal has failed a moment ago, or for good.
    fn is_paused(&self, credentials: &Credentials) -> bool {
        locked(&self.failed_renewal).as_ref().is_some_and(|failed_renewal| {
            Some(&failed_renewal.of) == credentials.refresh_token.as_ref()
                && (failed_renewal.ended.is_some() || (self.clock)() < failed_renewal.until)
        })
    }

    async fn revoke(&self, old: &Credentials) -> Result<(), OauthError> {
        let Some(url) = &old.revocation_endpoint else { return Ok(()) };
        let (token, hint) = match &old.refresh_token {
            Some(token) => (token, "refresh_token"),
            None => (&old.access_token, "access_token"),
        };
        let endpoint = TokenEndpoint { http: &*self.http, url, client: &old.client, resource: None };
        Ok(endpoint.revoke(url, token, hint).await?)
    }

    /// The stored login, which is read again only when it has changed.
    async fn load(&self) -> Result<Option<Credentials>, OauthError> {
        let stamps = self.store.stamps();
        if let Some((of, credentials)) = &*locked(&self.known)
            && *of == stamps
        {
            return Ok(credentials.clone());
        }
        let (store, name, url) = (self.store.clone(), self.name.clone(), self.url.clone());
        let credentials = blocking(move || store.load(&name, &url)).await?;
        *locked(&self.known) = Some((stamps, credentials.clone()));
        Ok(credentials)
    }

    /// Changes the stored logins and clears the cache.
    async fn on_disk<T: Send + 'static>(
        &self,
        change: impl FnOnce(&ServerCredentials) -> Result<T, OauthError> + Send + 'static,
    ) -> Result<T, OauthError> {
        let _lock = lock(self.store.home(), FILE_LOCK).await?;
        let store = self.store.clone();
        let done = blocking(move || change(&store)).await;
        *locked(&self.known) = None;
        done
    }

    pub(super) fn now(&self) -> u64 {
        (self.clock)().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
    }

    fn ended(&self, code: &str) -> OauthError {
        OauthError::Ended { name: self.name.clone(), code: code.to_owned() }
    }
}

/// Each of the words once, in order.
pub(super) fn distinct(words: Vec<String>) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    words.into_iter().filter(|word| seen.insert(word.clone())).collect()
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Every change is one assignment, so a panic elsewhere cannot have left half of one.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, OauthError> + Send + 'static,
) -> Result<T, OauthError> {
    let failed = || LoginError::System { what: "read the login", source: std::io::Error::other("a task failed") };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(failed().into()))
}
