//! Checks the tools of a client before a thread starts with them.

use std::collections::BTreeSet;

use codex_wire::dynamic_tool::{DynamicTool, DynamicToolNamespaceTool, DynamicToolSpec};

/// The maximum number of tools, and of bytes of all of them as JSON.
const MOST_TOOLS: usize = 128;
const MOST_BYTES: usize = 512 * 1024;
/// The maximum length of a name, and that of the joined name of a tool in a namespace.
const MOST_NAME: usize = 64;

/// Names of tools of this program, and beginnings of names that it gives to others.
const OWN: &[&str] = &[
    "apply_patch",
    "exec_command",
    "list_mcp_resource_templates",
    "list_mcp_resources",
    "local_shell",
    "mcp",
    "multi_agent_v1",
    "read_mcp_resource",
    "request_permissions",
    "shell",
    "shell_command",
    "unified_exec",
    "update_goal",
    "update_plan",
    "view_image",
    "web_search",
    "write_stdin",
];
const OWN_BEGINNINGS: &[&str] = &["mcp__", "subagent_", "multi_agent_v1__"];

/// A tool that cannot be offered, by its place in the list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}")]
pub struct SpecError {
    /// The member that is wrong.
    pub path: String,
    pub why: String,
}

/// Checks a list of tools.
///
/// # Errors
/// If one of them has an invalid name or schema, two have the same name, or there are too many.
pub fn check(specs: &[DynamicToolSpec]) -> Result<(), SpecError> {
    let bytes = serde_json::to_string(specs).map_or(0, |json| json.len());
    if bytes > MOST_BYTES {
        return Err(wrong("dynamicTools", format!("{bytes} bytes, {MOST_BYTES} are allowed")));
    }
    let mut names = BTreeSet::new();
    for (place, spec) in specs.iter().enumerate() {
        let path = format!("dynamicTools[{place}]");
        match spec {
            DynamicToolSpec::Function(tool) => check_tool(tool, &path, None, &mut names)?,
            DynamicToolSpec::Namespace(group) => {
                check_name(&group.name, &format!("{path}.name"))?;
                check_own(&group.name, &format!("{path}.name"))?;
                if group.tools.is_empty() {
                    return Err(wrong(&format!("{path}.tools"), "a namespace needs a tool".to_owned()));
                }
                if !names.insert(group.name.clone()) {
                    return Err(wrong(&format!("{path}.name"), format!("`{}` is used twice", group.name)));
                }
                for (place, DynamicToolNamespaceTool::Function(tool)) in group.tools.iter().enumerate() {
                    check_tool(tool, &format!("{path}.tools[{place}]"), Some(&group.name), &mut names)?;
                }
            }
        }
        if names.len() > MOST_TOOLS {
            return Err(wrong(&path, format!("more than {MOST_TOOLS} tools")));
        }
    }
    Ok(())
}

fn check_tool(
    tool: &DynamicTool,
    path: &str,
    namespace: Option<&str>,
    names: &mut BTreeSet<String>,
) -> Result<(), SpecError> {
    let at_name = format!("{path}.name");
    check_name(&tool.name, &at_name)?;
    let name = if let Some(namespace) = namespace {
        format!("{namespace}__{}", tool.name)
    } else {
        check_own(&tool.name, &at_name)?;
        tool.name.clone()
    };
    if name.len() > MOST_NAME {
        return Err(wrong(&at_name, format!("`{name}` has {} characters, {MOST_NAME} are allowed", name.len())));
    }
    if !names.insert(name.clone()) {
        return Err(wrong(&at_name, format!("`{name}` is used twice")));
    }
    let at_schema = format!("{path}.inputSchema");
    let Some(schema) = tool.input_schema.as_object() else {
        return Err(wrong(&at_schema, "a JSON schema is an object".to_owned()));
    };
    match schema.get("type") {
        None => {}
        Some(kind) if kind == "object" => {}
        Some(kind) => return Err(wrong(&format!("{at_schema}.type"), format!("must be \"object\", not {kind}"))),
    }
    if schema.get("properties").is_some_and(|properties| !properties.is_object()) {
        return Err(wrong(&format!("{at_schema}.properties"), "must be an object".to_owned()));
    }
    Ok(())
}

fn check_name(name: &str, path: &str) -> Result<(), SpecError> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if name.is_empty() || name.len() > MOST_NAME || !name.chars().all(is_valid) {
        let why = format!("must be 1 to {MOST_NAME} letters, digits, `_` or `-`, not {name:?}");
        return Err(wrong(path, why));
    }
    Ok(())
}

fn check_own(name: &str, path: &str) -> Result<(), SpecError> {
    if OWN.contains(&name) || OWN_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) {
        return Err(wrong(path, format!("`{name}` is a name of this program")));
    }
    Ok(())
}

fn wrong(path: &str, why: String) -> SpecError {
    SpecError { path: path.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn refusal(specs: Value) -> String {
        let specs: Vec<DynamicToolSpec> = serde_json::from_value(specs).unwrap();
        check(&specs).map_or_else(|error| error.to_string(), |()| "accepted".to_owned())
    }

    fn tool(name: &str) -> Value {
        json!({"type": "function", "name": name, "description": "", "inputSchema": {}})
    }

    fn group(name: &str, tools: Value) -> Value {
        json!({"type": "namespace", "name": name, "description": "", "tools": tools})
    }

    #[test]
    fn a_refusal_names_the_place() {
        assert_eq!(refusal(json!([tool("a"), tool("b-1"), group("c", json!([tool("a")]))])), "accepted");
        for (specs, why) in [
            (json!([tool("a"), tool("a")]), "dynamicTools[1].name: `a` is used twice"),
            (json!([tool("shell")]), "dynamicTools[0].name: `shell` is a name of this program"),
            (json!([tool("mcp__x__y")]), "dynamicTools[0].name: `mcp__x__y` is a name of this program"),
            (json!([tool("a b")]), "dynamicTools[0].name: must be 1 to 64 letters, digits, `_` or `-`, not \"a b\""),
            (json!([group("g", json!([]))]), "dynamicTools[0].tools: a namespace needs a tool"),
            (json!([group("g", json!([tool("a"), tool("a")]))]), "dynamicTools[0].tools[1].name: `g__a` is used twice"),
            (
                json!([{"type": "function", "name": "a", "description": "", "inputSchema": 3}]),
                "dynamicTools[0].inputSchema: a JSON schema is an object",
            ),
            (
                json!([{"type": "function", "name": "a", "description": "", "inputSchema": {"type": "string"}}]),
                "dynamicTools[0].inputSchema.type: must be \"object\", not \"string\"",
            ),
        ] {
            assert_eq!(refusal(specs), why);
        }
        let many: Vec<Value> = (0..200).map(|number| tool(&format!("t{number}"))).collect();
        assert_eq!(refusal(json!(many)), "dynamicTools[128]: more than 128 tools");
        let large =
            json!([{"type": "function", "name": "a", "description": "x".repeat(MOST_BYTES), "inputSchema": {}}]);
        assert!(refusal(large).starts_with("dynamicTools: 524"));
    }
}
