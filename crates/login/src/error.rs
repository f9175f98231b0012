//! Failures of logins.

use std::error::Error;
use std::time::Duration;

use codex_config::AuthError;

use crate::KeyringError;

/// A login or a renewal that failed.
#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The login is stored in a file that cannot be used.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// None of the ports for the browser can be used.
    #[error("ports {} are in use, so the browser could not return to this program", ports.iter().map(u16::to_string).collect::<Vec<_>>().join(" and "))]
    Ports { ports: Vec<u16> },
    /// The user did not log in in time.
    #[error("the login was not completed within {}", shown(*after))]
    Expired {
        /// The time limit.
        after: Duration,
    },
    /// The user or the issuer denied the login.
    #[error("the login was refused: {code}")]
    Denied { code: String },
    /// The login was cancelled.
    #[error("Login was not completed")]
    Cancelled,
    /// The login is for another workspace than the administrator allows.
    #[error("the login is for another workspace than forced_chatgpt_workspace_id allows")]
    Workspace,
    /// The issuer does not support device codes.
    #[error("{issuer} does not support device codes")]
    NoDeviceLogin {
        /// The issuer.
        issuer: String,
    },
    /// The issuer answered with an error.
    #[error("the login service responded with {status}{}", code.as_ref().map(|code| format!(": {code}")).unwrap_or_default())]
    Status {
        /// The status.
        status: u16,
        /// The code in the answer.
        code: Option<String>,
    },
    /// The response is malformed.
    #[error("unexpected response from the login service: {what}")]
    Malformed { what: &'static str },
    /// The issuer could not be reached.
    #[error("could not reach the login service at {host}")]
    Connect {
        /// The host.
        host: String,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The login can no longer be renewed.
    #[error("the login has ended ({code}); log in again with `codex login`")]
    Ended { code: String },
    /// The access token has expired and there is no refresh token.
    #[error("the login cannot be renewed; log in again with `codex login`")]
    NotRenewable,
    /// Another process is renewing the login and does not finish.
    #[error("another process has been renewing the login for too long")]
    Locked,
    /// This build does not support keyrings.
    #[error("cli_auth_credentials_store = \"keyring\": this build has no keyring")]
    NoKeyring,
    /// The keyring of the system failed.
    #[error(transparent)]
    Keyring(#[from] KeyringError),
    /// A login would go to a host that is not `ChatGPT`.
    #[error("{provider} is not at chatgpt_base_url, and a ChatGPT login is sent nowhere else; use an API key")]
    ForeignHost {
        /// The provider.
        provider: String,
    },
    /// The client that supplies the tokens returned none.
    #[error("the client supplied no new tokens: {why}")]
    Client { why: String },
    /// The program that prints the key failed.
    #[error("the program for the key of {provider} {why}")]
    KeyProgram {
        /// The provider.
        provider: String,
        why: String,
    },
    /// A call of the operating system failed.
    #[error("could not {what}")]
    System { what: &'static str, source: std::io::Error },
}

impl LoginError {
    /// A hint, shown on its own line.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Auth(error) => error.hint(),
            Self::Ports { .. } => Some("log in with a code instead: codex login --device-auth".to_owned()),
            Self::NoDeviceLogin { .. } => Some("log in with a browser instead: codex login".to_owned()),
            Self::NoKeyring => Some("build it with `--features keyring`, or set it to \"file\" or \"auto\"".to_owned()),
            Self::Keyring(_) => Some("unlock the keyring, or set cli_auth_credentials_store to \"file\"".to_owned()),
            Self::Workspace => Some("log in again and choose that workspace".to_owned()),
            Self::Connect { .. } => Some("check the network and the proxy settings".to_owned()),
            Self::Expired { .. } | Self::Denied { .. } => Some("try again with `codex login`".to_owned()),
            _ => None,
        }
    }
}

/// A time for people.
fn shown(time: Duration) -> String {
    match time.as_secs() {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds => format!("{} minutes", seconds / 60),
    }
}
