//! The program: arguments in, exit status out. Its functionality is in the crates below.
//!
//! Invariant: the only crate with `anyhow`. Text for people leaves it, and the chat, only through `console`.
#![cfg_attr(test, allow(clippy::needless_raw_string_hashes, reason = "expect-test writes its snapshots that way"))]

mod app_server;
mod apply;
mod apply_patch;
mod args;
mod chat;
#[cfg_attr(not(feature = "postgres"), path = "no_cluster.rs")]
mod cluster;
mod debug;
mod demo;
mod diagnostics;
mod doctor;
mod exec;
mod execpolicy;
mod failure;
mod features;
mod host;
mod lazy;
mod linux_sandbox;
mod local;
mod login;
mod mcp;
mod mcp_server;
mod memory;
mod proto;
mod replay;
mod sandbox;
mod signals;
mod single_thread;
#[cfg(feature = "postgres")]
mod store_command;
mod thread_store;
mod threads;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use codex_config::Env;
pub(crate) use codex_console as console;
use codex_terminal::transcript;

use crate::args::{Args, Command, ExecpolicyArgs, ExecpolicyCommand};
use crate::exec::args::ExecArgs;
use crate::mcp::args::McpCommand;
use crate::threads::args::ThreadsCommand;

/// The allocator of musl has one lock for all threads, and every event of a turn is allocated.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    console::tell_of_panics();
    if let Some(words) = apply_patch::words() {
        return apply_patch::run(&words);
    }
    codex_sandbox::harden();
    if linux_sandbox::is_meant() {
        return linux_sandbox::run();
    }
    memory::give_back_large_blocks();
    let args = Args::read(std::env::args_os()).unwrap_or_else(|error| misunderstood(&error));
    if let Err(error) = diagnostics::start(&Env::process()) {
        return failure::report(&error);
    }
    if args.command.as_ref().is_none_or(runs_threads) {
        codex_sandbox::raise_descriptor_limit();
    }
    let Some(command) = args.command else {
        return chat::run(&args.shared, args.chat).unwrap_or_else(|error| failure::report(&error));
    };
    let done = match command {
        Command::Resume(resume) => chat::resume(&args.shared, resume.into_inner(), false),
        Command::Fork(resume) => chat::resume(&args.shared, resume.into_inner(), true),
        Command::Exec(exec) => Ok(exec::run(&args.shared, &exec)),
        Command::Review(review) => Ok(exec::run(&args.shared, &ExecArgs::review(review.into_inner()))),
        Command::Threads(threads) => threads::run(&args.shared, &threads.command),
        Command::Archive(word) => threads::run(&args.shared, &ThreadsCommand::Archive(word.into_inner())),
        Command::Unarchive(word) => threads::run(&args.shared, &ThreadsCommand::Unarchive(word.into_inner())),
        Command::Delete(delete) => threads::run(&args.shared, &ThreadsCommand::Delete(delete.into_inner())),
        #[cfg(feature = "postgres")]
        Command::Store(store) => store_command::run(&args.shared, &store.command),
        Command::Replay(args_of) => replay::run(&args_of),
        Command::Apply(apply) => apply::run(&args.shared, &apply),
        Command::Login(login) => login::login(&args.shared, &login),
        Command::Logout(_) => login::logout(&args.shared),
        Command::Features(features) => features::run(&args.shared, &features.form),
        Command::Doctor(doctor) => doctor::run(&args.shared, &doctor),
        Command::Debug(debug) => debug::run(&args.shared, &debug.form),
        Command::Man(man) => manual(man.to.as_deref()),
        Command::Completion(completion) => complete(completion.shell),
        Command::Proto(_) => proto::run(&args.shared).map(|()| ExitCode::SUCCESS),
        Command::AppServer(args_of) => app_server::run(&args.shared, &args_of),
        Command::McpServer(server) => mcp_server::run(&args.shared, &server),
        Command::Mcp(mcp) => mcp::run(&args.shared, mcp.into_inner()),
        Command::Demo(demo) => demo::run(&demo).map(|()| ExitCode::SUCCESS),
        Command::Sandbox(sandbox) => sandbox::run(&args.shared, &sandbox),
        Command::Execpolicy(execpolicy) => {
            let ExecpolicyArgs { form: ExecpolicyCommand::Check(check) } = &*execpolicy;
            execpolicy::check(check)
        }
    };
    done.unwrap_or_else(|error| failure::report(&error))
}

/// Whether a command runs threads, which may need many descriptors. One that only starts a server passes its limits on.
fn runs_threads(command: &Command) -> bool {
    match command {
        Command::AppServer(args) => args.form.is_none(),
        Command::Mcp(args) => matches!(args.form, None | Some(McpCommand::Serve)),
        Command::Resume(_)
        | Command::Fork(_)
        | Command::Exec(_)
        | Command::Review(_)
        | Command::Proto(_)
        | Command::McpServer(_) => true,
        _ => false,
    }
}

/// Prints a shell completion script.
fn complete(shell: clap_complete::Shell) -> anyhow::Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::whole(), "codex", &mut script);
    console::document().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page, or writes those of all commands to a folder.
fn manual(to: Option<&Path>) -> anyhow::Result<ExitCode> {
    // `--version` uses another name, because clients look for it; people look for the command.
    let command = Args::whole().display_name("codex");
    if let Some(folder) = to {
        let written = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
        written.with_context(|| format!("could not write manual pages to {}", folder.display()))?;
    } else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        console::document().write_all(&page)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Exits with an error about the command line, or with the requested help.
fn misunderstood(error: &clap::Error) -> ! {
    if error.use_stderr() && std::env::args_os().any(|word| word == "exec" || word == "e" || word == "review") {
        // Programs that run `exec` write its prompt in any case.
        exec::input::drain();
    }
    if error.use_stderr() {
        // It quotes words that were not understood, so it is not coloured.
        console::note(error.render().to_string().trim_end());
    } else {
        let text = error.render();
        let is_coloured = console::wants_colour(&codex_config::Env::process());
        let text = if is_coloured { text.ansi().to_string() } else { text.to_string() };
        // The reader of the help may have seen enough.
        let _: std::io::Result<()> = console::painted_out().write_all(text.as_bytes());
    }
    std::process::exit(error.exit_code())
}
