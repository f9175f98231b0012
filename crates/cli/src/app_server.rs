//! `codex app-server`: many threads over stdin and stdout, or over sockets that many clients share; and the schemas of
//! the protocol.

pub(crate) mod args;
mod daemon;
pub(crate) mod listen;
mod log;
mod proxy;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use codex_config::{ConfigFindings, ConfigSource, Env, Home};
use codex_console::config_warnings;
use codex_methods::schema_files::{self as schema, File};
use codex_server::app::{AppServer, Dialect, Start};
use codex_transport::{Address, Slots, stdio};
use codex_wire::rollout::SessionSource;

use self::args::{AppServerArgs, AppServerForm, DialectArg};
use crate::args::Shared;
use crate::cluster::Cluster;
use crate::proto::working_directory;
use crate::{console, host, memory, signals};

/// The size of each thread's replay buffer for clients that reconnect, in bytes.
const RECENT_BYTES: usize = 256 * 1024;

/// Runs until the client is done, or until the server is stopped.
pub(crate) fn run(shared: &Shared, args: &AppServerArgs) -> anyhow::Result<ExitCode> {
    match &args.form {
        Some(AppServerForm::Proxy(proxy)) => proxy::run(proxy),
        Some(AppServerForm::Daemon(command)) => daemon::run(shared, args, *command),
        Some(AppServerForm::GenerateTs(args)) => write_all(&args.out, &schema::typescript_files()?),
        Some(AppServerForm::GenerateJsonSchema(args)) => write_all(&args.out, &schema::json_files()?),
        None if args.listening.listen == [Address::Stdio] => serve_alone(shared, args),
        None => {
            let Started { start, cluster, .. } = start(shared, args, RECENT_BYTES)?;
            listen::run(start, cluster.as_ref(), &args.listening)
        }
    }
}

fn write_all(folder: &Path, files: &[File]) -> anyhow::Result<ExitCode> {
    for file in files {
        let path = folder.join(&file.path);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).with_context(|| format!("could not create {}", parent.display()))?;
        std::fs::write(&path, &file.text).with_context(|| format!("could not write {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn serve_alone(shared: &Shared, args: &AppServerArgs) -> anyhow::Result<ExitCode> {
    let output = console::take()?;
    // The only client on standard input cannot reconnect.
    let Started { start, findings, cluster } = start(shared, args, 0)?;
    let app = AppServer::for_one_client(start.clone(), findings);
    let cluster = cluster.map(Cluster::without_address);
    let relay = cluster.as_ref().map(|cluster| cluster.join(&start, &app, None)).transpose()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    // On the threads of the runtime, like everything else: waking this one for every message would take time.
    let served = runtime.block_on(runtime.spawn(async move {
        let mut stop = signals::stop()?;
        let serve = async {
            let (input, output) = (stdio::input(), stdio::output(output));
            match &relay {
                Some(relay) => relay.serve(input, output, |input, output| app.serve_alone(input, output)).await,
                None => app.serve_alone(input, output).await,
            }
        };
        let after_start = async {
            app.initialized().await;
            memory::let_go_of_start();
            std::future::pending::<()>().await;
        };
        let served = tokio::select! {
            served = serve => served.context("the connection failed"),
            () = after_start => Ok(()),
            () = stop.wait() => {
                app.close().await;
                Ok(())
            }
        };
        if let Some(cluster) = cluster {
            cluster.hand_over(&app, &Slots::new(0)).await;
        }
        served
    }));
    // A blocking read of standard input cannot be cancelled, so its thread is abandoned.
    runtime.shutdown_background();
    served.context("the server panicked")?.map(|()| ExitCode::SUCCESS)
}

/// The parts of a server.
struct Started {
    start: Start,
    findings: ConfigFindings,
    /// The servers that share its threads.
    cluster: Option<Cluster>,
}

fn start(shared: &Shared, args: &AppServerArgs, recent_bytes: usize) -> anyhow::Result<Started> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let overrides = shared.overrides();
    let findings = config_warnings::tell(&home, &env, &overrides)?;
    let cwd = working_directory(shared)?;
    let config = ConfigSource::new(home, env, overrides);
    let (start, cluster) = host::start(config, cwd, SessionSource::VsCode, recent_bytes)?;
    let start = Start {
        release: args.emulate.map(Into::into),
        dialect: args.dialect.map(|spoken| match spoken {
            DialectArg::V1 => Dialect::V1,
            DialectArg::V2 => Dialect::V2,
            DialectArg::Both => Dialect::Both,
            DialectArg::Items => Dialect::Items,
        }),
        ..start
    };
    Ok(Started { start, findings, cluster })
}
