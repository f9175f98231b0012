//! v1 of the app-server: conversations and `codex/event/*`.

mod forwarded;
mod messages;
mod request;

pub use forwarded::forwarded;
pub use messages::MessageReader;
pub use request::question;
