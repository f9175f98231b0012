//! Commands that contain a patch, and commands that do not.

use codex_patch::from_command;

fn found(argv: &[&str]) -> Option<(String, Option<String>)> {
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    from_command(&argv).map(|found| (found.text, found.cwd.map(|cwd| cwd.display().to_string())))
}

fn in_script(script: &str) -> Option<(String, Option<String>)> {
    found(&["bash", "-lc", script])
}

#[test]
fn a_patch_as_an_argument() {
    assert_eq!(found(&["apply_patch", "TEXT"]), Some(("TEXT".to_owned(), None)));
    assert_eq!(found(&["applypatch", "TEXT"]), Some(("TEXT".to_owned(), None)));
    assert_eq!(found(&["apply_patch"]), None);
    assert_eq!(found(&["apply_patch", "TEXT", "MORE"]), None);
    assert_eq!(found(&["./apply_patch", "TEXT"]), None);
}

#[test]
fn a_here_document_in_a_script() {
    let text = Some(("a\n$b\n".to_owned(), None));
    for script in [
        "apply_patch <<'EOF'\na\n$b\nEOF\n",
        "apply_patch <<'EOF'\na\n$b\nEOF",
        "\n  apply_patch<<\"EOF\"\na\n$b\nEOF\n\n",
        "applypatch << 'PATCH' \na\n$b\nPATCH",
    ] {
        assert_eq!(in_script(script), text, "{script}");
    }
    for argv in [["sh", "-c"], ["zsh", "-lc"], ["/usr/bin/bash", "-c"]] {
        assert_eq!(found(&[argv[0], argv[1], "apply_patch <<'EOF'\na\n$b\nEOF"]), text);
    }
    assert_eq!(in_script("apply_patch <<EOF\nplain\nEOF"), Some(("plain\n".to_owned(), None)));
    assert_eq!(in_script("apply_patch <<'EOF'\nEOF"), Some((String::new(), None)));
}

#[test]
fn one_change_of_folder_before_it() {
    for (script, folder) in [
        ("cd sub/dir && apply_patch <<'EOF'\nx\nEOF", "sub/dir"),
        ("cd /w&&apply_patch <<'EOF'\nx\nEOF", "/w"),
        ("cd 'a b' && apply_patch <<'EOF'\nx\nEOF", "a b"),
        ("cd \"a b\" &&\napply_patch <<'EOF'\nx\nEOF", "a b"),
        ("cd .. && apply_patch <<'EOF'\nx\nEOF", ".."),
    ] {
        assert_eq!(in_script(script), Some(("x\n".to_owned(), Some(folder.to_owned()))), "{script}");
    }
}

#[test]
fn anything_else_is_an_ordinary_command() {
    for script in [
        "",
        "ls",
        "apply_patch",
        "apply_patch x",
        "apply_patch <<'EOF'\nx\n",
        "apply_patch <<'EOF'\nx\nEOF\nrm -rf .",
        "apply_patch <<'EOF' && ls\nx\nEOF",
        "apply_patch <<'EOF' > out\nx\nEOF",
        "apply_patch <<-'EOF'\nx\nEOF",
        "apply_patch <<<'x'\n",
        "apply_patch <<'EOF\nx\nEOF",
        "apply_patch <<''\nx\n\n",
        "apply_patch <<EOF\n$HOME\nEOF",
        "apply_patch <<EOF\n`id`\nEOF",
        "apply_patch <<EOF\na\\b\nEOF",
        "apply_patch - <<'EOF'\nx\nEOF",
        "X=1 apply_patch <<'EOF'\nx\nEOF",
        "echo; apply_patch <<'EOF'\nx\nEOF",
        "cat <<'EOF' | apply_patch\nx\nEOF",
        "cd a; apply_patch <<'EOF'\nx\nEOF",
        "cd a || apply_patch <<'EOF'\nx\nEOF",
        "cd a & apply_patch <<'EOF'\nx\nEOF",
        "cd a b && apply_patch <<'EOF'\nx\nEOF",
        "cd a && cd b && apply_patch <<'EOF'\nx\nEOF",
        "cd && apply_patch <<'EOF'\nx\nEOF",
        "cd - && apply_patch <<'EOF'\nx\nEOF",
        "cd ~ && apply_patch <<'EOF'\nx\nEOF",
        "cd $X && apply_patch <<'EOF'\nx\nEOF",
        "cd \"$X\" && apply_patch <<'EOF'\nx\nEOF",
        "cd a* && apply_patch <<'EOF'\nx\nEOF",
        "cd 'a'b && apply_patch <<'EOF'\nx\nEOF",
        "cd a\\ b && apply_patch <<'EOF'\nx\nEOF",
        "cd '' && apply_patch <<'EOF'\nx\nEOF",
    ] {
        assert_eq!(in_script(script), None, "{script}");
    }
    assert_eq!(found(&["bash", "-x", "apply_patch <<'EOF'\nx\nEOF"]), None);
    assert_eq!(found(&["bash", "-lc", "apply_patch <<'EOF'\nx\nEOF", "more"]), None);
    assert_eq!(found(&["fish", "-c", "apply_patch <<'EOF'\nx\nEOF"]), None);
    assert_eq!(found(&[]), None);
}
