//! `codex mcp approve`: MCP servers that a project configures.

use std::io::{IsTerminal as _, Write as _};

use codex_config::{Env, Home, Layers, Overrides, ProjectServer, UserConfig, WriteRequest, table_json};
use serde_json::Value;

use crate::console;
use crate::failure::ErrorWithHint;

/// Approves a server as its table is now.
pub(super) fn approve(home: &Home, env: &Env, overrides: &Overrides, name: &str, yes: bool) -> anyhow::Result<()> {
    let layers = Layers::read(home, env, overrides)?;
    let Some(server) = layers.project_servers().iter().find(|server| server.name == name) else {
        let what = format!("no MCP server named '{name}' in the files of this project");
        let hint = "servers of a project are read from its .codex/config.toml, if you trust the project".to_owned();
        return Err(ErrorWithHint { what, hint }.into());
    };
    console::note(described(server));
    if !yes {
        if !(std::io::stdin().is_terminal() && console::err_is_terminal()) {
            let what = format!("cannot ask for confirmation without a terminal; '{name}' was not approved");
            return Err(ErrorWithHint { what, hint: "use --yes to approve without confirmation".to_owned() }.into());
        }
        console::ask("Run this server outside of the sandbox? [y/N] ")?;
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        anyhow::ensure!(matches!(answer.trim(), "y" | "Y" | "yes"), "cancelled: nothing was approved");
    }
    let user = Overrides::default();
    UserConfig::new(home, env, &user).write(&WriteRequest::of([server.approval()]))?;
    writeln!(console::out(), "Approved MCP server '{name}' of this project. It is asked about again if it changes.")?;
    Ok(())
}

/// Everything that the project says about a server, which is what is approved.
fn described(server: &ProjectServer) -> String {
    let members = table_json(&server.table);
    let lines = members.iter().map(|(key, value): (&String, &Value)| format!("\n  {key} = {value}"));
    format!("{}: mcp_servers.{}{}", server.file.display(), server.name, lines.collect::<String>())
}
