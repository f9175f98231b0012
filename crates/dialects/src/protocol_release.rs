//! The release that a connection was written for, where releases differ in incompatible ways.

/// The release whose behaviour is followed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProtocolRelease {
    /// 0.58: as 0.77, but threads ask with the requests of v1, and kinds are written as the name of a member.
    V058,
    /// 0.77: `codex/event/*` in addition to the notifications, turns end without their items, an interrupt needs no
    /// turn.
    #[default]
    V077,
    /// 0.166: only notifications, turns end with their last message, an interrupt names its turn.
    V0166,
}
