//! The names in an index. Git checks a name when it enters an index, not when it reads one back, so whoever writes the
//! file itself can make `git checkout .` write anywhere.
//!
//! Invariant: an index that does not read to its last entry is an error. It is read as a stream, in bounded memory.

use std::fmt;
use std::io::{self, BufRead, Read as _};

/// The maximum length of a name.
const MAX_NAME: usize = 64 * 1024;
/// The bytes of an entry before its object id: times, numbers, mode, owner and size.
const STATUS: usize = 40;
const LINK_MODE: u32 = 0o120_000;
const FOLDER_MODE: u32 = 0o040_000;
const SUBMODULE_MODE: u32 = 0o160_000;

/// The reason why an index is not known to be harmless.
#[derive(Debug, PartialEq, Eq)]
pub enum IndexError {
    /// It ends early, or has another form than git's.
    Broken,
    /// An entry that git itself would not accept.
    Name(Vec<u8>),
}

impl fmt::Display for IndexError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken => write!(out, "an index that cannot be read"),
            Self::Name(name) => write!(out, "an index with the entry `{}`", String::from_utf8_lossy(name)),
        }
    }
}

impl From<io::Error> for IndexError {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

/// Checks every name of an index, whose object ids have `id_length` bytes.
pub fn check(index: &mut impl BufRead, id_length: usize) -> Result<(), IndexError> {
    each(index, id_length, |_| ())
}

/// The same, and passes the folders of submodules to `submodule`.
pub fn each(index: &mut impl BufRead, id_length: usize, mut submodule: impl FnMut(&[u8])) -> Result<(), IndexError> {
    let mut header = [0; 12];
    index.read_exact(&mut header)?;
    let [b'D', b'I', b'R', b'C', v0, v1, v2, v3, c0, c1, c2, c3] = header else { return Err(IndexError::Broken) };
    let version = u32::from_be_bytes([v0, v1, v2, v3]);
    if !(2..=4).contains(&version) {
        return Err(IndexError::Broken);
    }
    let (mut name, mut links) = (Vec::new(), Vec::new());
    for _ in 0..u32::from_be_bytes([c0, c1, c2, c3]) {
        let mode = read_entry(index, version, id_length, &mut name)?;
        let is_folder = mode & 0o170_000 == FOLDER_MODE;
        let path = if is_folder { name.strip_suffix(b"/").unwrap_or(&name) } else { &name };
        // In the index that belongs to a shared one, a replaced entry has no name.
        let is_replacement = path.is_empty();
        if !is_replacement && !is_safe_path(path) || is_below(path, &links) {
            return Err(IndexError::Name(name));
        }
        if mode & 0o170_000 == SUBMODULE_MODE {
            submodule(path);
        }
        if mode & 0o170_000 == LINK_MODE {
            let last = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
            if last.eq_ignore_ascii_case(b".gitmodules") {
                return Err(IndexError::Name(name));
            }
            links.push(path.to_vec());
        }
    }
    Ok(())
}

/// Reads one entry. `name` is the name of the entry before it, and then its own.
fn read_entry(index: &mut impl BufRead, version: u32, id_length: usize, name: &mut Vec<u8>) -> Result<u32, IndexError> {
    let mut fixed = [0; STATUS + 32 + 2];
    let fixed = fixed.get_mut(..STATUS + id_length + 2).ok_or(IndexError::Broken)?;
    index.read_exact(fixed)?;
    let mode = fixed.get(24..28).and_then(<[u8]>::first_chunk).map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let flags = fixed.last_chunk().map_or(0, |bytes| u16::from_be_bytes(*bytes));
    let mut read = fixed.len();
    if flags & 0x4000 != 0 {
        index.read_exact(&mut [0; 2])?;
        read += 2;
    }
    if version == 4 {
        let dropped = read_number(index)?;
        let kept = name.len().checked_sub(dropped).ok_or(IndexError::Broken)?;
        name.truncate(kept);
    } else {
        name.clear();
    }
    let before = name.len();
    index.take(MAX_NAME as u64).read_until(0, name)?;
    if name.pop() != Some(0) || name.len() > MAX_NAME {
        return Err(IndexError::Broken);
    }
    if version < 4 {
        read += name.len() - before + 1;
        let padding = read.next_multiple_of(8) - read;
        index.read_exact([0; 8].get_mut(..padding).unwrap_or_default())?;
    }
    Ok(mode)
}

/// Git's variable-length number.
fn read_number(index: &mut impl BufRead) -> Result<usize, IndexError> {
    let mut number = 0_usize;
    for place in 0..4 {
        let mut byte = [0];
        index.read_exact(&mut byte)?;
        let [byte] = byte;
        number = number << 7 | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Ok(number);
        }
        number += usize::from(place < 3);
    }
    Err(IndexError::Broken)
}

fn is_below(path: &[u8], links: &[Vec<u8>]) -> bool {
    links.iter().any(|link| path.strip_prefix(link.as_slice()).is_some_and(|rest| rest.starts_with(b"/")))
}

/// Whether git accepts a path in an index: relative, without empty or special parts, and not into a git folder on any
/// file system.
#[must_use]
pub fn is_safe_path(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').all(|part| match part.first() {
        None => false,
        // No other byte begins a name that some file system takes for `.git`.
        Some(b'.' | b'g' | b'G' | 0xe2 | 0xef) => {
            part != b"." && part != b".." && !part.split(|byte| *byte == b'\\').any(is_dot_git)
        }
        Some(_) => !part.contains(&b'\\') || !part.split(|byte| *byte == b'\\').any(is_dot_git),
    })
}

/// Whether some file system takes a name for `.git`.
fn is_dot_git(name: &[u8]) -> bool {
    let is_ignored = |c: &char| matches!(c, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let text: String = String::from_utf8_lossy(name).chars().filter(|c| !is_ignored(c)).collect();
    let stem = text.split(':').next().unwrap_or_default().trim_end_matches([' ', '.']);
    stem.eq_ignore_ascii_case(".git") || stem.eq_ignore_ascii_case("git~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index of version 2.
    fn index(entries: &[(&str, u32)]) -> Vec<u8> {
        let count = u32::try_from(entries.len()).unwrap();
        let mut bytes = [b"DIRC".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat();
        for (name, mode) in entries {
            let start = bytes.len();
            bytes.extend([0; 24]);
            bytes.extend(mode.to_be_bytes());
            bytes.extend([0; 12 + 20]);
            bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
            bytes.extend(name.as_bytes());
            bytes.push(0);
            while !(bytes.len() - start).is_multiple_of(8) {
                bytes.push(0);
            }
        }
        bytes.extend([7; 20]);
        bytes
    }

    fn checked(bytes: &[u8]) -> Result<(), IndexError> {
        check(&mut io::Cursor::new(bytes), 20)
    }

    #[test]
    fn names_that_git_would_not_accept_are_found() {
        assert_eq!(checked(&index(&[("a", 0o100_644), (".gitignore", 0o100_644), ("git/x..y/.g", 0o100_755)])), Ok(()));
        for name in [
            "../x",
            ".git/hooks/x",
            "a/../b",
            "/etc/x",
            "a//b",
            ".GIT/x",
            "a/.git",
            "git~1/x",
            ".git /x",
            ".git./x",
            ".g\u{200c}it/x",
            ".git::$INDEX_ALLOCATION/x",
            "a\\.git\\x",
            ".",
        ] {
            let found = checked(&index(&[("a", 0o100_644), (name, 0o100_644)]));
            assert_eq!(found, Err(IndexError::Name(name.as_bytes().to_vec())), "{name}");
        }
        assert!(
            checked(&index(&[("a", LINK_MODE), ("a/x", 0o100_644)])).is_err(),
            "it would be written through a link"
        );
        assert!(checked(&index(&[(".gitmodules", LINK_MODE)])).is_err());
        let whole = index(&[("abc", 0o100_644), ("d", 0o100_644)]);
        assert_eq!(checked(&whole[..60]), Err(IndexError::Broken));
        assert_eq!(checked(b"DIRC\0\0\0\x09\0\0\0\0"), Err(IndexError::Broken));
    }

    #[test]
    fn indexes_of_git_itself_are_accepted_in_every_version() {
        let temp = tempfile::tempdir().unwrap();
        let git = |arguments: &str| {
            let mut command = std::process::Command::new("git");
            command.current_dir(temp.path()).args(arguments.split(' ')).env("HOME", temp.path());
            command.output().is_ok_and(|output| output.status.success())
        };
        if !git("init -q .") {
            return;
        }
        for number in 0..60 {
            let folder = temp.path().join(format!("folder{}", number % 7));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("n".repeat(number + 1)), "").unwrap();
        }
        std::os::unix::fs::symlink("x", temp.path().join("link")).unwrap();
        for version in ["2", "3", "4"] {
            assert!(git("add -A -N") && git("add -A") && git(&format!("update-index --index-version {version}")));
            assert_eq!(checked(&std::fs::read(temp.path().join(".git/index")).unwrap()), Ok(()), "version {version}");
        }
        assert!(git("update-index --split-index"));
        assert_eq!(checked(&std::fs::read(temp.path().join(".git/index")).unwrap()), Ok(()));
    }
}
