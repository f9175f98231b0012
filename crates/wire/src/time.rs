//! The time of day. A machine may have it wrong; here it is never before 1970, where libraries and formats of time end.

use std::time::{SystemTime, UNIX_EPOCH};

/// The time of day, or 1970 on a machine whose clock is before that.
#[must_use]
pub fn now() -> SystemTime {
    SystemTime::now().max(UNIX_EPOCH)
}
