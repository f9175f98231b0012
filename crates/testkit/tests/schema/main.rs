//! What is written in `schema/` and `docs/methods.md` is what the types say, and the types say what travels.

#![expect(clippy::unwrap_used, reason = "a test may fail where it stands")]

mod bundle;
mod drift;
mod methods;
mod reading;
mod recorded;
mod round_trip;
mod shapes;
