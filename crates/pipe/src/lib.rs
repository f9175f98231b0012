//! Entry points that speak lines over one pair of streams, for one client that ends with them.
//!
//! Invariant: an entry point reads a thread's log and sends it requests. It keeps no thread state of its own.

pub mod mcp;
pub mod proto;
