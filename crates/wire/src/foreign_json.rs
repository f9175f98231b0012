//! JSON of other programs, which may be written to take far more memory as a tree of values than as text: sixteen
//! megabytes of `0,0,0…` become half a gigabyte.
//!
//! Invariant: a text that would take too much is refused before any of it is kept.

use serde::Deserialize;
use serde::de::Error as _;
use serde_json::Value;

/// The maximum number of bytes that the tree of one message may take.
pub const MAX_TREE_BYTES: usize = 32 * 1024 * 1024;

/// The size of a value, with the spare room of the list that it is in.
const VALUE_BYTES: usize = 96;
/// The size of an entry of an object besides its value: the name, its hash, and its place in the index.
const ENTRY_BYTES: usize = 96;
/// More than any text grows by, for each of its bytes.
const MAX_GROWTH: usize = 100;

/// An upper bound of the memory that a text takes as a tree of values.
#[must_use]
pub fn tree_bytes(text: &str) -> usize {
    let (mut values, mut entries, mut is_string, mut is_escaped) = (1, 0, false, false);
    for byte in text.bytes() {
        if is_string {
            (is_string, is_escaped) = (byte != b'"' || is_escaped, byte == b'\\' && !is_escaped);
            continue;
        }
        match byte {
            b'"' => is_string = true,
            b',' | b'[' | b'{' => values += 1,
            b':' => entries += 1,
            _ => {}
        }
    }
    text.len() + values * VALUE_BYTES + entries * ENTRY_BYTES
}

/// About the memory that a tree of values takes.
#[must_use]
pub fn value_bytes(value: &Value) -> usize {
    let inner = match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(values) => values.iter().map(value_bytes).sum(),
        Value::Object(entries) => {
            entries.iter().map(|(name, value)| ENTRY_BYTES + name.len() + value_bytes(value)).sum()
        }
    };
    VALUE_BYTES + inner
}

/// Whether a text takes at most this much memory.
#[must_use]
pub fn fits(text: &str, most: usize) -> bool {
    text.len() <= most / MAX_GROWTH || tree_bytes(text) <= most
}

/// Reads a text unless it takes more memory than `most`.
///
/// # Errors
/// When it does, or is no JSON of this form.
pub fn read_within<'a, T: Deserialize<'a>>(text: &'a str, most: usize) -> serde_json::Result<T> {
    if !fits(text, most) {
        return Err(serde_json::Error::custom(format!("it would take more than {most} bytes of memory")));
    }
    serde_json::from_str(text)
}

/// Reads a text unless it takes more memory than [`MAX_TREE_BYTES`].
///
/// # Errors
/// When it does, or is no JSON of this form.
pub fn read<'a, T: Deserialize<'a>>(text: &'a str) -> serde_json::Result<T> {
    read_within(text, MAX_TREE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_are_no_smaller_than_the_types() {
        assert!(size_of::<Value>() <= VALUE_BYTES && size_of::<(usize, String)>() <= ENTRY_BYTES);
    }

    #[test]
    fn the_bound_holds_for_texts_that_grow_most() {
        for part in ["0", "\"\"", "[]", "{}", "[0]", "{\"\":0}", "{\"a\":0,\"b\":[1,2]}", "\"\\\"[,:\\\\\""] {
            let text = format!("[{}]", vec![part; 1000].join(","));
            let (value, bound) = (value_bytes(&serde_json::from_str(&text).unwrap()), tree_bytes(&text));
            assert!(value <= bound && bound <= 1000 + text.len() * MAX_GROWTH, "{part}: {value} {bound}");
        }
    }

    #[test]
    fn a_text_that_grows_too_much_is_refused_and_a_long_string_is_not() {
        let error = read_within::<Value>(&format!("[{}0]", "0,".repeat(1000)), 10_000).unwrap_err();
        assert_eq!(error.to_string(), "it would take more than 10000 bytes of memory");
        let text = format!("\"{}\"", "[0,".repeat(3000));
        assert!(read_within::<Value>(&text, 10_000).is_ok());
        assert!(read_within::<Value>(&text, 8000).is_err());
    }

    #[test]
    fn words_between_marks_are_counted_once() {
        assert_eq!(tree_bytes("{\"a\\\\\":[1,2]}"), 13 + 4 * VALUE_BYTES + ENTRY_BYTES);
    }
}
