//! `schema/` and `docs/methods.md` match the types, and the types match the messages on the wire.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod both_sides;
mod bundle;
mod drift;
mod methods;
mod reading;
mod recorded;
mod round_trip;
mod shapes;
