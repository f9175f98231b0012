//! The app-server protocol of 2025, one file for each group of methods.

// Conversations.
pub mod conversation;
pub mod request;
pub mod turn;

// Methods that are not about conversations.
pub mod auth;
pub mod git;
pub mod saved_config;
pub mod user;
