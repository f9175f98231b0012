//! The names by which a model calls tools of servers.
//!
//! Invariant: names consist of characters that all providers accept, have at most 64 bytes, and are unique.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

/// The prefix of all names, so that no server can use the name of a built-in tool.
pub(crate) const PREFIX: &str = "mcp__";

const SEPARATOR: &str = "__";
const MOST_BYTES: usize = 64;
const DIGEST_BYTES: usize = 8;

/// A unique name for a tool of a server, which is added to the `taken` ones.
pub(crate) fn tool_name(server: &str, tool: &str, taken: &mut BTreeSet<String>) -> String {
    unique(&full_name(server, tool), &[server, tool], taken)
}

/// A safe form of a name that is not taken. One that is cut or taken has a digest of its parts.
fn unique(plain: &str, parts: &[&str], taken: &mut BTreeSet<String>) -> String {
    let safe: String = plain.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    let is_free = safe.len() <= MOST_BYTES && !taken.contains(&safe);
    let mut name = if is_free { safe.clone() } else { with_digest(&safe, parts) };
    // A server may list one name several times.
    let mut count = 1_u32;
    while taken.contains(&name) {
        count += 1;
        name = with_digest(&safe, &[parts, &[&count.to_string()]].concat());
    }
    taken.insert(name.clone());
    name
}

fn with_digest(safe: &str, parts: &[&str]) -> String {
    let kept = safe.len().min(MOST_BYTES - DIGEST_BYTES - 1);
    format!("{}_{}", &safe[..kept], &digest(parts)[..DIGEST_BYTES])
}

/// The name of a server as a namespace.
pub(crate) fn namespace(server: &str) -> String {
    short_name(&format!("{PREFIX}{server}"), &mut BTreeSet::new())
}

/// A unique name for a tool in the namespace of its server, which is added to the `taken` ones.
pub(crate) fn short_name(tool: &str, taken: &mut BTreeSet<String>) -> String {
    unique(tool, &[tool], taken)
}

/// The name before it is made safe, which models also use that know the server as a namespace.
pub(crate) fn full_name(server: &str, tool: &str) -> String {
    format!("{PREFIX}{server}{SEPARATOR}{tool}")
}

/// Whether a model has called a tool by its name in the namespace of its server.
pub(crate) fn is_grouped(called: &str, server: &str, short_name: &str) -> bool {
    called
        .strip_suffix(short_name)
        .and_then(|rest| rest.strip_suffix(SEPARATOR))
        .is_some_and(|rest| rest.starts_with(PREFIX) && rest == namespace(server))
}

/// Whether a model has called a tool of that server by this name, known or not.
pub(crate) fn is_of_server(called: &str, server: &str) -> bool {
    called.strip_prefix(PREFIX).unwrap_or(called).strip_prefix(server).is_some_and(|rest| rest.starts_with(SEPARATOR))
}

/// Whether a model means that tool: by its name, or by one of the forms of other releases.
pub(crate) fn means(called: &str, name: &str, server: &str, tool: &str) -> bool {
    let is_full = |called: &str| {
        called.strip_prefix(server).and_then(|rest| rest.strip_prefix(SEPARATOR)).is_some_and(|rest| rest == tool)
    };
    called == name || is_full(called) || called.strip_prefix(PREFIX).is_some_and(is_full)
}

fn is_safe(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// A digest of texts, in hexadecimal digits.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        // The length of each part is included, so that no two lists give the same bytes.
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _: Result<(), _> = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(tools: &[(&str, &str)]) -> Vec<String> {
        let mut taken = BTreeSet::new();
        tools.iter().map(|(server, tool)| tool_name(server, tool, &mut taken)).collect()
    }

    #[test]
    fn names_are_safe_short_and_different() {
        let long = "a".repeat(80);
        let same = ("s", "same");
        let mut tools =
            vec![("s", "echo"), ("s", "say hi!"), ("s", "say hi?"), ("s", &*long), ("t", &*long), ("é", "ü")];
        tools.extend([same; 4]);
        let found = names(&tools);
        assert_eq!(found[0], "mcp__s__echo");
        assert_eq!(found[1], "mcp__s__say_hi_");
        assert!(found[2].starts_with("mcp__s__say_hi__") && found[2].len() == 24, "{}", found[2]);
        assert!(found.iter().all(|name| name.len() <= MOST_BYTES && name.chars().all(is_safe)), "{found:?}");
        assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), found.len());
        assert_eq!(names(&[("s", &long)]), names(&[("s", &long)]), "the same tool has the same name again");
    }

    #[test]
    fn all_forms_of_a_name_mean_the_tool() {
        for called in ["mcp__s__say hi", "s__say hi", "mcp__s__say_hi"] {
            assert!(means(called, "mcp__s__say_hi", "s", "say hi"), "{called}");
        }
        for called in ["say hi", "mcp__t__say hi", "s_say hi", "s__say"] {
            assert!(!means(called, "mcp__s__say_hi", "s", "say hi"), "{called}");
        }
        assert!(is_of_server("mcp__s__x", "s") && is_of_server("s__x", "s"));
        assert!(!is_of_server("mcp__st__x", "s") && !is_of_server("shell", "s"));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_eq!(digest(&[]).len(), 64);
    }
}
