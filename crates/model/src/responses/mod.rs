//! The Responses API: `POST {base_url}/responses`, answered by server-sent events.

mod body;
mod decoder;

pub(crate) use body::request_body;
pub use decoder::ResponsesDecoder;
