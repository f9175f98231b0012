//! Rules files: their syntax, their decisions, and adding rules.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use codex_files::testing::{Endless, soon};
use codex_shell::{Decision, Rules, Scope, append_allow, remove_rule};
use expect_test::{Expect, expect};

use crate::{argv, script};

const RULES: &str = r#"
# What the team agreed on.
prefix_rule(pattern=["git", ["push", "fetch"]], decision="prompt", justification="talks to the server",
            match=["git push origin", ["git", "fetch"]], not_match=["git status", "git pull push",])
prefix_rule(pattern = ['rm'], decision = 'forbidden'); prefix_rule(pattern=["touch"])
prefix_rule(pattern=["cargo", "test"], decision="allow",)
prefix_rule(pattern=["""make"""])
prefix_rule(pattern=["bash", "-lc", "x > y"], decision="allow")
host_executable(name="git", paths=["/usr/bin/git"])
network_rule(host="example.com", protocol="https", decision="allow", port=443, strict=True)
"#;

/// Prints the decision about each script and the lines of the matching rules.
#[track_caller]
fn check(scripts: &[&str], expected: Expect) {
    let rules = Rules::parse("team.rules", RULES).unwrap();
    let shown = scripts.iter().map(|text| {
        let verdict = rules.check(&script(text));
        let lines: Vec<_> = verdict.matched.iter().map(|found| found.line.to_string()).collect();
        format!("{text}: {} [{}]\n", verdict.decision.map_or("-", Decision::word), lines.join(" "))
    });
    expected.assert_eq(&shown.collect::<String>());
}

#[test]
fn rules_match_beginnings_of_commands() {
    check(
        &[
            "git push",
            "git fetch --all",
            "git status",
            "touch x",
            "touch",
            "cargo test -p x",
            "cargo build",
            "ls",
            "make",
        ],
        expect![[r#"
            git push: prompt [3]
            git fetch --all: prompt [3]
            git status: - []
            touch x: allow [5]
            touch: allow [5]
            cargo test -p x: allow [6]
            cargo build: - []
            ls: - []
            make: allow [7]
        "#]],
    );
}

#[test]
fn every_command_has_to_be_allowed_and_one_is_enough_to_forbid() {
    check(
        &[
            "touch x && cargo test",
            "touch x && cargo build",
            "touch x; ls",
            "cd src && cargo test",
            "cd .. && cargo test",
            "cd /x && touch y",
            "touch x | tee y",
            "touch x; git push",
            "git push; rm x",
            "ls",
        ],
        expect![[r#"
            touch x && cargo test: allow [5 6]
            touch x && cargo build: - [5]
            touch x; ls: allow [5]
            cd src && cargo test: allow [6]
            cd .. && cargo test: - [6]
            cd /x && touch y: - [5]
            touch x | tee y: - [5]
            touch x; git push: prompt [3 5]
            git push; rm x: forbidden [5 3]
            ls: - []
        "#]],
    );
}

#[test]
fn strict_rules_reach_through_everything() {
    check(
        &[
            "/bin/rm x",
            "env rm x",
            "env -u A X=1 rm x",
            "sudo -u root rm x",
            "timeout -k 1 5 nice rm x",
            "xargs rm",
            "find . -exec rm {} ';'",
            "bash -c 'rm x'",
            "bash -c 'sh -c \"rm x\"'",
            "echo $(rm x)",
            "if true; then rm x; fi",
            "X=1 rm x",
            "r\\m x",
            "rm x > y",
            "$X x",
            "eval \"$X\"",
            "bash <<E\nrm x\nE",
            "git -C . push",
            "git -c a=b --no-pager push",
            "git $X",
            "trap 'rm x' EXIT",
            "if rm",
            "echo rm",
            "echo 'rm x'",
        ],
        expect![[r#"
            /bin/rm x: forbidden [5]
            env rm x: forbidden [5]
            env -u A X=1 rm x: forbidden [5]
            sudo -u root rm x: forbidden [5]
            timeout -k 1 5 nice rm x: forbidden [5]
            xargs rm: forbidden [5]
            find . -exec rm {} ';': forbidden [5]
            bash -c 'rm x': forbidden [5]
            bash -c 'sh -c "rm x"': forbidden [5]
            echo $(rm x): forbidden [5]
            if true; then rm x; fi: forbidden [5]
            X=1 rm x: forbidden [5]
            r\m x: forbidden [5]
            rm x > y: forbidden [5]
            $X x: prompt [5]
            eval "$X": prompt [3 5]
            bash <<E
            rm x
            E: forbidden [5]
            git -C . push: prompt [3]
            git -c a=b --no-pager push: prompt [3]
            git $X: prompt [3]
            trap 'rm x' EXIT: forbidden [5]
            if rm: prompt [3 5]
            echo rm: - []
            echo 'rm x': - []
        "#]],
    );
}

#[test]
fn allowing_rules_reach_only_through_what_changes_nothing() {
    check(
        &[
            "timeout 5 touch x",
            "nice -n 5 touch x",
            "env touch x",
            "command touch x",
            "bash -c 'touch x'",
            "env X=1 touch x",
            "env -i touch x",
            "sudo touch x",
            "xargs touch",
            "./touch x",
            "/bin/touch x",
            "touch $X",
            "touch x > y",
            "X=1 touch x",
            "x > y",
            "x > z",
            "touch *",
        ],
        expect![[r#"
            timeout 5 touch x: allow [5]
            nice -n 5 touch x: allow [5]
            env touch x: allow [5]
            command touch x: - []
            bash -c 'touch x': allow [5]
            env X=1 touch x: - []
            env -i touch x: - []
            sudo touch x: - []
            xargs touch: - []
            ./touch x: - []
            /bin/touch x: - []
            touch $X: - []
            touch x > y: - []
            X=1 touch x: - []
            x > y: allow [8]
            x > z: - []
            touch *: - []
        "#]],
    );
}

#[test]
fn a_shell_is_never_allowed_to_run_anything() {
    let rules = Rules::parse("r", "prefix_rule(pattern=['bash'])\nprefix_rule(pattern=['bash', '-lc'])").unwrap();
    assert_eq!(rules.check(&script("x > y")).decision, None);
    assert_eq!(rules.check(&script("bash -c 'x > y'")).decision, None);
    assert_eq!(rules.check(&argv(&["bash", "x.sh"])).decision, Some(Decision::Allow));
}

#[test]
fn a_verdict_is_printed_as_recorded() {
    let rules = Rules::parse("r", "prefix_rule(pattern=['git', ['push','fetch']], decision='prompt')").unwrap();
    let verdict = rules.check(&argv(&["git", "push", "origin"])).to_json().to_string();
    let recorded = r#"{"matchedRules":[{"prefixRuleMatch":{"matchedPrefix":["git","push"],"decision":"prompt"}}],"decision":"prompt"}"#;
    assert_eq!(verdict, recorded);
    assert_eq!(rules.check(&argv(&["foo"])).to_json().to_string(), r#"{"matchedRules":[]}"#);
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let mistakes = [
        "prefix_rule(pattern=[])",
        "prefix_rule()",
        "prefix_rule(pattern=['a'], decision='deny')",
        "prefix_rule(pattern='a')",
        "prefix_rule(pattern=['a' 'b'])",
        "prefix_rule(pattern=['a'], pattern=['b'])",
        "prefix_rule(['a'])",
        "prefix_rule(pattern=['a'], x=1)",
        "prefix_rule(pattern=['a', []])",
        "prefix_rule(pattern=['a', [['b']]])",
        "prefix_rule(pattern=['a'",
        "prefix_rule(pattern=['a)",
        "\n  other(x='y')",
        "x = 1",
        "load('x', 'y')",
        "prefix_rule(pattern=['a']) prefix_rule(pattern=['b'])",
        "prefix_rule(pattern=[f('a')])",
        "prefix_rule(pattern=['a'] + ['b'])",
        "prefix_rule(pattern=['git'],\n  match=['git x', 'hg'])",
        "prefix_rule(pattern=['git'], not_match=[['git', 'x']])",
        "prefix_rule(pattern=['a'], match=['a $x'])",
        "prefix_rule(pattern=['\\q'])",
        "prefix_rule(pattern=['\\xff'])",
        "def f(): pass",
        "\u{feff}prefix_rule(pattern=['a'])",
    ];
    let shown = mistakes.map(|text| match Rules::parse("f.rules", text) {
        Ok(_) => format!("{text}: fine\n"),
        Err(error) => format!("{error}\n"),
    });
    expect![[r#"
        f.rules:1:21: a pattern cannot be empty: it would match every command
        f.rules:1:1: `prefix_rule` needs a `pattern`
        f.rules:1:37: a decision is "allow", "prompt" or "forbidden"
        f.rules:1:21: expected a list, found a string
        f.rules:1:26: expected `]`, found `\'`
        f.rules:1:28: `pattern` is given twice
        f.rules:1:13: expected the name of an argument or `)`
        f.rules:1:30: `prefix_rule` has no argument `x`
        f.rules:1:27: a list of alternatives cannot be empty
        f.rules:1:28: expected a string, found a list
        f.rules:1:25: expected `]`, found the end of the file
        f.rules:1:22: the string is not closed
        f.rules:2:3: unknown call `other`, expected `prefix_rule`, `host_executable` or `network_rule`
        f.rules:1:3: expected `(`, found `=`
        f.rules:1:6: expected the name of an argument or `)`
        f.rules:1:27: expected the end of the line after the call
        f.rules:1:22: expected a string or a list, found `f`
        f.rules:1:27: expected `)`, found `+`
        f.rules:2:19: the rule does not match its own example `hg`
        f.rules:1:41: the rule matches what it should not: `git x`
        f.rules:1:35: the example is not one plain command: an expansion or substitution at line 1, column 3
        f.rules:1:23: unknown escape in a string
        f.rules:1:23: not a character
        f.rules:1:5: expected `(`, found `f`
        f.rules:1:1: expected a call such as `prefix_rule(…)`
    "#]]
    .assert_eq(&shown.concat());
}

#[test]
fn strings_are_read_in_all_their_forms() {
    let text = "prefix_rule(pattern=['a\\'b', \"c\\\"d\\n\\x41\\u00e9\\\\\", r'e\\f', '''g'\nh''', r\"\"\"i\"j\"\"\"])";
    let rules = Rules::parse("r", text).unwrap();
    let command = argv(&["a'b", "c\"d\nAé\\", "e\\f", "g'\nh", "i\"j", "k"]);
    assert_eq!(rules.check(&command).decision, Some(Decision::Allow));
}

#[test]
fn files_are_read_in_order_and_a_missing_folder_has_none() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("rules");
    assert_eq!(Rules::load(&home).unwrap(), Rules::empty());
    fs::create_dir_all(home.join("x.rules")).unwrap();
    fs::write(home.join("b.rules"), "prefix_rule(pattern=['x'])").unwrap();
    fs::write(home.join("a.rules"), "prefix_rule(pattern=['x'], decision='prompt')").unwrap();
    fs::write(home.join("c.txt"), "not rules").unwrap();
    let verdict = Rules::load(&home).unwrap().check(&argv(&["x"]));
    let files: Vec<_> = verdict.matched.iter().map(|found| found.file.file_name().unwrap().to_owned()).collect();
    assert_eq!((verdict.decision, files), (Some(Decision::Prompt), vec!["a.rules".into(), "b.rules".into()]));
    fs::write(home.join("d.rules"), "prefix_rule(pattern=['x'])\n  oops").unwrap();
    let error = Rules::load(&home).unwrap_err().to_string();
    assert!(error.ends_with("d.rules:2:7: expected `(`, found the end of the file"), "{error}");
    fs::write(home.join("d.rules"), b"\xff").unwrap();
    assert!(Rules::load(&home).unwrap_err().to_string().contains("could not read"));
}

#[test]
fn an_agreed_rule_is_added_once_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("rules");
    let prefix = argv(&["touch", "one.txt"]);
    append_allow(&home, &prefix, Scope::Anywhere).unwrap();
    append_allow(&home, &prefix, Scope::Anywhere).unwrap();
    let file = home.join("default.rules");
    let recorded = "prefix_rule(pattern=[\"touch\", \"one.txt\"], decision=\"allow\")\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), recorded);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(&file, "prefix_rule(pattern=['x'])").unwrap();
    let odd = argv(&["bash", "-lc", "echo \"a\\b\" > 'ü'\n\t# \u{1}\u{202e}"]);
    append_allow(&home, &odd, Scope::Anywhere).unwrap();
    let rules = Rules::load(&home).unwrap();
    assert_eq!(rules.check(&odd).decision, Some(Decision::Allow));
    assert_eq!(rules.check(&argv(&["x"])).decision, Some(Decision::Allow));
    fs::write(&file, "oops").unwrap();
    assert!(append_allow(&home, &prefix, Scope::Anywhere).is_err());
}

#[test]
fn a_rule_for_the_sandbox_has_a_suffix() {
    let folder = tempfile::tempdir().unwrap();
    let prefix = argv(&["make", "check"]);
    append_allow(folder.path(), &prefix, Scope::Confined).unwrap();
    append_allow(folder.path(), &prefix, Scope::Confined).unwrap();
    let text = fs::read_to_string(folder.path().join("default.rules")).unwrap();
    let line = "prefix_rule(pattern=[\"make\", \"check\"], decision=\"allow\")";
    assert_eq!(text, format!("{line}  # codex: in the sandbox only\n"));
    // Approved for a run outside, it is a second rule.
    append_allow(folder.path(), &prefix, Scope::Anywhere).unwrap();
    let text = fs::read_to_string(folder.path().join("default.rules")).unwrap();
    assert!(text.ends_with(&format!("\n{line}\n")), "{text}");
}

#[test]
fn many_may_add_rules_at_once() {
    let folder = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let home = folder.path();
            scope.spawn(move || {
                for at in 0..20 {
                    let words = argv(&["touch", &format!("{}", (thread * 10 + at) % 40)]);
                    append_allow(home, &words, Scope::Anywhere).unwrap();
                }
            });
        }
    });
    let text = fs::read_to_string(folder.path().join("default.rules")).unwrap();
    let mut lines: Vec<_> = text.lines().collect();
    let count = lines.len();
    lines.sort_unstable();
    lines.dedup();
    assert_eq!((count, lines.len()), (40, 40));
    Rules::load(folder.path()).unwrap();
}

#[test]
fn rules_that_would_allow_nearly_anything_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = [
        &[][..],
        &["bash"],
        &["bash", "-c"],
        &["bash", "-lc"],
        &["/bin/sh", "-c"],
        &["sh", "-x"],
        &["env"],
        &["env", "X=1"],
        &["env", "-i"],
        &["sudo"],
        &["sudo", "ls"],
        &["doas", "x"],
        &["timeout"],
        &["timeout", "5"],
        &["nice"],
        &["xargs"],
        &["xargs", "ls"],
        &["python3"],
        &["python3", "-c"],
        &["node", "-e"],
        &["perl", "-e"],
        &["git"],
        &["git", "-c"],
        &["rm"],
        &["rm", "-rf"],
        &["rm", "-rf", "x"],
        &["eval"],
        &["command"],
        &["exec"],
        &["find"],
        &["dd", "of=x"],
        &["bash", "-lc", "rm -rf x"],
        &["ssh"],
        &["busybox"],
        &["nohup"],
        &["git", "push", "--force"],
        &["awk"],
        &["env", "bash", "-c"],
    ];
    for prefix in refused {
        assert!(append_allow(folder.path(), &argv(prefix), Scope::Anywhere).is_err(), "{prefix:?}");
    }
    assert!(!folder.path().join("default.rules").exists());
    let accepted = [
        &["git", "pull"][..],
        &["cargo", "test"],
        &["touch"],
        &["python3", "x.py"],
        &["bash", "x.sh"],
        &["timeout", "5", "cargo", "test"],
        &["bash", "-lc", "x > y"],
        &["npm", "run", "build"],
    ];
    for prefix in accepted {
        append_allow(folder.path(), &argv(prefix), Scope::Anywhere).unwrap();
    }
}

#[test]
fn rules_that_never_end_are_an_error() {
    for kind in Endless::ALL {
        let folder = tempfile::tempdir().unwrap();
        kind.make(&folder.path().join("default.rules")).unwrap();
        let (home, again) = (folder.path().to_owned(), folder.path().to_owned());
        let error = soon(move || Rules::load(&home)).unwrap().unwrap_err();
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(error.to_string().ends_with("default.rules"), "{error}");
        assert_eq!(cause, kind.complaint(Some(1024 * 1024)));
        assert!(
            soon(move || append_allow(&again, &argv(&["touch", "x"]), Scope::Anywhere)).unwrap().is_err(),
            "{kind:?}"
        );
    }
}

#[test]
fn a_lock_that_is_never_released_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    append_allow(folder.path(), &argv(&["touch", "x"]), Scope::Anywhere).unwrap();
    // Anyone who may read the file can lock it.
    let reader = fs::File::open(folder.path().join("default.rules")).unwrap();
    reader.lock().unwrap();
    let home = folder.path().to_owned();
    let error = soon(move || append_allow(&home, &argv(&["touch", "y"]), Scope::Anywhere)).unwrap().unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert_eq!(cause, "it is locked by another process");
}

#[test]
fn a_rule_is_removed_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("team.rules");
    fs::write(&file, RULES).unwrap();
    loop {
        let before = Rules::load(folder.path()).unwrap().listed();
        let Some(first) = before.first() else { break };
        remove_rule(folder.path(), first).unwrap();
        let after = Rules::load(folder.path()).unwrap().listed();
        let texts = |rules: &[codex_wire::permissions::CommandRule]| -> Vec<String> {
            rules.iter().map(|rule| rule.text.clone()).collect()
        };
        assert_eq!(texts(&after), texts(&before[1..]));
        assert!(remove_rule(folder.path(), first).is_err(), "it is no longer there");
    }
    let rest = fs::read_to_string(&file).unwrap();
    assert!(rest.contains("# What the team agreed on.") && rest.contains("host_executable"), "{rest}");
    let outside = tempfile::tempdir().unwrap();
    let elsewhere = outside.path().join("x.rules");
    fs::write(&elsewhere, RULES).unwrap();
    let rule = Rules::load(outside.path()).unwrap().listed().remove(0);
    assert!(remove_rule(folder.path(), &rule).is_err(), "only files of this folder are changed");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), RULES);
}
