//! Compares the rules with those of the crate `landlock`.

use std::fs;
use std::io;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, PathBeneath, PathFd, Ruleset,
    RulesetAttr as _, RulesetCreatedAttr as _, Scope,
};

use super::*;

const VERSIONS: [(u32, ABI); 6] = [(1, ABI::V1), (2, ABI::V2), (3, ABI::V3), (4, ABI::V4), (5, ABI::V5), (6, ABI::V6)];

/// Builds the same rules as [`ruleset`] and [`allow_open`].
fn theirs(abi: ABI, network: bool, open: &Path) -> landlock::RulesetCreated {
    let mut rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules = rules.handle_access(AccessFs::from_all(abi)).unwrap();
    if !network && !AccessNet::from_all(abi).is_empty() {
        rules = rules.handle_access(AccessNet::from_all(abi)).unwrap();
    }
    if !Scope::from_all(abi).is_empty() {
        rules = rules.scope(Scope::from_all(abi)).unwrap();
    }
    let look = AccessFs::Execute | AccessFs::ReadDir | AccessFs::ReadFile;
    let write = AccessFs::from_all(abi) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev);
    let below = |path: &Path, access| PathBeneath::new(PathFd::new(path).unwrap(), access);
    rules.create().unwrap().add_rule(below(Path::new("/"), look)).unwrap().add_rule(below(open, write)).unwrap()
}

/// The things that a confined thread can still do, each with the kind of error it got.
fn attempts(open: &Path, closed: &Path) -> Vec<(String, Result<(), io::ErrorKind>)> {
    let mut seen = Vec::new();
    for (name, folder) in [("open", open), ("closed", closed)] {
        let mut attempt = |what: &str, result: io::Result<()>| {
            seen.push((format!("{what} in {name}"), result.map_err(|error| error.kind())));
        };
        attempt("read", fs::read(folder.join("there")).map(drop));
        attempt("list", fs::read_dir(folder).map(drop));
        attempt("create", fs::write(folder.join("new"), "text"));
        attempt("write", fs::OpenOptions::new().append(true).open(folder.join("there")).map(drop));
        attempt("truncate", fs::File::options().write(true).truncate(true).open(folder.join("there")).map(drop));
        attempt("make a folder", fs::create_dir(folder.join("folder")));
        attempt("make a link", std::os::unix::fs::symlink("there", folder.join("link")));
        attempt("rename", fs::rename(folder.join("there"), folder.join("renamed")));
        attempt("move out", fs::rename(folder.join("renamed"), closed.join("moved")));
        attempt("remove", fs::remove_file(folder.join("new")));
    }
    seen.push((
        "listen".to_owned(),
        std::net::TcpListener::bind("127.0.0.1:0").map(drop).map_err(|error| error.kind()),
    ));
    seen
}

/// Runs the attempts in a separate thread, because the confinement lasts until its end.
fn confined(confine: impl FnOnce(&Path) + Send + 'static) -> Vec<(String, Result<(), io::ErrorKind>)> {
    let folder = tempfile::tempdir().unwrap();
    let (open, closed) = (folder.path().join("open"), folder.path().join("closed"));
    for place in [&open, &closed] {
        fs::create_dir(place).unwrap();
        fs::write(place.join("there"), "text").unwrap();
    }
    let run = move || {
        confine(&open);
        attempts(&open, &closed)
    };
    std::thread::spawn(run).join().unwrap()
}

#[test]
fn the_rights_of_each_version_are_those_of_the_crate() {
    for (number, abi) in VERSIONS {
        assert_eq!(known(number), AccessFs::from_all(abi).bits(), "version {number}");
    }
    for (ours, theirs) in [
        (EXECUTE, AccessFs::Execute),
        (WRITE_FILE, AccessFs::WriteFile),
        (READ_FILE, AccessFs::ReadFile),
        (READ_DIR, AccessFs::ReadDir),
        (MAKE_CHAR, AccessFs::MakeChar),
        (MAKE_BLOCK, AccessFs::MakeBlock),
        (TRUNCATE, AccessFs::Truncate),
        (IOCTL_DEV, AccessFs::IoctlDev),
    ] {
        assert_eq!(ours, theirs as u64, "{theirs:?}");
    }
}

#[test]
fn a_thread_can_do_the_same_under_both_rules() {
    let supported = sys::landlock_abi();
    for (number, abi) in VERSIONS.into_iter().filter(|(number, _)| *number <= supported) {
        for network in [false, true] {
            let ours = confined(move |open| {
                let rules = ruleset(number, network, &[]).unwrap();
                sys::landlock_allow(rules.as_fd(), super::open(open).unwrap().as_fd(), write_access(number)).unwrap();
                sys::prctl(libc::PR_SET_NO_NEW_PRIVS, 1).unwrap();
                sys::landlock_restrict(rules.as_fd()).unwrap();
            });
            let theirs = confined(move |open| {
                theirs(abi, network, open).restrict_self().unwrap();
            });
            assert_eq!(ours, theirs, "version {number}, network {network}");
            let denied = ours.iter().filter(|(_, result)| result == &Err(io::ErrorKind::PermissionDenied)).count();
            assert!(denied >= 6, "version {number}: {ours:?}");
        }
    }
}
