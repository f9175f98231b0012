//! The command line of the chat.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args as ClapArgs;
use codex_config::ChatScreen;
use codex_transport::Address;
use codex_wire::policy::{AskForApproval, SandboxMode};

use crate::exec::args::LocalProvider;

/// A chat and its initial prompt.
#[derive(Debug, Default, ClapArgs)]
pub(crate) struct ChatArgs {
    #[command(flatten)]
    pub(crate) options: ChatOptions,
    /// Initial prompt
    pub(crate) prompt: Option<String>,
}

/// A thread to continue.
#[derive(Debug, ClapArgs)]
pub(crate) struct ResumeArgs {
    /// Thread id (or its beginning) or name; without it, pick from a list. With --last, the initial prompt
    #[arg(value_name = "THREAD")]
    pub(crate) thread: Option<String>,
    /// Initial prompt
    pub(crate) prompt: Option<String>,
    /// Use the most recently updated thread of this folder
    #[arg(long)]
    pub(crate) last: bool,
    /// Include threads of all folders
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) options: ChatOptions,
}

/// Chat options. Their ids are separate: `exec` has options with the same names, and those given there must not apply
/// here.
#[derive(Debug, Default, Clone, ClapArgs)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[group(skip)]
pub(crate) struct ChatOptions {
    /// Model to use
    #[arg(id = "chat_model", short = 'm', long = "model", value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Use a local model server
    #[arg(id = "chat_oss", long = "oss")]
    pub(crate) oss: bool,
    /// Local server to use
    #[arg(id = "chat_local_provider", long = "local-provider", value_name = "SERVER", value_enum)]
    pub(crate) local_provider: Option<LocalProvider>,
    /// Sandbox mode for commands: read-only, workspace-write or danger-full-access
    #[arg(id = "chat_sandbox", short = 's', long = "sandbox", value_name = "MODE", value_parser = SandboxMode::from_str)]
    pub(crate) sandbox: Option<SandboxMode>,
    /// When to ask for approval: untrusted, on-request, on-failure or never
    #[arg(id = "chat_ask_for_approval", short = 'a', long = "ask-for-approval", value_name = "POLICY", value_parser = AskForApproval::from_str)]
    pub(crate) ask_for_approval: Option<AskForApproval>,
    /// Allow writing to the working directory, and ask when the model needs more
    #[arg(id = "chat_full_auto", long = "full-auto", conflicts_with_all = ["chat_sandbox", "chat_ask_for_approval"])]
    pub(crate) full_auto: bool,
    /// Skip all approvals and run without a sandbox. Only for environments that are sandboxed externally
    #[arg(id = "chat_dangerously_bypass_approvals_and_sandbox", long = "dangerously-bypass-approvals-and-sandbox", alias = "yolo", conflicts_with_all = ["chat_sandbox", "chat_ask_for_approval", "chat_full_auto"])]
    pub(crate) dangerously_bypass_approvals_and_sandbox: bool,
    /// Allow writing to this folder too; may be repeated
    #[arg(id = "chat_add_dir", long = "add-dir", value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Image to attach to the initial prompt; may be repeated
    #[arg(id = "chat_image", short = 'i', long = "image", value_name = "FILE")]
    pub(crate) images: Vec<PathBuf>,
    /// Enable web search
    #[arg(id = "chat_search", long = "search")]
    pub(crate) search: bool,
    /// Chat on the whole screen, or line by line [default: `tui.screen` in config.toml, else full]
    #[arg(id = "chat_screen", long = "screen", value_name = "KIND", value_parser = ChatScreen::from_str)]
    pub(crate) screen: Option<ChatScreen>,
    /// Chat line by line: text is only appended, as screen readers expect
    #[arg(id = "chat_screen_reader", long = "screen-reader", conflicts_with = "chat_screen")]
    pub(crate) screen_reader: bool,
    /// Leave the mouse to the terminal
    #[arg(id = "chat_no_mouse", long = "no-mouse")]
    pub(crate) no_mouse: bool,
    /// Chat with an app-server elsewhere: `unix://PATH`, `ws://IP:PORT`, `tcp://IP:PORT` or `grpc://IP:PORT`
    #[arg(id = "chat_connect", long = "connect", value_name = "URL")]
    pub(crate) connect: Option<Address>,
    /// File with the token of that server, instead of the variable `CODEX_APP_SERVER_TOKEN` or the file in `CODEX_HOME`
    #[arg(id = "chat_token_file", long = "token-file", value_name = "FILE", requires = "chat_connect")]
    pub(crate) token_file: Option<PathBuf>,
    /// Send the token to a server that does not prove that it knows it, as through a forwarded port
    #[arg(id = "chat_send_token", long = "send-token", requires = "chat_connect")]
    pub(crate) send_token: bool,
}

impl ChatOptions {
    /// Merges with options from earlier on the command line, which have lower precedence.
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
            screen: self.screen.or(below.screen),
            screen_reader: self.screen_reader || below.screen_reader,
            no_mouse: self.no_mouse || below.no_mouse,
            connect: self.connect.or(below.connect),
            token_file: self.token_file.or(below.token_file),
            send_token: self.send_token || below.send_token,
        }
    }
}
