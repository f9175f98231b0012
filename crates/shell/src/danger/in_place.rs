//! Programs that change files in place.

/// Tells whether `sed`, `perl` or `ruby` would change files in place and keep no copy of what was in them.
pub(super) fn edits(program: &str, arguments: &[&str]) -> bool {
    // After these letters the rest of a word, or the next one, is a value.
    let valued = if program.ends_with("sed") { "efl" } else { "eEFIMmrxdDCVK" };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if *word == "--" {
            return false;
        }
        if let Some(long) = word.strip_prefix("--") {
            // It may be cut short, and with a suffix the old text is kept.
            if long.starts_with('i') && "in-place".starts_with(long) {
                return true;
            }
        } else if let Some(letters) = word.strip_prefix('-') {
            let Some(at) = letters.find(|letter| letter == 'i' || valued.contains(letter)) else { continue };
            match letters.get(at..) {
                Some("i") => return true,
                Some("e" | "E" | "f") => _ = words.next(),
                _ => {}
            }
        }
    }
    false
}
