//! Parses the command line: options before a subcommand, and words that are not commands here.

use std::ffi::OsString;

use clap::FromArgMatches;
use clap::error::ErrorKind;

use super::{Args, Command, RepeatableArgs, Shared};
use crate::chat::args::ChatOptions;
use crate::chat::setup::settings;
use crate::exec::args::ExecOptions;

/// Commands of other releases: what is missing here, and the alternative.
const ABSENT: &[(&str, &str, &str)] = &[
    ("agents", "there is no agent browser", "`codex threads list` lists the threads on this machine"),
    ("cloud", "there are no cloud tasks", "`codex exec` runs a task on this machine"),
    ("cloud-tasks", "there are no cloud tasks", "`codex exec` runs a task on this machine"),
    ("exec-server", "commands run on this machine only", "`codex app-server` serves threads to other programs"),
    ("migrate-nfs-db", "there is nothing to migrate", "`codex threads repair` rebuilds the index"),
    ("migrate-rollouts", "threads of other releases are read as they are", "`codex threads list` lists them"),
    ("plugin", "plugins are not supported yet", "see `codex --help` for the available commands"),
    ("queue", "messages cannot be queued", "`codex exec resume` sends a prompt to an earlier thread"),
    ("remote-control", "there is no remote control", "`codex app-server daemon start` starts a server"),
    ("responses-api-proxy", "there is no proxy for the Responses API", "set base_url of a provider in config.toml"),
    ("stdio-to-uds", "the relay has another name here", "use `codex app-server proxy`"),
    ("update", "this program does not update itself", "install the new release the same way as this one"),
];

/// Options that only the chat has.
const ONLY_CHAT: &[&str] = &["chat_connect", "chat_token_file", "chat_screen", "chat_no_mouse"];

impl Args {
    /// Parses the command line.
    pub(crate) fn read<T: Into<OsString> + Clone>(words: impl IntoIterator<Item = T>) -> Result<Self, clap::Error> {
        let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
        let matches = Self::outline().try_get_matches_from(&words).map_err(|error| unknown_command(error, &words))?;
        let mut args = Self::from_arg_matches(&matches)?;
        // After `--` it is certainly a prompt.
        if let Some(prompt) = &args.chat.prompt
            && !words.iter().any(|word| word == "--")
            && let Some(error) = absent(prompt)
        {
            return Err(error);
        }
        let mut level = Some(&matches);
        while let Some(matches) = level {
            let RepeatableArgs { overrides, enable, disable } = RepeatableArgs::from_arg_matches(matches)?;
            let all = &mut args.shared.repeated;
            all.overrides.extend(overrides);
            all.enable.extend(enable);
            all.disable.extend(disable);
            level = matches.subcommand().map(|(_, matches)| matches);
        }
        args.settle_root(&matches)?;
        Ok(args)
    }

    /// Chat options before a subcommand apply to it too, and those after it take precedence. A command that would
    /// ignore them rejects them, because nobody would notice.
    fn settle_root(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        let Some(command) = &mut self.command else { return Ok(()) };
        let name = matches.subcommand_name().unwrap_or_default();
        let misplaced = |what: &str| {
            let why = format!("{what} cannot come before `{name}`\n");
            Err(clap::Error::raw(ErrorKind::ArgumentConflict, why).with_cmd(&Self::outline()))
        };
        if self.chat.prompt.is_some() {
            return misplaced("a prompt");
        }
        let root = std::mem::take(&mut self.chat.options);
        let unseen: &[&str] = match command {
            Command::Resume(resume) | Command::Fork(resume) => {
                resume.options = std::mem::take(&mut resume.options).over(root);
                return Ok(());
            }
            Command::Exec(exec) => {
                exec.pictures.images.splice(0..0, root.images.iter().cloned());
                exec.options.inherit(&root);
                self.shared.inherit(&of_no_command(root));
                ONLY_CHAT
            }
            Command::Review(review) => {
                review.options.inherit(&root);
                self.shared.inherit(&of_no_command(root));
                &["chat_connect", "chat_token_file", "chat_screen", "chat_no_mouse", "chat_image"]
            }
            Command::Proto(_)
            | Command::AppServer(_)
            | Command::McpServer(_)
            | Command::Mcp(_)
            | Command::Debug(_)
            | Command::Sandbox(_)
            | Command::Doctor(_)
            | Command::Features(_) => {
                self.shared.inherit(&root);
                &["chat_connect", "chat_token_file", "chat_screen", "chat_no_mouse", "chat_image", "chat_add_dir"]
            }
            _ => &["chat_"],
        };
        let is_given = |id: &&str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let is_unseen = |id: &&str| unseen.iter().any(|unseen| id.starts_with(unseen));
        let first = matches.ids().map(clap::Id::as_str).filter(is_unseen).find(is_given);
        let option = first.and_then(|id| id.strip_prefix("chat_"));
        option.map_or(Ok(()), |option| misplaced(&format!("`--{}`", option.replace('_', "-"))))
    }
}

/// The remaining chat options after `exec` has taken those that it has itself.
fn of_no_command(ChatOptions { ask_for_approval, search, .. }: ChatOptions) -> ChatOptions {
    ChatOptions { ask_for_approval, search, ..ChatOptions::default() }
}

impl Shared {
    /// Converts chat options to configuration values.
    fn inherit(&mut self, options: &ChatOptions) {
        self.repeated.overrides.extend(settings(options));
    }
}

impl ExecOptions {
    /// Inherits options from earlier on the command line, unless they are given here.
    fn inherit(&mut self, root: &ChatOptions) {
        let names_policy = self.sandbox.is_some() || self.full_auto || self.approvals.is_some();
        self.model = self.model.take().or_else(|| root.model.clone());
        self.local_provider = self.local_provider.or(root.local_provider);
        self.oss |= root.oss;
        if !names_policy && !self.dangerously_bypass_approvals_and_sandbox {
            self.sandbox = root.sandbox;
            self.full_auto = root.full_auto;
            self.dangerously_bypass_approvals_and_sandbox = root.dangerously_bypass_approvals_and_sandbox;
        } else if self.approvals.is_some() && self.sandbox.is_none() && !self.full_auto {
            (self.sandbox, self.full_auto) = (root.sandbox, root.full_auto);
        }
        self.add_dir.splice(0..0, root.add_dir.iter().cloned());
    }
}

/// A word followed by others was meant as a command, so the error says that there is none and suggests similar ones.
/// Alone it would be a prompt.
fn unknown_command(error: clap::Error, words: &[OsString]) -> clap::Error {
    use clap::error::{ContextKind, ContextValue};
    let is_absent = |word: &OsString| ABSENT.iter().any(|(name, ..)| word == name);
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand)
        && !words.iter().any(is_absent)
    {
        return error;
    }
    // As a named option the prompt does not match a word, and clap looks for a command.
    let silent = Args::outline().mut_arg("prompt", |prompt| prompt.long("prompt").hide(true));
    let again = silent.try_get_matches_from(words).err();
    let Some(again) = again.filter(|error| error.kind() == ErrorKind::InvalidSubcommand) else { return error };
    match again.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) => absent(word).unwrap_or(again),
        _ => again,
    }
}

/// The error for a command of other releases.
fn absent(word: &str) -> Option<clap::Error> {
    let (name, what, hint) = ABSENT.iter().find(|(name, ..)| *name == word)?;
    let text = format!("`codex {name}` is not available in this release: {what}\nhint: {hint}\n");
    Some(clap::Error::raw(ErrorKind::InvalidSubcommand, text))
}
