//! Blocks: literals, and sequences that copy literals and earlier content.

use super::bits::BackwardBits;
use super::fse::FseTable;
use super::huffman::HuffmanTable;
use super::{MOST_BLOCK, ZstdError};

/// The numbers of extra bits of the codes for lengths of literals and matches.
const LITERAL_BITS: [u32; 36] =
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
const MATCH_BITS: [u32; 53] = [
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2,
    3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
];

/// The lowest length and the number of extra bits of each code.
const LITERAL_LENGTHS: [(u32, u32); 36] = ranges(0, LITERAL_BITS);
const MATCH_LENGTHS: [(u32, u32); 53] = ranges(3, MATCH_BITS);

/// Each code covers the lengths after those of the code before it.
const fn ranges<const N: usize>(first: u32, bits: [u32; N]) -> [(u32, u32); N] {
    let (mut ranges, mut next, mut code) = ([(0, 0); N], first, 0);
    while code < N {
        ranges[code] = (next, bits[code]);
        next += 1 << bits[code];
        code += 1;
    }
    ranges
}

/// The distributions of codes where a block does not state its own.
const USUAL_LITERAL_LENGTHS: [i32; 36] =
    [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1];
const USUAL_MATCH_LENGTHS: [i32; 53] = [
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
];
const USUAL_OFFSETS: [i32; 29] =
    [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1];

/// The offsets that a frame begins with.
const FIRST_OFFSETS: [usize; 3] = [1, 4, 8];

/// The codes of one part of sequences.
struct Codes {
    most_accuracy: u32,
    most_symbols: usize,
    usual: &'static [i32],
    usual_accuracy: u32,
}

const LITERAL_LENGTH_CODES: Codes =
    Codes { most_accuracy: 9, most_symbols: 36, usual: &USUAL_LITERAL_LENGTHS, usual_accuracy: 6 };
const OFFSET_CODES: Codes = Codes { most_accuracy: 8, most_symbols: 32, usual: &USUAL_OFFSETS, usual_accuracy: 5 };
const MATCH_LENGTH_CODES: Codes =
    Codes { most_accuracy: 9, most_symbols: 53, usual: &USUAL_MATCH_LENGTHS, usual_accuracy: 6 };

/// Decodes the blocks of a frame. Each may refer to the content and the tables of those before it.
#[derive(Debug, Default)]
pub(super) struct BlockDecoder {
    /// The content so far, as much of it as later blocks may refer to.
    content: Vec<u8>,
    literals: Vec<u8>,
    huffman: Option<HuffmanTable>,
    literal_lengths: Option<FseTable>,
    offsets: Option<FseTable>,
    match_lengths: Option<FseTable>,
    last_offsets: [usize; 3],
}

impl BlockDecoder {
    pub(super) fn begin_frame(&mut self) {
        *self = Self { last_offsets: FIRST_OFFSETS, ..Self::default() };
    }

    /// Drops content that is out of the window, before another block is added.
    pub(super) fn make_room(&mut self, window_size: usize) {
        // Moving the window is worth it only once in a while.
        if self.content.len() > window_size + (window_size / 2).max(MOST_BLOCK) {
            self.content.drain(..self.content.len() - window_size);
        }
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.content.capacity() + self.literals.capacity()
    }

    /// The last bytes of the content.
    pub(super) fn last(&self, length: usize) -> &[u8] {
        self.content.get(self.content.len() - length..).unwrap_or_default()
    }

    pub(super) fn copy(&mut self, bytes: &[u8]) -> usize {
        self.content.extend_from_slice(bytes);
        bytes.len()
    }

    pub(super) fn repeat(&mut self, byte: &[u8], count: usize) -> usize {
        let byte = byte.first().copied().unwrap_or(0);
        self.content.resize(self.content.len() + count, byte);
        count
    }

    /// Decodes a compressed block. Returns the length of its content.
    pub(super) fn decode(&mut self, block: &[u8], window_size: usize) -> Result<usize, ZstdError> {
        let begin = self.content.len();
        let sequences = self.read_literals(block)?;
        let used = self.run_sequences(sequences, (begin, window_size))?;
        self.content.extend_from_slice(self.literals.get(used..).unwrap_or_default());
        let length = self.content.len() - begin;
        if length > MOST_BLOCK { Err(ZstdError("the content of a block is too large")) } else { Ok(length) }
    }

    /// Reads the literals of a block, and returns the rest of it.
    fn read_literals<'b>(&mut self, block: &'b [u8]) -> Result<&'b [u8], ZstdError> {
        let breaks_off = ZstdError("the literals of a block break off");
        let header = LiteralsHeader::read(block).ok_or(breaks_off)?;
        if header.size > MOST_BLOCK {
            return Err(ZstdError("the literals of a block are too large"));
        }
        let (bytes, rest) = block
            .get(header.length..)
            .and_then(|after| after.split_at_checked(header.compressed_size))
            .ok_or(breaks_off)?;
        self.literals.clear();
        match header.kind {
            0 => self.literals.extend_from_slice(bytes),
            1 => self.literals.resize(header.size, bytes.first().copied().unwrap_or(0)),
            kind => {
                let mut streams = bytes;
                if kind == 2 {
                    let (table, length) = HuffmanTable::read(bytes)?;
                    self.huffman = Some(table);
                    streams = bytes.get(length..).unwrap_or_default();
                }
                let table = self.huffman.as_ref().ok_or(ZstdError("a block repeats a table that is missing"))?;
                if header.has_one_stream {
                    table.decode(streams, header.size, &mut self.literals)?;
                } else {
                    decode_four(table, streams, header.size, &mut self.literals)?;
                }
            }
        }
        Ok(rest)
    }

    /// Copies literals and earlier content. Returns the number of literals that were used.
    fn run_sequences(&mut self, bytes: &[u8], (begin, window_size): (usize, usize)) -> Result<usize, ZstdError> {
        let breaks_off = ZstdError("the sequences of a block break off");
        let (count, bytes) = sequence_count(bytes).ok_or(breaks_off)?;
        if count == 0 {
            return if bytes.is_empty() { Ok(0) } else { Err(ZstdError("a block has more than its literals")) };
        }
        let (&modes, bytes) = bytes.split_first().ok_or(breaks_off)?;
        let bytes = LITERAL_LENGTH_CODES.read(modes >> 6, bytes, &mut self.literal_lengths)?;
        let bytes = OFFSET_CODES.read(modes >> 4, bytes, &mut self.offsets)?;
        let bytes = MATCH_LENGTH_CODES.read(modes >> 2, bytes, &mut self.match_lengths)?;
        let (Some(literal_lengths), Some(offsets), Some(match_lengths)) =
            (&self.literal_lengths, &self.offsets, &self.match_lengths)
        else {
            return Err(breaks_off);
        };
        let mut bits = BackwardBits::new(bytes)?;
        let mut literal_state = literal_lengths.first(&mut bits);
        let mut offset_state = offsets.first(&mut bits);
        let mut match_state = match_lengths.first(&mut bits);
        let mut used = 0;
        for left in (0..count).rev() {
            let offset_code = u32::from(offsets.symbol(offset_state));
            let offset = (1 << offset_code.min(31)) + bits.read(offset_code.min(31));
            let match_length = length_of(&MATCH_LENGTHS, match_lengths.symbol(match_state), &mut bits)?;
            let literal_length = length_of(&LITERAL_LENGTHS, literal_lengths.symbol(literal_state), &mut bits)?;
            let literals = self.literals.get(used..used + literal_length);
            self.content.extend_from_slice(literals.ok_or(ZstdError("a sequence needs more literals than there are"))?);
            used += literal_length;
            let offset = next_offset(&mut self.last_offsets, offset, literal_length == 0)?;
            copy_match(&mut self.content, offset, match_length, window_size)?;
            if self.content.len() - begin > MOST_BLOCK {
                return Err(ZstdError("the content of a block is too large"));
            }
            if left > 0 {
                literal_lengths.advance(&mut literal_state, &mut bits);
                match_lengths.advance(&mut match_state, &mut bits);
                offsets.advance(&mut offset_state, &mut bits);
            }
        }
        if bits.left() == 0 { Ok(used) } else { Err(ZstdError("the sequences of a block have the wrong length")) }
    }
}

/// The beginning of a section of literals.
struct LiteralsHeader {
    /// 0 raw, 1 one byte repeated, 2 with a Huffman table, 3 with the one before.
    kind: u8,
    has_one_stream: bool,
    size: usize,
    compressed_size: usize,
    length: usize,
}

impl LiteralsHeader {
    fn read(block: &[u8]) -> Option<Self> {
        let first = *block.first()?;
        let (kind, format) = (first & 3, first >> 2 & 3);
        let number = |length: usize| Some(super::little_endian(block.get(..length)?));
        let part = |number: u64, from: u32, bits: u32| usize::try_from(number >> from & ((1 << bits) - 1)).ok();
        if kind < 2 {
            let (length, from, bits) = match format {
                0 | 2 => (1, 3, 5),
                1 => (2, 4, 12),
                _ => (3, 4, 20),
            };
            let size = part(number(length)?, from, bits)?;
            let compressed_size = if kind == 0 { size } else { 1 };
            return Some(Self { kind, has_one_stream: true, size, compressed_size, length });
        }
        let (length, bits) = match format {
            0 | 1 => (3, 10),
            2 => (4, 14),
            _ => (5, 18),
        };
        let header = number(length)?;
        let (size, compressed_size) = (part(header, 4, bits)?, part(header, 4 + bits, bits)?);
        Some(Self { kind, has_one_stream: format == 0, size, compressed_size, length })
    }
}

/// Decodes literals in four streams of nearly the same length.
fn decode_four(table: &HuffmanTable, bytes: &[u8], size: usize, out: &mut Vec<u8>) -> Result<(), ZstdError> {
    let breaks_off = ZstdError("the literals of a block break off");
    let (sizes, mut rest) = bytes.split_at_checked(6).ok_or(breaks_off)?;
    let (part, mut left) = (size.div_ceil(4), size);
    for size in sizes.chunks(2) {
        let length = usize::try_from(super::little_endian(size)).unwrap_or(usize::MAX);
        let (stream, after) = rest.split_at_checked(length).ok_or(breaks_off)?;
        left = left.checked_sub(part).ok_or(breaks_off)?;
        table.decode(stream, part, out)?;
        rest = after;
    }
    table.decode(rest, left, out)
}

/// The number of sequences, and the bytes after it.
fn sequence_count(bytes: &[u8]) -> Option<(usize, &[u8])> {
    Some(match bytes {
        [first @ 0..=127, rest @ ..] => (usize::from(*first), rest),
        [first @ 128..=254, second, rest @ ..] => (((usize::from(*first) - 128) << 8) + usize::from(*second), rest),
        [255, second, third, rest @ ..] => (usize::from(*second) + (usize::from(*third) << 8) + 0x7F00, rest),
        _ => return None,
    })
}

impl Codes {
    /// Reads the table of a block, if it states one. Returns the bytes after it.
    fn read<'b>(&self, mode: u8, bytes: &'b [u8], table: &mut Option<FseTable>) -> Result<&'b [u8], ZstdError> {
        let (read, rest) = match mode & 3 {
            0 => (FseTable::of(self.usual, self.usual_accuracy)?, bytes),
            1 => {
                let (&symbol, rest) = bytes.split_first().ok_or(ZstdError("a table breaks off"))?;
                if usize::from(symbol) >= self.most_symbols {
                    return Err(ZstdError("a table has too many symbols"));
                }
                (FseTable::single(symbol), rest)
            }
            2 => {
                let (read, length) = FseTable::read(bytes, self.most_accuracy, self.most_symbols)?;
                (read, bytes.get(length..).unwrap_or_default())
            }
            _ if table.is_some() => return Ok(bytes),
            _ => return Err(ZstdError("a block repeats a table that is missing")),
        };
        *table = Some(read);
        Ok(rest)
    }
}

fn length_of(codes: &[(u32, u32)], code: u8, bits: &mut BackwardBits<'_>) -> Result<usize, ZstdError> {
    let &(base, extra) = codes.get(usize::from(code)).ok_or(ZstdError("a sequence has an unknown length"))?;
    usize::try_from(u64::from(base) + bits.read(extra)).map_err(|_| ZstdError("a sequence is too long"))
}

/// The offset that a value stands for: one of the last three, or another. The order of the last ones changes with it.
fn next_offset(last: &mut [usize; 3], value: u64, is_without_literals: bool) -> Result<usize, ZstdError> {
    let value = usize::try_from(value).map_err(|_| ZstdError("an offset is too large"))?;
    let (offset, place) = match value {
        1..=3 => match value - 1 + usize::from(is_without_literals) {
            3 => (last[0].wrapping_sub(1), 2),
            place => (last[place], place),
        },
        value => (value.wrapping_sub(3), 2),
    };
    if offset == 0 {
        return Err(ZstdError("an offset is zero"));
    }
    last.copy_within(..place, 1);
    last[0] = offset;
    Ok(offset)
}

/// Repeats content that begins at an offset from the end. The match may overlap with its copy.
fn copy_match(content: &mut Vec<u8>, offset: usize, length: usize, window_size: usize) -> Result<(), ZstdError> {
    let begin = content.len().checked_sub(offset).filter(|_| offset <= window_size.max(1));
    let mut begin = begin.ok_or(ZstdError("an offset is larger than the window"))?;
    let mut left = length;
    while left > 0 {
        let part = left.min(content.len() - begin);
        content.extend_from_within(begin..begin + part);
        (begin, left) = (begin + part, left - part);
    }
    Ok(())
}
