//! Logging in with a key, logging out, and whom a login is of.

use std::{fs, io};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value as Json, json};

use crate::{
    Auth, AuthError, Bearer, Env, Home, ProviderConfig, TokenSource, Tokens,
    replace::{forget_unfinished, replace_secret},
};

/// Who pays for requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Account {
    /// Whoever has given the key.
    ApiKey,
    /// A user of `ChatGPT`, as far as the login says without proof.
    Chatgpt {
        /// The user's address.
        email: Option<String>,
        /// What the user pays for, such as `plus`.
        plan: Option<String>,
    },
}

/// The member of an identity token that says what the user pays for.
const OPENAI_CLAIMS: &str = "https://api.openai.com/auth";

impl Auth {
    /// Stores a key in place of any other login. The file is for this user's eyes only.
    pub fn store_api_key(home: &Home, key: &str) -> Result<(), AuthError> {
        let key = key.trim();
        // A key goes into a header, where such characters would end it or begin another.
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(AuthError::BadKey);
        }
        let path = home.auth_file();
        let failed = |source| AuthError::Write { path: path.clone(), source };
        let text = serde_json::to_string_pretty(&json!({"auth_mode": "apikey", "OPENAI_API_KEY": key}));
        let text = text.map_err(|error| failed(error.into()))?;
        home.ensure().map_err(|error| failed(io::Error::other(error)))?;
        replace_secret(&path, &text, &home.run()).map_err(failed)
    }

    /// Forgets the login and says whether there was one.
    pub fn remove(home: &Home) -> Result<bool, AuthError> {
        let path = home.auth_file();
        drop(forget_unfinished(&home.run(), home.path()));
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(AuthError::Write { path, source }),
        }
    }

    /// The account that requests to a provider go to; none where nobody is logged in or nobody need be.
    #[must_use]
    pub fn account(&self, provider: &ProviderConfig, env: &Env) -> Option<Account> {
        self.in_use(provider, env).map(|bearer| match bearer.source {
            TokenSource::Login { .. } => self.chatgpt_account(),
            TokenSource::Variable(_) | TokenSource::Config | TokenSource::ApiKey => Account::ApiKey,
        })
    }

    /// The token for a provider that asks for a login, if there is one.
    #[must_use]
    pub fn in_use(&self, provider: &ProviderConfig, env: &Env) -> Option<Bearer> {
        if provider.requires_openai_auth { self.bearer(provider, env).ok().flatten() } else { None }
    }

    /// The user's address, as the login says without proof.
    #[must_use]
    pub fn alleged_email(&self) -> Option<String> {
        text(&claims(self.tokens.as_ref()?)?, "/email")
    }

    fn chatgpt_account(&self) -> Account {
        let claims = self.tokens.as_ref().and_then(claims).unwrap_or_default();
        let plan = claims.get(OPENAI_CLAIMS).and_then(|claims| text(claims, "/chatgpt_plan_type"));
        Account::Chatgpt { email: text(&claims, "/email"), plan }
    }
}

/// What an identity token claims. Its signature is not checked: it only says what to show to its owner.
fn claims(tokens: &Tokens) -> Option<Json> {
    let token = tokens.id_token.as_ref()?.reveal();
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?.trim_end_matches('=')).ok()?;
    serde_json::from_slice(&payload).ok()
}

fn text(claims: &Json, pointer: &str) -> Option<String> {
    claims.pointer(pointer)?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
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
            assert_eq!(error.to_string(), "the key is empty or holds characters that no key has");
            assert!(!home.auth_file().exists());
        }
    }

    #[test]
    fn a_login_shows_whom_it_is_of() {
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
