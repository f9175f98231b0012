//! Huffman codes of literals.

use super::ZstdError;
use super::bits::BackwardBits;
use super::fse::FseTable;

/// The longest code.
const MOST_BITS: u32 = 11;

/// The largest table of weights, and the most weights that are written.
const MOST_WEIGHT_ACCURACY: u32 = 6;
const MOST_WEIGHTS: usize = 255;

/// A table that gives the symbol of the next code.
#[derive(Debug, Clone)]
pub(super) struct HuffmanTable {
    /// Symbol and length of the code, by the next bits.
    entries: Vec<(u8, u8)>,
    bits: u32,
}

impl HuffmanTable {
    /// Reads a table. Returns the number of bytes that it takes.
    pub(super) fn read(bytes: &[u8]) -> Result<(Self, usize), ZstdError> {
        let breaks_off = ZstdError("a Huffman table breaks off");
        let (&header, rest) = bytes.split_first().ok_or(breaks_off)?;
        let header = usize::from(header);
        if header < 128 {
            let weights = compressed_weights(rest.get(..header).ok_or(breaks_off)?)?;
            return Ok((Self::of(weights)?, 1 + header));
        }
        let count = header - 127;
        let packed = rest.get(..count.div_ceil(2)).ok_or(breaks_off)?;
        let mut weights: Vec<u8> = packed.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
        weights.truncate(count);
        Ok((Self::of(weights)?, 1 + packed.len()))
    }

    /// The table of these weights. That of the last symbol is left out, because it follows from the others.
    fn of(mut weights: Vec<u8>) -> Result<Self, ZstdError> {
        let wrong = ZstdError("the weights of a Huffman table are wrong");
        let share = |weight: u8| 1_u32.checked_shl(u32::from(weight)).unwrap_or(0) >> 1;
        let sum = weights.iter().try_fold(0_u32, |sum, weight| sum.checked_add(share(*weight))).ok_or(wrong)?;
        if sum == 0 {
            return Err(wrong);
        }
        let bits = sum.ilog2() + 1;
        let last = (1 << bits) - sum;
        if bits > MOST_BITS || !last.is_power_of_two() {
            return Err(wrong);
        }
        weights.push(u8::try_from(last.ilog2() + 1).map_err(|_| wrong)?);
        let mut entries = Vec::with_capacity(1 << bits);
        // Long codes, whose weights are small, come first.
        for weight in 1..=u8::try_from(bits).map_err(|_| wrong)? {
            let length = u8::try_from(bits + 1).map_err(|_| wrong)? - weight;
            for (symbol, _) in weights.iter().enumerate().filter(|(_, other)| **other == weight) {
                let symbol = u8::try_from(symbol).map_err(|_| wrong)?;
                entries.extend(std::iter::repeat_n((symbol, length), share(weight) as usize));
            }
        }
        if entries.len() != 1 << bits {
            return Err(wrong);
        }
        Ok(Self { entries, bits })
    }

    /// Decodes a stream into this many symbols, which have to use it up.
    pub(super) fn decode(&self, bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Result<(), ZstdError> {
        let mut bits = BackwardBits::new(bytes)?;
        for _ in 0..count {
            let place = usize::try_from(bits.peek(self.bits)).unwrap_or(0);
            let (symbol, length) = self.entries.get(place).copied().unwrap_or_default();
            bits.skip(u32::from(length));
            out.push(symbol);
        }
        if bits.left() == 0 { Ok(()) } else { Err(ZstdError("a stream of literals has the wrong length")) }
    }
}

/// Weights are compressed with two states in turn, until no bits are left.
fn compressed_weights(bytes: &[u8]) -> Result<Vec<u8>, ZstdError> {
    let (table, length) = FseTable::read(bytes, MOST_WEIGHT_ACCURACY, MOST_WEIGHTS)?;
    let mut bits = BackwardBits::new(bytes.get(length..).unwrap_or_default())?;
    let (mut one, mut other) = (table.first(&mut bits), table.first(&mut bits));
    let mut weights = Vec::new();
    while weights.len() < MOST_WEIGHTS {
        weights.push(table.symbol(one));
        table.advance(&mut one, &mut bits);
        if bits.left() < 0 {
            weights.push(table.symbol(other));
            return Ok(weights);
        }
        std::mem::swap(&mut one, &mut other);
    }
    Err(ZstdError("a Huffman table has too many weights"))
}
