//! The program: arguments in, exit status out. What it does lives in the crates below.
//!
//! Invariant: the only crate with `anyhow`, and the only one that writes for people.

mod args;
mod demo;
mod failure;
mod proto;
mod stdout;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        Command::Proto => proto::run(&args.shared),
        Command::Demo(demo) => demo::run(&demo),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failure::report(&error),
    }
}
