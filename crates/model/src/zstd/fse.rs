//! Tables of finite state entropy coding.

use super::ZstdError;
use super::bits::{BackwardBits, ForwardBits};

/// A table: each state stands for a symbol, and tells the next state.
#[derive(Debug, Clone)]
pub(super) struct FseTable {
    entries: Vec<Entry>,
    accuracy: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    symbol: u8,
    /// The number of bits that are added to the base to get the next state.
    bits: u32,
    base: usize,
}

/// A state of a table.
#[derive(Debug, Clone, Copy)]
pub(super) struct FseState(usize);

impl FseTable {
    /// Reads a table. Returns the number of bytes that it takes.
    pub(super) fn read(bytes: &[u8], most_accuracy: u32, most_symbols: usize) -> Result<(Self, usize), ZstdError> {
        let mut bits = ForwardBits::new(bytes);
        let accuracy = u32::try_from(bits.read(4)?).unwrap_or(u32::MAX) + 5;
        if accuracy > most_accuracy {
            return Err(ZstdError("a table is too large"));
        }
        let mut left = 1_i32 << accuracy;
        let mut counts: Vec<i32> = Vec::new();
        while left > 0 {
            let count = read_count(&mut bits, left)?;
            left -= count.abs();
            counts.push(count);
            if count == 0 {
                loop {
                    let zeros = usize::try_from(bits.read(2)?).unwrap_or(0);
                    counts.resize(counts.len() + zeros, 0);
                    if zeros < 3 || counts.len() > most_symbols {
                        break;
                    }
                }
            }
            if counts.len() > most_symbols {
                return Err(ZstdError("a table has too many symbols"));
            }
        }
        if left < 0 {
            return Err(ZstdError("the counts of a table are too large"));
        }
        Ok((Self::of(&counts, accuracy)?, bits.bytes_read()))
    }

    /// The table of a distribution. A count of -1 is less than 1.
    pub(super) fn of(counts: &[i32], accuracy: u32) -> Result<Self, ZstdError> {
        let size = 1_usize << accuracy;
        let mut entries = vec![Entry::default(); size];
        let mut next: Vec<usize> = counts.iter().map(|count| count.unsigned_abs() as usize).collect();
        let mut high = size;
        let symbol = |place: usize| u8::try_from(place).map_err(|_| ZstdError("a table has too many symbols"));
        for (place, _) in counts.iter().enumerate().filter(|(_, count)| **count == -1) {
            high = high.checked_sub(1).ok_or(ZstdError("the counts of a table are too large"))?;
            entries[high].symbol = symbol(place)?;
        }
        let (step, mut at) = ((size >> 1) + (size >> 3) + 3, 0);
        for (place, count) in counts.iter().enumerate() {
            for _ in 0..(*count).max(0) {
                entries[at].symbol = symbol(place)?;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        if at != 0 {
            return Err(ZstdError("the counts of a table do not fit"));
        }
        for entry in &mut entries {
            let state = &mut next[usize::from(entry.symbol)];
            entry.bits = accuracy - state.ilog2();
            entry.base = (*state << entry.bits) - size;
            *state += 1;
        }
        Ok(Self { entries, accuracy })
    }

    /// A table with one symbol.
    pub(super) fn single(symbol: u8) -> Self {
        Self { entries: vec![Entry { symbol, bits: 0, base: 0 }], accuracy: 0 }
    }

    pub(super) fn first(&self, bits: &mut BackwardBits<'_>) -> FseState {
        FseState(usize::try_from(bits.read(self.accuracy)).unwrap_or(0))
    }

    fn entry(&self, state: FseState) -> Entry {
        self.entries.get(state.0).copied().unwrap_or_default()
    }

    pub(super) fn symbol(&self, state: FseState) -> u8 {
        self.entry(state).symbol
    }

    pub(super) fn advance(&self, state: &mut FseState, bits: &mut BackwardBits<'_>) {
        let entry = self.entry(*state);
        *state = FseState(entry.base + usize::try_from(bits.read(entry.bits)).unwrap_or(0));
    }
}

/// Reads one count. It takes fewer bits the less is left.
fn read_count(bits: &mut ForwardBits<'_>, left: i32) -> Result<i32, ZstdError> {
    let range = u64::from(left.unsigned_abs()) + 1;
    let count = range.ilog2() + 1;
    let value = bits.read(count)?;
    let (low, threshold) = (value & ((1 << (count - 1)) - 1), (1 << count) - 1 - range);
    let value = if low < threshold {
        bits.unread();
        low
    } else if value >= 1 << (count - 1) {
        value - threshold
    } else {
        value
    };
    Ok(i32::try_from(value).unwrap_or(i32::MAX) - 1)
}
