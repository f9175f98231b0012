//! The protocol between the app-server and its clients: JSON-RPC, the methods, their parameters and responses, the
//! notifications, and the protocol's description for other programs.
//!
//! The vocabulary of the agent itself (policies, input, events) is that of `codex-wire`, and the same rules hold:
//! decoding is lenient, encoding has one form.
//!
//! Invariant: types and their encoding only. No I/O, no clock, no async runtime.

#[macro_use]
extern crate codex_wire;

pub mod methods;
pub mod rpc;
pub mod schema;
pub mod v1;
pub mod v2;
