//! The behaviour of the sandbox, tested from outside.

#![cfg(target_os = "linux")]
#![allow(unsafe_code, reason = "the attacker makes the system calls that no safe interface offers")]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "kernel numbers"
)]
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking; roles speak by printing"
)]

mod attacker;
mod attempts;
mod confinement;
mod git;
mod home;
mod inspection;
mod landlock;
mod launches;
mod layouts;
mod lifetime;
mod memory;
mod output;
mod outside;
mod roots;
mod secrets;
mod support;
mod terminals;

/// These tests run on whatever level the host offers.
fn settle_level() {}
