//! The login of this process: read when it has changed, renewed once for all tasks, stored before it is used.

use std::fmt;
use std::fs::File;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use chrono::{DateTime, SecondsFormat, Utc};
use codex_config::{Auth, Env, Home, LoginConfig, Secret, Tokens};
use codex_files::Stamp;

use crate::external::External;
use crate::http::{Network, Transport};
use crate::lock::lock;
use crate::pending_logins::WaitingLogins;
use crate::renewal::Renewal;
use crate::tokens::{renew, revoke};
use crate::{Issuer, LoginError, LoginStore};

/// The time before a failed renewal is tried again, while the old token still works.
const PAUSE: Duration = Duration::from_secs(60);

/// The state of the places where a login may be stored.
type Stamps = (Stamp, Option<Stamp>);

/// The login, shared by everything in a process.
#[derive(Clone)]
pub struct Accounts {
    shared: Arc<Shared>,
}

struct Shared {
    store: LoginStore,
    env: Env,
    http: Box<dyn Transport>,
    clock: Box<dyn Fn() -> SystemTime + Send + Sync>,
    /// The latest content, and the state of the place it came from.
    known: Mutex<Option<(Stamps, Arc<Auth>)>>,
    /// Held while the login is changed, so that other tasks wait for the result.
    changing: tokio::sync::Mutex<()>,
    failed_renewal: Mutex<Option<FailedRenewal>>,
    /// The tokens of a client, which take precedence over the file.
    external: Mutex<Option<External>>,
    /// Logins of clients that wait for their user.
    waiting: Mutex<WaitingLogins>,
}

/// A renewal that failed.
struct FailedRenewal {
    of: Option<Secret>,
    kind: SetbackKind,
}

enum SetbackKind {
    /// The token can no longer be used.
    Ended(String),
    /// It may be repeated after this time.
    Until(SystemTime),
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Accounts(…)")
    }
}

impl Accounts {
    /// The login of a home, in its file. Nothing is read yet.
    #[must_use]
    pub fn new(home: &Home, env: &Env) -> Self {
        Self::of(LoginStore::of(home, &LoginConfig::default()), env)
    }

    /// The login in a store. Nothing is read yet.
    #[must_use]
    pub fn of(store: LoginStore, env: &Env) -> Self {
        Self::with(store, env, Network::new(env), SystemTime::now)
    }

    /// The same, with another network and another clock.
    pub fn with(
        store: LoginStore,
        env: &Env,
        http: impl Transport + 'static,
        clock: impl Fn() -> SystemTime + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            store,
            env: env.clone(),
            http: Box::new(http),
            clock: Box::new(clock),
            known: Mutex::default(),
            changing: tokio::sync::Mutex::default(),
            failed_renewal: Mutex::default(),
            external: Mutex::default(),
            waiting: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(crate) fn http(&self) -> &dyn Transport {
        &*self.shared.http
    }

    /// Waits until no other task changes the login.
    pub(crate) async fn turn(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.shared.changing.lock().await
    }

    pub(crate) fn waiting_logins(&self) -> &Mutex<WaitingLogins> {
        &self.shared.waiting
    }

    pub(crate) fn env(&self) -> &Env {
        &self.shared.env
    }

    pub(crate) fn external(&self) -> MutexGuard<'_, Option<External>> {
        self.shared.external.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The current login: the tokens of a client, or else the file, which is read again only when it has changed.
    pub async fn auth(&self) -> Result<Arc<Auth>, LoginError> {
        if let Some(external) = &*self.external() {
            return Ok(external.auth());
        }
        let stamp = self.shared.store.stamps();
        if let Some((of, auth)) = &*self.known()
            && *of == stamp
        {
            return Ok(Arc::clone(auth));
        }
        let auth = Arc::new(self.read().await?);
        *self.known() = Some((stamp, Arc::clone(&auth)));
        Ok(auth)
    }

    /// Valid tokens: those of the login, renewed first if it is time, or if `refused` is their access token.
    pub async fn tokens(&self, refused: Option<&Secret>) -> Result<Tokens, LoginError> {
        let auth = self.auth().await?;
        let tokens = auth.tokens.clone().ok_or(LoginError::NotRenewable)?;
        if self.external().is_some() {
            return if refused == Some(&tokens.access_token) {
                self.refresh_external(&tokens).await
            } else {
                Ok(tokens)
            };
        }
        let due = self.due(&auth, &tokens, refused);
        if due == Renewal::NotNeeded {
            return Ok(tokens);
        }
        // An interrupted turn must not lose tokens that were already issued.
        let (accounts, refused) = (self.clone(), refused.cloned());
        let renewal = tokio::spawn(async move { accounts.renew(refused.as_ref()).await });
        let renewed = renewal.await.unwrap_or(Err(LoginError::NotRenewable));
        if due == Renewal::Due { Ok(renewed.unwrap_or(tokens)) } else { renewed }
    }

    /// Stores a new login in place of any other.
    pub(crate) async fn store(&self, tokens: Tokens) -> Result<(), LoginError> {
        let _turn = self.turn().await;
        let _lock = self.lock().await?;
        let at = self.now();
        self.on_disk(move |store| store.store_tokens(&tokens, &at)).await?;
        *self.external() = None;
        Ok(())
    }

    /// Stores a key in place of any other login.
    pub async fn store_api_key(&self, key: String) -> Result<(), LoginError> {
        let _turn = self.turn().await;
        let _lock = self.lock().await?;
        self.on_disk(move |store| store.store_api_key(&key)).await?;
        *self.external() = None;
        Ok(())
    }

    /// Removes the login, first here and then at its issuer. Returns whether there was one, and the result of the
    /// revocation; the login is removed either way.
    pub async fn log_out(&self) -> Result<(bool, Result<(), LoginError>), LoginError> {
        let had_external = self.external().take().is_some();
        let (tokens, was_there) = {
            let _turn = self.turn().await;
            let _lock = self.lock().await?;
            // An unreadable file is removed too.
            let store = self.shared.store.clone();
            let tokens = blocking(move || store.load_any()).await.unwrap_or_default().tokens;
            (tokens, self.on_disk(LoginStore::remove).await?)
        };
        let told = match tokens {
            Some(tokens) => revoke(self.http(), &Issuer::of(&tokens, self.env()), &tokens).await,
            None => Ok(()),
        };
        Ok((was_there || had_external, told))
    }

    /// Renews the tokens, unless another process has done so meanwhile.
    async fn renew(&self, refused: Option<&Secret>) -> Result<Tokens, LoginError> {
        let _turn = self.turn().await;
        if let Some(tokens) = self.renewed_by_others(refused).await? {
            return Ok(tokens);
        }
        let _lock = self.lock().await?;
        if let Some(tokens) = self.renewed_by_others(refused).await? {
            return Ok(tokens);
        }
        let old = self.read().await?.tokens.ok_or(LoginError::NotRenewable)?;
        self.check_setback(&old)?;
        let issuer = Issuer::of(&old, self.env());
        let renewed = match renew(self.http(), &issuer, &old).await {
            Ok(renewed) => renewed,
            Err(error) => return self.failed(old, error).await,
        };
        let (at, stored) = (self.now(), renewed.clone());
        self.on_disk(move |store| store.store_renewed(&stored, &at)).await?;
        *self.failed_renewal() = None;
        Ok(renewed)
    }

    /// The tokens, if they no longer need to be renewed.
    async fn renewed_by_others(&self, refused: Option<&Secret>) -> Result<Option<Tokens>, LoginError> {
        let auth = self.auth().await?;
        let tokens = auth.tokens.clone().ok_or(LoginError::NotRenewable)?;
        Ok((self.due(&auth, &tokens, refused) == Renewal::NotNeeded).then_some(tokens))
    }

    /// A program that does not know our lock may have renewed them; then its tokens are used.
    async fn failed(&self, old: Tokens, error: LoginError) -> Result<Tokens, LoginError> {
        if let Ok(Auth { tokens: Some(now), .. }) = self.read().await
            && now.refresh_token != old.refresh_token
        {
            return Ok(now);
        }
        let kind = match &error {
            LoginError::Ended { code } => SetbackKind::Ended(code.clone()),
            _ => SetbackKind::Until((self.shared.clock)() + PAUSE),
        };
        *self.failed_renewal() = Some(FailedRenewal { of: old.refresh_token, kind });
        Err(error)
    }

    /// Refuses to repeat a renewal that has just failed.
    fn check_setback(&self, tokens: &Tokens) -> Result<(), LoginError> {
        match &*self.failed_renewal() {
            Some(FailedRenewal { of, kind: SetbackKind::Ended(code) }) if *of == tokens.refresh_token => {
                Err(LoginError::Ended { code: code.clone() })
            }
            _ => Ok(()),
        }
    }

    fn due(&self, auth: &Auth, tokens: &Tokens, refused: Option<&Secret>) -> Renewal {
        let now = (self.shared.clock)();
        match Renewal::of(auth, tokens, now) {
            _ if refused == Some(&tokens.access_token) => Renewal::Overdue,
            Renewal::Due if self.is_paused(tokens, now) => Renewal::NotNeeded,
            due => due,
        }
    }

    /// Whether a renewal has failed recently, or permanently.
    fn is_paused(&self, tokens: &Tokens, now: SystemTime) -> bool {
        self.failed_renewal().as_ref().is_some_and(|failed_renewal| {
            failed_renewal.of == tokens.refresh_token
                && match failed_renewal.kind {
                    SetbackKind::Ended(_) => true,
                    SetbackKind::Until(time) => now < time,
                }
        })
    }

    /// Keeps other processes from changing the login until the result is dropped.
    async fn lock(&self) -> Result<File, LoginError> {
        lock(self.shared.store.home(), "auth.lock").await
    }

    async fn read(&self) -> Result<Auth, LoginError> {
        let store = self.shared.store.clone();
        blocking(move || store.load()).await
    }

    /// Changes the stored login and clears the cache.
    async fn on_disk<T: Send + 'static>(
        &self,
        change: impl FnOnce(&LoginStore) -> Result<T, LoginError> + Send + 'static,
    ) -> Result<T, LoginError> {
        let store = self.shared.store.clone();
        let done = blocking(move || change(&store)).await;
        *self.known() = None;
        done
    }

    fn now(&self) -> String {
        DateTime::<Utc>::from((self.shared.clock)()).to_rfc3339_opts(SecondsFormat::Micros, true)
    }

    fn known(&self) -> MutexGuard<'_, Option<(Stamps, Arc<Auth>)>> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed_renewal(&self) -> MutexGuard<'_, Option<FailedRenewal>> {
        self.shared.failed_renewal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, LoginError> + Send + 'static,
) -> Result<T, LoginError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(LoginError::System { what: "read the login", source: std::io::Error::other(error) }),
    }
}
