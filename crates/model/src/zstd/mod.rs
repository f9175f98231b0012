//! Zstandard, as RFC 8878 describes it: bytes in, split anywhere; the contents of one block after another out.
//!
//! A decoder of our own, because each block has to come out as soon as it is complete, and within a bound.
//!
//! Invariant: at most one block of input, the window and one block of output are in memory.

mod bits;
mod block;
mod fse;
mod huffman;

use self::block::BlockDecoder;

/// The largest window. Decoders should support 8 MiB, and encoders of streams should not need more.
const MOST_WINDOW: u64 = 8 * 1024 * 1024;

/// The largest content of a block.
const MOST_BLOCK: usize = 128 * 1024;

const MAGIC: u32 = 0xFD2F_B528;
/// The first of sixteen numbers that begin a frame for other programs.
const SKIPPABLE: u32 = 0x184D_2A50;

const BLOCK_HEADER: usize = 3;
const CHECKSUM: usize = 4;

/// An error in compressed data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the compressed data is invalid: {0}")]
pub(crate) struct ZstdError(pub(crate) &'static str);

/// Decompresses one stream.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Input that is not used yet.
    input: Vec<u8>,
    used: usize,
    state: State,
    window_size: usize,
    has_checksum: bool,
    block: BlockDecoder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Between frames.
    Frame,
    /// Within a frame.
    Block,
    Checksum,
    /// Within a frame for other programs: the number of bytes that are left.
    Skip(usize),
}

/// The kind of a block.
#[derive(Debug, Clone, Copy)]
enum BlockKind {
    Raw,
    /// One byte, repeated.
    Repeated,
    Compressed,
}

impl Decoder {
    /// A decoder for a new stream.
    pub(crate) fn new() -> Self {
        Self {
            input: Vec::new(),
            used: 0,
            state: State::Frame,
            window_size: 0,
            has_checksum: false,
            block: BlockDecoder::default(),
        }
    }

    /// Takes more input.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.input.drain(..self.used);
        self.used = 0;
        self.input.extend_from_slice(bytes);
    }

    /// The contents of the next block; none if more input is needed.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, ZstdError> {
        loop {
            let is_enough = match self.state {
                State::Frame => self.frame()?,
                State::Block => match self.block()? {
                    Some(length) if length > 0 => return Ok(Some(self.block.last(length))),
                    decoded => decoded.is_some(),
                },
                State::Checksum => {
                    let is_enough = self.take(CHECKSUM).is_some();
                    if is_enough {
                        self.state = State::Frame;
                    }
                    is_enough
                }
                State::Skip(left) => {
                    let skipped = left.min(self.input.len() - self.used);
                    self.used += skipped;
                    self.state = if skipped == left { State::Frame } else { State::Skip(left - skipped) };
                    skipped == left
                }
            };
            if !is_enough {
                return Ok(None);
            }
        }
    }

    /// Whether the stream may end here.
    pub(crate) fn is_complete(&self) -> bool {
        self.state == State::Frame && self.used == self.input.len()
    }

    fn rest(&self) -> &[u8] {
        self.input.get(self.used..).unwrap_or_default()
    }

    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let taken = self.input.get(self.used..self.used + count)?;
        self.used += count;
        Some(taken)
    }

    /// Reads the header of a frame; false if more input is needed.
    fn frame(&mut self) -> Result<bool, ZstdError> {
        let Some(magic) = self.rest().first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes)) else {
            return Ok(false);
        };
        if magic & !0xf == SKIPPABLE {
            let Some(size) = self.rest().get(4..8).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
            else {
                return Ok(false);
            };
            self.used += 8;
            self.state = State::Skip(usize::try_from(size).map_err(|_| ZstdError("a frame is too large"))?);
            return Ok(true);
        }
        if magic != MAGIC {
            return Err(ZstdError("it does not begin with a frame"));
        }
        let Some(&descriptor) = self.rest().get(4) else { return Ok(false) };
        let is_single = descriptor & 0x20 != 0;
        let dictionary_size = [0, 1, 2, 4][usize::from(descriptor & 3)];
        let content_size = match descriptor >> 6 {
            0 => usize::from(is_single),
            flag => 1 << flag,
        };
        let length = 5 + usize::from(!is_single) + dictionary_size + content_size;
        let Some(header) = self.rest().get(5..length) else { return Ok(false) };
        let (window, header) = header.split_at(usize::from(!is_single));
        let (dictionary, content) = header.split_at(dictionary_size);
        if descriptor & 0x08 != 0 {
            return Err(ZstdError("the header of a frame is reserved"));
        }
        if dictionary.iter().any(|byte| *byte != 0) {
            return Err(ZstdError("it needs a dictionary"));
        }
        let window_size = match window.first() {
            Some(window) => window_size(*window),
            None => little_endian(content) + if content_size == 2 { 256 } else { 0 },
        };
        self.window_size = match usize::try_from(window_size) {
            Ok(size) if window_size <= MOST_WINDOW => size,
            _ => return Err(ZstdError("its window is larger than 8 MiB")),
        };
        self.has_checksum = descriptor & 0x04 != 0;
        self.used += length;
        self.state = State::Block;
        self.block.begin_frame();
        Ok(true)
    }

    /// Decodes a block; none if more input is needed. Returns the length of its content.
    fn block(&mut self) -> Result<Option<usize>, ZstdError> {
        let Some(header) = self.rest().get(..BLOCK_HEADER).map(little_endian) else { return Ok(None) };
        let size = usize::try_from(header >> 3).unwrap_or(usize::MAX);
        let kind = match header >> 1 & 3 {
            0 => BlockKind::Raw,
            1 => BlockKind::Repeated,
            2 => BlockKind::Compressed,
            _ => return Err(ZstdError("the kind of a block is reserved")),
        };
        if size > MOST_BLOCK {
            return Err(ZstdError("a block is too large"));
        }
        let input_size = if matches!(kind, BlockKind::Repeated) { 1 } else { size };
        let begin = self.used + BLOCK_HEADER;
        let Some(content) = self.input.get(begin..begin + input_size) else { return Ok(None) };
        self.block.make_room(self.window_size);
        let length = match kind {
            BlockKind::Raw => self.block.copy(content),
            BlockKind::Repeated => self.block.repeat(content, size),
            BlockKind::Compressed => self.block.decode(content, self.window_size)?,
        };
        self.used = begin + input_size;
        if header & 1 == 1 {
            self.state = if self.has_checksum { State::Checksum } else { State::Frame };
        }
        Ok(Some(length))
    }
}

fn window_size(descriptor: u8) -> u64 {
    let base = 1_u64 << (10 + (descriptor >> 3));
    base + base / 8 * u64::from(descriptor & 7)
}

/// A number of at most eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests;
