//! Tests of the machine: single rules, and random trees.

mod random;
mod rules;
mod world;
