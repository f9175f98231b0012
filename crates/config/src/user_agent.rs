//! The user agent for providers and clients.

use crate::Env;

/// `originator/version (system version; architecture) terminal`, the format from which clients parse the version.
#[must_use]
pub fn user_agent(originator: &str, env: &Env) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let (system, release) = system();
    let terminal = env.text("TERM_PROGRAM").or_else(|| env.text("TERM")).unwrap_or_else(|| "unknown".to_owned());
    let name = format!("{originator}/{version} ({system} {release}; {}) {terminal}", std::env::consts::ARCH);
    // The text becomes a header, and variables can contain anything.
    name.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '_' }).collect()
}

/// The name and release of the system.
fn system() -> (String, String) {
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
        Some(line.trim_matches('"').split_whitespace().next()?.to_owned())
    };
    let name = field("NAME").unwrap_or_else(|| std::env::consts::OS.to_owned());
    (name, field("VERSION_ID").map_or_else(|| "unknown".to_owned(), |version| in_three(&version)))
}

/// A version as three numbers, the format of all releases; any other word unchanged.
fn in_three(version: &str) -> String {
    let numbers: Result<Vec<u64>, _> = version.split('.').map(str::parse).collect();
    match numbers.as_deref() {
        Ok([major]) => format!("{major}.0.0"),
        Ok([major, minor]) => format!("{major}.{minor}.0"),
        Ok([major, minor, patch]) => format!("{major}.{minor}.{patch}"),
        _ => version.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_of_the_system_has_three_parts() {
        for (version, expected) in [("12", "12.0.0"), ("22.04", "22.4.0"), ("3.20.3", "3.20.3"), ("n/a", "n/a")] {
            assert_eq!(in_three(version), expected);
        }
    }

    #[test]
    fn the_version_follows_the_originator_and_control_characters_are_removed() {
        let env = Env::from_iter([("TERM", "xterm\r\nx-evil: 1")]);
        let agent = user_agent("codex_cli_rs", &env);
        assert!(agent.starts_with(concat!("codex_cli_rs/", env!("CARGO_PKG_VERSION"), " (")), "{agent}");
        assert!(agent.ends_with(") xterm__x-evil: 1"), "{agent}");
    }
}
