//! The profile as a Seatbelt policy, for `sandbox-exec` on macOS.
//!
//! Seatbelt matches paths by name, and the last matching rule wins, so a protected name needs no placeholder: it is
//! denied whether it exists or not, and so is moving the folders around it.
//!
//! Invariant: a pure function of the layout; a path cannot break out of its string or its rule.

use std::fmt::Write as _;
use std::path::Path;

use crate::layout::{Kind, Layout};
use crate::profile::Profile;

/// The rights that every program needs to start and to be killed, and nothing that leaves the sandbox.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec)
(allow process-fork)
(allow signal (target same-sandbox))
(allow process-info* (target same-sandbox))
(allow file-read*)
(allow file-write-data file-ioctl (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (regex #"^/dev/ttys[0-9]+$"))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow mach-lookup (global-name "com.apple.PowerManagement.control"))
"#;

/// The rights that the network needs besides sockets: name resolution and certificates.
const NETWORK: &str = r#"(allow network-outbound (remote ip))
(allow network-inbound (local ip))
(allow system-socket (socket-domain AF_INET) (socket-domain AF_INET6))
(allow mach-lookup (global-name "com.apple.dnssd.service"))
(allow mach-lookup (global-name "com.apple.SecurityServer"))
(allow mach-lookup (global-name "com.apple.trustd.agent"))
"#;

/// The profile as text for `sandbox-exec -p`.
#[must_use]
pub fn seatbelt(profile: &Profile) -> String {
    let mut text = text(&profile.layout(), profile.network());
    for path in profile.secrets().paths() {
        text.push_str(&hidden(path));
    }
    text
}

fn text(layout: &Layout, network: bool) -> String {
    let mut text = BASE.to_owned();
    if network {
        text.push_str(NETWORK);
    }
    for place in &layout.places {
        let path = quoted(&place.path);
        let _ = match place.kind {
            Kind::Open => {
                writeln!(text, "(allow file-write* (subpath {path}))\n(deny file-write-unlink (literal {path}))")
            }
            Kind::Pinned => writeln!(text, "(deny file-write-unlink (literal {path}))"),
            Kind::Closed => writeln!(text, "(deny file-write* (subpath {path}))"),
        };
    }
    text
}

/// Denies reading and writing a path.
fn hidden(path: &Path) -> String {
    format!("(deny file-read* file-write* (subpath {}))\n", quoted(path))
}

fn quoted(path: &Path) -> String {
    let mut quoted = String::from('"');
    for character in path.to_string_lossy().chars() {
        if matches!(character, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(character);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Place;

    fn layout(places: &[(&str, Kind)]) -> Layout {
        let place = |(path, kind): &(&str, Kind)| Place { path: path.into(), kind: *kind, placeholder: None };
        Layout { places: places.iter().map(place).collect(), ..Layout::default() }
    }

    #[test]
    fn closed_places_come_after_the_folder_around_them() {
        let layout = layout(&[
            ("/w", Kind::Open),
            ("/w/.codex", Kind::Closed),
            ("/w/.git", Kind::Pinned),
            ("/w/.git/hooks", Kind::Closed),
        ]);
        let text = text(&layout, false);
        let rules = text.strip_prefix(BASE).expect("the base comes first");
        assert_eq!(
            rules,
            "(allow file-write* (subpath \"/w\"))\n(deny file-write-unlink (literal \"/w\"))\n\
             (deny file-write* (subpath \"/w/.codex\"))\n(deny file-write-unlink (literal \"/w/.git\"))\n\
             (deny file-write* (subpath \"/w/.git/hooks\"))\n"
        );
    }

    #[test]
    fn nothing_writes_and_nothing_connects_by_default() {
        let text = text(&layout(&[]), false);
        assert!(text.starts_with("(version 1)\n(deny default)\n"));
        assert!(!text.contains("network") && !text.contains("(subpath"), "{text}");
        assert!(super::text(&layout(&[]), true).contains("network-outbound"));
    }

    #[test]
    fn secrets_are_not_read() {
        assert_eq!(hidden(Path::new("/h/run")), "(deny file-read* file-write* (subpath \"/h/run\"))\n");
    }

    #[test]
    fn a_path_cannot_end_its_string() {
        let text = text(&layout(&[("/w\")(allow default)(\"\\", Kind::Open)]), false);
        assert!(text.contains(r#"(subpath "/w\")(allow default)(\"\\")"#), "{text}");
    }
}
