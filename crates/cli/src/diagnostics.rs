//! Diagnostics for troubleshooting: connections, files, retries. Off unless `RUST_LOG` enables them.
//!
//! Invariant: only our own crates are logged. Others would log the headers of requests, keys included.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use codex_config::Env;
use tracing_subscriber::filter::{FilterExt as _, Targets, filter_fn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;

/// The filter, in the usual syntax: `debug`, or `codex_transport=debug,codex_model=trace`.
const WANTED: &str = "RUST_LOG";
/// The file to append to, instead of standard error.
const FILE: &str = "CODEX_LOG_FILE";

/// Starts logging if it is enabled.
pub(crate) fn start(env: &Env) -> anyhow::Result<()> {
    let Some(wanted) = env.get(WANTED).filter(|wanted| !wanted.is_empty()) else { return Ok(()) };
    let wanted: Targets = wanted.to_string_lossy().parse().with_context(|| format!("{WANTED} cannot be understood"))?;
    match env.get(FILE).filter(|path| !path.is_empty()) {
        Some(path) => listen(wanted, Arc::new(open(Path::new(&path))?)),
        None => listen(wanted, std::io::stderr),
    }
    Ok(())
}

fn open(path: &Path) -> anyhow::Result<File> {
    let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    file.with_context(|| format!("could not open {}, which {FILE} names", path.display()))
}

fn listen<W: for<'a> MakeWriter<'a> + Send + Sync + 'static>(wanted: Targets, writer: W) {
    let is_ours = filter_fn(|metadata| metadata.target().starts_with("codex"));
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer).with_filter(wanted.and(is_ours));
    // This fails if a subscriber is set already, as in a test.
    let _ = tracing_subscriber::registry().with(lines).try_init();
}
