//! Finds every command that a command line may run, through scripts, wrappers and nested shells.
//!
//! Invariant: it finds too much rather than too little. After a wrapper every later word may be the start of the
//! command, so no option of a wrapper can hide it.

use crate::limits;
use crate::script::{self, ScriptCommand, ScriptCommands, Word};
use crate::understand::{base_name, is_among, is_shell, script};

/// Programs that run the command in their arguments, and keywords that the grammar may mistake for programs.
const WRAPPERS: &str = "{ ( case do elif else for function if select then until while \
    ash aa-exec bash bwrap builtin busybox caffeinate chroot chrt command coproc cpulimit dash dbus-run-session \
    doas docker eatmydata entr env eval exec fakeroot faketime firejail fish flock gdb gtimeout ionice kexec ksh \
    ld.so linux32 linux64 ltrace mksh nice nocorrect noglob nohup nsenter numactl parallel perf pkexec podman \
    prlimit proot proxychains proxychains4 rbash repeat rlwrap rtkit run0 runuser script setarch setpriv setsid \
    sh ssh stdbuf strace su sudo systemd-run taskset time timeout torsocks toybox trap unbuffer unshare uv \
    valgrind watch xargs xvfb-run zsh - !";

/// One command that may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reached {
    pub(crate) words: Vec<Word>,
    /// Whether it reads the output of another command.
    pub(crate) piped: bool,
}

impl Reached {
    /// The program without its folder; `None` if it is known only at run time.
    pub(crate) fn program(&self) -> Option<&str> {
        let first = self.words.first()?;
        let name = base_name(first.text()?);
        // A pattern in the folder, as in `~/bin/x`, leaves the name known.
        let literal = first.literal().is_some() || !name.contains(['*', '?', '[', '{', '=']);
        literal.then_some(name)
    }

    pub(crate) fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// Everything that a command line may run.
#[derive(Debug, Default)]
pub(crate) struct Reach {
    pub(crate) commands: Vec<Reached>,
    /// The targets of output redirections.
    pub(crate) targets: Vec<Word>,
    /// Files that a redirection leaves empty.
    pub(crate) emptied: Vec<Word>,
    /// Texts that a program may run as code.
    pub(crate) fed: Vec<String>,
    /// Scripts with unknown syntax, so that commands may be missing above.
    pub(crate) unread: Vec<String>,
    /// Placeholders for scripts that are known only at run time.
    pub(crate) opaque: Vec<String>,
    /// Whether a limit was exceeded.
    pub(crate) too_much: bool,
}

/// Finds every command that a command line may run.
pub(crate) fn reach(argv: &[String]) -> Reach {
    let mut reach = Reach::default();
    if let Some(script) = script(argv) {
        reach.script(script, 0);
    } else {
        let words: Vec<_> = argv.iter().cloned().map(Word::Literal).collect();
        reach.command(ScriptCommand { words, piped: false }, 0);
    }
    reach
}

impl Reach {
    fn script(&mut self, script: &str, nesting: usize) {
        if nesting > limits::NESTING {
            self.too_much = true;
            return;
        }
        let ScriptCommands { commands, documents, targets, emptied, broken, too_much } = script::look(script);
        self.too_much |= too_much;
        self.targets.extend(targets);
        self.emptied.extend(emptied);
        if broken {
            self.unread.push(script.to_owned());
        }
        let fed = commands.iter().any(|seen| seen.words.iter().filter_map(Word::text).any(reads_commands));
        for seen in commands {
            self.command(seen, nesting);
        }
        if fed {
            for document in &documents {
                self.script(document, nesting + 1);
            }
            self.fed.extend(documents);
        }
    }

    fn command(&mut self, seen: ScriptCommand, nesting: usize) {
        let ScriptCommand { words, piped } = seen;
        if words.len() > limits::WORDS || self.commands.len() > limits::LOOKS {
            self.too_much = true;
            return;
        }
        self.commands.push(Reached { words: words.clone(), piped });
        if words.first().is_some_and(is_wrapper) {
            return self.behind_wrapper(&words, piped, nesting);
        }
        match words.first().and_then(Word::text).map(base_name) {
            Some("find" | "fd" | "fdfind" | "gfind") => self.behind_find(&words, nesting),
            Some("alias") => self.inside(words.get(1..).unwrap_or_default(), nesting, after_equals),
            Some("git") => self.behind_git(&words, nesting),
            _ => {}
        }
    }

    fn behind_wrapper(&mut self, words: &[Word], piped: bool, nesting: usize) {
        if words.len() > limits::WORDS / 8 {
            self.too_much = true;
            return;
        }
        let program = words.first().and_then(Word::text).map_or("", base_name);
        let appended = (matches!(program, "xargs" | "parallel")).then_some(Word::Unknown);
        let mut found = matches!(program, "xargs" | "parallel" | "trap" | "eval");
        for start in 1..words.len() {
            let rest = words.get(start..).unwrap_or_default();
            let first = rest.first().and_then(Word::text);
            // An unknown word counts as a command only if no earlier word can be the command.
            let candidate = first.map_or(!found, |first| !first.starts_with('-') || first == "-");
            found |= first.is_some_and(|first| {
                first.starts_with(|c: char| c.is_alphabetic() || "./_~".contains(c)) && !first.contains('=')
            });
            if !candidate {
                continue;
            }
            let words = rest.iter().chain(&appended).cloned().collect();
            self.commands.push(Reached { words, piped });
            match first.map(base_name) {
                Some("find") => self.behind_find(rest, nesting),
                Some("git") => self.behind_git(rest, nesting),
                _ => {}
            }
            if self.commands.len() > limits::LOOKS {
                self.too_much = true;
                return;
            }
        }
        self.scripts_of(words, nesting);
    }

    /// Analyses the arguments of a wrapper as scripts, if it or a program behind it takes one.
    fn scripts_of(&mut self, words: &[Word], nesting: usize) {
        let names: Vec<_> = words.iter().map(|word| word.text().map_or("", base_name)).collect();
        let takes_script = |name: &&str| {
            is_shell(name)
                || matches!(
                    *name,
                    "eval" | "trap" | "ssh" | "su" | "watch" | "script" | "flock" | "runuser" | "env" | "parallel"
                )
        };
        let Some(from) = names.iter().position(takes_script) else { return };
        let arguments = words.get(from + 1..).unwrap_or_default();
        let shell = names.get(from).is_some_and(|name| is_shell(name) || matches!(*name, "eval" | "su" | "trap"));
        let inline = arguments.iter().any(|word| {
            word.text().is_some_and(|text| text.starts_with('-') && !text.starts_with("--") && text.contains('c'))
        });
        let eval = names.get(from) == Some(&"eval");
        if shell && (inline || eval) && arguments.contains(&Word::Unknown) {
            self.opaque.push(names.get(from).copied().unwrap_or_default().to_owned());
        }
        if eval || names.get(from) == Some(&"ssh") {
            let joined: Vec<_> = arguments.iter().filter_map(Word::text).collect();
            self.script(&joined.join(" "), nesting + 1);
        }
        self.inside(arguments, nesting, not_option);
    }

    /// Analyses literal arguments as scripts.
    fn inside(&mut self, arguments: &[Word], nesting: usize, part: fn(&str) -> Option<&str>) {
        for text in arguments.iter().filter_map(Word::text).filter_map(part) {
            if text.contains(|c: char| c.is_whitespace() || ";&|<>()$`".contains(c)) {
                self.script(text, nesting + 1);
            }
        }
    }

    fn behind_find(&mut self, words: &[Word], nesting: usize) {
        let runs = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
        for (at, word) in words.iter().enumerate() {
            if !word.text().is_some_and(|text| runs.contains(&text)) {
                continue;
            }
            let inner = words.iter().skip(at + 1).take_while(|word| !matches!(word.text(), Some(";" | "+")));
            let inner = inner.map(|word| if word.text() == Some("{}") { Word::Unknown } else { word.clone() });
            let words: Vec<_> = inner.collect();
            if nesting > limits::NESTING || words.is_empty() {
                self.too_much |= nesting > limits::NESTING;
                continue;
            }
            self.command(ScriptCommand { words, piped: false }, nesting + 1);
        }
    }

    /// Analyses `git submodule foreach COMMAND`, `git bisect run COMMAND` and the commands of aliases and settings.
    fn behind_git(&mut self, words: &[Word], nesting: usize) {
        let texts: Vec<_> = words.iter().map(|word| word.text().unwrap_or("")).collect();
        for (at, text) in texts.iter().enumerate() {
            if matches!(*text, "foreach" | "run" | "--exec" | "-x") {
                let rest = words.get(at + 1..).unwrap_or_default().to_vec();
                self.inside(&rest, nesting, not_option);
                if !rest.is_empty() && nesting <= limits::NESTING {
                    self.command(ScriptCommand { words: rest, piped: false }, nesting + 1);
                }
            }
            if let Some((_, command)) = text.split_once("=!") {
                self.script(command, nesting + 1);
            }
        }
    }
}

fn not_option(text: &str) -> Option<&str> {
    (!text.starts_with('-')).then_some(text)
}

fn after_equals(text: &str) -> Option<&str> {
    text.split_once('=').map(|(_, value)| value)
}

/// Whether a word is the name of a program that runs the command in its arguments.
pub(crate) fn is_wrapper(word: &Word) -> bool {
    word.text().is_some_and(|text| is_among(WRAPPERS, base_name(text)))
}

/// Whether a program runs commands from its standard input.
pub(crate) fn reads_commands(program: &str) -> bool {
    let name = base_name(program);
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    is_shell(name)
        || matches!(
            bare,
            "python"
                | "perl"
                | "ruby"
                | "node"
                | "deno"
                | "bun"
                | "php"
                | "lua"
                | "ssh"
                | "tclsh"
                | "osascript"
                | "pwsh"
                | "source"
                | "xargs"
                | "at"
                | "batch"
        )
}
