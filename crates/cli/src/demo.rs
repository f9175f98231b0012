//! `codex demo`: a real turn of the engine with a scripted model.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use codex_config::{Config, Env, Home, Overrides};
use codex_engine::log::{Body, Event, Outcome, TurnId};
use codex_engine::settings::SettingsChange;
use codex_engine::{Beginning, Feed, Recall, Setup, Thread};
use codex_model::ScriptedModel;
use codex_wire::input::UserInput;
use codex_wire::rollout::SessionSource;
use codex_wire::tokens::TokenUsageInfo;

use crate::args::DemoArgs;
use crate::terminal::{Terminal, wants_colour};

const SCRIPT: &str = include_str!("../demo/script.json");
const TASK: &str = "Make the greeting fit the time of day.";

/// The project the demo works on.
const FILES: &[(&str, &str)] =
    &[("greeting.sh", include_str!("../demo/greeting.sh")), ("test.sh", include_str!("../demo/test.sh"))];

/// Runs the demo.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("codex-demo-").tempdir().context("could not make a folder")?;
    let env = Env::process();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let terminal = Terminal::new(std::io::stdout().lock(), wants_colour(&env));
    let shown = runtime.block_on(show(folder.path(), args.fast, &env, terminal));
    if args.keep {
        let kept = folder.keep();
        writeln!(std::io::stderr(), "kept {}", kept.display())?;
    }
    shown
}

async fn show<W: Write>(folder: &Path, fast: bool, env: &Env, mut terminal: Terminal<W>) -> anyhow::Result<()> {
    let setup = prepare(folder, fast, env)?;
    terminal.line("A turn of the real engine with a scripted model: no key, no network.")?;
    terminal.line(&format!("Project: {}\n", setup.cwd.display()))?;
    let (thread, feed) = Thread::start(setup).await?;
    let task = UserInput::Text { text: TASK.to_owned() };
    thread.say(TurnId::new("demo"), vec![task], SettingsChange::default()).await?;
    let usage = follow(feed, &mut terminal).await?;
    thread.close().await;
    if let Some(TokenUsageInfo { total_token_usage: used, .. }) = usage {
        terminal.line(&format!(
            "Tokens: {} in ({} cached), {} out ({} reasoning)",
            used.input_tokens, used.cached_input_tokens, used.output_tokens, used.reasoning_output_tokens
        ))?;
    }
    terminal.line("Now talk to it in its own protocol: codex proto -c model_provider=scripted")?;
    Ok(())
}

/// Makes the project and a home of its own, so that the user's home stays as it is.
fn prepare(folder: &Path, fast: bool, env: &Env) -> anyhow::Result<Setup> {
    let (project, home) = (folder.join("project"), folder.join("home"));
    for (name, text) in FILES {
        std::fs::create_dir_all(&project).and_then(|()| std::fs::write(project.join(name), text))?;
    }
    std::fs::create_dir_all(&home)?;
    let home = Home::at(home);
    let values = ["model_provider=scripted", "approval_policy=never", "sandbox_mode=workspace-write"];
    let overrides = Overrides { values: values.map(str::to_owned).to_vec(), ..Overrides::default() };
    let model = ScriptedModel::from_json(SCRIPT).context("the demo's own script is broken")?;
    Ok(Setup {
        config: Arc::new(Config::load(&home, env, &overrides)?),
        home,
        cwd: project,
        model: Arc::new(if fast { model.without_delays() } else { model }),
        originator: "codex_demo".to_owned(),
        source: SessionSource::Cli,
        shell: env.text("SHELL"),
        programs: None,
        recall: Recall::Full,
        base_instructions: None,
        beginning: Beginning::New,
        without_skills: None,
        counts_anew: false,
        git: None,
    })
}

/// Shows the turn as it goes, and returns what it used.
async fn follow<W: Write>(mut feed: Feed, terminal: &mut Terminal<W>) -> anyhow::Result<Option<TokenUsageInfo>> {
    let mut usage = None;
    while let Some(event) = feed.next().await {
        terminal.show(&event)?;
        let Event { body, .. } = &*event;
        match body {
            Body::TokensCounted { info, .. } => usage.clone_from(info),
            Body::TurnEnded(Outcome::Failed(failure)) => anyhow::bail!("the turn failed: {}", failure.message),
            Body::TurnEnded(_) => return Ok(usage),
            _ => {}
        }
    }
    anyhow::bail!("the thread ended before its turn did")
}
