//! `codex exec`: a single non-interactive turn, for scripts and programs.
//!
//! Standard output carries the last message, or the events with `--json`; everything else goes to standard error.

mod approvals;
pub(crate) mod args;
mod base;
mod drive;
pub(crate) mod input;
mod outlet;
mod price;
pub(crate) mod setup;
mod show;

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use codex_agents::LocalTrees;
use codex_config::Env;
use codex_dialects::ProtocolRelease;
use codex_engine::Setup;
use codex_files::{OutputFile, TimedWriter, read_input};
use codex_model::{AnswerSchema, SchemaSupport};
use codex_thread::{Children, Thread};
use codex_wire::input::UserInput;
use codex_wire::review::{BaseBranchTarget, CommitTarget, ReviewRequest, ReviewTarget};

use self::approvals::Answerer;
use self::args::{Approvals, ExecArgs, ExecForm, ExecOptions, ReviewArgs};
use self::drive::{Drive, Ending, Limits, Task};
use self::outlet::Outlet;
use self::show::RunOutput;
use crate::args::Shared;
use crate::console::{self, Clean};
use crate::signals;

/// The time limit for writing the last lines after a timeout.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The largest schema.
const MOST_SCHEMA_BYTES: usize = 8 * 1024 * 1024;

pub(crate) fn run(shared: &Shared, args: &ExecArgs) -> ExitCode {
    let begun = Instant::now();
    let ran = prepare(shared, args, begun).and_then(|prepared| prepared.run(&args.options, begun));
    match ran {
        Ok(ending) => ExitCode::from(ending.code()),
        Err(error) => {
            input::drain();
            crate::failure::say(&error);
            let ending = if error.is::<input::TooLate>() { Ending::TimedOut } else { Ending::Failed };
            ExitCode::from(ending.code())
        }
    }
}

/// Everything that can be prepared before the thread starts.
struct Prepared {
    is_verbose: bool,
    output: File,
    env: Env,
    setup: Setup,
    task: Task,
    schema: Option<(AnswerSchema, SchemaSupport)>,
    /// The output file for the last message.
    file: Option<OutputFile>,
}

fn prepare(shared: &Shared, args: &ExecArgs, begun: Instant) -> anyhow::Result<Prepared> {
    let output = console::take()?;
    let env = Env::process();
    let ExecArgs { options, .. } = args;
    if options.approvals == Some(Approvals::Stdio) && !options.json {
        bail!("--approvals stdio requires --json");
    }
    if options.output_schema.is_some() && matches!(args.form, Some(ExecForm::Review(_))) {
        bail!("--output-schema cannot be used with a review");
    }
    let mut setup = setup::setup(shared, args, &env)?;
    crate::login::require_key(&setup.home, &setup.config, &env)?;
    if let Some(ExecForm::Review(review)) = &args.form {
        base::check(review, &setup)?;
    }
    let schema = options.output_schema.as_deref().map(read_schema).transpose()?;
    let schema = schema.map(|schema| (schema, SchemaSupport::default()));
    if let Some((_, pledge)) = &schema {
        setup.model = pledge.watch(setup.model);
    }
    // Before anything has run that could replace it.
    let file = options
        .output_last_message
        .as_deref()
        .map(|path| OutputFile::open(path, &setup.cwd, &output).with_context(|| unfiled(path)));
    let file = file.transpose()?;
    let task = task(args, begun)?;
    Ok(Prepared { is_verbose: shared.verbose, output, env, setup, task, schema, file })
}

fn task(args: &ExecArgs, begun: Instant) -> anyhow::Result<Task> {
    let (given, pictures) = match &args.form {
        Some(ExecForm::Review(review)) => return Ok(Task::Review(review_request(review, &args.options, begun)?)),
        // With --last no thread is named, so the first word is the prompt.
        Some(ExecForm::Resume(thread) | ExecForm::Fork(thread)) if thread.last => {
            (thread.prompt.as_ref().or(thread.thread.as_ref()), Some(&thread.pictures))
        }
        Some(ExecForm::Resume(thread) | ExecForm::Fork(thread)) => (thread.prompt.as_ref(), Some(&thread.pictures)),
        None => (args.prompt.as_ref(), None),
    };
    let pictures = args.pictures.images.iter().chain(pictures.into_iter().flat_map(|it| &it.images));
    let pictures = pictures.map(|path| picture(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let given = given.or(args.prompt.as_ref());
    if matches!(args.form, Some(ExecForm::Resume(_))) && given.is_none() && pictures.is_empty() {
        let deadline = args.options.limits.timeout.map(|timeout| begun + timeout);
        // Answers that come in on standard input are no prompt.
        let answers_come_in = args.options.approvals == Some(Approvals::Stdio);
        let text = if answers_come_in { None } else { input::read_optional_prompt(deadline)? };
        return Ok(text.map_or(Task::Continue, |text| Task::Say(vec![UserInput::text(text)])));
    }
    let text = prompt(given, &args.options, begun)?;
    Ok(Task::Say(pictures.into_iter().chain([UserInput::text(text)]).collect()))
}

fn prompt(given: Option<&String>, options: &ExecOptions, begun: Instant) -> anyhow::Result<String> {
    let answers_come_in = options.approvals == Some(Approvals::Stdio);
    match given.map(String::as_str) {
        None | Some("-") if answers_come_in => {
            bail!("--approvals stdio reads answers from standard input, so the prompt must be an argument")
        }
        None | Some("-") => input::read_prompt(options.limits.timeout.map(|timeout| begun + timeout)),
        Some("") => bail!("the prompt is empty"),
        Some(text) if answers_come_in => Ok(text.to_owned()),
        Some(text) => Ok(input::join(text, input::read_piped()?.as_deref())),
    }
}

fn picture(path: &Path) -> anyhow::Result<UserInput> {
    check_picture(path)?;
    let path = std::path::absolute(path).unwrap_or_else(|_| PathBuf::from(path));
    Ok(UserInput::LocalImage { path })
}

/// Refuses an image that could not be sent to the model.
pub(crate) fn check_picture(path: &Path) -> anyhow::Result<()> {
    let told = |why: String| anyhow::anyhow!("--image: could not read {}: {why}", path.display());
    codex_tools::images::check_image(path).map_err(told)
}

fn review_request(args: &ReviewArgs, options: &ExecOptions, begun: Instant) -> anyhow::Result<ReviewRequest> {
    let target = match (&args.base, &args.commit, &args.prompt) {
        (Some(branch), _, _) => ReviewTarget::BaseBranch(BaseBranchTarget { branch: branch.clone() }),
        (_, Some(sha), _) => ReviewTarget::Commit(CommitTarget { sha: sha.clone(), title: args.title.clone() }),
        (_, _, Some(_)) => ReviewTarget::custom(prompt(args.prompt.as_ref(), options, begun)?),
        (None, None, None) => ReviewTarget::UncommittedChanges,
    };
    Ok(ReviewRequest { target, user_facing_hint: None })
}

impl Prepared {
    fn run(self, options: &ExecOptions, begun: Instant) -> anyhow::Result<Ending> {
        // The engine has its own thread, so that limits and signals work whatever it does.
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let ran = runtime.block_on(self.drive(options, begun));
        // A read of standard input cannot be cancelled, so its thread is abandoned.
        runtime.shutdown_background();
        ran
    }

    async fn drive(self, options: &ExecOptions, begun: Instant) -> anyhow::Result<Ending> {
        let Self { is_verbose, output, env, mut setup, task, schema, file } = self;
        let mut stop = signals::stop()?;
        let answerer = Answerer::new(options.approvals.as_ref())?;
        let config = Arc::clone(&setup.config);
        // A home with a model catalogue was written for the newest release.
        let newest = setup.config.model.catalogue.as_ref().map(|_| ProtocolRelease::V0166);
        let release = options.emulate.map(Into::into).or(newest);
        let reviewer = setup.config.model.review.clone().filter(|_| matches!(task, Task::Review(_)));
        setup.run_budget = options.limits.budget();
        let children = Children::new(setup.offer_agents(&LocalTrees));
        let (thread, feed) = setup.start().await?;
        if options.limits.max_cost.is_some() {
            price::check(&config, reviewer.as_ref().unwrap_or(&thread.started().settings.model))?;
        }
        let (show, last_words) = if options.json {
            (RunOutput::lines(Outlet::new(Clean::json(output)), release), None)
        } else {
            (RunOutput::people(options.color, &env, is_verbose), Some(output))
        };
        let limits = Limits {
            deadline: options.limits.timeout.map(|timeout| tokio::time::Instant::from_std(begun + timeout)),
            timeout: options.limits.timeout,
            idle: options.limits.idle_timeout,
        };
        let mut drive = Drive::new(thread, children, show, answerer, limits, schema);
        let ran = drive.run(task, feed, &mut stop).await;
        let closing = drive.thread.clone();
        tokio::select! {
            () = closing.close() => {}
            // A second signal means that the user does not want to wait.
            () = stop.wait() => {}
        }
        let Drive { thread, mut show, last_message, .. } = drive;
        if let Ok(ending) = ran {
            sum_up(&mut show)?;
            farewell(&mut show, ending, &thread, options)?;
        }
        finish(show, matches!(ran, Ok(Ending::TimedOut))).await?;
        let ending = ran?;
        if ending == Ending::Completed {
            deliver(last_message.as_deref().unwrap_or_default(), file, last_words)?;
        }
        Ok(ending)
    }
}

/// Prints the usage of the run, and its cost if known.
fn sum_up(show: &mut RunOutput) -> std::io::Result<()> {
    let used = show.used();
    show.note(&format!(
        "tokens: {} in ({} cached), {} out ({} reasoning)",
        used.input_tokens,
        used.cached_input_tokens,
        used.output_tokens,
        used.reasoning_output_tokens.unwrap_or_default()
    ))?;
    used.cost.map_or(Ok(()), |cost| show.note(&format!("cost: {}", codex_terminal::amount(cost))))
}

/// Prints how to continue after an incomplete run.
fn farewell(show: &mut RunOutput, ending: Ending, thread: &Thread, options: &ExecOptions) -> std::io::Result<()> {
    if ending == Ending::Completed || options.storage.ephemeral {
        return Ok(());
    }
    show.note(&format!("hint: resume with `codex exec resume {}`", thread.id()))
}

/// Waits until everything is shown. After a timeout, a slow reader is not waited for.
async fn finish(show: RunOutput, is_late: bool) -> anyhow::Result<()> {
    let finishing = tokio::task::spawn_blocking(move || show.finish());
    let patience = if is_late { LAST_WORDS } else { Duration::MAX };
    match tokio::time::timeout(patience, finishing).await {
        Ok(Ok(written)) => written.context("could not write to standard output"),
        Ok(Err(error)) => Err(error).context("could not write to standard output"),
        Err(_) => Ok(()),
    }
}

/// The error if the last message could not be written to the file.
fn unfiled(path: &Path) -> String {
    format!("could not write the last message to {}", path.display())
}

fn read_schema(path: &Path) -> anyhow::Result<AnswerSchema> {
    let text = read_input(path, MOST_SCHEMA_BYTES);
    let text = text.with_context(|| format!("--output-schema: could not read {}", path.display()))?;
    let root =
        serde_json::from_slice(&text).with_context(|| format!("--output-schema: {} is not JSON", path.display()))?;
    AnswerSchema::new(root).with_context(|| format!("--output-schema: {} is not a JSON object", path.display()))
}

/// Writes a text to a file; a terminal gets it without control sequences.
fn write_plain(output: &mut TimedWriter, text: &str) -> std::io::Result<()> {
    if output.0.is_terminal() {
        return Clean::new(output).write_all(text.as_bytes());
    }
    output.write_all(text.as_bytes())
}

/// Delivers the last message: to the output file, and to standard output unless events are there. If the file cannot be
/// written, the message still goes to standard output.
fn deliver(text: &str, file: Option<OutputFile>, output: Option<File>) -> anyhow::Result<()> {
    let is_wanted = file.as_ref().is_some_and(OutputFile::is_stdout);
    // With events, the message may go to the same stream; alone it is not written twice.
    let file = file.filter(|_| !is_wanted || output.is_none());
    let filed = file.map_or(Ok(()), |file| {
        let path = file.path().to_owned();
        file.replace_with(|output| write_plain(output, text)).with_context(|| unfiled(&path))
    });
    // If both streams are the same terminal, the person has read it already.
    let is_read = |output: &File| !is_wanted && output.is_terminal() && console::err_is_terminal();
    let Some(output) = output.filter(|output| !is_read(output)) else { return filed };
    // A program gets the message unchanged; a terminal gets it without control sequences.
    let mut output = Clean::unless_piped(output);
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let written = write!(output, "{text}{end}").and_then(|()| output.flush());
    filed.and(written.context("could not write to standard output"))
}
