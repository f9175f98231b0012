//! `codex app-server proxy`: connects standard input and output to a running server.

use std::process::ExitCode;

use anyhow::{Context, bail};
use codex_config::{Env, Home};
use codex_transport::dial;
use tokio::io::AsyncWriteExt as _;

use super::args::ProxyArgs;
use super::listen::{Purpose, token, with_path};
use crate::console;

/// Forwards everything until the server closes the connection.
pub(crate) fn run(args: &ProxyArgs) -> anyhow::Result<ExitCode> {
    let output = console::take()?;
    let env = Env::process();
    let home = Home::find(&env)?;
    let address = with_path(args.connect.clone(), &home);
    let token = if address.needs_token() {
        let token = token(&home, &env, args.token_file.as_deref(), Purpose::Connect)?;
        Some(if args.send_token { token.sent() } else { token })
    } else {
        None
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let passed = runtime.block_on(async {
        let (mut from_server, mut to_server) = dial(&address, token.as_ref()).await?;
        let (mut input, mut output) = (tokio::io::stdin(), tokio::fs::File::from_std(output));
        let sending = async {
            tokio::io::copy(&mut input, &mut to_server).await?;
            // Pending requests are still answered.
            to_server.shutdown().await
        };
        let receiving = async {
            tokio::io::copy(&mut from_server, &mut output).await?;
            output.flush().await
        };
        let mut receiving = std::pin::pin!(receiving);
        tokio::select! {
            received = &mut receiving => {
                received.context("the connection failed")?;
                bail!("the server closed the connection")
            }
            // A server that is gone is noticed when reading.
            _ = sending => receiving.await.context("the connection failed"),
        }
    });
    // A read of standard input cannot be cancelled, so its thread is abandoned.
    runtime.shutdown_background();
    passed.map(|()| ExitCode::SUCCESS)
}
