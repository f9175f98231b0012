//! Finds the holder of a file lock.

use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// The number of times that the list of locks is read before a lock counts as that of an invisible process.
const LOOKS: usize = 4;

/// The process that writes to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// This process.
    Own,
    /// Another process of this machine.
    Process(u32),
    /// Unknown: a process that is not visible from here, or one on another machine.
    Unknown,
}

impl Holder {
    /// Finds the holder of a file's lock, as far as the system reveals it.
    pub(crate) fn of(file: &File) -> Self {
        let Ok(about) = file.metadata() else { return Self::Unknown };
        // The list is read in pieces, and a line that moves between them is missed.
        let look = || holder(&std::fs::read_to_string("/proc/locks").ok()?, about.ino());
        match (0..LOOKS).find_map(|_| look()) {
            Some(pid) if pid == std::process::id() => Self::Own,
            Some(pid) => Self::Process(pid),
            None => Self::Unknown,
        }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Own => f.write_str("this process"),
            Self::Process(pid) => write!(f, "another Codex (pid {pid})"),
            Self::Unknown => f.write_str("another Codex"),
        }
    }
}

/// The process that holds a whole-file lock on an inode, from the kernel's list of locks.
///
/// The device in that list is not always the one that `stat` reports (btrfs, overlayfs), so only the inode is compared,
/// and it must be unique.
fn holder(locks: &str, inode: u64) -> Option<u32> {
    let mut found = locks.lines().filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1).filter(|word| *word != "->");
        let (class, _, mode, pid, place) = (words.next()?, words.next()?, words.next()?, words.next()?, words.next()?);
        let is_it = class == "FLOCK" && mode == "WRITE" && place.rsplit(':').next()?.parse() == Ok(inode);
        is_it.then(|| pid.parse::<u32>().ok()).flatten()
    });
    let first = found.next()?;
    found.all(|pid| pid == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_by_the_inode() {
        let locks = "1: FLOCK  ADVISORY  WRITE 71 fe:00:900 0 EOF\n2: POSIX  ADVISORY  WRITE 72 fe:00:901 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 73 00:1b:901 0 EOF\n4: FLOCK  ADVISORY  WRITE -1 00:1b:902 0 EOF\nodd\n";
        assert_eq!(holder(locks, 900), Some(71));
        assert_eq!(holder(locks, 901), Some(73));
        assert_eq!(holder(locks, 902), None);
        assert_eq!(holder(locks, 903), None);
    }

    #[test]
    fn a_lock_of_this_process_is_recognised() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().try_lock().unwrap();
        assert_eq!(Holder::of(&File::open(file.path()).unwrap()), Holder::Own);
    }
}
