//! Which release a connection was written for, where releases differ in ways that cannot be had at once.

/// The release whose ways are followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProtocolRelease {
    /// 0.77: events of the queue in addition to the notifications, turns end without their items, an interrupt needs no
    /// turn.
    #[default]
    V077,
    /// 0.166: notifications alone, turns end with their last message, an interrupt names its turn.
    V0166,
}
