//! The store in a real database: a private cluster that lives as long as this test program, where `initdb` is at hand.

#![expect(clippy::expect_used, reason = "a test may fail where it stands")]

mod breaks;
mod changes;
mod cluster;
mod faults;
mod homes;
mod laws;
mod owners;
mod poolers;
mod refusals;
mod restores;
mod texts;
mod tls;
