use std::{fs, path::Path};

use codex_protocol::v2::search::FuzzyFileSearchMatchType;
use tempfile::TempDir;

use super::*;

/// A folder with the files given; names that end in `/` are folders.
fn tree(files: &[(&str, &str)]) -> TempDir {
    let temp = TempDir::new().unwrap();
    for (name, text) in files {
        let path = temp.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if name.ends_with('/') { fs::create_dir_all(path).unwrap() } else { fs::write(path, text).unwrap() }
    }
    temp
}

fn found(query: &str, scope: &Scope) -> Vec<FuzzyFileSearchResult> {
    search(query, scope, &AtomicBool::new(false))
}

fn paths(query: &str, root: &Path) -> Vec<String> {
    found(query, &Scope::files(vec![root.to_owned()])).into_iter().map(|file| file.path).collect()
}

/// The case `v1-fuzzy-search` as 0.77 played it.
#[test]
fn files_are_found_as_recorded() {
    let temp = tree(&[("alpha.txt", ""), ("sub/beta_alpine.txt", ""), ("gamma.txt", "")]);
    let root = temp.path().to_owned();
    let file = |path: &str, name: &str, score, indices| FuzzyFileSearchResult {
        root: root.clone(),
        path: path.to_owned(),
        match_type: FuzzyFileSearchMatchType::File,
        file_name: name.to_owned(),
        score,
        indices: Some(indices),
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
fn what_the_project_ignores_is_not_found() {
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
    let repository = tree(&[(".git/HEAD", ""), (".gitignore", "*.log\n"), ("sub/x.log", ""), ("sub/x.rs", "")]);
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
    let found: Vec<_> = found("alp", &scope).into_iter().map(|file| (file.path, file.match_type)).collect();
    assert_eq!(
        found,
        [
            ("alpha".to_owned(), FuzzyFileSearchMatchType::Directory),
            ("alpha/file.txt".to_owned(), FuzzyFileSearchMatchType::File),
            ("alpine".to_owned(), FuzzyFileSearchMatchType::Directory),
        ]
    );
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
    assert_eq!(first("abc").unwrap().indices, Some(vec![6, 7, 8]));
    assert_eq!(first("txt abc").unwrap().indices, Some(vec![6, 7, 8, 10, 11, 12]));
    assert!(first("ABC").is_none());
    assert!(first(&"a".repeat(100_000)).is_none());
}
