//! The login: `auth.json`, keys in variables, and the token for each provider.
//!
//! Invariant: no error and no debug output of this module contains any part of a secret.

use std::{
    collections::BTreeMap,
    io,
    path::{Path, PathBuf},
};

use serde_json::value::RawValue;

use crate::{
    Env, Home, ProviderConfig, Secret,
    position::{Lines, decode},
};

/// The variable that takes precedence over any other key for a provider with `requires_openai_auth`.
const CODEX_API_KEY: &str = "CODEX_API_KEY";

/// The maximum size of `auth.json`.
const MOST_BYTES: u64 = 1024 * 1024;

/// The content of `auth.json`; empty if there is no such file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Auth {
    /// `auth_mode`: the way in which the user logged in, in releases that write it.
    pub mode: Option<String>,
    /// `OPENAI_API_KEY`.
    pub api_key: Option<Secret>,
    /// `tokens`: the login with `ChatGPT`.
    pub tokens: Option<Tokens>,
    /// `last_refresh`: the time when the tokens were renewed, as written.
    pub last_refresh: Option<String>,
    /// The subscription, if a client supplied the tokens. It is never stored.
    pub plan: Option<String>,
}

/// The tokens of a login with `ChatGPT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tokens {
    /// The identity token.
    pub id_token: Option<Secret>,
    /// The access token, which every request carries.
    pub access_token: Secret,
    /// The refresh token.
    pub refresh_token: Option<Secret>,
    /// The workspace.
    pub account_id: Option<String>,
}

/// A token to send, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    pub token: Secret,
    pub source: TokenSource,
}

/// The source of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenSource {
    /// This variable.
    Variable(String),
    /// The provider's `experimental_bearer_token`.
    Config,
    /// `auth.json`, as an API key.
    ApiKey,
    /// `auth.json`, from a login with `ChatGPT`.
    Login {
        /// The workspace that requests name.
        account_id: Option<String>,
    },
}

/// The reason why there is no token.
#[derive(Debug, thiserror::Error)]
pub enum AuthError {
    /// The file exists but cannot be read.
    #[error("could not read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// The file is not JSON.
    #[error("{}:{line}:{column}: {message}", .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        message: String,
    },
    /// A member of the file has the wrong type.
    #[error("{}:{line}: {key}: {problem}", .path.display())]
    Member {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The member, dotted.
        key: String,
        /// The expected type and the type that was found.
        problem: String,
    },
    /// The file could not be written or removed.
    #[error("could not write {}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// The given key is not valid.
    #[error("the key is empty or contains invalid characters")]
    BadKey,
    /// The provider's variable is not set.
    #[error("{provider} needs a key in the variable {variable}, which is not set")]
    NoVariable {
        /// The provider's name.
        provider: String,
        /// The variable.
        variable: String,
        /// The instructions from the configuration.
        instructions: Option<String>,
    },
    /// Nobody is logged in.
    #[error("{provider} needs a login or an API key")]
    NoLogin {
        /// The provider's name.
        provider: String,
    },
}

impl AuthError {
    /// A hint, shown on its own line.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoVariable { instructions: Some(text), .. } => Some(text.clone()),
            Self::NoVariable { variable, .. } => Some(format!("set {variable} to your key")),
            Self::NoLogin { .. } => Some("set OPENAI_API_KEY to your key".to_owned()),
            Self::Syntax { .. } | Self::Member { .. } => {
                Some("fix the file, or remove it and set OPENAI_API_KEY".to_owned())
            }
            Self::Read { .. } | Self::Write { .. } | Self::BadKey => None,
        }
    }
}

impl Auth {
    /// Reads `auth.json`; a missing file is an empty login.
    pub fn load(home: &Home) -> Result<Self, AuthError> {
        Self::text(home)?.map_or_else(|| Ok(Self::default()), |text| Self::parse(&home.auth_file(), &text))
    }

    /// The text of `auth.json`, if the file exists.
    pub fn text(home: &Home) -> Result<Option<String>, AuthError> {
        let path = home.auth_file();
        match codex_files::read(&path, MOST_BYTES) {
            Ok(bytes) => match decode(&bytes) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err((line, column)) => {
                    Err(AuthError::Syntax { path, line, column, message: "invalid UTF-8".to_owned() })
                }
            },
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(AuthError::Read { path, source: error.into() }),
        }
    }

    /// Parses the content of `auth.json`; `path` is shown in errors.
    pub fn parse(path: &Path, text: &str) -> Result<Self, AuthError> {
        let whole: &RawValue = serde_json::from_str(text).map_err(|error| {
            let (line, column) = (error.line(), error.column().max(1));
            let said = error.to_string();
            let message = said.split(" at line ").next().unwrap_or_default().to_owned();
            AuthError::Syntax { path: path.to_owned(), line, column, message }
        })?;
        let file = Object::open(path, text, whole.get(), "")?;
        let tokens = file.object("tokens")?.map(|tokens| {
            Ok(Tokens {
                id_token: tokens.secret("id_token")?,
                access_token: tokens.secret("access_token")?.ok_or_else(|| tokens.missing("access_token"))?,
                refresh_token: tokens.secret("refresh_token")?,
                account_id: tokens.string("account_id")?,
            })
        });
        Ok(Self {
            mode: file.string("auth_mode")?,
            api_key: file.secret("OPENAI_API_KEY")?,
            tokens: tokens.transpose()?,
            last_refresh: file.string("last_refresh")?,
            plan: None,
        })
    }

    /// The token of requests to a provider; `None` for a provider that needs none.
    ///
    /// With `requires_openai_auth`, the variable `CODEX_API_KEY` comes first and `auth.json` last. Between them, and
    /// alone for every other provider, come the variable in `env_key` and `experimental_bearer_token`.
    pub fn bearer(&self, provider: &ProviderConfig, env: &Env) -> Result<Option<Bearer>, AuthError> {
        let openai = provider.requires_openai_auth;
        let variables = openai.then_some(CODEX_API_KEY).into_iter().chain(provider.env_key.as_deref());
        let from_variable = |name: &str| {
            let token = Secret::new(env.text(name)?);
            Some(Bearer { token, source: TokenSource::Variable(name.to_owned()) })
        };
        let from_config = || provider.experimental_bearer_token.clone();
        let found = variables
            .into_iter()
            .find_map(from_variable)
            .or_else(|| Some(Bearer { token: from_config()?, source: TokenSource::Config }))
            .or_else(|| if openai { self.stored() } else { None });
        let name = || provider.name.clone();
        match (found, &provider.env_key) {
            (Some(bearer), _) => Ok(Some(bearer)),
            (None, _) if openai => Err(AuthError::NoLogin { provider: name() }),
            (None, Some(variable)) => Err(AuthError::NoVariable {
                provider: name(),
                variable: variable.clone(),
                instructions: provider.env_key_instructions.clone(),
            }),
            (None, None) => Ok(None),
        }
    }

    /// The token in the file: the API key, unless the user last logged in with `ChatGPT`.
    fn stored(&self) -> Option<Bearer> {
        let key = || Some(Bearer { token: self.api_key.clone()?, source: TokenSource::ApiKey });
        let login = || {
            let tokens = self.tokens.as_ref()?;
            let source = TokenSource::Login { account_id: tokens.account() };
            Some(Bearer { token: tokens.access_token.clone(), source })
        };
        if self.is_chatgpt() { login() } else { key() }
    }
}

/// An object of the file, whose members know their position in the text.
struct Object<'a> {
    path: &'a Path,
    text: &'a str,
    own: &'a str,
    at: String,
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Object<'a> {
    /// Parses `own`, a part of `text`; `at` is its dotted name.
    fn open(path: &'a Path, text: &'a str, own: &'a str, at: &str) -> Result<Self, AuthError> {
        let object = Self { path, text, own, at: at.to_owned(), members: BTreeMap::new() };
        let key = if at.is_empty() { "the file" } else { at };
        let wrong = || object.error(key.to_owned(), own, format!("expected an object, found {}", kind(own)));
        let members = serde_json::from_str(own).map_err(|_| wrong())?;
        Ok(Self { members, ..object })
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.members.get(name).map(|raw| raw.get()).filter(|raw| *raw != "null")
    }

    fn object(&self, name: &str) -> Result<Option<Self>, AuthError> {
        self.get(name).map(|raw| Self::open(self.path, self.text, raw, &self.key(name))).transpose()
    }

    /// A string member; an empty one counts as absent.
    fn string(&self, name: &str) -> Result<Option<String>, AuthError> {
        let Some(raw) = self.get(name) else { return Ok(None) };
        match serde_json::from_str::<String>(raw) {
            Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
            Err(_) => Err(self.error(self.key(name), raw, format!("expected a string, found {}", kind(raw)))),
        }
    }

    fn secret(&self, name: &str) -> Result<Option<Secret>, AuthError> {
        Ok(self.string(name)?.map(Secret::new))
    }

    fn missing(&self, name: &str) -> AuthError {
        self.error(self.key(name), self.own, "missing".to_owned())
    }

    fn key(&self, name: &str) -> String {
        if self.at.is_empty() { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    fn error(&self, key: String, part: &str, problem: String) -> AuthError {
        let offset = part.as_ptr().addr().saturating_sub(self.text.as_ptr().addr());
        AuthError::Member { path: self.path.to_owned(), line: Lines::new(self.text).line(offset), key, problem }
    }
}

/// The JSON type of a text; never the text itself.
fn kind(json: &str) -> &'static str {
    match json.bytes().next() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests;
