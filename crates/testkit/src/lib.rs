//! Things that tests share: a fake model that serves scripts over real HTTP, and a fake issuer of logins.
//!
//! Invariant: used by tests only, so it panics where a test could not go on.

mod answer_wire;
mod fake_issuer;
mod fake_model;
mod http;

pub use fake_issuer::{FakeIssuer, IssuerAnswer};
pub use fake_model::{FakeModel, Options, Request};
