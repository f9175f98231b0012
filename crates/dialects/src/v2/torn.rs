//! Characters that are split between two chunks.

/// The number of bytes before an incomplete character at the end.
pub(super) fn complete_length(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(_) => bytes.len(),
        // Only a character at the very end can still be completed; anything else is invalid.
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Err(_) => {
            let tail = bytes.len().saturating_sub(3);
            let start = (tail..bytes.len()).find(|at| bytes[*at] >= 0xC0 && is_cut(&bytes[*at..]));
            start.unwrap_or(bytes.len())
        }
    }
}

/// Whether these bytes are the beginning of an incomplete character.
fn is_cut(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
