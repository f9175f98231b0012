//! What is written in `schema/` and `docs/methods.md` is what the types say, and the types say what travels.

mod drift;
mod methods;
mod reading;
mod recorded;
mod shapes;
