//! A patch writes only below the roots and to no protected name, whatever its paths and links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use codex_patch::{ApplyCause, Guard, Refused};
use proptest::prelude::*;

use crate::{Folder, patch};

/// A folder with a workspace `ws` and a folder `out` next to it.
fn neighbours() -> Folder {
    Folder::with(&[("ws/a", "1\n"), ("ws/sub/b", "1\n"), ("out/secret", "1\n")])
}

fn guard(folder: &Folder) -> Guard {
    let forbidden = [".git/hooks", ".git/config", ".codex", ".envrc"].map(|name| folder.at("ws").join(name));
    Guard { roots: Some(vec![folder.at("ws")]), forbidden: forbidden.into(), names: Vec::new() }
}

/// Plans and applies a patch in the workspace. Returns whether it stayed within, and asserts that it did what it said.
#[track_caller]
fn is_allowed(folder: &Folder, operations: &str) -> bool {
    let before = folder.tree();
    let guard = guard(folder);
    let plan = codex_patch::parse(&patch(operations)).unwrap().plan(&folder.at("ws")).unwrap();
    let within = plan.is_within(guard.roots.as_deref().unwrap(), &guard.forbidden);
    assert_eq!(plan.check(&guard).is_ok(), within);
    let result = plan.apply(&guard);
    assert_eq!(result.is_ok(), within, "{result:?}");
    if let Err(error) = result {
        assert!(matches!(error.cause, ApplyCause::Refused(_)), "{error:?}");
        assert_eq!(folder.tree(), before);
    }
    within
}

#[test]
fn paths_that_lead_outside() {
    let outside = neighbours().at("out/new").display().to_string();
    for operations in [
        "*** Add File: ../out/new\n+x",
        "*** Add File: ../ws-evil/new\n+x",
        "*** Add File: ../wsx\n+x",
        "*** Add File: sub/../../out/new\n+x",
        "*** Update File: ../out/secret\n@@\n-1\n+2",
        "*** Delete File: ../out/secret",
        "*** Update File: a\n*** Move to: ../out/a",
        "*** Update File: ../out/secret\n*** Move to: stolen",
        "*** Update File: a\n@@\n-1\n+2\n*** Add File: ../out/new\n+x",
        &format!("*** Add File: {outside}\n+x"),
    ] {
        assert!(!is_allowed(&neighbours(), operations), "{operations}");
    }
}

#[test]
fn paths_that_stay_inside() {
    let folder = neighbours();
    let inside = folder.at("ws/abs").display().to_string();
    assert!(is_allowed(&folder, &format!("*** Add File: {inside}\n+x")));
    assert!(is_allowed(&folder, "*** Add File: ../ws/n\n+x\n*** Add File: sub/./../m\n+x"));
    assert!(is_allowed(&folder, "*** Update File: a\n*** Move to: sub/c"));
    assert!(is_allowed(
        &folder,
        "*** Add File: .git/info/exclude\n+x\n*** Add File: .gitignore\n+x\n*** Add File: .codexrc\n+x"
    ));
}

#[test]
fn links_that_stay_inside_are_followed() {
    let folder = neighbours();
    symlink("sub", folder.at("ws/relative")).unwrap();
    symlink(folder.at("ws/sub"), folder.at("ws/absolute")).unwrap();
    symlink("../ws/sub/b", folder.at("ws/file")).unwrap();
    assert!(is_allowed(&folder, "*** Update File: relative/b\n@@\n-1\n+2\n*** Add File: relative/new/n\n+x"));
    assert!(is_allowed(&folder, "*** Update File: absolute/b\n@@\n-2\n+3"));
    assert!(is_allowed(&folder, "*** Update File: file\n@@\n-3\n+4"));
    assert_eq!(folder.read("ws/sub/b"), b"4\n");
    assert_eq!(folder.read("ws/sub/new/n"), b"x\n");
    assert!(folder.at("ws/file").is_symlink());
}

#[test]
fn links_that_lead_outside_are_not() {
    let folder = neighbours();
    symlink("../out", folder.at("ws/relative")).unwrap();
    symlink(folder.at("out"), folder.at("ws/absolute")).unwrap();
    symlink("../out/secret", folder.at("ws/file")).unwrap();
    symlink("/proc/self/cwd/../../", folder.at("ws/magic")).unwrap();
    for operations in [
        "*** Add File: relative/x\n+x",
        "*** Add File: relative/deep/x\n+x",
        "*** Add File: absolute/x\n+x",
        "*** Update File: relative/secret\n@@\n-1\n+2",
        "*** Delete File: absolute/secret",
        "*** Update File: file\n@@\n-1\n+2",
        "*** Update File: a\n*** Move to: relative/a",
        "*** Add File: magic/codex-patch-test\n+x",
        "*** Add File: /proc/self/root/codex-patch-test\n+x",
        "*** Add File: /proc/self/cwd/codex-patch-test\n+x",
    ] {
        assert!(!is_allowed(&folder, operations), "{operations}");
    }
}

#[test]
fn links_are_neither_deleted_nor_moved_nor_taken_for_free() {
    let folder = neighbours();
    symlink("sub/b", folder.at("ws/file")).unwrap();
    symlink("nowhere", folder.at("ws/dangling")).unwrap();
    symlink("loop", folder.at("ws/loop")).unwrap();
    for (operations, expected) in [
        ("*** Delete File: ws/file", "/w/ws/file is a symbolic link\nhint: name the file that it leads to"),
        (
            "*** Update File: ws/file\n*** Move to: x",
            "/w/ws/file is a symbolic link\nhint: name the file that it leads to",
        ),
        ("*** Add File: ws/dangling\n+x", "/w/ws/dangling leads through a symbolic link to nothing"),
        ("*** Add File: ws/dangling/x\n+x", "/w/ws/dangling/x leads through a symbolic link to nothing"),
        ("*** Update File: ws/a\n*** Move to: ws/dangling", "/w/ws/dangling leads through a symbolic link to nothing"),
        (
            "*** Add File: ws/loop/x\n+x",
            "could not read /w/ws/loop/x\n  because Too many levels of symbolic links (os error 40)",
        ),
    ] {
        assert_eq!(folder.plan(&patch(operations)).unwrap_err(), expected);
    }
}

#[test]
fn protected_names_in_any_spelling_and_whether_there_or_not() {
    for exists in [false, true] {
        for name in [
            ".codex/config.toml",
            ".codex",
            ".git/hooks/pre-commit",
            ".git/hooks/deep/x",
            ".git/config",
            ".git/../.git/config",
            ".git",
            ".envrc",
            ".Codex/config.toml",
            ".GIT/HOOKS/pre-commit",
            ".git/ConfiG",
            ".g\u{200c}it/config",
            "sub/../.codex/x",
        ] {
            let folder = neighbours();
            if exists {
                fs::create_dir_all(folder.at("ws/.git/hooks")).unwrap();
                fs::create_dir_all(folder.at("ws/.codex")).unwrap();
            }
            if folder.at("ws").join(name).exists() {
                continue;
            }
            assert!(!is_allowed(&folder, &format!("*** Add File: {name}\n+x")), "{name}");
            assert!(!is_allowed(&folder, &format!("*** Update File: a\n*** Move to: {name}")), "{name}");
        }
    }
    let folder = neighbours();
    folder.write("ws/.git/config", "1\n");
    symlink(".git", folder.at("ws/data")).unwrap();
    assert!(!is_allowed(&folder, "*** Update File: .git/config\n@@\n-1\n+2"));
    assert!(!is_allowed(&folder, "*** Delete File: .git/config"));
    assert!(!is_allowed(&folder, "*** Update File: data/config\n@@\n-1\n+2"));
    assert!(!is_allowed(&folder, "*** Add File: data/hooks/x\n+x"));
    assert!(is_allowed(&folder, "*** Add File: data/description\n+x"));
}

#[test]
fn a_refused_path_is_named_with_its_target() {
    let folder = neighbours();
    symlink("../out", folder.at("ws/link")).unwrap();
    let plan = folder.planned(&patch("*** Add File: ws/link/x\n+x"));
    let (path, real) = (folder.at("ws/link/x"), folder.at("out/x"));
    assert_eq!(plan.paths(), std::slice::from_ref(&path));
    assert_eq!(plan.check(&guard(&folder)), Err(Refused::Outside { path, real }));
    let error = folder.told(&plan.apply(&guard(&folder)).unwrap_err(), None);
    assert_eq!(
        error,
        "could not apply the patch to /w/ws/link/x; no file was changed\n  because /w/out/x is outside of the folders that may be written"
    );
}

#[test]
fn without_roots_any_place_will_do() {
    let folder = neighbours();
    symlink("../out", folder.at("ws/link")).unwrap();
    let plan = folder.planned(&patch("*** Add File: ws/link/deep/x\n+x"));
    plan.apply(&Guard::anywhere()).unwrap();
    assert_eq!(folder.read("out/deep/x"), b"x\n");
}

#[test]
fn a_root_with_a_link_in_it_is_no_root() {
    let folder = neighbours();
    symlink("out", folder.at("moved")).unwrap();
    let plan = folder.planned(&patch("*** Add File: moved/x\n+x"));
    assert!(!plan.is_within(&[folder.at("moved")], &[]));
    let plan = folder.planned(&patch("*** Add File: out/x\n+x"));
    fs::rename(folder.at("out"), folder.at("elsewhere")).unwrap();
    symlink("elsewhere", folder.at("out")).unwrap();
    plan.apply(&Guard { roots: Some(vec![folder.at("out")]), forbidden: Vec::new(), names: Vec::new() }).unwrap_err();
    assert!(!folder.at("elsewhere/x").exists());
}

#[test]
fn a_link_that_is_put_in_place_after_planning() {
    for operations in [
        "*** Add File: sub/new\n+x",
        "*** Add File: sub/deep/new\n+x",
        "*** Update File: sub/b\n@@\n-1\n+2",
        "*** Delete File: sub/b",
        "*** Update File: a\n*** Move to: sub/a",
    ] {
        let folder = neighbours();
        folder.write("out/b", "1\n");
        let plan = codex_patch::parse(&patch(operations)).unwrap().plan(&folder.at("ws")).unwrap();
        fs::rename(folder.at("ws/sub"), folder.at("ws/was")).unwrap();
        symlink("../out", folder.at("ws/sub")).unwrap();
        let before = folder.tree();
        let error = plan.apply(&guard(&folder)).unwrap_err();
        assert!(matches!(error.cause, ApplyCause::ChangedMeanwhile), "{error:?}");
        assert_eq!(folder.tree(), before);
    }
}

/// Another thread keeps swapping the folder with a link to the outside while patches are planned and applied.
#[test]
fn a_racing_link_never_leads_outside() {
    let folder = neighbours();
    let stop = AtomicBool::new(false);
    let guard = guard(&folder);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            symlink("../out", folder.at("ws/link")).unwrap();
            let (one, other) = (folder.at("ws/sub"), folder.at("ws/link"));
            while !stop.load(Ordering::Relaxed) {
                exchange(&one, &other);
            }
        });
        for n in 0..10_000 {
            let patch = codex_patch::parse(&patch(&format!("*** Add File: sub/n{n}\n+x"))).unwrap();
            if let Ok(plan) = patch.plan(&folder.at("ws")) {
                let _ = plan.apply(&guard);
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let outside: Vec<PathBuf> = fs::read_dir(folder.at("out")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(outside, [folder.at("out/secret")]);
}

fn exchange(one: &Path, other: &Path) {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// For any path, a file is written below the root or not at all.
    #[test]
    fn hostile_paths_stay_inside(parts in prop::collection::vec("(\\.|\\.\\.|sub|a|ws|ws-evil|out|link|up|new|~|\\$HOME| )", 1..6)) {
        let folder = neighbours();
        symlink("../out", folder.at("ws/link")).unwrap();
        symlink("..", folder.at("ws/up")).unwrap();
        let before = folder.tree();
        let text = patch(&format!("*** Add File: x{}\n+x", parts.join("/")).replace("File: x", "File: "));
        let plan = codex_patch::parse(&text).map(|parsed| parsed.plan(&folder.at("ws")));
        if let Ok(Ok(plan)) = plan {
            let _ = plan.apply(&guard(&folder));
        }
        let fresh = folder.tree().into_keys().filter(|name| !before.contains_key(name));
        for name in fresh {
            prop_assert!(name.starts_with("ws/"), "{name}");
        }
    }
}

#[test]
fn names_count_below_the_roots_and_may_have_several_parts() {
    let folder = neighbours();
    let root = folder.at("ws/.claude/tree");
    fs::create_dir_all(&root).unwrap();
    let names = vec![".claude".to_owned(), ".cargo/config".to_owned()];
    let guard = Guard { roots: Some(vec![root.clone()]), forbidden: Vec::new(), names };
    for (name, allowed) in [("a", true), (".Claude/a", false), ("x/.cargo/CONFIG", false), ("x/.cargo/a/config", true)]
    {
        assert_eq!(guard.allows(&root.join(name)), allowed, "{name}");
    }
}
