//! `codex login` and `codex logout`: the key that requests carry.

use std::io::{BufReader, IsTerminal, Read, Write};
use std::process::ExitCode;

use anyhow::{Context, bail};
use codex_config::{Auth, AuthError, Config, Env, Home, TokenSource};

use crate::args::{LoginArgs, LoginForm, Shared};
use crate::console;
use crate::failure::Hinted;

/// The longest key that is read.
const MOST_BYTES: u64 = 64 * 1024;

/// Keys that mean something while a key is typed.
const INTERRUPT: u8 = 3;
const END_OF_INPUT: u8 = 4;
const BACKSPACE: u8 = 8;
const CLEAR: u8 = 21;
const DELETE: u8 = 127;

/// Stores a key, or says how requests are authorised.
pub(crate) fn login(shared: &Shared, args: &LoginArgs) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let home = Home::find(&env)?;
    if matches!(args.form, Some(LoginForm::Status)) {
        return status(shared, &env, &home);
    }
    let config = Config::load(&home, &env, &shared.overrides())?;
    if args.with_api_key && config.forced_login() == Some("chatgpt") {
        bail!("API key login is disabled. Use ChatGPT login instead.");
    }
    if !args.with_api_key {
        let what = match config.forced_login() {
            Some("api") => "ChatGPT login is disabled. Use API key login instead.".to_owned(),
            _ => "only API-key login is supported in this release".to_owned(),
        };
        let hint = "pipe it in: printenv OPENAI_API_KEY | codex login --with-api-key".to_owned();
        return Err(Hinted { what, hint }.into());
    }
    let key = read_key()?;
    Auth::store_api_key(&home, &key)?;
    console::note(format_args!("API key stored in {}.", home.auth_file().display()));
    Ok(ExitCode::SUCCESS)
}

/// Reads a key: all of standard input, or a line of a terminal, which does not show it.
fn read_key() -> anyhow::Result<String> {
    let mut stdin = std::io::stdin().take(MOST_BYTES);
    if !std::io::stdin().is_terminal() {
        let mut key = String::new();
        stdin.read_to_string(&mut key).context("could not read the key")?;
        return Ok(key);
    }
    let unseen = Unseen::begin()?;
    console::ask("Paste your API key (input is hidden) and press Enter: ")?;
    let mut key = Vec::new();
    for byte in BufReader::new(stdin).bytes() {
        match byte.context("could not read the key")? {
            b'\r' | b'\n' | END_OF_INPUT => break,
            INTERRUPT => {
                drop(unseen);
                bail!("no key was stored");
            }
            BACKSPACE | DELETE => drop(key.pop()),
            CLEAR => key.clear(),
            byte => key.push(byte),
        }
    }
    drop(unseen);
    String::from_utf8(key).context("the key is not text")
}

/// A terminal that shows nothing of what is typed, until this is dropped.
struct Unseen;

impl Unseen {
    fn begin() -> anyhow::Result<Self> {
        crossterm::terminal::enable_raw_mode().context("could not keep the terminal from showing the key")?;
        Ok(Self)
    }
}

impl Drop for Unseen {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing either way.
        let _: std::io::Result<()> = crossterm::terminal::disable_raw_mode();
        console::note("");
    }
}

/// Refuses to go on without a key that the provider needs: nothing that is said would be answered.
pub(crate) fn require_key(home: &Home, config: &Config, env: &Env) -> Result<(), AuthError> {
    Auth::load(home)?.bearer(&config.provider, env).map(drop)
}

/// What to do about a key that is missing.
pub(crate) fn hint(error: &AuthError) -> Option<String> {
    match error {
        AuthError::NoLogin { .. } => {
            Some("store a key with `codex login --with-api-key`, or set OPENAI_API_KEY".to_owned())
        }
        error => error.hint(),
    }
}

/// Says how requests are authorised; the exit status tells whether they are.
fn status(shared: &Shared, env: &Env, home: &Home) -> anyhow::Result<ExitCode> {
    let config = Config::load(home, env, &shared.overrides())?;
    let mut out = console::out();
    let name = &config.provider.name;
    match Auth::load(home)?.bearer(&config.provider, env) {
        Ok(Some(bearer)) => {
            let how = match bearer.source {
                TokenSource::Variable(name) => format!("with the key in the variable {name}"),
                TokenSource::Config => "with the key in config.toml".to_owned(),
                TokenSource::ApiKey => format!("with the key in {}", home.auth_file().display()),
                TokenSource::Login { .. } => "with a ChatGPT login".to_owned(),
            };
            writeln!(out, "{name}: logged in {how}")?;
            Ok(ExitCode::SUCCESS)
        }
        Ok(None) => {
            writeln!(out, "{name}: needs no login")?;
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => {
            writeln!(out, "{name}: not logged in: {error}")?;
            let hint = hint(&error).unwrap_or_else(|| "store an API key with `codex login --with-api-key`".to_owned());
            writeln!(out, "hint: {hint}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Forgets the login.
pub(crate) fn logout() -> anyhow::Result<ExitCode> {
    let home = Home::find(&Env::process())?;
    let said = if Auth::remove(&home)? { "Logged out." } else { "Not logged in." };
    console::note(said);
    Ok(ExitCode::SUCCESS)
}
