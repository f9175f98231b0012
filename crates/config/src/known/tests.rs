use std::{collections::BTreeSet, path::Path};

use super::*;
use crate::{Config, Env, KeyPath, Reader, Tree};

/// Tables whose entries users name themselves, with one entry called `any`.
const FREE: &str = r#"
    [model_providers.any]
    base_url = "http://h"
    query_params.any = "x"
    http_headers.any = "x"
    env_http_headers.any = "x"
    auth.command = "x"
    [mcp_servers.any]
    command = "x"
    env.any = "x"
    tools.any.approval_mode = "auto"
    [mcp_servers.other]
    url = "x"
    http_headers.any = "x"
    env_http_headers.any = "x"
    [shell_environment_policy.set]
    any = "x"
    [projects.any]
    trust_level = "trusted"
    approved_mcp_servers.any = "x"
    [models.any]
    thinking = "none"
    [agents.any]
    description = "x"
    [prices.any]
    input = 1
    output = 1
    [tui.keys]
    any = "x"
    [tui.themes.any]
    any = "x"
    [features]
    any = true
    [approval_policy.granular]
    sandbox_approval = true
    rules = true
    mcp_elicitations = true
"#;

/// Keys that the engine or the server reads from the tree, those that the layers themselves read, and the policy, which
/// is a word if it is not the table above.
const READ_ELSEWHERE: &[&str] = &["approval_policy", "forced_login_method", "profile", "profiles.**"];

/// Keys that are read only for the names of variables with secrets.
const OF_KEY_PLACES: &[&str] = &[
    "mcp_servers",
    "mcp_servers.*.env_key",
    "model_providers.*.bearer_token_env_var",
    "model_providers.*.env",
    "model_providers.*.env_vars",
];

/// Features that other crates look up by name; a tidy test finds those.
const FEATURES: &[&str] = &[
    "features.goals",
    "features.multi_agent",
    "features.multi_agent_v2",
    "features.multi_agent_v2.**",
    "features.parallel",
    "features.request_permissions_tool",
    "features.subagent_tools",
    "features.unified_exec",
];

/// The keys that the readers read, as patterns, without intermediate tables.
fn read() -> BTreeSet<String> {
    let tree = Tree::parse(Path::new("c"), FREE).unwrap();
    let root = Reader::new(&tree, None);
    Config::read(&root, None, &Env::from_iter::<[(&str, &str); 0]>([])).unwrap();
    let asked = root.asked.borrow();
    let pattern = |path: &KeyPath| {
        let names: Vec<_> =
            path.segments().iter().map(|name| if name == "any" || name == "other" { "*" } else { name }).collect();
        names.join(".")
    };
    let all: BTreeSet<String> = asked.iter().map(pattern).collect();
    let is_passed = |path: &&String| !all.iter().any(|other| other.starts_with(&format!("{path}.")));
    all.iter().filter(is_passed).cloned().collect()
}

#[test]
fn the_table_names_what_the_readers_read() {
    let ours: BTreeSet<&str> = KEYS
        .iter()
        .filter(|known| matches!(known.usage, Use::Honoured | Use::AtMost(_)))
        .map(|known| known.pattern)
        .filter(|pattern| !READ_ELSEWHERE.contains(pattern) && !FEATURES.contains(pattern))
        .collect();
    let read = read();
    let read: BTreeSet<&str> = read
        .iter()
        .map(String::as_str)
        .filter(|pattern| !OF_KEY_PLACES.contains(pattern) && *pattern != "features.*")
        .collect();
    let missing: Vec<_> = read.difference(&ours).collect();
    let unread: Vec<_> = ours.difference(&read).filter(|pattern| **pattern != "features.web_search_request").collect();
    assert_eq!((missing, unread), (vec![], vec![]), "read but not in the table, and in the table but not read");
}

#[test]
fn each_row_is_reached_by_its_own_pattern() {
    for known in KEYS {
        let path: Vec<&str> = known.segments().map(|name| if name == "*" { "a name" } else { name }).collect();
        let is_table = known.pattern.ends_with(".**");
        let first = KEYS
            .iter()
            .find(|other| other.fit(&path, is_table) == Fit::This && other.pattern.ends_with(".**") == is_table);
        assert_eq!(first, Some(known));
    }
}

#[test]
fn a_misspelled_key_has_a_nearest_one() {
    for (path, expected) in [
        (&["modle"][..], Some("model")),
        (&["aproval_policy"], Some("approval_policy")),
        (&["sandbox_workspace_write", "network_acces"], Some("sandbox_workspace_write.network_access")),
        (&["model_providers", "my.own", "base_ulr"], Some("model_providers.\"my.own\".base_url")),
        (&["tools", "model"], Some("model")),
        (&["network_access"], Some("sandbox_workspace_write.network_access")),
        (&["features", "unified_exce"], Some("features.unified_exec")),
        (&["completely_different"], None),
        (&["projects", "/a", "colour"], None),
    ] {
        assert_eq!(nearest(path).as_deref(), expected, "{path:?}");
    }
}
