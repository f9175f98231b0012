//! `codex threads`: the threads on disk.

pub(crate) mod args;
mod markdown;
pub(crate) mod table;

use std::io::{BufReader, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use codex_agents::outline;
use codex_config::{Env, Home};
use codex_files::{OutputFile, TimedWriter};
use codex_log::store::{Entry, Imported, ListQuery, SearchQuery, SortKey, ThreadStore, ThreadSummary};
use codex_store::{RolloutFile, RolloutLines, ThreadIndex, locate};
use codex_wire::ids::ThreadId;
use serde_json::json;

use self::args::{
    DeleteArgs, ExportArgs, ExportFormat, ImportArgs, ListArgs, RenameArgs, RepairArgs, SearchArgs, ShowArgs,
    ThreadArg, ThreadsCommand,
};
use crate::args::Shared;
use crate::console;
use crate::failure::ErrorWithHint;
use crate::proto::working_directory;
use crate::thread_store;

/// Does what is asked.
pub(crate) fn run(shared: &Shared, command: &ThreadsCommand) -> anyhow::Result<ExitCode> {
    let env = Env::process();
    let home = Home::find(&env)?;
    let store = thread_store::of_user(shared, &home, &env)?;
    let store = &*store;
    let mut out = BufWriter::new(console::out());
    match command {
        ThreadsCommand::List(args) => list(store, shared, args, &mut out)?,
        ThreadsCommand::Search(args) => search(store, args, &mut out)?,
        ThreadsCommand::Show(args) if args.tree => {
            let root = locate::thread(store, &args.word.thread)?.id;
            for line in outline(store, root) {
                writeln!(out, "{line}")?;
            }
        }
        ThreadsCommand::Show(args) => show(store, args, &mut out)?,
        ThreadsCommand::Export(args) => export(store, args)?,
        ThreadsCommand::Import(args) => import(store, args, &mut out)?,
        ThreadsCommand::Repair(args) => repair(&home, store, args, &mut out)?,
        ThreadsCommand::Archive(ThreadArg { thread }) => {
            let put_away = store.archive(locate::thread(store, thread)?.id)?;
            writeln!(out, "archived {}{}", put_away.id, with_agents(&store.descendants(put_away.id)?))?;
        }
        ThreadsCommand::Unarchive(ThreadArg { thread }) => {
            let taken_back = store.unarchive(locate::thread(store, thread)?.id)?;
            writeln!(out, "unarchived {}{}", taken_back.id, with_agents(&store.descendants(taken_back.id)?))?;
        }
        ThreadsCommand::Delete(args) => delete(store, args, &mut out)?,
        ThreadsCommand::Rename(RenameArgs { word, name }) => {
            store.rename(locate::thread(store, &word.thread)?.id, name.trim())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn list(store: &dyn ThreadStore, shared: &Shared, args: &ListArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let here = if args.here { Some(working_directory(shared)?) } else { None };
    let page = store.list(&ListQuery {
        archived: args.archived,
        cwds: here.into_iter().collect(),
        text: args.text.clone(),
        sort: SortKey::Updated,
        cursor: args.cursor.clone(),
        limit: args.limit,
        ..ListQuery::default()
    })?;
    if args.json {
        let threads: Vec<_> = page.threads.iter().map(ThreadSummary::to_json).collect();
        writeln!(console::json(), "{}", json!({"threads": threads, "next_cursor": page.next_cursor}))?;
        return Ok(());
    }
    if page.threads.is_empty() {
        console::note("no threads");
        return Ok(());
    }
    table::print(page.threads.iter().map(|thread| (thread, thread.title())), out)?;
    if page.next_cursor.is_some() {
        console::note("more available; use -n to show more");
    }
    Ok(())
}

fn search(store: &dyn ThreadStore, args: &SearchArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let query = SearchQuery { words: args.words.join(" "), limit: args.limit, ..SearchQuery::default() };
    let mut found = store.search(&query)?;
    if !found.complete {
        console::note("reading all threads for the first search");
    }
    while !found.complete {
        found = store.search(&query)?;
    }
    if args.json {
        let hit = |hit: &codex_log::store::SearchHit| json!({"thread": hit.thread.to_json(), "snippet": hit.snippet});
        let hits: Vec<_> = found.hits.iter().map(hit).collect();
        writeln!(console::json(), "{}", json!({"hits": hits, "complete": found.complete}))?;
        return Ok(());
    }
    table::print(found.hits.iter().map(|hit| (&hit.thread, &*hit.snippet)), out)?;
    if found.hits.is_empty() {
        console::note("no matches");
    }
    Ok(())
}

fn show(store: &dyn ThreadStore, args: &ShowArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let thread = locate::thread(store, &args.word.thread)?;
    if args.json {
        writeln!(console::json(), "{}", thread.to_json())?;
        return Ok(());
    }
    Ok(out.write_all(markdown::of(store, thread)?.as_bytes())?)
}

fn export(store: &dyn ThreadStore, args: &ExportArgs) -> anyhow::Result<()> {
    let thread = locate::thread(store, &args.word.thread)?;
    let write = |out: &mut dyn Write| -> anyhow::Result<()> {
        match args.format {
            ExportFormat::Markdown => {
                let agents = store.descendants(thread.id)?;
                out.write_all(markdown::of(store, thread)?.as_bytes())?;
                for agent in agents {
                    let Some(agent) = store.find(agent)? else { continue };
                    write!(out, "\n---\n\n")?;
                    out.write_all(markdown::of(store, agent)?.as_bytes())?;
                }
            }
            ExportFormat::Bundle => store.export(thread.id, thread.name.as_deref(), out)?,
        }
        Ok(())
    };
    match &args.output {
        None => {
            let mut out = BufWriter::new(console::document());
            write(&mut out)?;
            Ok(out.flush()?)
        }
        Some(file) => {
            let failed = || format!("could not write {}", file.display());
            let here = std::env::current_dir().context("the current directory is gone")?;
            let file = OutputFile::open(file, &here, console::json())
                .and_then(|mut file| file.emptied())
                .with_context(failed)?;
            let mut out = BufWriter::new(TimedWriter(file));
            write(&mut out)?;
            out.flush().with_context(failed)
        }
    }
}

fn import(store: &dyn ThreadStore, args: &ImportArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let imported = if args.bundle == Path::new("-") {
        store.import(&mut std::io::stdin().lock())?
    } else {
        let file =
            codex_files::open(&args.bundle).with_context(|| format!("could not read {}", args.bundle.display()))?;
        store
            .import(&mut BufReader::new(file))
            .with_context(|| format!("could not import {}", args.bundle.display()))?
    };
    if args.json {
        let Imported { id, path, renamed_from, agents } = imported;
        let shown = json!({"id": id, "path": path, "renamed_from": renamed_from, "agents": agents});
        writeln!(console::json(), "{shown}")?;
        return Ok(());
    }
    let agents = with_agents(&imported.agents);
    match imported.renamed_from {
        Some(before) => writeln!(out, "imported {}{agents} (thread {before} already exists)", imported.id)?,
        None => writeln!(out, "imported {}{agents}", imported.id)?,
    }
    Ok(())
}

/// The agents of a thread that go with it, in words.
fn with_agents(agents: &[ThreadId]) -> String {
    match agents.len() {
        0 => String::new(),
        1 => " with 1 agent".to_owned(),
        count => format!(" with {count} agents"),
    }
}

fn repair(home: &Home, store: &dyn ThreadStore, args: &RepairArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let index = ThreadIndex::open(home.path());
    let Some(word) = &args.thread else {
        index.refresh()?;
        writeln!(out, "the index is up to date")?;
        return Ok(());
    };
    let thread = locate::thread(store, word)?;
    let cut = RolloutFile::reopen_in(index.home(), thread.path.clone())?.cut_bytes();
    if cut > 0 {
        writeln!(out, "{}: removed an incomplete last line ({cut} bytes)", thread.path.display())?;
    }
    let mut lines = RolloutLines::open(&thread.path)?;
    let mut bad = 0_u64;
    while let Some(entry) = lines.next_entry()? {
        if let Entry::Bad(line) = entry {
            bad += 1;
            writeln!(out, "{line}")?;
        }
    }
    index.record(&thread.path)?;
    if cut == 0 && bad == 0 {
        writeln!(out, "{}: no problems found", thread.id)?;
    }
    Ok(())
}

fn delete(store: &dyn ThreadStore, args: &DeleteArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let thread = locate::thread(store, &args.word.thread)?;
    let agents = with_agents(&store.descendants(thread.id)?);
    if !args.force {
        if !(std::io::stdin().is_terminal() && console::err_is_terminal()) {
            let what = format!("cannot ask for confirmation without a terminal; {} was not deleted", thread.id);
            return Err(ErrorWithHint { what, hint: "use --force to delete without confirmation".to_owned() }.into());
        }
        let (id, title) = (thread.id, thread.title());
        console::ask(format_args!("Delete thread {id} ({title}){agents} permanently? [y/N] "))?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        anyhow::ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "cancelled: nothing was deleted");
    }
    store.delete(thread.id)?;
    writeln!(out, "deleted {}{agents}", thread.id)?;
    Ok(())
}
