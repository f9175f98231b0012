//! Logging in with a key, logging out, and the account of a login.

use std::{fs, io};

use serde_json::{Map, Value as Json, json};

use crate::{
    Auth, AuthError, Bearer, Claims, Env, Home, ProviderConfig, Secret, TokenSource, Tokens,
    replace::{forget_unfinished, replace_secret},
};

/// The account that pays for requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// An API key.
    ApiKey,
    /// A user of `ChatGPT`, according to the unverified claims of the login.
    Chatgpt {
        /// The user's email address.
        email: Option<String>,
        /// The subscription, such as `plus`.
        plan: Option<String>,
    },
}

impl Auth {
    /// Stores a key in place of any other login. Only this user can read the file.
    pub fn store_api_key(home: &Home, key: &str) -> Result<(), AuthError> {
        Self::write(home, &Self::api_key_json(key)?)
    }

    /// The content of `auth.json` for a login with a key.
    pub fn api_key_json(key: &str) -> Result<Json, AuthError> {
        let key = key.trim();
        // A key becomes a header, and such characters would end it or start another.
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(AuthError::BadKey);
        }
        Ok(json!({"auth_mode": "apikey", "OPENAI_API_KEY": key}))
    }

    /// The content of `auth.json` for a login with `ChatGPT`, in the form that all releases read. `at` is the time in
    /// the format of RFC 3339.
    #[must_use]
    pub fn tokens_json(tokens: &Tokens, at: &str) -> Json {
        json!({
            "auth_mode": CHATGPT, "OPENAI_API_KEY": null, "tokens": tokens_json(tokens, Map::new()), "last_refresh": at,
        })
    }

    /// The content of `auth.json` with renewed tokens. Everything else in the old text stays, including members that
    /// this release does not know.
    #[must_use]
    pub fn renewed_json(old: &str, tokens: &Tokens, at: &str) -> Json {
        let mut file: Map<String, Json> = serde_json::from_str(old).unwrap_or_default();
        let known = file.get("tokens").and_then(Json::as_object).cloned().unwrap_or_default();
        file.insert("tokens".to_owned(), tokens_json(tokens, known));
        file.insert("last_refresh".to_owned(), at.into());
        Json::Object(file)
    }

    /// Replaces `auth.json`.
    pub fn write(home: &Home, file: &Json) -> Result<(), AuthError> {
        let path = home.auth_file();
        let failed = |source| AuthError::Write { path: path.clone(), source };
        let text = serde_json::to_string_pretty(file).map_err(|error| failed(error.into()))?;
        home.ensure().map_err(|error| failed(io::Error::other(error)))?;
        replace_secret(&path, &text, &home.run()).map_err(failed)
    }

    /// Removes the login, and returns whether there was one.
    pub fn remove(home: &Home) -> Result<bool, AuthError> {
        let path = home.auth_file();
        drop(forget_unfinished(&home.run(), home.path()));
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(AuthError::Write { path, source }),
        }
    }

    /// The account that requests to a provider use; `None` if nobody is logged in or the provider needs no login.
    #[must_use]
    pub fn account(&self, provider: &ProviderConfig, env: &Env) -> Option<Account> {
        self.in_use(provider, env).map(|bearer| match bearer.source {
            TokenSource::Login { .. } => self.chatgpt_account(),
            TokenSource::Variable(_) | TokenSource::Config | TokenSource::ApiKey => Account::ApiKey,
        })
    }

    /// The token for a provider that requires a login, if there is one.
    #[must_use]
    pub fn in_use(&self, provider: &ProviderConfig, env: &Env) -> Option<Bearer> {
        if provider.requires_openai_auth { self.bearer(provider, env).ok().flatten() } else { None }
    }

    /// The user's email address, according to the unverified claims of the login.
    #[must_use]
    pub fn alleged_email(&self) -> Option<String> {
        self.tokens.as_ref()?.claims().email
    }

    /// Whether the login with `ChatGPT` is the active one in the file.
    #[must_use]
    pub fn is_chatgpt(&self) -> bool {
        self.tokens.is_some() && (self.api_key.is_none() || self.mode.as_deref() == Some(CHATGPT))
    }

    fn chatgpt_account(&self) -> Account {
        let Claims { email, plan, .. } = self.tokens.as_ref().map(Tokens::claims).unwrap_or_default();
        Account::Chatgpt { email, plan: self.plan.clone().or(plan) }
    }
}

/// The `auth_mode` of a login with `ChatGPT`.
pub(crate) const CHATGPT: &str = "chatgpt";

/// The member `tokens`, with its unknown members.
fn tokens_json(tokens: &Tokens, mut known: Map<String, Json>) -> Json {
    let reveal = |secret: &Secret| Json::from(secret.reveal());
    for (name, value) in [
        ("id_token", tokens.id_token.as_ref().map(reveal)),
        ("access_token", Some(reveal(&tokens.access_token))),
        ("refresh_token", tokens.refresh_token.as_ref().map(reveal)),
        ("account_id", tokens.account().map(Json::from)),
    ] {
        known.insert(name.to_owned(), value.unwrap_or_default());
    }
    Json::Object(known)
}

impl Tokens {
    /// The claims of the identity token, or of the access token if that is missing.
    #[must_use]
    pub fn claims(&self) -> Claims {
        Claims::of(self.id_token.as_ref().unwrap_or(&self.access_token))
    }

    /// The workspace that requests name.
    #[must_use]
    pub fn account(&self) -> Option<String> {
        let claimed = || self.claims().account_id.or_else(|| Claims::of(&self.access_token).account_id);
        self.account_id.clone().or_else(claimed)
    }
}

#[cfg(test)]
mod tests {
    use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
    use tempfile::TempDir;

    use super::*;
    use crate::{Config, Overrides};

    fn no_variables() -> Env {
        Env::from_iter::<[(&str, &str); 0]>([])
    }

    fn openai(home: &Home) -> ProviderConfig {
        Config::load(home, &no_variables(), &Overrides::default()).unwrap().provider
    }

    fn account_of(home: &Home, provider: &ProviderConfig) -> Option<Account> {
        Auth::load(home).unwrap().account(provider, &no_variables())
    }

    #[test]
    fn a_key_is_stored_shown_and_forgotten() {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path().join("new"));
        let provider = openai(&home);
        assert_eq!(account_of(&home, &provider), None);

        Auth::store_api_key(&home, " sk-test-123\n").unwrap();
        assert_eq!(
            fs::read_to_string(home.auth_file()).unwrap(),
            "{\n  \"auth_mode\": \"apikey\",\n  \"OPENAI_API_KEY\": \"sk-test-123\"\n}"
        );
        assert_eq!(account_of(&home, &provider), Some(Account::ApiKey));
        let bearer = Auth::load(&home).unwrap().in_use(&provider, &no_variables()).unwrap();
        assert_eq!(bearer.token.reveal(), "sk-test-123");
        assert!(!format!("{bearer:?}").contains("sk-"));

        assert!(Auth::remove(&home).unwrap());
        assert!(!Auth::remove(&home).unwrap());
        assert_eq!(account_of(&home, &provider), None);
        assert_eq!(Auth::load(&home).unwrap().in_use(&provider, &no_variables()), None);
    }

    #[cfg(unix)]
    #[test]
    fn the_file_becomes_private_even_if_it_was_not() {
        use std::os::unix::fs::PermissionsExt as _;

        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        fs::write(home.auth_file(), r#"{"tokens":{"access_token":"old"}}"#).unwrap();
        fs::set_permissions(home.auth_file(), fs::Permissions::from_mode(0o644)).unwrap();
        Auth::store_api_key(&home, "sk-1").unwrap();
        assert_eq!(fs::metadata(home.auth_file()).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Auth::load(&home).unwrap().tokens, None);
    }

    #[test]
    fn a_key_that_cannot_go_into_a_header_is_refused_and_not_shown() {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        for key in ["", "  ", "sk-1\r\nX: y", "sk 1", "sk-\u{e9}"] {
            let error = Auth::store_api_key(&home, key).unwrap_err();
            assert_eq!(error.to_string(), "the key is empty or contains invalid characters");
            assert!(!home.auth_file().exists());
        }
    }

    #[test]
    fn a_login_has_its_owner() {
        let payload = r#"{"email":"a@b.c","https://api.openai.com/auth":{"chatgpt_plan_type":"plus"}}"#;
        let token = format!("e30.{}.sig", URL_SAFE_NO_PAD.encode(payload));
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        let file = json!({"auth_mode": "chatgpt", "tokens": {"id_token": token, "access_token": "t"}});
        fs::write(home.auth_file(), file.to_string()).unwrap();
        let account = Account::Chatgpt { email: Some("a@b.c".into()), plan: Some("plus".into()) };
        assert_eq!(account_of(&home, &openai(&home)), Some(account));
        assert_eq!(Auth::load(&home).unwrap().alleged_email().as_deref(), Some("a@b.c"));

        fs::write(home.auth_file(), r#"{"tokens":{"id_token":"broken","access_token":"t"}}"#).unwrap();
        let account = Account::Chatgpt { email: None, plan: None };
        assert_eq!(account_of(&home, &openai(&home)), Some(account));
    }

    #[test]
    fn tokens_are_stored_in_the_form_of_other_releases_and_renewed_without_losing_anything() {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path().join("new"));
        let mut tokens = Tokens {
            id_token: Some(Secret::new("i")),
            access_token: Secret::new("a"),
            refresh_token: Some(Secret::new("r")),
            account_id: Some("acct".to_owned()),
        };
        Auth::write(&home, &Auth::tokens_json(&tokens, "2026-01-01T00:00:00Z")).unwrap();
        let written = fs::read_to_string(home.auth_file()).unwrap();
        assert_eq!(
            written,
            "{\n  \"auth_mode\": \"chatgpt\",\n  \"OPENAI_API_KEY\": null,\n  \"tokens\": {\n    \"id_token\": \"i\",\n    \
             \"access_token\": \"a\",\n    \"refresh_token\": \"r\",\n    \"account_id\": \"acct\"\n  },\n  \
             \"last_refresh\": \"2026-01-01T00:00:00Z\"\n}"
        );
        assert_eq!(Auth::load(&home).unwrap().tokens, Some(tokens.clone()));

        let foreign = written.replacen("{\n", "{\n  \"agent_identity\": 7,\n", 1).replace("\"r\"", "\"r\", \"x\": 1");
        fs::write(home.auth_file(), &foreign).unwrap();
        tokens.access_token = Secret::new("b");
        let renewed = Auth::renewed_json(&foreign, &tokens, "2026-01-02T00:00:00Z");
        Auth::write(&home, &renewed).unwrap();
        let file: Json = serde_json::from_slice(&fs::read(home.auth_file()).unwrap()).unwrap();
        assert_eq!((&file["agent_identity"], &file["tokens"]["x"]), (&json!(7), &json!(1)));
        assert_eq!(file["tokens"]["access_token"], "b");
        assert_eq!(file["last_refresh"], "2026-01-02T00:00:00Z");
    }

    #[test]
    fn a_provider_without_login_has_no_account() {
        let temp = TempDir::new().unwrap();
        let home = Home::at(temp.path());
        Auth::store_api_key(&home, "sk-1").unwrap();
        assert_eq!(account_of(&home, &ProviderConfig::new("mock")), None);
    }

    #[test]
    fn a_key_in_a_variable_counts() {
        let env: Env = [("OPENAI_API_KEY", "sk-1")].into_iter().collect();
        let account = Auth::default().account(&openai(&Home::at("/nowhere")), &env);
        assert_eq!(account, Some(Account::ApiKey));
    }
}
