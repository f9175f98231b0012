//! The app-server: connections, and the dialects that translate between their lines and the engine.
//!
//! Invariant: a dialect reads the engine's log and sends it requests. It keeps no thread state of its own.

pub mod app;
