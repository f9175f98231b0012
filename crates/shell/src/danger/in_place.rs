//! Programs that change files in place.

/// Whether `sed`, `perl` or `ruby` would change files in place without a backup.
pub(super) fn edits(program: &str, arguments: &[&str]) -> bool {
    // After these letters the rest of the word, or the next one, is a value.
    let valued = if program.ends_with("sed") { "efl" } else { "eEFIMmrxdDCVK" };
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if *word == "--" {
            return false;
        }
        if let Some(long) = word.strip_prefix("--") {
            // It may be abbreviated, and with a suffix a backup is kept.
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
