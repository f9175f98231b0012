//! The Messages API: `POST {base_url}/messages`, answered by server-sent events.
//!
//! Reasoning is sent back unchanged with its signature, which is stored next to the item and never in it: the
//! item itself is one that every other wire understands.

mod body;
mod decode;
mod messages;

pub(crate) use body::request_body;
pub use decode::AnthropicDecoder;
