//! Names of tools and calls as a provider takes them.

use std::borrow::Cow;

use codex_wire::provider_traits::ProviderTraits;

/// The number of characters that distinguish a shortened name from others with the same beginning.
const MARK_LENGTH: usize = 9;

/// A name as a provider takes it. It depends on the name alone, so a call and its output agree.
pub(crate) fn accepted<'a>(name: &'a str, traits: &ProviderTraits) -> Cow<'a, str> {
    accepted_as(name, traits.tool_name_length, &traits.tool_name_characters)
}

/// A name of so many characters at most: letters, digits, and those that are allowed besides.
pub(crate) fn accepted_as<'a>(name: &'a str, most: usize, besides: &str) -> Cow<'a, str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || besides.contains(c);
    if !name.is_empty() && name.len() <= most && name.chars().all(is_allowed) {
        return Cow::Borrowed(name);
    }
    let kept = name.chars().take(most.saturating_sub(MARK_LENGTH));
    let mut made: String = kept.map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let mark = format!("_{:08x}", fnv(name) & 0xffff_ffff);
    made.push_str(&mark);
    Cow::Owned(made)
}

/// A number that nearly always differs where names do.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_stay_apart() {
        let traits = ProviderTraits::unknown();
        assert!(matches!(accepted("apply_patch", &traits), Cow::Borrowed("apply_patch")));
        let long = |end: &str| format!("mcp__{}{end}", "server".repeat(20));
        let (one, other) = (long("a"), long("b"));
        let (one, other) = (accepted(&one, &traits), accepted(&other, &traits));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
        assert_eq!(accepted("a.b c", &traits), "a_b_c_133b29e5");
        assert_ne!(accepted("a.b", &traits), accepted("a:b", &traits));
        assert!(!accepted("", &traits).is_empty());
    }
}
