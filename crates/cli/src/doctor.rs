//! `codex doctor`: what is wrong with this installation, and what to do about it.

use std::ffi::OsString;
use std::io::Write;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;

use codex_config::{Auth, Config, Env, Home, Programs, WireApi};
use codex_engine::own_git::writable_folders;
use codex_sandbox::{Confinement, Launch, Profile, Rung, Stdio, Surroundings};
use codex_store::{ListQuery, ThreadIndex};
use codex_wire::policy::SandboxPolicy;
use serde::Serialize;

use crate::args::{DoctorArgs, Shared};
use crate::console;

/// How long the provider may take to pick up.
const NETWORK_PATIENCE: Duration = Duration::from_secs(3);

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    Ok,
    Warning,
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    what: &'static str,
    state: State,
    message: String,
    /// A next step.
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

/// Looks at everything and says what it found. The exit status is 1 when something has to be mended.
pub(crate) fn run(shared: &Shared, args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let findings = look(shared, &Env::process());
    let is_ill = findings.iter().any(|finding| finding.state == State::Error);
    if args.json {
        let report = serde_json::json!({"ok": !is_ill, "version": env!("CARGO_PKG_VERSION"), "checks": findings});
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
    }
    Ok(if is_ill { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn look(shared: &Shared, env: &Env) -> Vec<Finding> {
    let home = match Home::find(env) {
        Ok(home) => home,
        Err(error) => return vec![Finding::bad("home", State::Error, error.to_string(), error.hint())],
    };
    let mut findings = vec![home_is_writable(&home)];
    match Config::load(&home, env, &shared.overrides()) {
        Ok(config) => {
            let model = &config.model.name;
            let provider = &config.provider.id;
            findings.push(Finding::ok("config", format!("model {model} of the provider {provider}")));
            findings.push(login(&home, &config, env));
            findings.push(network(&config));
            findings.extend(memory(&config));
        }
        Err(error) => {
            let hint = error.hint();
            findings.push(Finding::bad("config", State::Error, format!("{:#}", anyhow::Error::from(error)), hint));
        }
    }
    findings.push(sandbox(&home));
    findings.push(git(env));
    findings.push(index(&home));
    findings
}

fn home_is_writable(home: &Home) -> Finding {
    let path = home.path().display();
    if let Err(error) = home.ensure() {
        return Finding::bad("home", State::Error, error.to_string(), error.hint());
    }
    match tempfile::Builder::new().prefix(".doctor-").tempfile_in(home.path()) {
        Ok(_) => Finding::ok("home", path.to_string()),
        Err(error) => {
            let hint = "threads are not saved there; mend its permissions, or set CODEX_HOME".to_owned();
            Finding::bad("home", State::Error, format!("{path} cannot be written: {error}"), Some(hint))
        }
    }
}

fn login(home: &Home, config: &Config, env: &Env) -> Finding {
    let bearer = Auth::load(home).and_then(|auth| auth.bearer(&config.provider, env));
    match bearer {
        Ok(Some(_)) => Finding::ok("login", format!("{} gets a key", config.provider.name)),
        Ok(None) => Finding::ok("login", format!("{} needs no key", config.provider.name)),
        Err(error) => Finding::bad("login", State::Error, error.to_string(), crate::login::hint(&error)),
    }
}

/// Whether somebody picks up at the provider's address. Nothing is asked of it.
fn network(config: &Config) -> Finding {
    if config.provider.wire_api == WireApi::Scripted {
        return Finding::ok("network", "the model is on this machine and needs none");
    }
    let url = config.provider.base_url.clone().unwrap_or_default();
    let Some((host, port)) = address(&url) else {
        let hint = "write it as https://host/v1".to_owned();
        return Finding::bad("network", State::Error, format!("{url} is no address"), Some(hint));
    };
    let reached = (host.as_str(), port).to_socket_addrs().and_then(|mut addresses| {
        let address = addresses.next().ok_or_else(|| std::io::Error::other("the name has no address"))?;
        TcpStream::connect_timeout(&address, NETWORK_PATIENCE)
    });
    match reached {
        Ok(_) => Finding::ok("network", format!("{host}:{port} picks up")),
        Err(error) => {
            let hint = "check the address, the network and the proxy".to_owned();
            Finding::bad("network", State::Warning, format!("{host}:{port} does not pick up: {error}"), Some(hint))
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

/// Whether a limit on memory that somebody wants holds.
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

/// Attacks the sandbox: a command that may write nothing tries to.
fn sandbox(home: &Home) -> Finding {
    let rung = match codex_sandbox::rung() {
        Rung::Namespaces { landlock_abi } => format!("namespaces and seccomp, Landlock {landlock_abi}"),
        Rung::Landlock { abi } => format!("Landlock {abi} and seccomp"),
        Rung::Nothing { why } => {
            let hint = "every command is asked about; allow user namespaces or Landlock".to_owned();
            return Finding::bad("sandbox", State::Warning, format!("nothing is to be had: {why}"), Some(hint));
        }
    };
    match attack(home) {
        Ok(false) => Finding::ok("sandbox", format!("{rung}; a forbidden write was stopped")),
        Ok(true) => {
            let hint = "do not trust it on this machine, and report this".to_owned();
            Finding::bad("sandbox", State::Error, format!("{rung}; a forbidden write was NOT stopped"), Some(hint))
        }
        Err(error) => Finding::bad("sandbox", State::Error, format!("{rung}; no command runs: {error:#}"), None),
    }
}

/// Whether a command that may write nothing has written something.
fn attack(home: &Home) -> anyhow::Result<bool> {
    let folder = tempfile::tempdir()?;
    let target = folder.path().join("written");
    let env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    let surroundings = Surroundings::of(home.path(), &env);
    let profile = Profile::new(&SandboxPolicy::ReadOnly, folder.path(), &surroundings);
    let launch = Launch {
        argv: ["/bin/sh", "-c", "(: > \"$0\") 2>/dev/null; exit 7"]
            .map(OsString::from)
            .into_iter()
            .chain([target.clone().into()])
            .collect(),
        cwd: Path::new("/").to_owned(),
        env,
        confinement: Confinement::from(profile),
        stdio: Stdio::Inherit,
        most_processes: None,
        most_memory: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let exit = runtime.block_on(async {
        let mut running = codex_sandbox::spawn(launch)?;
        anyhow::Ok(running.wait().await)
    })?;
    let code = exit.shell_code();
    anyhow::ensure!(code == 7, "the shell ended with status {code}");
    Ok(target.exists())
}

/// Asks the git that would be run here. Nothing in this folder has a say in it.
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
        Ok(_) => Finding::ok("threads", "the index answers"),
        Err(error) => {
            let hint = "`codex threads repair` makes the index anew".to_owned();
            let message = format!("{:#}", anyhow::Error::from(error));
            Finding::bad("threads", State::Warning, message, Some(hint))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
