//! Returns unused memory to the system.
#![allow(unsafe_code, reason = "libc is told by a number, the kernel by addresses")]

/// The size in bytes from which a block is mapped separately.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE_BYTES: libc::c_int = 256 * 1024;

/// Makes libc return large blocks to the system as soon as they are freed. By default libc adapts its threshold to the
/// largest block that was ever freed, up to 32 MB, and from then on keeps such blocks, and the holes between them.
pub(crate) fn give_back_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number, before there is a second thread.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
    }
}

/// Makes libc return all free memory to the system, of which it keeps much after a peak: of a chat that has loaded 10,000
/// items, 35 MB.
pub(crate) fn give_back_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: a function of the allocator that may be called at any time, on any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Drops the pages of the program that only its start needed. The kernel maps sixteen for each page that is used, and
/// keeps them; pages that are needed again are still in its cache. An idle server uses 4.2 MB instead of 12.
pub(crate) fn let_go_of_start() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            static __executable_start: u8;
            static etext: u8;
        }
        // SAFETY: reads a constant.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let start = (&raw const __executable_start).cast_mut().cast::<std::ffi::c_void>();
        let length = (&raw const etext).addr().saturating_sub(start.addr()) / page * page;
        // SAFETY: the range contains the code and constants of the program, which are never written, so they are read
        // again from its file.
        let _ = unsafe { rustix::mm::madvise(start, length, rustix::mm::Advice::LinuxDontNeed) };
    }
}
