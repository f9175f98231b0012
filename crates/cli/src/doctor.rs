//! `codex doctor`: checks this installation and suggests fixes.

use std::ffi::OsString;
use std::io::Write;
use std::net::{TcpStream, ToSocketAddrs};
use std::process::{Command, ExitCode};
use std::time::Duration;

use codex_config::{
    AuditedKey, Bearer, Config, Env, Home, Layers, ModelTable, Overrides, Programs, TokenSource, Verdict, WireApi,
};
use codex_log::store::ListQuery;
use codex_sandbox::SandboxLevel;
use codex_store::ThreadIndex;
use codex_tools::trusted_git::writable_folders;
use serde::Serialize;

use crate::args::{DoctorArgs, Shared};
use crate::{console, sandbox};

/// The recommended and the minimum free space for the home.
const ENOUGH_BYTES: u64 = 512 * 1024 * 1024;
const LEAST_BYTES: u64 = 16 * 1024 * 1024;

/// The timeout of a connection to the provider.
const NETWORK_PATIENCE: Duration = Duration::from_secs(3);

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Warning,
    Error,
}

/// The result of one check.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    state: State,
    message: String,
    /// A suggested fix.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

impl Finding {
    fn ok(what: &'static str, message: impl Into<String>) -> Self {
        Self { what, state: State::Ok, message: message.into(), hint: None }
    }

    fn bad(what: &'static str, state: State, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { what, state, message: message.into(), hint }
    }
}

/// The state of a configuration key.
#[derive(Debug, Serialize)]
struct Audited {
    key: String,
    /// The file and line where it is set.
    place: String,
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
}

impl Audited {
    fn of(audited: &AuditedKey) -> Self {
        let (state, why) = match &audited.verdict {
            Verdict::Honoured => ("honoured", None),
            Verdict::Lowered(most) => ("lowered", Some(format!("{most} is the most"))),
            Verdict::Moot(why) => ("not needed", Some((*why).to_owned())),
            Verdict::Unused { why, .. } => ("no effect", Some((*why).to_owned())),
            Verdict::Unknown { nearest } => {
                ("unknown", nearest.as_ref().map(|nearest| format!("did you mean `{nearest}`?")))
            }
            Verdict::Refused => ("refused", Some("a project cannot set it".to_owned())),
        };
        Self { key: audited.key.clone(), place: audited.origin.to_string(), state, why }
    }
}

#[derive(Debug, Default)]
struct Report {
    findings: Vec<Finding>,
    /// The configuration, key by key.
    keys: Vec<Audited>,
}

/// Runs all checks and prints the results. The exit status is 1 if something has to be fixed.
pub(crate) fn run(shared: &Shared, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let Report { findings, keys } = look(shared, &Env::process());
    let is_ill = findings.iter().any(|finding| finding.state == State::Error);
    if args.json {
        let version = env!("CARGO_PKG_VERSION");
        let report = serde_json::json!({"ok": !is_ill, "version": version, "checks": findings, "config": keys});
        writeln!(console::json(), "{report:#}")?;
    } else {
        let mut out = console::out();
        for Finding { what, state, message, hint } in &findings {
            let mark = match state {
                State::Ok => "ok     ",
                State::Warning => "warning",
                State::Error => "ERROR  ",
            };
            writeln!(out, "{mark}  {what:8}  {message}")?;
            if let Some(hint) = hint {
                writeln!(out, "                   hint: {hint}")?;
            }
        }
        if shared.verbose {
            for Audited { key, place, state, why } in &keys {
                let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                writeln!(out, "{state:10}  {place}  {key}{why}")?;
            }
        }
    }
    Ok(if is_ill { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn look(shared: &Shared, env: &Env) -> Report {
    let mut report = Report::default();
    let home = match Home::find(env) {
        Ok(home) => home,
        Err(error) => {
            report.findings.push(Finding::bad("home", State::Error, error.to_string(), error.hint()));
            return report;
        }
    };
    report.findings.extend([home_is_writable(&home), disk(&home)]);
    let layers = Layers::read(&home, env, &Overrides { strict: false, ..shared.overrides() });
    match layers.and_then(|layers| Ok((layers.config(&home, env)?, layers))) {
        Ok((config, layers)) => {
            report.keys = layers.audit().iter().map(Audited::of).collect();
            report.findings.push(configuration(&config, &report.keys));
            let warnings = layers.warnings().into_iter().map(|warning| {
                let state = if shared.strict_config && warning.is_mistake { State::Error } else { State::Warning };
                Finding::bad("config", state, warning.to_string(), None)
            });
            report.findings.extend(warnings);
            report.findings.extend(models(&config));
            report.findings.extend([login(&home, &config, env), network(&config)]);
            report.findings.extend(memory(&config));
        }
        Err(error) => {
            let hint = error.hint();
            let message = format!("{:#}", anyhow::Error::from(error));
            report.findings.push(Finding::bad("config", State::Error, message, hint));
        }
    }
    report.findings.extend([attacked_sandbox(&home), git(env), index(&home)]);
    report
}

/// Checks the model, and how much of the user's configuration has an effect.
fn configuration(config: &Config, keys: &[Audited]) -> Finding {
    let lost = keys.iter().filter(|key| !matches!(key.state, "honoured" | "lowered" | "not needed")).count();
    let counted = match (keys.len(), lost) {
        (0, _) => String::new(),
        (all, 0) => format!("; {all} keys, all honoured"),
        (all, lost) => format!("; {all} keys, {lost} without effect"),
    };
    Finding::ok("config", format!("model {}, provider {}{counted}", config.model.name, config.provider.id))
}

/// Checks whether the user's model catalogue can be read.
fn models(config: &Config) -> Option<Finding> {
    let (_, unread) = ModelTable::read(&config.model);
    unread
        .map(|why| Finding::bad("models", State::Warning, why, Some("the built-in models are used instead".to_owned())))
}

fn home_is_writable(home: &Home) -> Finding {
    let path = home.path().display();
    if let Err(error) = home.ensure() {
        return Finding::bad("home", State::Error, error.to_string(), error.hint());
    }
    match tempfile::Builder::new().prefix(".doctor-").tempfile_in(home.path()) {
        Ok(_) => Finding::ok("home", path.to_string()),
        Err(error) => {
            let hint = "threads are not saved there; fix its permissions, or set CODEX_HOME".to_owned();
            Finding::bad("home", State::Error, format!("{path} cannot be written: {error}"), Some(hint))
        }
    }
}

/// Checks the free space for threads.
fn disk(home: &Home) -> Finding {
    match rustix::fs::statvfs(home.path()) {
        Ok(found) => room(found.f_bavail.saturating_mul(found.f_frsize)),
        Err(error) => Finding::bad("disk", State::Warning, format!("free space is unknown: {error}"), None),
    }
}

fn room(bytes: u64) -> Finding {
    let free = if bytes < 10 * 1024 * 1024 * 1024 {
        format!("{} MiB free", bytes / (1024 * 1024))
    } else {
        format!("{} GiB free", bytes / (1024 * 1024 * 1024))
    };
    let hint = Some("free some space: threads are saved below CODEX_HOME".to_owned());
    match bytes {
        ENOUGH_BYTES.. => Finding::ok("disk", free),
        LEAST_BYTES.. => Finding::bad("disk", State::Warning, free, hint),
        _ => Finding::bad("disk", State::Error, free, hint),
    }
}

fn login(home: &Home, config: &Config, env: &Env) -> Finding {
    let auth = match crate::login::stored(home, config) {
        Ok(auth) => auth,
        Err(error) => return Finding::bad("login", State::Error, error.to_string(), crate::failure::hint(&error)),
    };
    match auth.bearer(&config.provider, env) {
        Ok(Some(Bearer { source: TokenSource::Login { .. }, .. })) => {
            Finding::ok("login", format!("{}: ChatGPT login found", config.provider.name))
        }
        Ok(Some(_)) => Finding::ok("login", format!("{}: API key found", config.provider.name)),
        Ok(None) => Finding::ok("login", format!("{}: no API key needed", config.provider.name)),
        Err(error) => Finding::bad("login", State::Error, error.to_string(), crate::login::hint(&error)),
    }
}

/// Checks whether the provider's address can be reached. No request is sent.
fn network(config: &Config) -> Finding {
    if config.provider.wire_api == WireApi::Scripted {
        return Finding::ok("network", "not needed: the model is built in");
    }
    let url = config.provider.base_url.clone().unwrap_or_default();
    let Some((host, port)) = address(&url) else {
        let hint = "write it as https://host/v1".to_owned();
        return Finding::bad("network", State::Error, format!("`{url}` is not a valid URL"), Some(hint));
    };
    let reached = (host.as_str(), port).to_socket_addrs().and_then(|mut addresses| {
        let address = addresses.next().ok_or_else(|| std::io::Error::other("the name has no address"))?;
        TcpStream::connect_timeout(&address, NETWORK_PATIENCE)
    });
    match reached {
        Ok(_) => Finding::ok("network", format!("{host}:{port} reachable")),
        Err(error) => {
            let hint = "check the address, the network and the proxy".to_owned();
            Finding::bad("network", State::Warning, format!("{host}:{port} unreachable: {error}"), Some(hint))
        }
    }
}

fn address(url: &str) -> Option<(String, u16)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?']).next()?.rsplit('@').next()?;
    let default = if scheme == "https" { 443 } else { 80 };
    match authority.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
        }
        _ if authority.is_empty() => None,
        _ => Some((authority.trim_matches(['[', ']']).to_owned(), default)),
    }
}

/// Checks whether a configured memory limit is enforced.
fn memory(config: &Config) -> Option<Finding> {
    let limit = config.sandbox.most_memory?;
    Some(match codex_sandbox::unenforced_memory_limit(Some(limit)) {
        None => Finding::ok("memory", format!("a command may use {limit} bytes")),
        Some(why) => {
            let hint = "run codex as a unit of systemd with `Delegate=yes`, or take the limit out".to_owned();
            let message = format!("`limits.memory` is not enforced: {why}");
            Finding::bad("memory", State::Warning, message, Some(hint))
        }
    })
}

/// Attacks the sandbox: a command in a read-only sandbox tries to write.
fn attacked_sandbox(home: &Home) -> Finding {
    let level = match codex_sandbox::level() {
        SandboxLevel::Namespaces { landlock_abi } => format!("namespaces and seccomp, Landlock {landlock_abi}"),
        SandboxLevel::Landlock { abi } => format!("Landlock {abi} and seccomp"),
        SandboxLevel::Nothing { why } => {
            let hint = "every command is asked about; allow user namespaces or Landlock".to_owned();
            return Finding::bad("sandbox", State::Warning, format!("not available: {why}"), Some(hint));
        }
    };
    match attack(home) {
        Ok(false) => Finding::ok("sandbox", format!("{level}; a forbidden write was blocked")),
        Ok(true) => {
            let hint = "do not trust it on this machine, and report this".to_owned();
            Finding::bad("sandbox", State::Error, format!("{level}; a forbidden write was NOT blocked"), Some(hint))
        }
        Err(error) => Finding::bad("sandbox", State::Error, format!("{level}; no command runs: {error:#}"), None),
    }
}

/// Whether the command in the read-only sandbox could write.
fn attack(home: &Home) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let target = folder.path().join("written");
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let shell = ["/bin/sh", "-c", "(: > \"$0\") 2>/dev/null; exit 7"].map(OsString::from);
    let argv = shell.into_iter().chain([target.clone().into()]).collect();
    let code = sandbox::run_read_only(home, env, folder.path(), argv)?;
    anyhow::ensure!(code == Some(7), "the shell ended with {code:?} instead of status 7");
    Ok(target.exists())
}

/// Runs the git that would be used here. Nothing in this folder affects it.
fn git(env: &Env) -> Finding {
    let cwd = std::env::current_dir().unwrap_or_default();
    let programs = Programs::new(env, &writable_folders(&cwd, None));
    let output = programs.find("git").map(|git| {
        Command::new(git)
            .arg("--version")
            .current_dir("/")
            .env("PATH", programs.path())
            .stdin(std::process::Stdio::null())
            .output()
    });
    match output {
        Some(Ok(output)) if output.status.success() => {
            Finding::ok("git", String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Some(_) | None => {
            let hint = Some("install git: reviews and `codex apply` need it".to_owned());
            Finding::bad("git", State::Warning, "git does not run", hint)
        }
    }
}

fn index(home: &Home) -> Finding {
    let listed = ThreadIndex::open(home.path()).list(&ListQuery { limit: 1, ..ListQuery::default() });
    match listed {
        Ok(page) if page.threads.is_empty() => Finding::ok("threads", "none yet"),
        Ok(_) => Finding::ok("threads", "index OK"),
        Err(error) => {
            let hint = "rebuild the index with `codex threads repair`".to_owned();
            let message = format!("{:#}", anyhow::Error::from(error));
            Finding::bad("threads", State::Warning, message, Some(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_judged() {
        let states = [1 << 20, 100 << 20, 600 << 20, 20 << 30].map(|bytes| room(bytes).state);
        assert_eq!(states, [State::Error, State::Warning, State::Ok, State::Ok]);
        assert_eq!(
            (room(100 << 20).message.as_str(), room(20 << 30).message.as_str()),
            ("100 MiB free", "20 GiB free")
        );
    }

    #[test]
    fn addresses_have_a_port() {
        for (url, expected) in [
            ("https://api.openai.com/v1", Some(("api.openai.com", 443))),
            ("http://localhost:8080", Some(("localhost", 8080))),
            ("http://user:pass@[::1]:9/x", Some(("::1", 9))),
            ("http://[::1]/x", Some(("::1", 80))),
            ("nonsense", None),
            ("http:///x", None),
        ] {
            assert_eq!(address(url), expected.map(|(host, port)| (host.to_owned(), port)), "{url}");
        }
    }
}
