//! Methods of 0.166 about things that this program has none of.

use std::sync::Arc;

use codex_protocol::rpc::ErrorObject;
use codex_protocol::v2::empty::Empty;
use codex_protocol::v2::nothing_there::{
    AppsListResponse, ExternalAgentConfigDetectResponse, MarketplaceUpgradeParams, MarketplaceUpgradeResponse,
    PluginListResponse, ThreadMemoryModeSetParams,
};

use crate::app::connection::Connection;
use crate::app::dispatch::serve;
use crate::app::open_thread::find;
use crate::app::stored_threads::parse_name;

serve! {
    sure {
        AppList => apps,
        PluginList => plugins,
        ExternalAgentConfigDetect => detect,
        MemoryReset => reset,
    }
    plain {
        MarketplaceUpgrade => upgrade,
    }
    waits {
        ThreadMemoryModeSet => set_memory_mode,
    }
}

fn apps(_: &Arc<Connection>, _: Empty) -> AppsListResponse {
    AppsListResponse::default()
}

fn plugins(_: &Arc<Connection>, _: Empty) -> PluginListResponse {
    PluginListResponse::default()
}

fn detect(_: &Arc<Connection>, _: Empty) -> ExternalAgentConfigDetectResponse {
    ExternalAgentConfigDetectResponse::default()
}

fn reset(_: &Arc<Connection>, _: Empty) -> Empty {
    Empty {}
}

fn upgrade(_: &Arc<Connection>, params: MarketplaceUpgradeParams) -> Result<MarketplaceUpgradeResponse, ErrorObject> {
    match params.marketplace_name {
        None => Ok(MarketplaceUpgradeResponse::default()),
        Some(name) => Err(ErrorObject::invalid(format!("marketplace `{name}` is not configured"))),
    }
}

/// No memories are made from any thread, so every mode of a thread that there is holds already.
async fn set_memory_mode(
    connection: &Arc<Connection>,
    params: ThreadMemoryModeSetParams,
) -> Result<Empty, ErrorObject> {
    find(connection, parse_name(&params.thread_id)?).await.map(|()| Empty {})
}
