//! The app-server protocol of `thread/*`, `turn/*` and `item/*`, one file for each group of methods. Members are in
//! camel case.

// Threads.
pub mod attachment;
pub mod created;
pub mod dynamic_tool;
pub mod goal;
pub mod initialize;
pub mod item;
pub mod metadata;
pub mod notification;
pub mod permission_request;
pub mod policy;
pub mod queue;
pub mod read_state;
pub mod request;
pub mod section;
pub mod subscribe;
pub mod terminals;
pub mod thread;
pub mod thread_agents;
pub mod thread_list;
pub mod thread_permissions;
pub mod thread_search;
pub mod turn;
pub mod usage;
pub mod warning;

// Methods that are not about threads: configuration, account, models, skills, files, commands outside a turn.
pub mod account;
pub mod command_exec;
pub mod config;
pub mod empty;
pub mod features;
pub mod feedback;
pub mod fs;
pub mod hidden;
pub mod hooks;
mod lenient;
pub mod mcp_status;
pub mod model;
pub mod moved;
pub mod nothing_there;
pub mod pending;
pub mod permissions;
pub mod search;
pub mod skills;
pub mod turn_list;
