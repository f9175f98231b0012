//! A chat in the terminal.

pub mod keys;
pub mod screen;
pub mod view;
