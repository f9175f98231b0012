//! Sections that the user sorts threads into.

use std::sync::Arc;

use codex_log::store::Appearance;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::section::{
    ThreadSectionAppearance, ThreadSectionCreateParams, ThreadSectionDeleteParams, ThreadSectionListResponse,
    ThreadSectionMoveParams, ThreadSectionResponse, ThreadSectionUpdateParams,
};
use codex_protocol::v2::thread::PageParams;

use super::{page, refusal, summary};
use crate::app::connection::Connection;
use crate::app::disk::blocking;
use crate::app::stored_threads::parse_name;
use codex_dialects::v2::thread::section as shown;

/// Lists sections.
pub(super) async fn list(
    connection: &Connection,
    params: PageParams,
) -> Result<ThreadSectionListResponse, ErrorObject> {
    let store = Arc::clone(&connection.host.store);
    blocking(move || {
        let all = store.sections().map_err(refusal)?;
        let (data, next_cursor) = page(all, |section| section.id.as_str(), params.cursor.as_deref(), params.limit)?;
        Ok(ThreadSectionListResponse { data: data.into_iter().map(shown).collect(), next_cursor })
    })
    .await
}

/// Creates a section.
pub(super) async fn create(
    connection: &Connection,
    params: ThreadSectionCreateParams,
) -> Result<ThreadSectionResponse, ErrorObject> {
    let store = Arc::clone(&connection.host.store);
    blocking(move || {
        let created = store.create_section(params.name, params.appearance.map(kept)).map_err(refusal)?;
        Ok(ThreadSectionResponse { section: shown(created) })
    })
    .await
}

/// Renames a section, or changes its appearance.
pub(super) async fn update(
    connection: &Connection,
    params: ThreadSectionUpdateParams,
) -> Result<ThreadSectionResponse, ErrorObject> {
    let ThreadSectionUpdateParams { section_id, name, appearance } = params;
    let store = Arc::clone(&connection.host.store);
    blocking(move || {
        let appearance = appearance.map(|said| said.map(kept));
        let updated = store.update_section(&section_id, name, appearance).map_err(refusal)?;
        Ok(ThreadSectionResponse { section: shown(updated) })
    })
    .await
}

/// Deletes a section. Its threads stay.
pub(super) async fn delete(connection: &Connection, params: ThreadSectionDeleteParams) -> Result<Empty, ErrorObject> {
    let store = Arc::clone(&connection.host.store);
    blocking(move || store.delete_section(&params.section_id).map(|()| Empty {}).map_err(refusal)).await
}

/// Moves a thread into a section, or out of one.
pub(super) async fn move_thread(
    connection: &Connection,
    params: ThreadSectionMoveParams,
) -> Result<Empty, ErrorObject> {
    let ThreadSectionMoveParams { thread_id, section_id, before_thread_id } = params;
    let id = parse_name(&thread_id)?;
    let before = before_thread_id.as_deref().map(parse_name).transpose()?;
    if before.is_some() && section_id.is_none() {
        return Err(ErrorObject::invalid("beforeThreadId needs a sectionId: threads in no section have no order"));
    }
    let host = Arc::clone(&connection.host);
    blocking(move || {
        summary(&host, id)?;
        let done = host.store.move_thread(id, section_id.as_deref(), before);
        done.map(|()| Empty {}).map_err(refusal)
    })
    .await
}

fn kept(appearance: ThreadSectionAppearance) -> Appearance {
    let ThreadSectionAppearance { color, icon } = appearance;
    Appearance { color, icon }
}
