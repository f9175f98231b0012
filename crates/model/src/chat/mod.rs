//! The Chat Completions API: `POST {base_url}/chat/completions`, answered by server-sent events.
//!
//! Anything that the API lacks is left out or translated: a tool with free text is a function with one string,
//! and an image in the output of a tool is a message of the user after it.

mod body;
mod calls;
mod decode;
mod frame;
mod messages;

pub(crate) use body::request_body;
pub use decode::ChatDecoder;
