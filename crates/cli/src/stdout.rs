//! Standard output, kept for the protocol alone.

use std::fs::File;

use anyhow::Context;

/// Takes standard output for the protocol: the returned file is the only way to it from here on, and whatever else
/// this process or its children print to descriptor 1 goes to standard error.
pub(crate) fn take() -> anyhow::Result<File> {
    let stdout =
        rustix::io::fcntl_dupfd_cloexec(std::io::stdout(), 3).context("could not duplicate standard output")?;
    rustix::stdio::dup2_stdout(std::io::stderr()).context("could not redirect standard output")?;
    Ok(File::from(stdout))
}
