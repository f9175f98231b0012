//! `codex debug prompt`: the request that would be sent.

use std::io::Write;
use std::process::ExitCode;

use codex_engine::preview;
use codex_wire::input::UserInput;

use crate::args::{DebugCommand, Shared};
use crate::{console, proto, sandbox};

/// Prints the body of the first request of a turn. Nothing is sent and nothing is saved.
pub(crate) fn run(shared: &Shared, command: &DebugCommand) -> anyhow::Result<ExitCode> {
    let prompt = match command {
        DebugCommand::Prompt { prompt } => prompt,
        DebugCommand::Landlock(confined) => return sandbox::linux(shared, confined),
        DebugCommand::Seatbelt(confined) => return sandbox::macos(shared, confined),
    };
    let setup = proto::setup(shared, &codex_config::Env::process())?;
    let content = vec![UserInput::text(prompt.as_deref().unwrap_or("hello"))];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let request = runtime.block_on(preview::first_request(setup, content))?;
    writeln!(console::json(), "{request:#}")?;
    Ok(ExitCode::SUCCESS)
}
