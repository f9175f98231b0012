use std::{fs, path::Path, time::Duration};

use codex_files::testing::{Endless, soon};
use tempfile::TempDir;

use super::*;

/// A folder with the given files; names that end in `/` are folders.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let temp = TempDir::new().unwrap();
    for (name, text) in files {
        let path = temp.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if name.ends_with('/') { fs::create_dir_all(path).unwrap() } else { fs::write(path, text).unwrap() }
    }
    temp
}

fn found(query: &str, scope: &Scope) -> Vec<Match> {
    search(query, scope, &AtomicBool::new(false))
}

fn paths(query: &str, root: &Path) -> Vec<String> {
    found(query, &Scope::files(vec![root.to_owned()])).into_iter().map(|file| file.path).collect()
}

/// The case `v1-fuzzy-search` as recorded with 0.77.
#[test]
fn files_are_found_as_recorded() {
    let temp = tree(&[("alpha.txt", ""), ("sub/beta_alpine.txt", ""), ("gamma.txt", "")]);
    let root = temp.path().to_owned();
    let file = |path: &str, name: &str, score, indices| Match {
        root: root.clone(),
        path: path.to_owned(),
        is_folder: false,
        file_name: name.to_owned(),
        score,
        indices,
    };
    assert_eq!(
        found("alp", &Scope::files(vec![root.clone()])),
        [
            file("alpha.txt", "alpha.txt", 88, vec![0, 1, 2]),
            file("sub/beta_alpine.txt", "beta_alpine.txt", 80, vec![9, 10, 11]),
        ]
    );
    assert_eq!(paths("zzz", &root), [""; 0]);
    assert_eq!(paths("", &root), [""; 0]);
    assert_eq!(paths(" \t", &root), [""; 0]);
}

#[test]
fn ignored_files_are_not_found() {
    let temp = tree(&[
        (".gitignore", "target/\n*.log\n"),
        ("target/x.rs", ""),
        ("x.log", ""),
        ("sub/.gitignore", "/x.md\n"),
        ("sub/x.md", ""),
        ("sub/x.rs", ""),
        (".hidden/x.rs", ""),
        (".git/x.rs", ""),
        ("sub/.git/x.rs", ""),
    ]);
    assert_eq!(paths("x", temp.path()), [".hidden/x.rs", "sub/x.rs"]);
}

#[test]
fn rules_above_the_root_count_within_a_repository_only() {
    let repository = tree(&[(".gitignore", "*.log\n"), ("sub/x.log", ""), ("sub/x.rs", "")]);
    codex_files::testing::make_git_folder(&repository.path().join(".git")).unwrap();
    assert_eq!(paths("x", &repository.path().join("sub")), ["x.rs"]);
    let elsewhere = tree(&[(".gitignore", "*\n"), ("sub/x.rs", "")]);
    assert_eq!(paths("x", &elsewhere.path().join("sub")), ["x.rs"]);
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    use std::os::unix::fs::symlink;

    let outside = tree(&[("secret.txt", ""), ("folder/secret.txt", "")]);
    let temp = tree(&[("mine.txt", "")]);
    symlink(outside.path(), temp.path().join("out")).unwrap();
    symlink(temp.path(), temp.path().join("circle")).unwrap();
    symlink(outside.path().join("secret.txt"), temp.path().join("link.txt")).unwrap();
    assert_eq!(paths("secret", temp.path()), [""; 0]);
    assert_eq!(paths("mine", temp.path()), ["mine.txt"]);
    assert_eq!(paths("link", temp.path()), ["link.txt"]);
}

#[test]
fn folders_are_found_where_they_are_wanted() {
    let temp = tree(&[("alpine/", ""), ("alpha/file.txt", "")]);
    let root = temp.path().to_owned();
    assert_eq!(paths("alp", &root), ["alpha/file.txt"]);
    let scope = Scope { folders: true, ..Scope::files(vec![root]) };
    let found: Vec<_> = found("alp", &scope).into_iter().map(|file| (file.path, file.is_folder)).collect();
    assert_eq!(found, [("alpha".to_owned(), true), ("alpha/file.txt".to_owned(), false), ("alpine".to_owned(), true),]);
}

#[test]
fn the_best_are_kept_whatever_their_order() {
    let names: Vec<String> = (0..200).map(|number| format!("folder{number:03}/match.txt")).collect();
    let mut files: Vec<_> = names.iter().map(|name| (name.as_str(), "")).collect();
    files.push(("match.txt", ""));
    let temp = tree(&files);
    let scope = Scope { limit: NonZeroUsize::new(3).unwrap(), ..Scope::files(vec![temp.path().to_owned()]) };
    let found: Vec<_> = found("match", &scope).into_iter().map(|file| file.path).collect();
    assert_eq!(found, ["match.txt", "folder000/match.txt", "folder001/match.txt"]);
}

#[test]
fn several_roots_keep_their_names() {
    let (one, two) = (tree(&[("x.rs", "")]), tree(&[("x.rs", ""), ("sub/x.rs", "")]));
    let roots = vec![two.path().to_owned(), one.path().to_owned(), one.path().join("nowhere")];
    let found: Vec<_> =
        found("x.rs", &Scope::files(roots.clone())).into_iter().map(|file| (file.root, file.path)).collect();
    let expected = [(0, "x.rs"), (1, "x.rs"), (0, "sub/x.rs")].map(|(root, path)| (roots[root].clone(), path.into()));
    assert_eq!(found, expected);
}

#[test]
fn a_cancelled_search_returns_at_once() {
    let temp = tree(&[("x.rs", "")]);
    let scope = Scope::files(vec![temp.path().to_owned()]);
    assert_eq!(search("x", &scope, &AtomicBool::new(true)), []);
}

#[test]
fn indices_count_characters_and_case_matters_only_when_it_is_typed() {
    let temp = tree(&[("größe/Abc.txt", "")]);
    let first = |query: &str| found(query, &Scope::files(vec![temp.path().to_owned()])).into_iter().next();
    assert_eq!(first("abc").unwrap().indices, [6, 7, 8]);
    assert_eq!(first("txt abc").unwrap().indices, [6, 7, 8, 10, 11, 12]);
    assert!(first("ABC").is_none());
    assert!(first(&"a".repeat(100_000)).is_none());
}

/// The results of the `ignore` crate's walker when it reads the rules itself.
fn as_the_crate_finds_them(root: &Path) -> Vec<String> {
    let mut walker = ignore::WalkBuilder::new(root);
    walker.hidden(false).require_git(false).filter_entry(|entry| entry.file_name() != ".git");
    let entries = walker.build().map(|entry| entry.unwrap());
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let mut found: Vec<_> = files.map(|entry| entry.path().strip_prefix(root).unwrap().display().to_string()).collect();
    found.sort();
    found
}

#[test]
fn the_rules_mean_what_they_mean_to_the_crate() {
    let temp = tree(&[
        (".git/info/exclude", "excluded\n!kept.log\n"),
        (".gitignore", "\u{feff}# x\n*.log\n!kept.log\n/only-here\nbuild/\ndocs/**/*.tmp\n[x\n\\#x\nspace\\ \r\n"),
        (".ignore", "!again.log\nnever.x\n"),
        ("x.log", ""),
        ("kept.log", ""),
        ("again.log", ""),
        ("never.x", ""),
        ("only-here", ""),
        ("excluded", ""),
        ("#x", ""),
        ("space ", ""),
        ("build/x", ""),
        ("docs/a/b/x.tmp", ""),
        ("docs/x.tmp", ""),
        ("sub/.gitignore", "!x.log\nbuild\n*.x\n"),
        ("sub/.ignore", "!never.x\n"),
        ("sub/x.log", ""),
        ("sub/never.x", ""),
        ("sub/other.x", ""),
        ("sub/only-here", ""),
        ("sub/build/x", ""),
        ("sub/deep/.gitignore", "*\n!*/\n!*.rs\n"),
        ("sub/deep/er/x.rs", ""),
        ("sub/deep/er/x.c", ""),
        ("nested/.git/info/exclude", "private\n"),
        ("nested/private", ""),
        ("nested/x.log", ""),
        ("linked/.git", "gitdir: GIT/worktrees/linked\n"),
        (".git/worktrees/linked/commondir", "../..\n"),
        ("linked/excluded", ""),
        ("bad/.gitignore", "*.a\n"),
        ("bad/x.a", ""),
        ("bad/x.b", ""),
    ]);
    let git = temp.path().join(".git").display().to_string();
    fs::write(temp.path().join("linked/.git"), format!("gitdir: {git}/worktrees/linked\n")).unwrap();
    fs::write(temp.path().join("bad/.gitignore"), b"*.a\n\xff\n*.b\n").unwrap();
    for root in [temp.path().to_owned(), temp.path().join("sub"), temp.path().join("sub/deep"), temp.path().join("bad")]
    {
        let walk = super::walk::Walk::new(&Scope::files(vec![root.clone()]), SEARCH_TIME);
        let mut found: Vec<_> = walk.map(|entry| entry.path.to_string()).collect();
        found.sort();
        assert_eq!(found, as_the_crate_finds_them(&root));
        assert!(!found.is_empty());
    }
}

/// Searches for `x`, within a time limit.
fn paths_soon(root: &Path) -> Vec<String> {
    let root = root.to_owned();
    soon(move || paths("x", &root)).expect("the search ends")
}

#[test]
fn a_file_of_rules_that_never_ends_has_none() {
    for name in [".gitignore", ".ignore", "sub/.gitignore", ".git/info/exclude", "sub/.git", "common/commondir"] {
        for kind in Endless::ALL {
            let temp = tree(&[(".git/info/", ""), ("sub/x.rs", ""), ("common/", ""), ("y/.git", "")]);
            let common = temp.path().join("common").display().to_string();
            fs::write(temp.path().join("y/.git"), format!("gitdir: {common}\n")).unwrap();
            kind.make(&temp.path().join(name)).unwrap();
            let found = paths_soon(temp.path());
            assert!(found.contains(&"sub/x.rs".to_owned()), "{name} {kind:?}: {found:?}");
            assert_eq!(paths_soon(&temp.path().join("sub")), ["x.rs"], "{name} {kind:?}");
        }
    }
}

#[test]
fn a_walk_ends_when_its_time_is_over() {
    let temp = tree(&[("x.rs", "")]);
    let scope = Scope::files(vec![temp.path().to_owned()]);
    assert_eq!(super::walk::Walk::new(&scope, Duration::ZERO).count(), 0);
}
