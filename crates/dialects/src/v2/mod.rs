//! v2 of the app-server: threads, turns and items.

mod goal_and_queue;
mod history;
mod items;
mod mcp;
pub mod project;
mod read_state;
mod request;
pub mod reviews;
pub mod thread;
mod torn;

pub use history::TurnReader;
pub use items::thread_item;
pub use mcp::elicitation;
pub use project::{ProjectionOptions, Projector};
pub use read_state::{read_state, read_state_changed};
pub use request::question;
