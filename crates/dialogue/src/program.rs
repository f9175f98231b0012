//! Runs a small program for its output.
//!
//! Invariant: it runs for a limited time, only the start of its output is read, and it ends with its caller.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

/// The first bytes that a program prints, if it ends in time.
pub(crate) async fn output(mut command: Command, most_time: Duration, most_bytes: u64) -> io::Result<Vec<u8>> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let mut bytes = Vec::new();
    let reading = async {
        if let Some(output) = child.stdout.take() {
            output.take(most_bytes).read_to_end(&mut bytes).await?;
        }
        child.wait().await
    };
    tokio::time::timeout(most_time, reading).await.map_err(io::Error::from)??;
    Ok(bytes)
}
