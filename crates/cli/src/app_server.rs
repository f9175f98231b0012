//! `codex app-server`: many threads over stdin and stdout, and the protocol's own description.

use std::path::Path;

use anyhow::{Context, bail};
use codex_config::{Env, Home};
use codex_server::app::{AppServer, Dialect, Start, Vintage};
use codex_server::schema::{self, File};
use codex_wire::rollout::SessionSource;

use crate::args::{AppServerArgs, AppServerCommand, Emulated, Shared, Spoken};
use crate::proto::{ORIGINATOR, working_directory};
use crate::{apply_patch, signals, stdout};

/// Does what the arguments say.
pub(crate) fn run(shared: &Shared, args: &AppServerArgs) -> anyhow::Result<()> {
    match &args.command {
        None => serve(shared, args),
        Some(AppServerCommand::GenerateTs(args)) => write_all(&args.out, &schema::typescript_files()?),
        Some(AppServerCommand::GenerateJsonSchema(args)) => write_all(&args.out, &schema::json_files()?),
    }
}

/// Writes files below a folder.
fn write_all(folder: &Path, files: &[File]) -> anyhow::Result<()> {
    for file in files {
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("could not make {}", parent.display()))?;
        std::fs::write(&path, &file.text).with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(())
}

/// Runs until the client is done.
fn serve(shared: &Shared, args: &AppServerArgs) -> anyhow::Result<()> {
    if args.listen.trim_end_matches('/').trim_end_matches(':') != "stdio" {
        bail!("--listen {}: only stdio:// is served by this release", args.listen);
    }
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
    served
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
        // The one client on standard input cannot come back.
        recent_bytes: 0,
        source: SessionSource::VsCode,
        vintage: args.emulate.map(|emulated| match emulated {
            Emulated::V077 => Vintage::V077,
            Emulated::V0166 => Vintage::V0166,
        }),
        dialect: args.dialect.map(|spoken| match spoken {
            Spoken::V1 => Dialect::V1,
            Spoken::V2 => Dialect::V2,
            Spoken::Both => Dialect::Both,
            Spoken::Items => Dialect::Items,
        }),
    })
}
