//! The command line of the chat.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as ClapArgs;
use codex_wire::policy::{AskForApproval, SandboxMode};

use crate::exec::args::LocalProvider;

/// A chat and what is said first.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) options: ChatOptions,
    /// What to say first
    pub(crate) prompt: Option<String>,
}

/// A thread to go on with.
#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// The id or the name of the thread; without it, choose from a list. With --last, what to say first
    #[arg(value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// What to say first
    pub(crate) prompt: Option<String>,
    /// Take the thread that was written last in this folder
    #[arg(long)]
    pub(crate) last: bool,
    /// Take threads of all folders into account
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) options: ChatOptions,
}

/// How to chat. The ids are its own: `exec` has options of the same names, and what is given there must not count here.
#[derive(Debug, Default, Clone, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[group(skip)]
pub(crate) struct ChatOptions {
    /// Ask this model
    #[arg(id = "chat_model", short = 'm', long = "model", value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Ask a model of a server on this machine
    #[arg(id = "chat_oss", long = "oss")]
    pub(crate) oss: bool,
    /// Which server that is
    #[arg(id = "chat_local_provider", long = "local-provider", value_name = "SERVER", value_enum)]
    pub(crate) local_provider: Option<LocalProvider>,
    /// What commands may touch: read-only, workspace-write or danger-full-access
    #[arg(id = "chat_sandbox", short = 's', long = "sandbox", value_name = "MODE", value_parser = SandboxMode::from_str)]
    pub(crate) sandbox: Option<SandboxMode>,
    /// When to ask: untrusted, on-request, on-failure or never
    #[arg(id = "chat_ask_for_approval", short = 'a', long = "ask-for-approval", value_name = "POLICY", value_parser = AskForApproval::from_str)]
    pub(crate) ask_for_approval: Option<AskForApproval>,
    /// Let commands write to the working directory, and ask when the model wants more
    #[arg(id = "chat_full_auto", long = "full-auto", conflicts_with_all = ["chat_sandbox", "chat_ask_for_approval"])]
    pub(crate) full_auto: bool,
    /// Ask nothing and confine nothing; only where something else does
    #[arg(id = "chat_dangerously_bypass_approvals_and_sandbox", long = "dangerously-bypass-approvals-and-sandbox", alias = "yolo", conflicts_with_all = ["chat_sandbox", "chat_ask_for_approval", "chat_full_auto"])]
    pub(crate) dangerously_bypass_approvals_and_sandbox: bool,
    /// Let commands write there too; repeat for more
    #[arg(id = "chat_add_dir", long = "add-dir", value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Show the model this picture with what is said first; repeat for more
    #[arg(id = "chat_image", short = 'i', long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Let the model search the web
    #[arg(id = "chat_search", long = "search")]
    pub(crate) search: bool,
}

impl ChatOptions {
    /// The same options over others, which stood further in front on the command line.
    pub(crate) fn over(self, below: Self) -> Self {
        let names_policy = self.sandbox.is_some() || self.ask_for_approval.is_some() || self.full_auto;
        let both = |mut lists: Vec<PathBuf>, more: Vec<PathBuf>| {
            lists.extend(more);
            lists
        };
        Self {
            model: self.model.or(below.model),
            oss: self.oss || below.oss,
            local_provider: self.local_provider.or(below.local_provider),
            sandbox: self.sandbox.or(below.sandbox),
            ask_for_approval: self.ask_for_approval.or(below.ask_for_approval),
            full_auto: self.full_auto || below.full_auto,
            dangerously_bypass_approvals_and_sandbox: self.dangerously_bypass_approvals_and_sandbox
                || (below.dangerously_bypass_approvals_and_sandbox && !names_policy),
            add_dir: both(below.add_dir, self.add_dir),
            images: both(below.images, self.images),
            search: self.search || below.search,
        }
    }
}
