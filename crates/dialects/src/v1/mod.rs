//! The first version of the app-server: conversations and events of the queue.

mod forwarded;
mod messages;
mod request;

pub use forwarded::forwarded;
pub use messages::MessageReader;
pub use request::question;
