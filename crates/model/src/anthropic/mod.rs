//! The Messages API: `POST {base_url}/messages`, answered by server-sent events.
//!
//! What the model thought goes back to it as it came, with its signature, which is kept beside the item and never in it: the
//! item itself is one that every other wire understands.

mod body;
mod decode;
mod messages;

pub(crate) use body::request_body;
pub use decode::AnthropicDecoder;
