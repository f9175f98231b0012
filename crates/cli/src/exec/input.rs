//! Standard input: the prompt, or additional input.
//!
//! Invariant: an open pipe blocks nothing that does not need it. Everything that the caller writes is read before the
//! program exits, even on failure: callers that write to a program that is gone crash.

use std::io::{IsTerminal, Read};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::failure::ErrorWithHint;

/// The time to wait for the first byte of additional input.
const FIRST: Duration = Duration::from_millis(50);

/// The time to wait between chunks of it.
const NEXT: Duration = Duration::from_secs(2);

/// The time to wait for the end of input that is no longer needed.
const LEFT_OVER: Duration = Duration::from_secs(1);

/// The total time for that, and the maximum size: some writers never end.
const LEFT_OVER_ALL: Duration = Duration::from_secs(10);
const LEFT_OVER_BYTES: usize = 256 * 1024 * 1024;

const MOST_BYTES: usize = 32 * 1024 * 1024;

/// No more input arrived in time.
#[derive(Debug, thiserror::Error)]
#[error("timed out while reading standard input")]
pub(crate) struct TooLate;

pub(crate) const NO_PROMPT: &str = "no prompt: give one as an argument, or pipe it to standard input";

/// Reads the prompt from standard input, to its end.
pub(crate) fn read_prompt(deadline: Option<Instant>) -> anyhow::Result<String> {
    match read_optional_prompt(deadline)? {
        Some(text) => Ok(text),
        None if std::io::stdin().is_terminal() => bail!(NO_PROMPT),
        None => bail!("no prompt: pass one as an argument or on standard input"),
    }
}

/// Reads the prompt from standard input, to its end; none if it is a terminal or empty.
pub(crate) fn read_optional_prompt(deadline: Option<Instant>) -> anyhow::Result<Option<String>> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    loop {
        let patience = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match read_more(&mut bytes, patience)? {
            ReadResult::Some => {}
            ReadResult::End => break,
            ReadResult::Late => return Err(TooLate.into()),
        }
    }
    Ok(Some(text_of(&bytes)?).filter(|text| !text.trim().is_empty()))
}

/// Reads additional input next to a prompt, if there is any.
pub(crate) fn read_piped() -> anyhow::Result<Option<String>> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let mut patience = FIRST;
    while matches!(read_more(&mut bytes, Some(patience))?, ReadResult::Some) {
        patience = NEXT;
    }
    let text = decode(&bytes);
    Ok(Some(text).filter(|text| !text.trim().is_empty()))
}

/// Combines a prompt with additional input.
pub(crate) fn join(prompt: &str, beside: Option<&str>) -> String {
    match beside {
        Some(text) => format!("{prompt}\n\n<stdin>\n{}\n</stdin>", text.trim_end_matches('\n')),
        None => prompt.to_owned(),
    }
}

/// Reads the rest, so that the writer does not find the program gone.
pub(crate) fn drain() {
    if std::io::stdin().is_terminal() {
        return;
    }
    let (begun, mut read) = (Instant::now(), 0);
    let mut bytes = Vec::new();
    let is_enough = |read: usize| read > LEFT_OVER_BYTES || begun.elapsed() > LEFT_OVER_ALL;
    while !is_enough(read) && matches!(read_more(&mut bytes, Some(LEFT_OVER)), Ok(ReadResult::Some)) {
        read += bytes.len();
        bytes.clear();
    }
}

enum ReadResult {
    Some,
    End,
    Late,
}

fn read_more(bytes: &mut Vec<u8>, patience: Option<Duration>) -> anyhow::Result<ReadResult> {
    let stdin = std::io::stdin();
    let timeout = patience.map(Timespec::try_from).transpose().context("the time limit is too long")?;
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    match poll(&mut waiting, timeout.as_ref()) {
        Ok(0) => return Ok(ReadResult::Late),
        Ok(_) => {}
        Err(rustix::io::Errno::INTR) => return Ok(ReadResult::Some),
        Err(error) => return Err(error).context("could not wait for standard input"),
    }
    let mut piece = vec![0; 64 * 1024];
    let read = match stdin.lock().read(&mut piece) {
        Ok(read) => read,
        Err(error) if error.kind() == std::io::ErrorKind::Interrupted => return Ok(ReadResult::Some),
        // A closed descriptor has no input.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error()) => 0,
        Err(error) => return Err(error).context("could not read standard input"),
    };
    piece.truncate(read);
    bytes.append(&mut piece);
    if bytes.len() > MOST_BYTES {
        bail!("stdin is larger than {} MiB", MOST_BYTES >> 20);
    }
    Ok(if read == 0 { ReadResult::End } else { ReadResult::Some })
}

/// A prompt must be text. Additional input may contain anything, and is decoded leniently.
fn text_of(bytes: &[u8]) -> anyhow::Result<String> {
    let utf16 = |from: fn([u8; 2]) -> u16, bytes: &[u8]| {
        let units: Vec<u16> = bytes.chunks_exact(2).filter_map(|pair| Some(from(pair.try_into().ok()?))).collect();
        String::from_utf16(&units).ok().filter(|_| bytes.len().is_multiple_of(2))
    };
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(u16::from_le_bytes, rest),
        [0xfe, 0xff, rest @ ..] => utf16(u16::from_be_bytes, rest),
        [0xef, 0xbb, 0xbf, rest @ ..] | rest => String::from_utf8(rest.to_vec()).ok(),
    };
    let Some(text) = text.filter(|text| !text.contains('\0')) else {
        let at =
            std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), |text| text.find('\0').unwrap_or(0));
        let what = format!("no prompt: standard input is not UTF-8 text (at byte {at})");
        let hint = "attach an image with --image, or name the file in the prompt".to_owned();
        return Err(ErrorWithHint { what, hint }.into());
    };
    Ok(text)
}

fn decode(bytes: &[u8]) -> String {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: Result<&str, &str>) {
        let read = text_of(bytes).map_err(|error| error.to_string());
        assert_eq!(read.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn a_prompt_is_text() {
        check("größe".as_bytes(), Ok("größe"));
        check(b"\xef\xbb\xbfhi", Ok("hi"));
        check(b"\xff\xfeh\0i\0", Ok("hi"));
        check(b"\xfe\xff\0h\0i", Ok("hi"));
        check(b"\x89PNG\r\n\x1a\n", Err("no prompt: standard input is not UTF-8 text (at byte 0)"));
        check(b"\x7fELF\0", Err("no prompt: standard input is not UTF-8 text (at byte 4)"));
        check(b"\xff\xfeh", Err("no prompt: standard input is not UTF-8 text (at byte 0)"));
    }
}
