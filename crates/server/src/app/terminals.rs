//! `thread/backgroundTerminals/*`.

use codex_dialects::ProtocolRelease;
use codex_dialects::v2::thread_item;
use codex_log::Item;
use codex_methods::pagination::page;
use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::item::ThreadItem;
use codex_protocol::v2::terminals::{
    ThreadBackgroundTerminal, ThreadBackgroundTerminalsListParams, ThreadBackgroundTerminalsListResponse,
    ThreadBackgroundTerminalsTerminateParams, ThreadBackgroundTerminalsTerminateResponse,
};
use codex_protocol::v2::thread::ThreadParams;

use super::dispatch::serve;
use super::subscriber::ThreadSubscriber;
use super::turns::closed;

serve! {
    subscribed {
        ThreadBackgroundTerminalsList => list,
        ThreadBackgroundTerminalsTerminate => terminate,
        ThreadBackgroundTerminalsClean => clean,
    }
}

async fn list(
    subscriber: &mut ThreadSubscriber,
    params: ThreadBackgroundTerminalsListParams,
) -> Result<ThreadBackgroundTerminalsListResponse, ErrorObject> {
    let open = subscriber.thread.terminals().await.map_err(|_| closed(subscriber))?;
    let shown = open.iter().filter_map(shown).collect();
    let (data, next_cursor) =
        page(shown, params.cursor.as_deref(), params.limit).map_err(|error| ErrorObject::invalid(error.to_string()))?;
    Ok(ThreadBackgroundTerminalsListResponse { data, next_cursor })
}

fn shown(item: &Item) -> Option<ThreadBackgroundTerminal> {
    let ThreadItem::CommandExecution(command) = thread_item(item, ProtocolRelease::V0166) else { return None };
    Some(ThreadBackgroundTerminal {
        item_id: command.id,
        process_id: command.process_id?,
        command: command.command,
        cwd: command.cwd,
        os_pid: (),
        cpu_percent: (),
        rss_kb: (),
    })
}

async fn terminate(
    subscriber: &mut ThreadSubscriber,
    params: ThreadBackgroundTerminalsTerminateParams,
) -> Result<ThreadBackgroundTerminalsTerminateResponse, ErrorObject> {
    let terminated = match params.process_id.parse() {
        Ok(process) => subscriber.thread.end_terminal(process).await.map_err(|_| closed(subscriber))?,
        Err(_) => false,
    };
    Ok(ThreadBackgroundTerminalsTerminateResponse { terminated })
}

async fn clean(subscriber: &mut ThreadSubscriber, _: ThreadParams) -> Result<Empty, ErrorObject> {
    subscriber.thread.end_terminals().await.map(|()| Empty {}).map_err(|_| closed(subscriber))
}
