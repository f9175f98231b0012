//! `feedback/upload` and `feedback/save`: feedback on a thread, saved in a folder. Nothing leaves the machine.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::feedback::{
    FeedbackSaveParams, FeedbackSaveResponse, FeedbackUploadParams, FeedbackUploadResponse,
};
use codex_wire::ids::ThreadId;
use serde_json::json;

use super::{explain, with_host};
use crate::app::connection::Connection;
use crate::app::dispatch::serve;
use crate::app::host::Host;
use crate::app::stored_threads::parse_name;

/// The maximum size of a file that a client attaches.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

serve! {
    waits {
        FeedbackUpload => upload,
        FeedbackSave => save,
    }
}

async fn upload(
    connection: &Arc<Connection>,
    params: FeedbackUploadParams,
) -> Result<FeedbackUploadResponse, ErrorObject> {
    with_host(connection, move |host| {
        let folder = host.start.config.home().path().join("feedback").join(ThreadId::fresh().to_string());
        let thread_id = write(host, &params, &folder)?;
        Ok(FeedbackUploadResponse { thread_id, prompt_hash: None, saved_path: Some(folder) })
    })
    .await
}

async fn save(connection: &Arc<Connection>, params: FeedbackSaveParams) -> Result<FeedbackSaveResponse, ErrorObject> {
    with_host(connection, move |host| {
        let folder = host.start.cwd.join(&params.save_path);
        let thread_id = write(host, &params.feedback, &folder)?;
        Ok(FeedbackSaveResponse { thread_id, saved_path: folder, prompt_hash: None })
    })
    .await
}

/// Writes a bundle into a new folder, and returns its name.
fn write(host: &Host, params: &FeedbackUploadParams, folder: &Path) -> Result<String, ErrorObject> {
    let thread = params.thread_id.as_deref().map(parse_name).transpose()?;
    let exported = thread.filter(|_| params.include_logs);
    exported.map(|thread| check(host, thread)).transpose()?;
    let failed = |error: std::io::Error| {
        ErrorObject::internal(format!("could not keep the feedback in {}: {error}", folder.display()))
    };
    if folder.symlink_metadata().is_ok() {
        return Err(ErrorObject::invalid(format!("{} exists already", folder.display())));
    }
    create(folder).map_err(failed)?;
    let mut left_out = Vec::new();
    if let Some(thread) = exported {
        let mut file = fs::File::create_new(folder.join("thread.jsonl")).map_err(failed)?;
        let exported = host.store.export(thread, None, &mut file);
        exported.map_err(|error| ErrorObject::internal(explain(&error, None)))?;
    }
    for (number, file) in params.extra_log_files.iter().flatten().enumerate() {
        if let Err(why) = add(folder, number, &host.start.cwd.join(file)) {
            left_out.push(json!({"file": file, "why": why}));
        }
    }
    let id = thread.unwrap_or_else(ThreadId::fresh).to_string();
    let said = json!({
        "id": id,
        "threadId": params.thread_id,
        "classification": params.classification,
        "reason": params.reason,
        "tags": params.tags,
        "version": env!("CARGO_PKG_VERSION"),
        "writtenAtMs": crate::app::now_ms(),
        "leftOut": left_out,
    });
    let mut file = fs::File::create_new(folder.join("feedback.json")).map_err(failed)?;
    writeln!(file, "{said:#}").map_err(failed)?;
    Ok(id)
}

/// Creates a folder that only the user can read, because a thread may contain secrets.
fn create(folder: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Checks that a thread exists.
fn check(host: &Host, thread: ThreadId) -> Result<(), ErrorObject> {
    if host.start.threads.get(thread).is_some() {
        return Ok(());
    }
    let found = host.store.find(thread).map_err(ErrorObject::internal_from)?;
    found.map(drop).ok_or_else(|| crate::app::dispatch::not_found(&thread.to_string()))
}

/// Copies a file that the client attaches; a number keeps files of the same name apart.
fn add(folder: &Path, number: usize, file: &Path) -> Result<(), String> {
    let name = file.file_name().ok_or("it has no name")?;
    let source = codex_files::open(file).map_err(|error| error.to_string())?;
    if source.metadata().map_err(|error| error.to_string())?.len() > MOST_BYTES {
        return Err(format!("it is longer than {MOST_BYTES} bytes"));
    }
    let copy = folder.join(format!("{number}-{}", name.to_string_lossy()));
    let copied = fs::File::create_new(copy).and_then(|mut copy| io::copy(&mut source.take(MOST_BYTES), &mut copy));
    copied.map(drop).map_err(|error| error.to_string())
}
