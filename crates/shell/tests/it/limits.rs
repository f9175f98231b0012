//! A command that is too large to check is not understood, not harmless, dangerous, and asked about if rules restrict
//! anything.

use codex_shell::{Checkout, Decision, Rules, Understood, danger, is_known_safe, propose_amendment, understand};

use crate::{argv, script};

#[track_caller]
fn check_refused(argv: &[String]) {
    assert!(matches!(understand(argv), Understood::No(_)) || argv[0] == "env");
    assert!(!is_known_safe(argv, Checkout::Own));
    let rules = Rules::parse("r", "prefix_rule(pattern=['rm'], decision='forbidden')").unwrap();
    assert!(rules.check(argv).decision >= Some(Decision::Prompt));
    assert!(danger(argv).is_some());
    assert_eq!(propose_amendment(argv), None);
}

#[test]
fn a_few_commands_are_fine() {
    for count in [1, 49, 50, 51, 100] {
        assert!(is_known_safe(&script(&vec!["ls"; count].join("; ")), Checkout::Own), "{count}");
        assert!(is_known_safe(&script(&vec!["ls"; count].join(" && ")), Checkout::Own), "{count}");
    }
}

#[test]
fn ten_thousand_commands_are_too_many() {
    for operator in [" && ", " | ", "; ", "\n"] {
        check_refused(&script(&(vec!["ls"; 5_000].join(operator) + operator + "rm -rf x")));
        check_refused(&script(&(vec!["ls"; 5_000].join(operator) + operator + "rm -rf x")));
    }
}

#[test]
fn scripts_have_a_largest_length() {
    check_refused(&script(&format!("echo {}", "x".repeat(1 << 20))));
    check_refused(&script(&format!("rm {}", "x ".repeat(1 << 20))));
}

#[test]
fn wrappers_have_a_largest_number() {
    for wrapper in ["env", "timeout 5", "nice", "sudo", "nohup"] {
        let mut wrapped = format!("{wrapper} ").repeat(64);
        wrapped.push_str("rm -rf x");
        assert!(danger(&script(&wrapped)).is_some());
        let rules = Rules::parse("r", "prefix_rule(pattern=['rm'], decision='forbidden')").unwrap();
        assert_eq!(rules.check(&script(&wrapped)).decision, Some(Decision::Forbidden), "{wrapper}");
    }
    let many: Vec<_> = std::iter::repeat_n("env", 3000).chain(["rm", "x"]).collect();
    check_refused(&argv(&many));
}

#[test]
fn shells_in_shells_have_a_deepest_level() {
    let mut inner = "rm -rf x".to_owned();
    for _ in 0..12 {
        inner = codex_wire::command_line::join(&argv(&["bash", "-c", &inner]));
        assert!(danger(&script(&inner)).is_some());
        if inner.len() > 60_000 {
            break;
        }
    }
    let deep = format!("{}rm -rf x{}", "$(".repeat(3000), ")".repeat(3000));
    assert!(danger(&script(&deep)).is_some());
    assert!(danger(&script(&format!("{}rm -rf x", "( ".repeat(20_000)))).is_some());
}
