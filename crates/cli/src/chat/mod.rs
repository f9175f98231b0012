//! `codex`, `codex resume` and `codex fork`: a chat in the terminal.
//!
//! The chat itself is in `codex-tui`. Here are its preparations: arguments, configuration, the first run, trust, and the
//! server in this process.

pub(crate) mod args;
mod context;
mod first_run;
pub(crate) mod setup;
pub(crate) mod trust;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context;
use codex_config::{AuthError, ChatDisplay, ChatScreen, Config, Env, HistoryPersistence, Home, KeyBinding, TrustLevel};
use codex_dialogue::first_run::{Choice, FirstRun};
use codex_dialogue::keys::{Keys, Raw};
use codex_dialogue::screen::{Capabilities, Footer, Screen};
use codex_dialogue::{ChatEnd, History, SavedPrompts, StopSignal, ask};
use codex_server::app::{AppServer, Start};
use codex_store::{Drafts, PromptFile, locate};
use codex_terminal::Span;
use codex_terminal::keymap::{Binding, Keymap};
use codex_tui::chat::{Chat, ChatParts, Connection, Ended, ThreadToOpen};
use codex_tui::full::{DisplaySettings, FullChat, FullParts, OwnTheme, Theme};

use self::args::{ChatArgs, ChatOptions, ResumeArgs};
use self::context::{HomeContext, PromptHistory};
use self::setup::{ChatEnvironment, Prepared};
use crate::app_server::listen::{Purpose, token, with_path};
use crate::args::Shared;
use crate::cluster::Cluster;
use crate::console;
use crate::console::wants_colour;
use crate::exec::check_picture;
use crate::proto::working_directory;
use crate::signals;
use crate::thread_store;
use crate::transcript::Style;

const MISUSED: u8 = 2;
const INTERRUPTED: u8 = 130;

/// The terminals whose cursor cannot be moved to a place, by the names that terminfo has for them.
const UNADDRESSABLE: &[&str] = &["dumb", "unknown", "network", "dialup", "switch", "lpr", "printer", "tty33", "emacs"];

struct ChatRequest {
    is_verbose: bool,
    options: ChatOptions,
    wanted: ThreadToOpen,
    first: Option<String>,
}

/// Chats in a new thread.
pub(crate) fn run(shared: &Shared, args: ChatArgs) -> anyhow::Result<ExitCode> {
    if !is_for_people("codex exec") {
        // Programs of other releases may mean a command that does not exist here.
        if let Some(word) = args.prompt.filter(|prompt| prompt.chars().all(|c| c.is_ascii_lowercase() || c == '-')) {
            console::note(format_args!("hint: `{word}` is not a command; see `codex --help`"));
        }
        return Ok(MISUSED.into());
    }
    chat(
        shared,
        ChatRequest {
            is_verbose: shared.verbose,
            options: args.options,
            wanted: ThreadToOpen::New,
            first: args.prompt,
        },
    )
}

/// Chats in an existing thread, or in a copy of it.
pub(crate) fn resume(shared: &Shared, args: ResumeArgs, is_fork: bool) -> anyhow::Result<ExitCode> {
    if !is_for_people(if is_fork { "codex exec fork" } else { "codex exec resume" }) {
        return Ok(MISUSED.into());
    }
    let ResumeArgs { mut thread, mut prompt, last, all, options } = args;
    let env = Env::process();
    let home = Home::find(&env)?;
    let id = if options.connect.is_some() {
        anyhow::ensure!(!last, "`--last` cannot be used with `--connect`: name the thread, or pick one from the list");
        thread
    } else if last {
        // No thread is named, so the first word is the prompt.
        prompt = thread.take().or(prompt);
        let cwd = working_directory(shared)?;
        let folder = (!all).then_some(cwd.as_path());
        Some(locate::newest(&*thread_store::of_user(shared, &home, &env)?, folder)?.id.to_string())
    } else {
        let store = thread_store::of_user(shared, &home, &env)?;
        thread.map(|word| locate::active(&*store, &word)).transpose()?.map(|id| id.to_string())
    };
    let wanted = match id {
        Some(id) if is_fork => ThreadToOpen::Fork(id),
        Some(id) => ThreadToOpen::Resume(id),
        None => ThreadToOpen::Choice { is_fork, everywhere: all },
    };
    chat(shared, ChatRequest { is_verbose: shared.verbose, options, wanted, first: prompt })
}

/// Whether there is a terminal to chat in; prints the alternative if not.
fn is_for_people(otherwise: &str) -> bool {
    let is_there = std::io::stdin().is_terminal() && console::out_is_terminal();
    if !is_there {
        console::note(format_args!("error: the chat needs a terminal; `{otherwise}` works without one"));
    }
    is_there
}

fn chat(shared: &Shared, wish: ChatRequest) -> anyhow::Result<ExitCode> {
    let cwd = working_directory(shared)?;
    let place = ChatEnvironment::new(shared, &wish.options, cwd)?;
    // Errors are reported before the terminal is set up.
    if wish.options.connect.is_none() {
        needs_key(&place)?;
    }
    wish.options.images.iter().try_for_each(|path| check_picture(&place.cwd.join(path)))?;
    let is_dumb = place.env.text("TERM").is_none_or(|term| UNADDRESSABLE.contains(&term.as_str()));
    // A screen reader reads what is appended, and nothing is drawn in place.
    let is_appended = is_dumb || wish.options.screen_reader;
    let capabilities = Capabilities { colour: wants_colour(&place.env) && !is_appended, is_dumb: is_appended };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let raw = Raw::enter(is_dumb, console::painted_out).context("could not take over the terminal")?;
    let ended = runtime.block_on(async {
        let mut signals = signals::stop()?;
        let stop: StopSignal = Box::pin(async move { signals.wait().await });
        let screen = Screen::new(console::painted_out(), capabilities, crossterm::terminal::size().unwrap_or_default());
        Box::pin(begin(place, wish, screen, (Keys::read(&raw)?, stop))).await
    });
    drop(raw);
    runtime.shutdown_background();
    let Ended { left, thread } = ended?;
    if let Some(id) = thread {
        // If the terminal is gone, no goodbye is needed.
        let _: std::io::Result<()> = writeln!(console::out(), "To continue this session: codex resume {id}");
    }
    Ok(match left {
        ChatEnd::ByChoice => ExitCode::SUCCESS,
        ChatEnd::ByForce => INTERRUPTED.into(),
    })
}

/// Whether there is no key, and the user can still choose how to start. If a provider was configured, a missing key is
/// an error.
fn needs_key(place: &ChatEnvironment) -> anyhow::Result<bool> {
    let config = place.config()?;
    match crate::login::require_key(&place.home, &config, &place.env) {
        Ok(()) => Ok(false),
        Err(error) if is_no_login(&error) && first_run::is_first(&config) => Ok(true),
        Err(error) => Err(error),
    }
}

fn is_no_login(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(AuthError::NoLogin { .. }))
}

/// Chats, here or with a server elsewhere.
async fn begin<W: Write>(
    place: ChatEnvironment,
    wish: ChatRequest,
    mut screen: Screen<W>,
    (mut keys, mut stop): (Keys, StopSignal),
) -> anyhow::Result<Ended> {
    let (place, level) = match wish.options.connect {
        None => match prepare_project(place, &mut screen, &mut keys, &mut stop).await? {
            Ok(ready) => ready,
            Err(left) => return Ok(Ended { left, thread: None }),
        },
        // The server knows which of its projects are trusted.
        Some(_) => (place, None),
    };
    let env = place.env.clone();
    let Prepared { start, config, named, cluster } = place.prepare(level)?;
    let (home, cwd, store) = (start.config.home().clone(), start.cwd.clone(), Arc::clone(&start.store));
    let is_kept = config.chat.history.persistence == HistoryPersistence::SaveAll;
    let file = is_kept.then(|| PromptFile::new(home.history_file(), config.chat.history.max_bytes));
    let is_elsewhere = wish.options.connect.is_some();
    let full = FullScreen::new(&wish.options, &config, screen.capabilities(), &env);
    let connection = if let Some(address) = wish.options.connect {
        let (needs_token, file) = (address.needs_token(), wish.options.token_file.as_deref());
        let token = needs_token.then(|| token(&home, &env, file, Purpose::Connect)).transpose()?;
        let token = if wish.options.send_token { token.map(codex_transport::Token::sent) } else { token };
        Connection::to(with_path(address, &home), token).await?
    } else {
        connect_in_process(start, cluster).await?
    };
    let made_of = ChatParts {
        history: History::new(file.map(|file| Box::new(PromptHistory::new(file)) as Box<dyn SavedPrompts>)),
        named,
        pictures: wish.options.images.iter().map(|path| cwd.join(path)).collect(),
        cwd: cwd.clone(),
        context: Arc::new(HomeContext {
            drafts: Drafts::new(home.drafts()),
            home,
            store,
            config,
            cwd,
            is_elsewhere,
            env,
        }),
        first: wish.first,
        is_verbose: wish.is_verbose,
    };
    let Some(full) = full else {
        return Ok(Chat::new(connection, screen, (keys, stop), made_of).converse(&wish.wanted).await?);
    };
    keys.show_full_screen(full.has_mouse).context("could not take over the terminal")?;
    let out = console::painted_out;
    let FullScreen { theme, is_in_tmux, keymap, has_vim, display, .. } = full;
    let parts = FullParts { parts: made_of, theme, out, is_in_tmux, keymap, has_vim, display };
    Ok(FullChat::new(connection, (keys, stop), parts)?.converse(wish.wanted).await?)
}

/// Connects to a server in this process, which passes requests about threads of other servers on to them.
async fn connect_in_process(start: Start, cluster: Option<Cluster>) -> anyhow::Result<Connection> {
    let app = AppServer::new(start.clone());
    let relay = cluster.map(|cluster| cluster.join(&start, &app, None)).transpose()?;
    let serve = |stream| async move {
        let (input, output) = tokio::io::split(stream);
        match relay {
            Some(relay) => relay.serve(input, output, |input, output| app.serve_alone(input, output)).await,
            None => app.serve_alone(input, output).await,
        }
    };
    Ok(Connection::in_process(serve).await?)
}

/// The settings of a full screen.
struct FullScreen {
    theme: Theme,
    has_mouse: bool,
    is_in_tmux: bool,
    keymap: Keymap,
    has_vim: bool,
    display: DisplaySettings,
}

impl FullScreen {
    /// `None` for a chat line by line.
    fn new(options: &ChatOptions, config: &Config, capabilities: Capabilities, env: &Env) -> Option<Self> {
        let wanted = options.screen.or(config.chat.screen).unwrap_or(ChatScreen::Full);
        if wanted != ChatScreen::Full || options.screen_reader || capabilities.is_dumb {
            return None;
        }
        let mut display = display_settings(config);
        let has_rgb = env.text("COLORTERM").is_some_and(|text| matches!(text.as_str(), "truecolor" | "24bit"));
        let (theme, problem) =
            Theme::named(config.chat.theme.as_deref(), &display.themes, capabilities.colour, has_rgb);
        display.warnings.extend(problem.map(|why| format!("tui.theme: {why}")));
        Some(Self {
            theme,
            has_mouse: config.chat.mouse && !options.no_mouse,
            is_in_tmux: env.text("TMUX").is_some(),
            keymap: Keymap::new(&config.chat.keys.iter().map(binding).collect::<Vec<_>>()),
            has_vim: config.chat.has_vim,
            display,
        })
    }
}

/// Keys of an action as the chat reads them.
fn binding(keys: &KeyBinding) -> Binding {
    Binding { action: keys.action.clone(), keys: keys.keys.clone(), at: keys.at.clone() }
}

/// The display settings, with the themes of the user.
fn display_settings(config: &Config) -> DisplaySettings {
    let ChatDisplay { fold, status_line, status_command, notifications, themes } = config.chat.display.clone();
    let mut settings =
        DisplaySettings { fold, status_line, status_command, notifications, ..DisplaySettings::default() };
    for (name, colours) in &themes {
        match OwnTheme::read(name, colours) {
            Ok((theme, warnings)) => {
                settings.themes.push(theme);
                settings.warnings.extend(warnings);
            }
            Err(why) => settings.warnings.push(why),
        }
    }
    settings
}

/// Asks for a key and about the project if necessary. Returns how the chat was left, if it was.
async fn prepare_project<W: Write>(
    mut place: ChatEnvironment,
    screen: &mut Screen<W>,
    keys: &mut Keys,
    stop: &mut StopSignal,
) -> anyhow::Result<Result<(ChatEnvironment, Option<TrustLevel>), ChatEnd>> {
    if needs_key(&place)?
        && let Some(left) = ask_first_run(&mut place, screen, keys, stop).await?
    {
        return Ok(Err(left));
    }
    let project = trust::project(&place.cwd);
    let mut level = trust::level(&place.config()?, &project);
    if level.is_none() {
        screen.show(trust::question(&project), Footer::default())?;
        level = match ask(&mut trust::Trust, screen, keys, stop).await? {
            Ok(level) => Some(level),
            Err(left) => return Ok(Err(left)),
        };
        if let Some(level) = level {
            trust::keep(&place.home, &place.env, &project, level)?;
        }
    }
    Ok(Ok((place, level)))
}

/// Asks how to start until that is settled. Returns how the chat was left, if it was.
async fn ask_first_run<W: Write>(
    place: &mut ChatEnvironment,
    screen: &mut Screen<W>,
    keys: &mut Keys,
    stop: &mut StopSignal,
) -> anyhow::Result<Option<ChatEnd>> {
    loop {
        let mut asked = FirstRun::new(first_run::find_servers(place).await?);
        screen.show(asked.question(), Footer::default())?;
        let kept = match ask(&mut asked, screen, keys, stop).await? {
            Ok(Choice::SearchAgain) => continue,
            Ok(choice) => first_run::keep(choice, place),
            Err(left) => return Ok(Some(left)),
        };
        let (told, is_over) = match kept {
            Ok(told) => (Span::new(Style::Plain, told), true),
            Err(error) => (Span::new(Style::Red, format!("error: {error:#}\n")), false),
        };
        screen.show(vec![told], Footer::default())?;
        if is_over {
            return Ok(None);
        }
    }
}
