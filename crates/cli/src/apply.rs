//! `codex apply`: applies the changes of the last turn that changed files to this repository.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use codex_config::{Env, Home};
use codex_dialects::git_diff::{self, Changes};
use codex_log::decode::{Decoder, Wanted};
use codex_log::store::{Entry, ReadFrom, ThreadStore, ThreadSummary};
use codex_log::{Body, Status};
use codex_store::locate;
use codex_tools::trusted_git::{Checkout, TrustedGit, writable_folders};

use crate::args::{ApplyArgs, Shared};
use crate::console;
use crate::failure::ErrorWithHint;
use crate::proto::working_directory;
use crate::thread_store;

/// Applies the changes with `git apply`, which runs nothing that a repository names.
pub(crate) fn run(shared: &Shared, args: &ApplyArgs) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let store = thread_store::of_user(shared, &home, &env)?;
    let cwd = working_directory(shared)?;
    let thread = match &args.thread {
        Some(word) => locate::thread(&*store, word)?,
        None => locate::newest(&*store, None)?,
    };
    let work = Work::of(&thread);
    let patches = last_patches(&*store, &thread, &work.cwd)?;
    if patches.is_empty() {
        bail!("no turn of thread {} changed any files", thread.id);
    }
    let diff: String = patches.iter().map(|patch| git_diff::diff(patch, work.folder())).collect();
    if args.print {
        console::document().write_all(diff.as_bytes())?;
        return Ok(ExitCode::SUCCESS);
    }
    let Some(here) = Checkout::find(&cwd) else {
        let what = format!("{} is not inside a git repository", cwd.display());
        let hint = format!("run it in a checkout of {work}, or print the diff with --print");
        return Err(ErrorWithHint { what, hint }.into());
    };
    let git = TrustedGit::find(&home, &env, &writable_folders(&cwd, None)).context("could not run git")?;
    if !args.any_repo && !work.is_in(&here, &thread, &git) {
        let what = format!("this is another repository: {}; the thread worked in {work}", described(&here));
        return Err(ErrorWithHint { what, hint: "pass --any-repo to apply its changes here anyway".to_owned() }.into());
    }
    work.check_inside(&patches)?;
    // Paths are relative to the root of a checkout, or to the folder of a thread that did not work in one.
    let folder = if work.checkout.is_some() { here.root() } else { &cwd };
    apply(&git, folder, &diff)?;
    let mut out = console::out();
    for line in git_diff::summary(&patches, work.folder()) {
        writeln!(out, "{line}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The place where a thread worked.
struct Work {
    cwd: PathBuf,
    checkout: Option<Checkout>,
    /// The address of its repository when it started.
    origin: Option<String>,
}

impl Work {
    fn of(thread: &ThreadSummary) -> Self {
        let origin = thread.git.as_ref().and_then(|git| git.repository_url.clone());
        let cwd = thread.cwd.canonicalize().unwrap_or_else(|_| thread.cwd.clone());
        Self { checkout: Checkout::find(&cwd), cwd, origin }
    }

    /// The folder that paths are relative to.
    fn folder(&self) -> &Path {
        self.checkout.as_ref().map_or(&self.cwd, Checkout::root)
    }

    /// Whether a checkout belongs to the thread's repository: a worktree of it, or a clone.
    fn is_in(&self, here: &Checkout, thread: &ThreadSummary, git: &TrustedGit) -> bool {
        if self.checkout.as_ref().is_some_and(|checkout| checkout.shares_repository(here)) {
            return true;
        }
        let origin = self.origin.as_deref().is_some_and(|origin| here.has_origin(origin));
        let commit = thread.git.as_ref().and_then(|git| git.commit_hash.as_deref());
        origin || commit.is_some_and(|commit| git.has_commit(here, commit))
    }

    /// Checks that all changes are inside the repository, because others cannot be applied to another one.
    fn check_inside(&self, patches: &[Changes]) -> anyhow::Result<()> {
        let folder = self.folder();
        let Some(outside) = patches.iter().flat_map(git_diff::paths).find(|path| !path.starts_with(folder)) else {
            return Ok(());
        };
        let what = format!("the thread also changed {}, which is outside of {}", outside.display(), folder.display());
        Err(ErrorWithHint { what, hint: "print the diff with --print and apply what you need".to_owned() }.into())
    }
}

impl std::fmt::Display for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.checkout, &self.origin) {
            (Some(checkout), _) => f.write_str(&described(checkout)),
            (None, Some(origin)) => write!(f, "{} (origin {origin})", self.cwd.display()),
            (None, None) => write!(f, "{}", self.cwd.display()),
        }
    }
}

/// A description of a checkout for people.
fn described(checkout: &Checkout) -> String {
    let root = checkout.root().display();
    checkout.origin().map_or_else(|| root.to_string(), |origin| format!("{root} (origin {origin})"))
}

/// The patches of the last turn that has any, with the thread's folder without links.
fn last_patches(store: &dyn ThreadStore, thread: &ThreadSummary, cwd: &Path) -> anyhow::Result<Vec<Changes>> {
    let mut lines = store.read(thread.id, ReadFrom::Start)?;
    let mut decoder = Decoder::new(Wanted::TURNS | Wanted::SHOWN | Wanted::CALLS);
    let (mut events, mut last, mut turn) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(entry) = lines.next_entry()? {
        let Entry::Line(line) = entry else { continue };
        decoder.line(&line, &mut events);
        for event in events.drain(..) {
            match &event.body {
                Body::TurnStarted { .. } if !turn.is_empty() => last = std::mem::take(&mut turn),
                // Files of releases that recorded no turn starts have one turn per user message.
                Body::ItemCompleted(item) if item.said().is_some() && !turn.is_empty() => {
                    last = std::mem::take(&mut turn);
                }
                Body::ItemCompleted(item) if item.status() == Some(Status::Completed) => {
                    let changes = item.patch().map(|patch| (*patch.changes).clone());
                    turn.extend(changes.map(|changes| git_diff::moved(changes, &thread.cwd, cwd)));
                }
                _ => {}
            }
        }
    }
    Ok(if turn.is_empty() { last } else { turn })
}

/// Applies a diff, all of it or nothing, and passes on git's output.
fn apply(git: &TrustedGit, folder: &Path, diff: &str) -> anyhow::Result<()> {
    let applied = git.apply(folder, diff)?;
    for line in applied.said.lines() {
        console::note(format_args!("{line}"));
    }
    if applied.is_complete {
        return Ok(());
    }
    let hint = "see above; `codex apply --print` shows the diff".to_owned();
    Err(ErrorWithHint { what: "git apply failed, and no file was changed".to_owned(), hint }.into())
}
