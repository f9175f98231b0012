//! The command line is parsed as people and programs write it.

use super::*;

#[test]
fn the_command_line_is_well_formed() {
    Args::whole().debug_assert();
}

#[test]
fn overrides_count_wherever_they_stand() {
    let words = "codex -c a=1 --enable x exec -c b=2 resume --config c=3 --last -c d=4 --disable y";
    let args = Args::read(words.split(' ')).unwrap();
    assert_eq!(args.shared.overrides().values, ["a=1", "b=2", "c=3", "d=4", "features.x=true", "features.y=false"]);
    let args = Args::read("codex app-server -c a=1".split(' ')).unwrap();
    assert_eq!(args.shared.overrides().values, ["a=1"]);
}

#[test]
fn without_a_command_it_is_a_chat() {
    let read = |words: &str| Args::read(words.split(' '));
    let chat = read("codex -m o3 -a never --add-dir /x hello").unwrap();
    assert!(chat.command.is_none());
    assert_eq!((chat.chat.prompt.as_deref(), chat.chat.options.model.as_deref()), (Some("hello"), Some("o3")));
    let Some(Command::Resume(resume)) = read("codex -m o3 -i a.png resume --last -i b.png go").unwrap().command else {
        panic!("not a resume");
    };
    assert_eq!(resume.options.model.as_deref(), Some("o3"));
    assert_eq!(resume.options.images, [PathBuf::from("a.png"), PathBuf::from("b.png")]);
    assert_eq!(resume.thread.as_deref(), Some("go"));
}

#[test]
fn attach_is_resume_and_options_of_the_screen_are_read() {
    for words in ["codex attach 01a1 --no-mouse", "codex --no-mouse resume 01a1"] {
        let Some(Command::Resume(resume)) = Args::read(words.split(' ')).unwrap().command else {
            panic!("not a resume: {words}");
        };
        assert_eq!((resume.thread.as_deref(), resume.options.no_mouse), (Some("01a1"), true), "{words}");
    }
}

#[test]
fn options_before_a_command_count_for_it() {
    let exec = |words: &str| match Args::read(words.split(' ')).unwrap() {
        Args { command: Some(Command::Exec(exec)), shared, .. } => (exec.into_inner(), shared.overrides().values),
        args => panic!("not exec: {args:?}"),
    };
    let (exec_of, values) =
        exec("codex -m o3 -s workspace-write -a never --search --oss -i a.png --add-dir /x exec hi");
    assert_eq!((exec_of.options.model.as_deref(), exec_of.options.oss), (Some("o3"), true));
    assert_eq!(exec_of.options.sandbox, Some(codex_wire::policy::SandboxMode::WorkspaceWrite));
    assert_eq!(
        (&exec_of.pictures.images[..], &exec_of.options.add_dir[..]),
        (&["a.png".into()][..], &["/x".into()][..])
    );
    assert_eq!(values, ["approval_policy=\"never\"", "web_search=\"live\""]);
    // Options after the command take precedence.
    let (exec_of, _) = exec("codex -m o3 -s danger-full-access -i a.png exec -m o4 --full-auto -i b.png hi");
    assert_eq!((exec_of.options.model.as_deref(), exec_of.options.sandbox), (Some("o4"), None));
    assert_eq!(exec_of.pictures.images, [PathBuf::from("a.png"), PathBuf::from("b.png")]);
    let (exec_of, _) = exec("codex --yolo exec -s read-only hi");
    assert!(!exec_of.options.dangerously_bypass_approvals_and_sandbox);
    let (exec_of, _) = exec("codex --yolo exec hi");
    assert!(exec_of.options.dangerously_bypass_approvals_and_sandbox);
    // Others have no such options, but read the configuration.
    let args = Args::read("codex -c model=o1 -m o3 -s workspace-write app-server".split(' ')).unwrap();
    assert_eq!(args.shared.overrides().values, ["model=o1", "model=\"o3\"", "sandbox_mode=\"workspace-write\""]);
}

#[test]
fn an_option_that_a_command_would_not_see_is_refused() {
    for words in [
        "codex -m o3 logout",
        "codex --full-auto threads list",
        "codex -i a.png doctor",
        "codex -i a.png review",
        "codex --add-dir /x app-server",
        "codex hello exec x",
        "codex hello resume",
    ] {
        let error = Args::read(words.split(' ')).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::ArgumentConflict, "{words}: {error}");
    }
    for words in ["codex -c model=o3 exec hello", "codex exec -m o3 --full-auto hello", "codex exec resume -m o3 x"] {
        let args = Args::read(words.split(' ')).unwrap();
        assert_eq!(args.chat.options.model, None, "{words}");
    }
}

#[test]
fn a_command_of_another_release_is_explained() {
    for words in [
        "codex -c a=1 -m o3 cloud",
        "codex -m o3 plugin list",
        "codex cloud",
        "codex cloud exec --env x hello",
        "codex update",
        "codex plugin install x",
    ] {
        let error = Args::read(words.split(' ')).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::InvalidSubcommand, "{words}: {error}");
        assert!(error.to_string().contains("is not available in this release: "), "{words}: {error}");
    }
    for words in ["codex -- cloud", "codex exec cloud", "codex -m cloud hello", "codex exec update the version"] {
        let read = Args::read(words.split(' '));
        let said = read.map_or_else(|error| error.to_string(), |_| String::new());
        assert!(!said.contains("not available"), "{words}: {said}");
    }
    let error = Args::read("codex --help cloud".split(' ')).unwrap_err();
    assert_eq!(error.kind(), clap::error::ErrorKind::DisplayHelp);
}

#[test]
fn a_command_that_is_none_is_named_with_what_is_like_it() {
    let error = Args::read("codex exce hello".split(' ')).unwrap_err();
    assert_eq!(error.kind(), clap::error::ErrorKind::InvalidSubcommand);
    let said = error.to_string();
    assert!(said.contains("'exce'") && said.contains("'exec'"), "{said}");
    let error = Args::read("codex exec --no-such".split(' ')).unwrap_err();
    assert_eq!(error.kind(), clap::error::ErrorKind::UnknownArgument);
}

/// The help of a command and of all its subcommands.
fn helps(command: &mut clap::Command, helps: &mut Vec<String>) {
    let takes = |id: &str| command.get_arguments().any(|option| option.get_id() == id);
    let name = command.get_name().to_owned();
    assert!(["overrides", "enable", "disable", "profile", "cwd"].into_iter().all(takes), "{name}");
    helps.push(format!("{name}: {}", command.render_long_help()));
    for command in command.get_subcommands_mut().filter(|command| command.get_name() != "help") {
        self::helps(command, helps);
    }
}

#[test]
fn commands_are_described_when_they_are_met_and_then_as_all_at_once() {
    let (mut outline, mut whole) = (Args::outline(), Args::whole());
    let described = |command: &clap::Command| command.find_subcommand("exec").unwrap().get_arguments().count();
    assert_eq!(described(&outline), 0);
    assert!(described(&whole) > 20);
    let (mut met, mut at_once) = (Vec::new(), Vec::new());
    outline.build();
    whole.build();
    helps(&mut outline, &mut met);
    helps(&mut whole, &mut at_once);
    assert!(met.len() > 40, "{}", met.len());
    assert_eq!(met, at_once);
    assert!(met.iter().any(|help| help.starts_with("exec: Run one task")));
}

#[test]
fn the_version_is_the_one_clients_look_for() {
    let version = Args::command().render_version();
    assert_eq!(version, format!("codex-cli {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_avoids_private_words() {
    let mut helps = Vec::new();
    let mut whole = Args::whole();
    whole.build();
    self::helps(&mut whole, &mut helps);
    let all = helps.join("\n");
    for part in [
        "Resume a thread in the chat",
        "Fork a thread and continue in the copy; the original is unchanged",
        "Run one task non-interactively, for scripts and CI",
        "Review changes non-interactively",
        "Restore an archived thread",
        "Apply the changes from a thread's last turn here",
        "Log in, or show how requests are authenticated",
        "Log out: revoke and remove the stored credentials",
        "List, enable and disable features",
        "Check this installation and suggest fixes",
        "Inspect the request that would be sent to the model",
        "Model to use",
        "Use a local model server",
        "Initial prompt",
        "Skip all approvals and run without a sandbox. Only for environments that are sandboxed",
        "Print events as JSON Lines instead of human-readable text",
        "Even when output is not a terminal",
        "Who answers approval requests",
        "Time limit",
        "most recently updated first",
        "Maximum number of results",
        "Repair a thread's file, or the index",
        "Import a bundle",
        "no-op if it is already running",
        "Match this release's behaviour where releases differ",
        "Legacy `codex/event/*` events and v1 approval requests",
        "Accepted for compatibility; ignored",
        "Run a command in the Linux sandbox",
    ] {
        assert!(all.contains(part), "{part:?} is missing");
    }
    for part in ["Go on with", "put away", "so many", "Mend", "without a person", "repeat for more", "Say ", "Ask "] {
        assert!(!all.contains(part), "{part:?} is there");
    }
}
