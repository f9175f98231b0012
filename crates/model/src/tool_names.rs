//! Names of tools and ids of calls, restricted to those that a provider accepts.

use std::borrow::Cow;

use codex_wire::provider_traits::ProviderTraits;

/// The number of characters that distinguish a shortened name from others with the same beginning.
const MARK_LENGTH: usize = 9;

/// A name that the provider accepts. It depends on the name alone, so a call and its output agree.
pub(crate) fn accepted_name<'a>(name: &'a str, traits: &ProviderTraits) -> Cow<'a, str> {
    restricted_name(name, traits.tool_name_length, &traits.tool_name_characters)
}

/// A name with a maximum length that consists of letters, digits and these other characters.
pub(crate) fn restricted_name<'a>(name: &'a str, most: usize, besides: &str) -> Cow<'a, str> {
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

/// A hash of a name.
fn fnv(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_stay_apart() {
        let traits = ProviderTraits::unknown();
        assert!(matches!(accepted_name("apply_patch", &traits), Cow::Borrowed("apply_patch")));
        let long = |end: &str| format!("mcp__{}{end}", "server".repeat(20));
        let (one, other) = (long("a"), long("b"));
        let (one, other) = (accepted_name(&one, &traits), accepted_name(&other, &traits));
        assert_eq!((one.len(), other.len()), (64, 64));
        assert_ne!(one, other);
        assert_eq!(accepted_name("a.b c", &traits), "a_b_c_133b29e5");
        assert_ne!(accepted_name("a.b", &traits), accepted_name("a:b", &traits));
        assert!(!accepted_name("", &traits).is_empty());
    }
}
