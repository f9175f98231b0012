//! The MCP servers: their state, tools and last errors.

use serde_json::{Map, Value, json};

use crate::board::{Action, Entry, Needs};
use codex_terminal::{Row, Span, Style, one_line, printable};

pub const ACTIONS: &[Action] = &[
    Action { key: 'l', label: "log in", needs: Needs::Selection },
    Action { key: 'e', label: "enable/disable", needs: Needs::Selection },
    Action { key: 'r', label: "restart", needs: Needs::Selection },
    Action { key: 'a', label: "add", needs: Needs::Text("Add (NAME COMMAND ARGUMENTS, or NAME https://ADDRESS):") },
    Action { key: 'd', label: "remove", needs: Needs::Confirmation },
];

/// One entry for each server.
#[must_use]
pub fn entries(answer: &Value) -> Vec<Entry> {
    let servers = answer["data"].as_array().into_iter().flatten();
    servers.map(|server| Entry::new(server.clone(), lines(server))).collect()
}

fn lines(server: &Value) -> Vec<Row> {
    let text = |name: &str| printable(server[name].as_str().unwrap_or_default()).into_owned();
    let status = text("runtimeStatus");
    let (style, state) = match status.as_str() {
        "connected" => (Style::Green, "connected"),
        "notStarted" => (Style::Dim, "not started"),
        "starting" => (Style::Yellow, "starting"),
        "authenticationRequired" => (Style::Yellow, "needs a login"),
        "failed" => (Style::Red, "failed"),
        "cancelled" => (Style::Dim, "cancelled"),
        "disabled" => (Style::Dim, "disabled"),
        "" => (Style::Dim, "unknown"),
        other => (Style::Dim, other),
    };
    let tools = server["tools"].as_object().map_or(0, Map::len);
    let login = match text("authStatus").as_str() {
        "notLoggedIn" => ", not logged in",
        "bearerToken" => ", with a token",
        "oAuth" => ", logged in",
        _ => "",
    };
    let count = if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") };
    let mut lines = vec![vec![
        Span::new(Style::Plain, one_line(&text("name"))),
        Span::new(style, format!("  {state}")),
        Span::new(Style::Dim, format!("  {count}{login}")),
    ]];
    let error = text("toolsError");
    if !error.is_empty() {
        lines.push(vec![Span::new(Style::Hang, "  "), Span::new(Style::Red, error.replace('\n', " "))]);
    }
    lines
}

/// The tools of a server with their descriptions.
#[must_use]
pub fn tools(server: &Value) -> Vec<Row> {
    let mut lines = Vec::new();
    for (name, tool) in server["tools"].as_object().into_iter().flatten() {
        let what = printable(tool["description"].as_str().unwrap_or_default()).replace('\n', " ");
        lines.push(vec![Span::new(Style::Code, one_line(&printable(name)))]);
        lines.push(vec![Span::new(Style::Gutter, "    "), Span::new(Style::Plain, what)]);
    }
    for resource in server["resources"].as_array().into_iter().flatten() {
        let uri = printable(resource["uri"].as_str().unwrap_or_default()).replace('\n', " ");
        lines.push(vec![Span::new(Style::Dim, "resource  "), Span::new(Style::Plain, uri)]);
    }
    if lines.is_empty() {
        lines.push(vec![Span::new(Style::Dim, "It offers no tools.")]);
    }
    lines
}

/// The configuration of a server that a person has typed: a name, and a command or an address.
pub fn typed(text: &str) -> Result<(String, Value), String> {
    let mut words = crate::words::words(text)?.into_iter();
    let (Some(name), Some(first)) = (words.next(), words.next()) else {
        return Err("type a name, and a command or an address".to_owned());
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.chars().all(is_plain) {
        return Err(format!("`{name}` is no name: use letters, digits, - and _"));
    }
    if first.starts_with("https://") || first.starts_with("http://") {
        return Ok((name, json!({"url": first})));
    }
    let rest: Vec<String> = words.collect();
    Ok((name, json!({"command": first, "args": rest})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typed_server_has_a_command_or_an_address() {
        let program = json!({"command": "npx", "args": ["-y", "a b"]});
        assert_eq!(typed("docs npx -y 'a b'"), Ok(("docs".to_owned(), program)));
        assert_eq!(typed("w https://x.y/mcp"), Ok(("w".to_owned(), json!({"url": "https://x.y/mcp"}))));
        assert!(typed("docs").is_err() && typed("a.b ls").is_err() && typed("a 'b").is_err());
    }
}
