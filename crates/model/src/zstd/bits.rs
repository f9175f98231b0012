//! Numbers of any number of bits.

use super::ZstdError;

/// The most bits that are read at once.
const MOST_BITS: u32 = 56;

/// Reads bits from the first byte on, the lowest first.
#[derive(Debug)]
pub(super) struct ForwardBits<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Reads bits from the last byte on, the highest first. Behind the end all bits are zero.
#[derive(Debug)]
pub(super) struct BackwardBits<'a> {
    bytes: &'a [u8],
    /// The number of bits that are left; negative if more were read than there are.
    left: i64,
}

/// The bits from a place on, as a number.
fn bits_at(bytes: &[u8], place: usize, count: u32) -> u64 {
    debug_assert!(count <= MOST_BITS, "they fit together with the bits before them");
    let mut eight = [0; 8];
    let from = bytes.get(place / 8..).unwrap_or_default();
    let length = from.len().min(8);
    eight[..length].copy_from_slice(&from[..length]);
    u64::from_le_bytes(eight) >> (place % 8) & ((1 << count) - 1)
}

impl<'a> ForwardBits<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn read(&mut self, count: u32) -> Result<u64, ZstdError> {
        let bits = bits_at(self.bytes, self.at, count);
        self.at += count as usize;
        if self.at > self.bytes.len() * 8 {
            return Err(ZstdError("a table breaks off"));
        }
        Ok(bits)
    }

    /// Gives a bit back.
    pub(super) fn unread(&mut self) {
        self.at -= 1;
    }

    /// The number of bytes that were read, the last one as a whole.
    pub(super) fn bytes_read(&self) -> usize {
        self.at.div_ceil(8)
    }
}

impl<'a> BackwardBits<'a> {
    /// The highest bit that is set marks the end.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, ZstdError> {
        let Some(last) = bytes.last().filter(|last| **last != 0) else {
            return Err(ZstdError("a stream of bits has no end"));
        };
        let unused = i64::from(last.leading_zeros()) + 1;
        let left = i64::try_from(bytes.len()).unwrap_or(i64::MAX / 8) * 8 - unused;
        Ok(Self { bytes, left })
    }

    pub(super) fn read(&mut self, count: u32) -> u64 {
        let bits = self.peek(count);
        self.skip(count);
        bits
    }

    pub(super) fn peek(&self, count: u32) -> u64 {
        let place = self.left - i64::from(count);
        match usize::try_from(place) {
            Ok(place) => bits_at(self.bytes, place, count),
            Err(_) if self.left <= 0 => 0,
            Err(_) => {
                let missing = u32::try_from(-place).unwrap_or(count);
                bits_at(self.bytes, 0, count - missing) << missing
            }
        }
    }

    pub(super) fn skip(&mut self, count: u32) {
        self.left -= i64::from(count);
    }

    pub(super) fn left(&self) -> i64 {
        self.left
    }
}
