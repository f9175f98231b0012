//! `codex app-server`: many threads over stdin and stdout, or over sockets that many clients share.

pub(crate) mod args;
mod daemon;
mod listen;
mod log;
mod proxy;

use std::process::ExitCode;

use anyhow::Context;
use codex_config::{Env, Home};
use codex_server::app::{AppServer, Start, Vintage};
use codex_transport::Address;

use self::args::AppServerForm;
use crate::args::{AppServerArgs, Emulated, Shared};
use crate::proto::{ORIGINATOR, working_directory};
use crate::{apply_patch, signals, stdout};

/// Runs until the client is done, or until the server is told to end.
pub(crate) fn run(shared: &Shared, args: &AppServerArgs) -> anyhow::Result<ExitCode> {
    match &args.form {
        Some(AppServerForm::Proxy(proxy)) => proxy::run(proxy),
        Some(AppServerForm::Daemon(command)) => daemon::run(shared, args, *command),
        None if args.listening.listen == [Address::Stdio] => serve_alone(shared, args),
        None => listen::run(start(shared, args)?, &args.listening),
    }
}

fn serve_alone(shared: &Shared, args: &AppServerArgs) -> anyhow::Result<ExitCode> {
    let output = stdout::take()?;
    let app = AppServer::new(start(shared, args)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(async {
        let output = tokio::fs::File::from_std(output);
        let mut stop = signals::stop()?;
        tokio::select! {
            served = app.serve_alone(tokio::io::stdin(), output) => served.context("the connection failed"),
            () = stop.wait() => {
                app.close().await;
                Ok(())
            }
        }
    });
    // A read of standard input cannot be cancelled, so its thread is left behind.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

fn start(shared: &Shared, args: &AppServerArgs) -> anyhow::Result<Start> {
    let env = Env::process();
    let home = Home::find(&env)?;
    Ok(Start {
        programs: apply_patch::install(&home),
        originator: env.text("CODEX_INTERNAL_ORIGINATOR_OVERRIDE").unwrap_or_else(|| ORIGINATOR.to_owned()),
        home,
        env,
        overrides: shared.overrides(),
        cwd: working_directory(shared)?,
        vintage: args.emulate.map(|emulated| match emulated {
            Emulated::V077 => Vintage::V077,
            Emulated::V0166 => Vintage::V0166,
        }),
    })
}
