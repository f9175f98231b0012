//! Checks that the target of a review exists.

use std::ffi::OsString;

use codex_engine::Setup;
use codex_sandbox::SandboxLevel;

use super::args::ReviewArgs;
use crate::failure::ErrorWithHint;
use crate::sandbox;

/// The git command: nothing that the repository configures is run, nothing is fetched and nothing is printed.
const SCRIPT: &str = "exec git -c core.fsmonitor=false -c core.hooksPath=/dev/null rev-parse --verify --quiet \
    --end-of-options \"$0\" >/dev/null 2>&1 </dev/null";

/// Git's exit statuses for an unknown name.
const NOT_THERE: &[i32] = &[1, 128];

/// Refuses a missing branch or commit, which the model would only find out after a request.
pub(crate) fn check(review: &ReviewArgs, setup: &Setup) -> anyhow::Result<()> {
    let (what, name) = match (&review.base, &review.commit) {
        (Some(branch), _) => ("branch", branch),
        (None, Some(commit)) => ("commit", commit),
        (None, None) => return Ok(()),
    };
    if NOT_THERE.contains(&status(name, setup)?) {
        let what = format!("there is no {what} `{name}` in {}", setup.cwd.display());
        let hint = "`git branch --all` lists the branches, `git log` the commits".to_owned();
        return Err(ErrorWithHint { what, hint }.into());
    }
    Ok(())
}

/// Git's exit status for a name. It runs like the model's commands, in a read-only sandbox.
fn status(name: &str, setup: &Setup) -> anyhow::Result<i32> {
    if matches!(codex_sandbox::level(), SandboxLevel::Nothing { .. }) {
        return Ok(0);
    }
    let mut env: Vec<(OsString, OsString)> = std::env::vars_os().collect();
    env.extend([("GIT_NO_LAZY_FETCH".into(), "1".into()), ("GIT_OPTIONAL_LOCKS".into(), "0".into())]);
    let name = format!("{name}^{{commit}}");
    let argv = ["/bin/sh", "-c", SCRIPT, &name].map(OsString::from).to_vec();
    // After the time limit, the review itself will find out.
    Ok(sandbox::run_read_only(&setup.home, env, &setup.cwd, argv)?.unwrap_or(0))
}
