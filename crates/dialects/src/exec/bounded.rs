//! Text that fits into a line of JSON.

/// The maximum length of the encoded output of a command. Readers that give up at 64 KiB per line have room for the
/// rest of the line.
const LONGEST: usize = 40 * 1024;

/// A text, without its middle if it would be too long as JSON.
pub(super) fn bounded(text: &str) -> String {
    bounded_to(text, LONGEST)
}

fn bounded_to(text: &str, longest: usize) -> String {
    let whole: usize = text.chars().map(encoded_length).sum();
    if whole <= longest {
        return text.to_owned();
    }
    let head = reach(text.chars(), longest / 2);
    let tail = text.len() - reach(text.chars().rev(), longest / 2);
    let left_out = tail.saturating_sub(head);
    let (head, tail) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
}

/// The number of bytes of the text that fit once they are encoded.
fn reach(chars: impl Iterator<Item = char>, longest: usize) -> usize {
    let mut encoded = 0;
    chars
        .take_while(|char| {
            encoded += encoded_length(*char);
            encoded <= longest
        })
        .map(char::len_utf8)
        .sum()
}

/// The number of bytes of a character in a JSON string.
fn encoded_length(char: char) -> usize {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        char if char.is_ascii_control() => 6,
        char => char.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_long_text_keeps_both_ends() {
        assert_eq!(bounded_to("short", 10), "short");
        assert_eq!(bounded_to("abcdefghijklmnop", 8), "abcd\n[… 8 bytes left out …]\nmnop");
        assert_eq!(bounded_to("\u{1}\u{1}\u{1}ééé", 12), "\u{1}\n[… 2 bytes left out …]\nééé");
    }

    proptest! {
        #[test]
        fn any_text_fits(text in "\\PC{0,80}[\u{0}-\u{20}]{0,80}\\PC{0,80}", longest in 2usize..200) {
            let encoded = serde_json::to_string(&bounded_to(&text, longest)).unwrap();
            prop_assert!(encoded.len() <= longest + 60, "{} for {longest}", encoded.len());
        }
    }
}
