//! `codex login` and `codex logout`: what requests are authorized with.

mod typed_key;

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};

use anyhow::bail;
use codex_config::{Account, Auth, AuthError, Config, CredentialsStore, Env, Home, LoginConfig, Programs, TokenSource};
use codex_login::{Accounts, Issuer, LoginError, LoginOptions, LoginStore, check_store};

use self::typed_key::read_key;
use crate::args::{LoginArgs, LoginForm, Shared};
use crate::console;
use crate::failure::ErrorWithHint;
use crate::proto::ORIGINATOR;

/// Logs in, or shows how requests are authenticated.
pub(crate) fn login(shared: &Shared, args: &LoginArgs) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let home = Home::find(&env)?;
    if matches!(args.form, Some(LoginForm::Status)) {
        return status(shared, &env, &home);
    }
    let config = Config::load(&home, &env, &shared.overrides())?;
    check_store(&config.login())?;
    if args.with_api_key {
        if config.forced_login() == Some("chatgpt") {
            bail!("API key login is disabled. Use ChatGPT login instead.");
        }
        let key = read_key()?;
        let store = LoginStore::of(&home, &config.login());
        block_on(Accounts::of(store.clone(), &env).store_api_key(key))??;
        console::note(format_args!("API key stored in {}.", store.place()));
    } else {
        if config.forced_login() == Some("api") {
            let what = "ChatGPT login is disabled. Use API key login instead.".to_owned();
            let hint = "pipe it in: printenv OPENAI_API_KEY | codex login --with-api-key".to_owned();
            return Err(ErrorWithHint { what, hint }.into());
        }
        block_on(with_chatgpt(args, &config, &home, &env))??;
        console::note("Logged in with ChatGPT.");
    }
    tell_what_goes_before(&config, &env);
    Ok(ExitCode::SUCCESS)
}

/// Logs in with a browser, or with a code that is typed on another device.
async fn with_chatgpt(args: &LoginArgs, config: &Config, home: &Home, env: &Env) -> anyhow::Result<()> {
    let accounts = Accounts::of(LoginStore::of(home, &config.login()), env);
    let issuer = Issuer::new(args.experimental_issuer.as_deref(), args.experimental_client_id.as_deref(), env);
    let options = LoginOptions::new(config, issuer, ORIGINATOR)?;
    let mut out = console::out();
    if args.device_auth {
        let login = accounts.begin_device(options).await?;
        writeln!(out, "Open this page on any device and enter the code. It is valid for 15 minutes.\n")?;
        writeln!(out, "  {}\n  {}\n", login.page(), login.user_code())?;
        console::note("Enter it only if you started this login yourself. Waiting …");
        return Ok(login.finish().await?);
    }
    let login = accounts.begin_browser(options).await?;
    let is_opened = open_browser(login.url(), env);
    let how =
        if is_opened { "Your browser opens this page; if it does not, open it yourself:" } else { "Open this page:" };
    writeln!(out, "{how}\n\n  {}\n", login.url())?;
    console::note("No browser on this machine? Press Ctrl+C and use `codex login --device-auth`. Waiting …");
    Ok(login.finish().await?)
}

/// Opens the login page in a browser on this machine, if there is one. The user can also open the printed address.
pub(crate) fn open_browser(url: &str, env: &Env) -> bool {
    let is_near = env.get("SSH_CONNECTION").is_none() && env.get("SSH_TTY").is_none();
    let has_screen = cfg!(target_os = "macos") || env.get("DISPLAY").is_some() || env.get("WAYLAND_DISPLAY").is_some();
    let name = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let (true, Some(program)) = (is_near && has_screen, Programs::new(env, &[]).find(name)) else { return false };
    let mut command = Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().is_ok()
}

/// A login that is stored counts only where no key in a variable goes before it.
fn tell_what_goes_before(config: &Config, env: &Env) {
    let stored = Auth::default().in_use(&config.provider, env);
    if let Some(TokenSource::Variable(name)) = stored.map(|bearer| bearer.source) {
        console::note(format_args!("Note: the variable {name} is set, and its key is used first."));
    }
}

/// Runs something that waits. A login needs no more than one thread.
pub(crate) fn block_on<T>(work: impl Future<Output = T>) -> anyhow::Result<T> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(work))
}

/// Fails without a key that the provider needs: no message would be answered.
pub(crate) fn require_key(home: &Home, config: &Config, env: &Env) -> anyhow::Result<()> {
    stored(home, config)?.bearer(&config.provider, env)?;
    Ok(())
}

/// The stored login. A keyring is not opened for a provider that needs none.
pub(crate) fn stored(home: &Home, config: &Config) -> anyhow::Result<Auth> {
    let login = config.login();
    if login.store == CredentialsStore::Keyring && !config.provider.requires_openai_auth {
        return Ok(Auth::default());
    }
    LoginStore::of(home, &login).load().map_err(|error| match error {
        LoginError::Auth(error) => error.into(),
        error => error.into(),
    })
}

/// The hint for a missing key.
pub(crate) fn hint(error: &AuthError) -> Option<String> {
    match error {
        AuthError::NoLogin { .. } => Some("log in with `codex login`, or set OPENAI_API_KEY to your key".to_owned()),
        error => error.hint(),
    }
}

/// Shows how requests are authenticated, also as the exit status.
fn status(shared: &Shared, env: &Env, home: &Home) -> anyhow::Result<ExitCode> {
    let config = Config::load(home, env, &shared.overrides())?;
    let mut out = console::out();
    let name = &config.provider.name;
    if let Some(program) = &config.provider.auth {
        writeln!(out, "{name}: gets its key from the program {}", program.command)?;
        return Ok(ExitCode::SUCCESS);
    }
    check_store(&config.login())?;
    let auth = stored(home, &config)?;
    match auth.bearer(&config.provider, env) {
        Ok(Some(bearer)) => {
            let how = match bearer.source {
                TokenSource::Variable(name) => format!("with the key in the variable {name}"),
                TokenSource::Config => "with the key in config.toml".to_owned(),
                TokenSource::ApiKey => format!("with the key in {}", LoginStore::of(home, &config.login()).place()),
                TokenSource::Login { .. } => format!("with ChatGPT{}", whose(&auth, &config, env)),
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
            let hint = hint(&error).unwrap_or_else(|| "log in with `codex login`".to_owned());
            writeln!(out, "hint: {hint}")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The owner of the login, if known.
fn whose(auth: &Auth, config: &Config, env: &Env) -> String {
    let Some(Account::Chatgpt { email, plan }) = auth.account(&config.provider, env) else { return String::new() };
    let email = email.map(|email| format!(" as {email}")).unwrap_or_default();
    let plan = plan.map(|plan| format!(" (plan: {plan})")).unwrap_or_default();
    format!("{email}{plan}")
}

/// Removes the login, and revokes it at its issuer.
pub(crate) fn logout(shared: &Shared) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let home = Home::find(&env)?;
    // A broken configuration must not prevent a logout, unless it may name another place.
    let login = match Config::load(&home, &env, &shared.overrides()) {
        Ok(config) => config.login(),
        Err(error) if cfg!(feature = "keyring") => return Err(error.into()),
        Err(_) => LoginConfig::default(),
    };
    let store = LoginStore::of(&home, &login);
    let (was_there, told) = block_on(Accounts::of(store, &env).log_out())??;
    console::note(if was_there { "Logged out." } else { "Not logged in." });
    if let Err(error) = told {
        console::note(format_args!(
            "warning: the login could not be revoked, and ends by itself: {:#}",
            anyhow::Error::from(error)
        ));
    }
    Ok(ExitCode::SUCCESS)
}
