//! The output of a run: JSON Lines for programs, or text for people.

use std::collections::BTreeMap;
use std::io::{self, Write};

use codex_config::Env;
use codex_dialects::ProtocolRelease;
use codex_dialects::exec::{Projector, ThreadEvent, Usage};
use codex_log::{Body, Event, Question, ThreadStarted};
use codex_printer::Terminal;
use codex_wire::ids::ThreadId;
use codex_wire::policy::SandboxPolicy;

use super::args::Color;
use super::outlet::Outlet;
use crate::console;

pub(crate) struct RunOutput {
    projector: Projector,
    /// The usage of child agents, by thread.
    children: BTreeMap<ThreadId, Projector>,
    events: Vec<ThreadEvent>,
    /// The reason why the last turn has failed, for people who do not see the events.
    failure: Option<String>,
    face: OutputFormat,
}

enum OutputFormat {
    Lines(Outlet),
    People(Terminal<Outlet>),
}

impl RunOutput {
    /// JSON Lines, in the format of a release.
    pub(crate) fn lines(outlet: Outlet, release: Option<ProtocolRelease>) -> Self {
        Self::new(Projector::of(release), OutputFormat::Lines(outlet))
    }

    /// Human-readable text on standard error.
    pub(crate) fn people(wish: Color, env: &Env, is_verbose: bool) -> Self {
        let colour = match wish {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => console::colours(console::err_is_terminal(), env),
        };
        let is_dumb = env.text("TERM").is_none_or(|term| term == "dumb");
        let columns = console::err_columns().filter(|_| !is_dumb);
        let terminal = Terminal::new(Outlet::new(console::painted_err()), colour);
        let terminal = terminal.verbose(is_verbose).replacing(columns);
        Self::new(Projector::default(), OutputFormat::People(terminal))
    }

    fn new(projector: Projector, face: OutputFormat) -> Self {
        Self { projector, children: BTreeMap::new(), events: Vec::new(), failure: None, face }
    }

    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        self.projector.project(event, &mut self.events);
        match &mut self.face {
            OutputFormat::Lines(_) => {}
            OutputFormat::People(terminal) => {
                self.events.clear();
                if let Body::ThreadStarted(started) = &event.body {
                    terminal.line(&heading(started))?;
                }
                terminal.show(event)?;
            }
        }
        self.print()
    }

    /// Processes an event that is not shown.
    pub(crate) fn pass(&mut self, event: &Event) {
        self.projector.project(event, &mut self.events);
        self.events.clear();
    }

    /// Reports an outcome that is not in the log.
    pub(crate) fn fail(&mut self, message: &str) -> io::Result<()> {
        match &mut self.face {
            OutputFormat::Lines(_) => self.projector.fail(message.to_owned(), &mut self.events),
            OutputFormat::People(terminal) => terminal.error(message)?,
        }
        self.print()
    }

    /// Counts the tokens of a child agent.
    pub(crate) fn count_child(&mut self, event: &Event) {
        self.children.entry(event.thread).or_default().count_child(event);
    }

    pub(crate) fn ask(&mut self, question: &Question, child: Option<ThreadId>) -> io::Result<()> {
        if matches!(self.face, OutputFormat::Lines(_)) {
            self.events.push(Projector::ask(question, child));
        }
        self.print()
    }

    /// Prints a note for people next to the events.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        match &mut self.face {
            OutputFormat::Lines(_) => Ok(()),
            OutputFormat::People(terminal) => terminal.line(text),
        }
    }

    /// The usage of the run, that of child agents included.
    pub(crate) fn used(&self) -> Usage {
        self.children.values().map(Projector::used).fold(self.projector.used(), Usage::and)
    }

    /// Waits until nobody reads the lines any more.
    pub(crate) fn is_gone(&self) -> impl Future<Output = ()> + use<> {
        let gone = match &self.face {
            OutputFormat::Lines(outlet) => Some(outlet.is_gone()),
            // A closed progress output is no reason to stop.
            OutputFormat::People(_) => None,
        };
        async move {
            match gone {
                Some(gone) => gone.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Waits until everything is written.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.face {
            OutputFormat::Lines(outlet) => {
                let finished = outlet.finish();
                if let Some(failure) = self.failure.filter(|_| finished.is_ok()) {
                    let lines: Vec<&str> = failure.lines().map(str::trim).collect();
                    console::note(format_args!("error: {}", lines.join("; ")));
                }
                finished
            }
            OutputFormat::People(terminal) => {
                // Progress that could not be shown is not a failure of the task.
                let _: io::Result<()> = terminal.into_inner().finish();
                Ok(())
            }
        }
    }

    fn print(&mut self) -> io::Result<()> {
        if let OutputFormat::Lines(outlet) = &mut self.face {
            for event in self.events.drain(..) {
                if let ThreadEvent::TurnFailed { error } = &event {
                    self.failure = Some(error.message.clone());
                }
                serde_json::to_writer(&mut *outlet, &event)?;
                outlet.write_all(b"\n")?;
            }
            outlet.flush()?;
        }
        self.events.clear();
        Ok(())
    }
}

fn heading(started: &ThreadStarted) -> String {
    let settings = &started.settings;
    let sandbox = match &settings.sandbox_policy {
        SandboxPolicy::DangerFullAccess => "danger-full-access",
        SandboxPolicy::ReadOnly => "read-only",
        SandboxPolicy::WorkspaceWrite(_) => "workspace-write",
        SandboxPolicy::ExternalSandbox { .. } => "external sandbox",
    };
    let rows = [
        ("thread", started.meta.id.to_string()),
        ("workdir", settings.cwd.display().to_string()),
        ("model", settings.model.clone()),
        ("provider", started.provider.clone()),
        ("approval", settings.approval_policy.as_str().to_owned()),
        ("sandbox", sandbox.to_owned()),
    ];
    // Scripts search for these lines, so they are not aligned.
    let lines = rows.map(|(what, value)| format!("{what}: {value}\n")).concat();
    format!("codex {}\n{lines}", env!("CARGO_PKG_VERSION"))
}
