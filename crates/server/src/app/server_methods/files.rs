//! `fs/*`: files, for clients that run elsewhere.

use std::sync::Arc;
use std::time::Duration;

use codex_methods::files;
use codex_protocol::methods::{Method, call};
use codex_protocol::rpc::ErrorObject;

use crate::app::connection::Connection;
use crate::app::disk::{self, in_place};
use crate::app::dispatch::serve;

serve! {
    waits {
        FsReadFile => |connection, params| within::<call::FsReadFile>(connection, disk::USUAL, files::read_file, params),
        FsWriteFile => |connection, params| within::<call::FsWriteFile>(connection, disk::USUAL, files::write_file, params),
        FsCreateDirectory => |connection, params| within::<call::FsCreateDirectory>(connection, disk::USUAL, files::create_directory, params),
        FsGetMetadata => |connection, params| within::<call::FsGetMetadata>(connection, disk::USUAL, files::metadata, params),
        FsReadDirectory => |connection, params| within::<call::FsReadDirectory>(connection, disk::USUAL, files::read_directory, params),
        FsRemove => |connection, params| within::<call::FsRemove>(connection, disk::LONG, files::remove, params),
        FsCopy => |connection, params| within::<call::FsCopy>(connection, disk::LONG, files::copy, params),
    }
}

/// Does the work of a method, within this time.
async fn within<M: Method<Params: 'static, Response: 'static>>(
    connection: &Arc<Connection>,
    limit: Duration,
    work: fn(M::Params) -> Result<M::Response, ErrorObject>,
    params: M::Params,
) -> Result<M::Response, ErrorObject> {
    in_place(&connection.host.places.files, limit, move || work(params)).await
}
