//! gRPC over HTTP/2: one call is one client, see `proto/app_server.proto`.

mod frame;
#[cfg(feature = "listen")]
mod server;
pub(crate) mod stream;

#[cfg(feature = "listen")]
pub(crate) use self::server::serve;

/// The only method.
pub(crate) const PATH: &str = "/codex.app_server.v1.AppServer/Connect";

/// The status of a finished call, with the numbers of gRPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Status {
    Ok = 0,
    InvalidArgument = 3,
    #[cfg(feature = "listen")]
    PermissionDenied = 7,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Unavailable = 14,
    #[cfg(feature = "listen")]
    Unauthenticated = 16,
}

/// The refusal in the headers of a response; `None` if the call is accepted.
#[cfg(feature = "dial")]
pub(crate) fn refusal(response: &http::Response<h2::RecvStream>) -> Option<String> {
    let text = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        None | Some("0") if response.status() == http::StatusCode::OK => None,
        status => {
            Some(format!("{} (status {})", text("grpc-message").unwrap_or_default(), status.unwrap_or("unknown")))
        }
    }
}
