//! The address of a database, and the settings of the store in it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use codex_config::{Env, StoreConfig};
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::errors::PostgresError;

/// The longest name of a schema that PostgreSQL keeps.
const LONGEST_SCHEMA: usize = 63;

/// The settings of a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// The URL of the database. It may contain the password.
    pub url: String,
    /// The password, if the URL does not contain it.
    pub password: Option<String>,
    /// The schema of the tables.
    pub schema: String,
    /// A file of certificates to trust besides those of the system.
    pub certificates: Option<PathBuf>,
    /// The time that a call waits for a database that cannot be reached.
    pub patience: Duration,
    /// The name of this server, for people.
    pub server_name: String,
    /// Whether advisory locks are used. Everything is correct without them.
    pub advisory_locks: bool,
    /// Whether the database notifies servers of changes. Without it, they find them with their next renewal.
    pub notifications: bool,
    /// Told how long the commands of threads may run, each time that changes; `None` while no thread is open. It is for
    /// those who have to stop commands if this process is halted.
    pub command_deadline: fn(Option<Duration>),
}

impl fmt::Debug for StoreOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, certificates, patience, server_name, .. } = self;
        let mut shown = f.debug_struct("StoreOptions");
        shown.field("schema", schema).field("certificates", certificates).field("patience", patience);
        shown.field("server_name", server_name).finish_non_exhaustive()
    }
}

impl StoreOptions {
    /// The settings of a store at a URL, with the defaults of everything else.
    #[must_use]
    pub fn at(url: String) -> Self {
        Self {
            url,
            password: None,
            schema: "codex".to_owned(),
            certificates: None,
            patience: Duration::from_secs(30),
            server_name: "codex".to_owned(),
            advisory_locks: true,
            notifications: true,
            command_deadline: |_| {},
        }
    }

    /// The settings of a configuration.
    ///
    /// # Errors
    /// When it names no database, or the password cannot be read.
    pub fn of(config: &StoreConfig, env: &Env) -> Result<Self, PostgresError> {
        let url = config.url.as_ref().ok_or(PostgresError::NotConfigured)?;
        let password = config.password(env).map_err(|problem| PostgresError::Password { problem })?;
        let usual = Self::at(url.reveal().to_owned());
        Ok(Self {
            password: password.map(|password| password.reveal().to_owned()),
            schema: config.schema.clone().unwrap_or(usual.schema),
            certificates: env.ca_certificates(),
            patience: config.patience,
            advisory_locks: !config.plain_sql,
            notifications: !config.plain_sql,
            server_name: config.server_name.clone().unwrap_or_else(machine_and_process),
            ..usual
        })
    }
}

/// A name that a person can find: the machine and the process.
fn machine_and_process() -> String {
    format!("{}:{}", rustix::system::uname().nodename().to_string_lossy(), std::process::id())
}

/// A checked address.
pub(crate) struct Address {
    pub(crate) config: Config,
    /// The address without secrets, for people.
    pub(crate) place: String,
    pub(crate) uses_tls: bool,
}

impl Address {
    /// # Errors
    /// When the URL is invalid, or asks for a connection without TLS to another machine. No error contains the URL.
    pub(crate) fn of(options: &StoreOptions) -> Result<Self, PostgresError> {
        let wrong = |problem: &str| PostgresError::Address { problem: problem.to_owned() };
        let url = options.url.trim();
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(wrong("it does not start with postgres://"));
        }
        // Certificates and host names are always verified, so the stricter words mean the same.
        let url = url.replace("sslmode=verify-full", "sslmode=require").replace("sslmode=verify-ca", "sslmode=require");
        let asks_for_tls = url.contains("sslmode=require");
        let mut config: Config = url.parse().map_err(|_| wrong("it is not a valid URL of a database"))?;
        if let (None, Some(password)) = (config.get_password(), &options.password) {
            config.password(password);
        }
        if config.get_hosts().is_empty() {
            return Err(wrong("it names no host"));
        }
        if config.get_user().is_none() {
            return Err(wrong("it names no user"));
        }
        let is_local = config.get_hosts().iter().all(is_local);
        if !is_local && config.get_ssl_mode() == SslMode::Disable {
            return Err(wrong("sslmode=disable is only possible on this machine; remove it"));
        }
        if asks_for_tls && config.get_hosts().iter().any(|host| matches!(host, Host::Unix(_))) {
            return Err(wrong("a Unix socket has no TLS; remove sslmode"));
        }
        let uses_tls = !is_local || asks_for_tls;
        config.ssl_mode(if uses_tls { SslMode::Require } else { SslMode::Disable });
        config.application_name("codex").connect_timeout(Duration::from_secs(5));
        config.tcp_user_timeout(Duration::from_secs(10)).keepalives_idle(Duration::from_secs(30));
        Ok(Self { place: place(&config), config, uses_tls })
    }
}

/// Whether a host is this machine, where nobody else can listen.
fn is_local(host: &Host) -> bool {
    match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
        }
    }
}

fn place(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("{host}:{port}/{database}")
}

/// The name of a schema as it stands in statements.
///
/// # Errors
/// When the name is empty, too long or not made of letters, digits and `_`.
pub(crate) fn quoted_schema(name: &str) -> Result<String, PostgresError> {
    let is_plain = name.chars().all(|char| char.is_ascii_alphanumeric() || char == '_');
    if name.is_empty() || name.len() > LONGEST_SCHEMA || !is_plain {
        return Err(PostgresError::Schema { name: name.to_owned() });
    }
    Ok(format!("\"{name}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(url: &str) -> Result<Address, PostgresError> {
        Address::of(&StoreOptions::at(url.to_owned()))
    }

    #[test]
    fn other_machines_are_reached_with_tls_only() {
        for (url, tls) in [
            ("postgres://u:canary@db.example/x", true),
            ("postgres://u@db.example/x?sslmode=prefer", true),
            ("postgres://u@db.example/x?sslmode=verify-full", true),
            ("postgres://u@127.0.0.1/x", false),
            ("postgres://u@localhost/x?sslmode=require", true),
            ("postgres://u@%2Frun%2Fpg/x", false),
        ] {
            let address = address(url).unwrap();
            assert_eq!(address.uses_tls, tls, "{url}");
            let mode = if tls { SslMode::Require } else { SslMode::Disable };
            assert_eq!(address.config.get_ssl_mode(), mode, "{url}");
        }
        let refused = address("postgres://u:canary@db.example/x?sslmode=disable").err().unwrap();
        assert!(refused.to_string().contains("only possible on this machine"), "{refused}");
    }

    #[test]
    fn no_error_and_no_debug_text_contains_the_password() {
        let mut options = StoreOptions::at("postgres://u:canary@db.example:5433/x".to_owned());
        options.password = Some("canary".to_owned());
        let address = Address::of(&options).unwrap();
        assert_eq!(address.place, "db.example:5433/x");
        let shown = format!("{options:?} {:?} {}", address.config, address.place);
        assert!(!shown.contains("canary"), "{shown}");
        for url in
            ["canary", "http://u:canary@x/", "postgres://u:canary@[x/", "postgres://u:canary@h:port/x?canary=canary"]
        {
            let error = self::address(url).err().unwrap();
            assert!(!format!("{error} {error:?}").contains("canary"), "{error:?}");
        }
    }

    #[test]
    fn a_schema_is_a_plain_name() {
        assert_eq!(quoted_schema("team_2").unwrap(), "\"team_2\"");
        for name in ["", "a b", "a\"; DROP", &"x".repeat(64)] {
            assert!(quoted_schema(name).is_err(), "{name}");
        }
    }
}
