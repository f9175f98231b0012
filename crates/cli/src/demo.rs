//! `codex demo`: a real turn of the engine with a scripted model.

#[cfg(feature = "postgres")]
mod servers;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use codex_agents::LocalTrees;
use codex_config::{Config, Env, Home, Overrides};
use codex_engine::Setup;
use codex_log::settings::SettingsChange;
use codex_log::{Body, Event, Outcome, TurnId};
use codex_printer::Terminal;
use codex_terminal::wrap::Flow;
use codex_thread::{ClientProfile, Feed};
use codex_wire::input::UserInput;
use codex_wire::rollout::SessionSource;
use codex_wire::tokens::TokenUsageInfo;
use serde_json::Value;

use crate::args::DemoArgs;
use crate::console::{self, wants_colour};
use crate::single_thread::{self, FrontEnd};

const SCRIPT: &str = include_str!("../demo/script.json");
const TASK: &str = "Make the greeting fit the time of day.";
const AGENTS_SCRIPT: &str = include_str!("../demo/agents.json");
const AGENTS_TASK: &str = "Have three agents look at this project.";

const FILES: &[(&str, &str)] =
    &[("greeting.sh", include_str!("../demo/greeting.sh")), ("test.sh", include_str!("../demo/test.sh"))];

pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let folder = tempfile::Builder::new().prefix("codex-demo-").tempdir().context("could not create a folder")?;
    let env = Env::process();
    // Commands may write the project, but not the home of the demo.
    let home = Home::find(&env)?.temporary_folder()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let flow = console::out_columns().map(Flow::new);
    let terminal = Terminal::new(WordWrap { output: console::painted_out(), flow }, wants_colour(&env));
    let shown = runtime.block_on(async {
        #[cfg(feature = "postgres")]
        if let Some(count) = args.servers {
            return servers::show(count, folder.path(), terminal).await;
        }
        let setup = prepare(folder.path(), home.path(), args, &env)?;
        show(setup, args.agents, terminal).await
    });
    if args.keep {
        let kept = folder.keep();
        console::note(format_args!("kept {}", kept.display()));
    }
    shown
}

/// An output that wraps lines between words, if its width is known.
struct WordWrap<W> {
    output: W,
    flow: Option<Flow>,
}

impl<W: Write> Write for WordWrap<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match (&mut self.flow, std::str::from_utf8(bytes)) {
            (Some(flow), Ok(text)) => self.output.write_all(flow.push(text).as_bytes())?,
            _ => self.output.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.output.flush()
    }
}

async fn show<W: Write>(mut setup: Setup, has_agents: bool, mut terminal: Terminal<W>) -> anyhow::Result<()> {
    terminal.line("A real turn of the engine with a scripted model: no API key, no network.")?;
    terminal.line(&format!("Project: {}\n", setup.cwd.display()))?;
    let store = Arc::clone(&setup.store);
    // The script has no call that needs an approval.
    let _children = setup.offer_agents(&LocalTrees);
    let (thread, feed) = setup.start().await?;
    let task = UserInput::text(if has_agents { AGENTS_TASK } else { TASK });
    thread.say(TurnId::new("demo"), vec![task], SettingsChange::default()).await?;
    let usage = follow(feed, &mut terminal).await?;
    thread.close().await;
    if has_agents {
        terminal.line("The tree of agents:")?;
        for line in codex_agents::outline(&*store, thread.id()) {
            terminal.line(&line)?;
        }
    }
    if let Some(TokenUsageInfo { total_token_usage: used, .. }) = usage {
        terminal.line(&format!(
            "Tokens: {} in ({} cached), {} out ({} reasoning)",
            used.input_tokens, used.cached_input_tokens, used.output_tokens, used.reasoning_output_tokens
        ))?;
    }
    terminal.line("Next: run `codex` to chat, or `codex --help`")?;
    Ok(())
}

/// Creates the project and a separate home, so that the user's home is unchanged.
fn prepare(folder: &Path, home: &Path, args: &DemoArgs, env: &Env) -> anyhow::Result<Setup> {
    let project = folder.join("project");
    for (name, text) in FILES {
        std::fs::create_dir_all(&project).and_then(|()| std::fs::write(project.join(name), text))?;
    }
    let script = home.join("script.json");
    std::fs::write(&script, script_text(args)?)?;
    let home = Home::at(home);
    let script = format!("model_providers.scripted.script={}", Value::from(script.to_string_lossy()));
    let agents = format!("features.subagent_tools={}", args.agents);
    let values = ["model_provider=scripted", "approval_policy=never", "sandbox_mode=workspace-write", &script, &agents];
    let overrides = Overrides { values: values.map(str::to_owned).to_vec(), ..Overrides::default() };
    let config = Config::load(&home, env, &overrides)?;
    let front_end = FrontEnd { originator: "codex_demo", source: SessionSource::Cli, profile: ClientProfile::EXEC };
    // The demo starts no program that the machine's configuration names.
    Ok(Setup { servers: None, ..single_thread::setup(front_end, home, config, project, env)? })
}

/// The model's script, at a model's pace or without pauses.
fn script_text(args: &DemoArgs) -> anyhow::Result<String> {
    let text = if args.agents { AGENTS_SCRIPT } else { SCRIPT };
    let mut script: Value = serde_json::from_str(text).context("the demo's own script is broken")?;
    if args.fast {
        leave_out_pauses(&mut script);
    }
    Ok(script.to_string())
}

fn leave_out_pauses(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.retain(|item| item.get("pause_ms").is_none());
            items.iter_mut().for_each(leave_out_pauses);
        }
        Value::Object(members) => {
            members.retain(|name, _| name != "delay_ms");
            members.values_mut().for_each(leave_out_pauses);
        }
        _ => {}
    }
}

/// Shows the turn as it runs, and returns its usage.
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
