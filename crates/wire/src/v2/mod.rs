//! The second version of the app-server's protocol: threads, turns and items. Members are in camel case.

pub mod initialize;
pub mod item;
pub mod notification;
pub mod policy;
pub mod request;
pub mod thread;
pub mod turn;
pub mod usage;
