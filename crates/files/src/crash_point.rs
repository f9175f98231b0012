//! Places at which a test lets the program end, to see what the next one makes of its files.

/// Marks a step between two writes. Only tests can end a program here; elsewhere it does nothing.
#[inline]
pub fn crash_point() {
    #[cfg(feature = "testing")]
    crate::testing::pass_crash_point();
}
