//! Stacks of processes that share the memory of another.
//!
//! Invariant: a process that overflows its stack crashes without changing its neighbours' memory.

use std::ffi::c_void;
use std::ptr::{self, NonNull};

use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Stack memory above a guard page.
pub(super) struct Stack(Option<NonNull<c_void>>);

// SAFETY: this value owns the memory, like a box.
unsafe impl Send for Stack {}
// SAFETY: as above; a shared reference gives no access to it.
unsafe impl Sync for Stack {}

impl Stack {
    /// Ten times the largest stack use that was measured.
    const SIZE: usize = 64 * 1024;
    /// At least a page on every architecture that Linux supports.
    const GUARD: usize = 64 * 1024;

    pub(super) fn new() -> Result<Self, Errno> {
        let (length, flags) = (Self::GUARD + Self::SIZE, MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK);
        // SAFETY: the kernel chooses an unused address.
        let memory = unsafe { mmap_anonymous(ptr::null_mut(), length, ProtFlags::empty(), flags) }?;
        let stack = Self(NonNull::new(memory));
        // SAFETY: the upper part of the new mapping, which nobody uses yet.
        unsafe { mprotect(memory.byte_add(Self::GUARD), Self::SIZE, MprotectFlags::READ | MprotectFlags::WRITE) }?;
        Ok(stack)
    }

    /// An empty one that nothing can run on.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// The highest address for a value; the stack grows down from there.
    pub(super) fn top<T>(&mut self) -> Option<*mut T> {
        let room = Self::SIZE.checked_sub(size_of::<T>() + align_of::<T>())?;
        // SAFETY: inside the mapping, and so is the next aligned address.
        let place = unsafe { self.0?.as_ptr().byte_add(Self::GUARD + room).cast::<u8>() };
        // SAFETY: as above.
        Some(unsafe { place.add(place.align_offset(align_of::<T>())).cast() })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        if let Some(memory) = self.0 {
            // SAFETY: mapped by `new` with this length, and nothing runs on it any more.
            let _ = unsafe { munmap(memory.as_ptr(), Self::GUARD + Self::SIZE) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_page_lies_below() {
        let mut stack = Stack::new().unwrap();
        let top = stack.top::<u64>().unwrap();
        let bottom = stack.0.unwrap().as_ptr().addr() + Stack::GUARD;
        assert!(top.is_aligned() && top.addr() < bottom + Stack::SIZE);
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let below = maps.lines().find(|line| {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let number = |text| usize::from_str_radix(text, 16).unwrap();
            (number(start)..number(end)).contains(&(bottom - 1))
        });
        assert!(below.is_some_and(|line| line.contains(" ---p ")), "{below:?}");
    }
}
