//! The program: arguments in, exit status out. What it does lives in the crates below.
//!
//! Invariant: the only crate with `anyhow`, and the only one that writes for people.

mod app_server;
mod apply_patch;
mod args;
mod demo;
mod execpolicy;
mod failure;
mod proto;
mod sandbox;
mod signals;
mod stdout;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command, ExecpolicyCommand};

fn main() -> ExitCode {
    if apply_patch::is_meant() {
        return apply_patch::run().unwrap_or_else(|error| failure::report(&error));
    }
    let args = Args::parse();
    let done = match args.command {
        Command::Proto => proto::run(&args.shared).map(|()| ExitCode::SUCCESS),
        Command::AppServer(args_of) => app_server::run(&args.shared, &args_of).map(|()| ExitCode::SUCCESS),
        Command::Demo(demo) => demo::run(&demo).map(|()| ExitCode::SUCCESS),
        Command::Sandbox(sandbox) => sandbox::run(&args.shared, &sandbox),
        Command::Execpolicy(ExecpolicyCommand::Check(check)) => execpolicy::check(&check),
    };
    done.unwrap_or_else(|error| failure::report(&error))
}
