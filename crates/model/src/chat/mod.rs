//! The Chat Completions API: `POST {base_url}/chat/completions`, answered by server-sent events.
//!
//! What the wire has no word for is left out or becomes what it knows: a tool with free text is a function with one string,
//! and a picture in the output of a tool is a message of the user after it.

mod body;
mod calls;
mod decode;
mod messages;

pub(crate) use body::request_body;
pub use decode::ChatDecoder;
