//! Connections: lines in, lines out, and one module for each dialect that translates between them and the engine.
//!
//! Invariant: a dialect reads the engine's log and sends it commands. It keeps no state of a thread of its own.

pub mod app;
pub mod lines;
pub mod proto;
