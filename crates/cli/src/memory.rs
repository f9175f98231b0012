//! How the allocator gives memory back.
#![allow(unsafe_code, reason = "libc is told by a number")]

/// From how many bytes on a block is mapped by itself.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 256 * 1024;

/// Lets large blocks go back to the system as soon as they are freed. By itself libc takes the size of the largest block that
/// was ever freed for a usual one, up to 32 MB, and from then on keeps such blocks, and the holes between them.
pub(crate) fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number, before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}
