//! What is shown of a run: lines of JSON for programs, or text for people.

use std::io::{self, Write};

use codex_config::Env;
use codex_dialects::ProtocolRelease;
use codex_dialects::exec::{Projector, ThreadEvent, Usage};
use codex_log::{Body, Event, Question, ThreadStarted};
use codex_wire::policy::SandboxPolicy;

use super::args::Color;
use super::outlet::Outlet;
use crate::console;
use crate::terminal::Terminal;

/// What is shown of a run.
pub(crate) struct Show {
    projector: Projector,
    events: Vec<ThreadEvent>,
    face: Face,
}

enum Face {
    Lines(Outlet),
    People(Terminal<Outlet>),
}

impl Show {
    /// Lines of JSON, as a release has them.
    pub(crate) fn lines(outlet: Outlet, release: Option<ProtocolRelease>) -> Self {
        Self { projector: Projector::of(release), events: Vec::new(), face: Face::Lines(outlet) }
    }

    /// Text for people, on standard error.
    pub(crate) fn people(wish: Color, env: &Env, is_verbose: bool) -> Self {
        let colour = match wish {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => crate::terminal::colours(console::err_is_terminal(), env),
        };
        let is_dumb = env.text("TERM").is_none_or(|term| term == "dumb");
        let columns = console::err_columns().filter(|_| !is_dumb);
        let terminal = Terminal::new(Outlet::new(console::painted_err()), colour);
        let terminal = terminal.verbose(is_verbose).replacing(columns);
        Self { projector: Projector::default(), events: Vec::new(), face: Face::People(terminal) }
    }

    /// Shows an entry of the log.
    pub(crate) fn event(&mut self, event: &Event) -> io::Result<()> {
        self.projector.project(event, &mut self.events);
        match &mut self.face {
            Face::Lines(_) => {}
            Face::People(terminal) => {
                self.events.clear();
                if let Body::ThreadStarted(started) = &event.body {
                    terminal.line(&heading(started))?;
                }
                terminal.show(event)?;
            }
        }
        self.print()
    }

    /// Takes note of an entry of the log that is not shown.
    pub(crate) fn pass(&mut self, event: &Event) {
        self.projector.project(event, &mut self.events);
        self.events.clear();
    }

    /// Says that the run has ended in a way that is not in the log.
    pub(crate) fn fail(&mut self, message: &str) -> io::Result<()> {
        match &mut self.face {
            Face::Lines(_) => self.projector.fail(message.to_owned(), &mut self.events),
            Face::People(terminal) => terminal.error(message)?,
        }
        self.print()
    }

    /// Asks.
    pub(crate) fn ask(&mut self, question: &Question) -> io::Result<()> {
        if matches!(self.face, Face::Lines(_)) {
            self.events.push(Projector::ask(question));
        }
        self.print()
    }

    /// Says something beside the events, to people alone.
    pub(crate) fn note(&mut self, text: &str) -> io::Result<()> {
        match &mut self.face {
            Face::Lines(_) => Ok(()),
            Face::People(terminal) => terminal.line(text),
        }
    }

    /// What the run has used.
    pub(crate) fn used(&self) -> Usage {
        self.projector.used()
    }

    /// Waits until nobody reads the lines any more.
    pub(crate) fn is_gone(&self) -> impl Future<Output = ()> + use<> {
        let gone = match &self.face {
            Face::Lines(outlet) => Some(outlet.is_gone()),
            // What people see of the progress is no reason to stop.
            Face::People(_) => None,
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
            Face::Lines(outlet) => outlet.finish(),
            Face::People(terminal) => {
                // Progress that nobody could be shown is no failure of the work.
                let _: io::Result<()> = terminal.into_inner().finish();
                Ok(())
            }
        }
    }

    fn print(&mut self) -> io::Result<()> {
        if let Face::Lines(outlet) = &mut self.face {
            for event in self.events.drain(..) {
                serde_json::to_writer(&mut *outlet, &event)?;
                outlet.write_all(b"\n")?;
            }
            outlet.flush()?;
        }
        self.events.clear();
        Ok(())
    }
}

/// What a person wants to know before anything happens.
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
    // Scripts look for these lines, so they are not aligned.
    let lines = rows.map(|(what, value)| format!("{what}: {value}\n")).concat();
    format!("codex {}\n{lines}", env!("CARGO_PKG_VERSION"))
}
