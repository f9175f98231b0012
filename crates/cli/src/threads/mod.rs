//! `codex threads`: the threads on disk.

pub(crate) mod args;
pub(crate) mod locate;
pub(crate) mod table;

use std::fs::File;
use std::io::{BufReader, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use codex_config::{Env, Home};
use codex_store::{
    Entry, ListQuery, RolloutFile, RolloutLines, SortKey, ThreadIndex, export_bundle, export_markdown, markdown,
};
use serde_json::json;

use self::args::{
    DeleteArgs, ExportArgs, ExportFormat, ImportArgs, ListArgs, RenameArgs, RepairArgs, SearchArgs, ShowArgs,
    ThreadWord, ThreadsCommand,
};
use crate::args::Shared;
use crate::page::printable;
use crate::proto::working_directory;

/// Does what is asked.
pub(crate) fn run(shared: &Shared, command: &ThreadsCommand) -> anyhow::Result<ExitCode> {
    let home = Home::find(&Env::process())?;
    let index = ThreadIndex::open(home.path());
    let mut out = BufWriter::new(std::io::stdout().lock());
    match command {
        ThreadsCommand::List(args) => list(&index, shared, args, &mut out)?,
        ThreadsCommand::Search(args) => search(&index, args, &mut out)?,
        ThreadsCommand::Show(args) => show(&index, args, &mut out)?,
        ThreadsCommand::Export(args) => export(&index, args, &mut out)?,
        ThreadsCommand::Import(args) => import(&index, args, &mut out)?,
        ThreadsCommand::Repair(args) => repair(&index, args, &mut out)?,
        ThreadsCommand::Archive(ThreadWord { thread }) => {
            let put_away = index.archive(locate::thread(&index, thread)?.id)?;
            writeln!(out, "archived {}", put_away.id)?;
        }
        ThreadsCommand::Unarchive(ThreadWord { thread }) => {
            let taken_back = index.unarchive(locate::thread(&index, thread)?.id)?;
            writeln!(out, "unarchived {}", taken_back.id)?;
        }
        ThreadsCommand::Delete(args) => delete(&index, args, &mut out)?,
        ThreadsCommand::Rename(RenameArgs { word, name }) => {
            index.rename(locate::thread(&index, &word.thread)?.id, name.trim())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn list(index: &ThreadIndex, shared: &Shared, args: &ListArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let here = if args.here { Some(working_directory(shared)?) } else { None };
    let page = index.list(&ListQuery {
        archived: args.archived,
        cwds: here.into_iter().collect(),
        text: args.text.clone(),
        sort: SortKey::Updated,
        cursor: args.cursor.clone(),
        limit: args.limit,
        ..ListQuery::default()
    })?;
    if args.json {
        let threads: Vec<_> = page.threads.iter().map(table::summary).collect();
        writeln!(out, "{}", json!({"threads": threads, "next_cursor": page.next_cursor}))?;
        return Ok(());
    }
    if page.threads.is_empty() {
        writeln!(std::io::stderr(), "no threads")?;
        return Ok(());
    }
    table::print(page.threads.iter().map(|thread| (thread, table::title(thread))), out)?;
    if page.next_cursor.is_some() {
        writeln!(std::io::stderr(), "there are more; -n shows more of them")?;
    }
    Ok(())
}

fn search(index: &ThreadIndex, args: &SearchArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let found = index.search(&args.words.join(" "), args.limit)?;
    if args.json {
        let hit = |hit: &codex_store::SearchHit| json!({"thread": table::summary(&hit.thread), "snippet": hit.snippet});
        let hits: Vec<_> = found.hits.iter().map(hit).collect();
        writeln!(out, "{}", json!({"hits": hits, "complete": found.complete}))?;
        return Ok(());
    }
    table::print(found.hits.iter().map(|hit| (&hit.thread, hit.snippet.clone())), out)?;
    if found.hits.is_empty() {
        writeln!(std::io::stderr(), "nothing found")?;
    }
    if !found.complete {
        writeln!(std::io::stderr(), "not all threads are in the index yet; ask again in a moment")?;
    }
    Ok(())
}

fn show(index: &ThreadIndex, args: &ShowArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let thread = locate::thread(index, &args.word.thread)?;
    if args.json {
        writeln!(out, "{}", table::summary(&thread))?;
        return Ok(());
    }
    let is_terminal = std::io::stdout().is_terminal();
    let mut lines = RolloutLines::open(&thread.path)?;
    while let Some(entry) = lines.next_entry()? {
        if let Entry::Line(line) = entry
            && let Some(text) = markdown(&line)
        {
            let text = if is_terminal { printable(&text) } else { text.as_str().into() };
            out.write_all(text.as_bytes())?;
        }
    }
    Ok(())
}

fn export(index: &ThreadIndex, args: &ExportArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let thread = locate::thread(index, &args.word.thread)?;
    let (path, name) = (&thread.path, thread.name.as_deref());
    match &args.output {
        None => write_export(path, name, args.format, out),
        Some(file) => {
            let failed = || format!("could not write {}", file.display());
            let mut out = BufWriter::new(File::create(file).with_context(failed)?);
            write_export(path, name, args.format, &mut out)?;
            out.flush().with_context(failed)
        }
    }
}

fn write_export(path: &Path, name: Option<&str>, format: ExportFormat, out: &mut impl Write) -> anyhow::Result<()> {
    match format {
        ExportFormat::Markdown => export_markdown(&mut RolloutLines::open(path)?, out)?,
        ExportFormat::Bundle => export_bundle(path, name, out)?,
    }
    Ok(())
}

fn import(index: &ThreadIndex, args: &ImportArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let imported = if args.bundle == Path::new("-") {
        index.import(&mut std::io::stdin().lock())?
    } else {
        let file =
            codex_files::open(&args.bundle).with_context(|| format!("could not read {}", args.bundle.display()))?;
        index.import(&mut BufReader::new(file))?
    };
    if args.json {
        let (id, path, renamed_from) = (imported.id, imported.path, imported.renamed_from);
        writeln!(out, "{}", json!({"id": id, "path": path, "renamed_from": renamed_from}))?;
        return Ok(());
    }
    match imported.renamed_from {
        Some(before) => writeln!(out, "imported {} (there is a thread {before} already)", imported.id)?,
        None => writeln!(out, "imported {}", imported.id)?,
    }
    Ok(())
}

fn repair(index: &ThreadIndex, args: &RepairArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let Some(word) = &args.thread else {
        index.refresh()?;
        writeln!(out, "the index agrees with the files")?;
        return Ok(());
    };
    let thread = locate::thread(index, word)?;
    let cut = RolloutFile::reopen(thread.path.clone())?.cut_bytes();
    if cut > 0 {
        writeln!(out, "{}: the last line was cut off, {cut} bytes were removed", thread.path.display())?;
    }
    let mut lines = RolloutLines::open(&thread.path)?;
    let mut bad = 0_u64;
    while let Some(entry) = lines.next_entry()? {
        if let Entry::Bad(line) = entry {
            bad += 1;
            writeln!(out, "{line}")?;
        }
    }
    index.note(&thread.path)?;
    if cut == 0 && bad == 0 {
        writeln!(out, "{} is whole", thread.id)?;
    }
    Ok(())
}

fn delete(index: &ThreadIndex, args: &DeleteArgs, out: &mut impl Write) -> anyhow::Result<()> {
    let thread = locate::thread(index, &args.word.thread)?;
    if !args.yes && std::io::stdin().is_terminal() {
        let mut stderr = std::io::stderr();
        write!(stderr, "Delete {} ({}) for good? [y/N] ", thread.id, printable(&table::title(&thread)))?;
        stderr.flush()?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        anyhow::ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "nothing was deleted");
    }
    index.delete(thread.id)?;
    writeln!(out, "deleted {}", thread.id)?;
    Ok(())
}
