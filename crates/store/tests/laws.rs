//! The laws of stores, for the one that keeps threads as files.

use codex_log::store::laws::LAWS;
use codex_log::store::{StoreErrorKind, ThreadStore};
use codex_store::FileStore;
use codex_wire::ids::ThreadId;

#[test]
fn files_keep_the_laws_of_stores() {
    for (_, holds) in LAWS {
        let home = tempfile::tempdir().unwrap();
        holds(&FileStore::of(home.path()));
    }
}

#[test]
fn files_keep_the_laws_however_often_a_store_is_opened() {
    // Another process, or another part of this one, sees the state on disk and not another one's cache.
    let home = tempfile::tempdir().unwrap();
    let (first, second) = (FileStore::of(home.path()), FileStore::of(home.path()));
    let thread = ThreadId::fresh();
    let opened = first.create(thread).unwrap();
    let mut writer = opened.writer;
    let meta = r#"{"id":"ID","timestamp":"2026-01-02T03:04:05.678Z","cwd":"/","originator":"o","cli_version":"0"}"#;
    let meta: serde_json::Value = serde_json::from_str(&meta.replace("ID", &thread.to_string())).unwrap();
    writer.append(0, "session_meta", &mut |out| serde_json::to_writer(out, &meta)).unwrap();
    drop(writer.commit(false));
    assert_eq!(second.place(thread), Some(opened.place));
    assert_eq!(second.open(thread).unwrap_err().kind(), StoreErrorKind::Locked);
    drop(writer);
    second.archive(thread).unwrap();
    assert!(first.find(thread).unwrap().unwrap().archived);
    assert_eq!(first.meta(thread).unwrap().id, thread, "where it was is not where it is");
    assert_eq!(first.place(thread), second.place(thread));
    first.delete(thread).unwrap();
    assert_eq!(second.open(thread).unwrap_err().kind(), StoreErrorKind::Unwritable, "its file was there a moment ago");
}
