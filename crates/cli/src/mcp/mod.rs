//! `codex mcp`: lists and changes the configured MCP servers. With a pipe on standard input and no command it serves, as
//! 0.42 did.

pub(crate) mod args;
mod logins;
mod project;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use codex_config::{
    Config, ConfigEdit, Env, Home, McpAddress, McpProgram, McpServer, McpTransport, Secret, UserConfig,
    Value as Setting, WriteRequest,
};
use serde_json::{Map, Value, json};

use self::args::{AddArgs, McpArgs, McpCommand};
use self::logins::AuthState;
use crate::args::{Args, Shared};
use crate::{console, mcp_server};

/// The status of the program when it shows its help because a command is missing.
const USAGE: u8 = 2;

/// Runs a form of `mcp`.
pub(crate) fn run(shared: &Shared, args: McpArgs) -> anyhow::Result<ExitCode> {
    let form = match args.form {
        Some(McpCommand::Serve) => return mcp_server::run_with_conversations(shared),
        None if !std::io::stdin().is_terminal() => return mcp_server::run_with_conversations(shared),
        None => return Ok(help()),
        Some(form) => form,
    };
    let env = Env::process();
    let home = Home::find(&env)?;
    let overrides = shared.overrides();
    match form {
        McpCommand::List { json } => list(&Config::load(&home, &env, &overrides)?, &home, &env, json)?,
        McpCommand::Get { name, json } => get(&load(&Config::load(&home, &env, &overrides)?, &env), &name, json)?,
        McpCommand::Login { name, scopes } => {
            logins::log_in(&Config::load(&home, &env, &overrides)?, &home, &env, &name, scopes)?;
        }
        McpCommand::Logout { name } => logins::log_out(&Config::load(&home, &env, &overrides)?, &home, &env, &name)?,
        McpCommand::Add(add) => put(&UserConfig::new(&home, &env, &overrides), add)?,
        McpCommand::Remove { name } => remove(&UserConfig::new(&home, &env, &overrides), &name)?,
        McpCommand::Approve { name, yes } => project::approve(&home, &env, &overrides, &name, yes)?,
        McpCommand::Serve => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn help() -> ExitCode {
    let mut whole = Args::whole();
    // Only then commands know that they are called `codex mcp`.
    whole.build();
    let help = whole.find_subcommand_mut("mcp").map(clap::Command::render_long_help);
    console::note(help.map(|help| help.to_string()).unwrap_or_default().trim_end());
    ExitCode::from(USAGE)
}

/// A server, and the times that are set for it.
struct Listed {
    server: McpServer,
    times: Times,
}

/// The times that are set, in seconds.
struct Times {
    startup: Option<f64>,
    tool: Option<f64>,
}

fn load(config: &Config, env: &Env) -> Vec<Listed> {
    let user_dir = env.text("HOME").map(PathBuf::from);
    let servers = config.mcp_servers(user_dir.as_deref()).into_iter();
    servers.map(|server| Listed { times: times(config, &server), server }).collect()
}

fn times(config: &Config, server: &McpServer) -> Times {
    let is_set = |key: &str| config.tree.get(&["mcp_servers", &server.name, key]).is_some();
    let has_startup = is_set("startup_timeout_sec") || is_set("startup_timeout_ms");
    Times {
        startup: has_startup.then_some(server.startup_timeout.as_secs_f64()),
        tool: is_set("tool_timeout_sec").then_some(server.tool_timeout.as_secs_f64()),
    }
}

fn list(config: &Config, home: &Home, env: &Env, is_json: bool) -> anyhow::Result<()> {
    let servers = load(config, env);
    let configs: Vec<McpServer> = servers.iter().map(|listed| listed.server.clone()).collect();
    let logins = logins::states(config, home, env, &configs)?;
    let servers: Vec<_> = servers.into_iter().zip(logins).collect();
    let mut out = console::out();
    if is_json {
        let listed: Vec<Value> = servers.iter().map(|(listed, auth)| for_programs(listed, *auth)).collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&listed)?)?;
        return Ok(());
    }
    let mut programs = vec![["Name", "Command", "Args", "Env", "Cwd", "Status", "Auth"].map(str::to_owned)];
    let mut addresses = vec![["Name", "Url", "Bearer Token Env Var", "Status", "Auth"].map(str::to_owned)];
    for (Listed { server, .. }, auth) in &servers {
        let (name, auth) = (server.name.clone(), auth.title().to_owned());
        let status = if server.is_enabled { "enabled" } else { "disabled" }.to_owned();
        match &server.transport {
            McpTransport::Stdio(program) => {
                let cwd = program.cwd.as_ref().map(|cwd| cwd.display().to_string());
                let (command, args) = (program.command.clone(), or_dash(program.args.join(" ")));
                programs.push([
                    name,
                    command,
                    args,
                    variables(program),
                    or_dash(cwd.unwrap_or_default()),
                    status,
                    auth,
                ]);
            }
            McpTransport::Http(address) => {
                let token = or_dash(address.bearer_token_env_var.clone().unwrap_or_default());
                addresses.push([name, address.url.clone(), token, status, auth]);
            }
        }
    }
    if servers.is_empty() {
        writeln!(out, "No MCP servers configured yet. Try `codex mcp add my-tool -- my-command`.")?;
    }
    let tables = [table(&programs), table(&addresses)];
    let shown: Vec<&str> = tables.iter().flatten().map(String::as_str).collect();
    write!(out, "{}", shown.join("\n"))?;
    Ok(())
}

/// A table with a heading, columns of equal width and two spaces between them; nothing if there is only the heading.
fn table<const N: usize>(rows: &[[String; N]]) -> Option<String> {
    if rows.len() < 2 {
        return None;
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        // Writing to a text does not fail.
        let _: std::fmt::Result = writeln!(text, "{}", cells.join("  "));
    }
    Some(text)
}

fn get(servers: &[Listed], name: &str, is_json: bool) -> anyhow::Result<()> {
    let found = servers.iter().find(|listed| listed.server.name == name);
    let Some(Listed { server, times }) = found else { anyhow::bail!("No MCP server named '{name}' found.") };
    let mut out = console::out();
    if is_json {
        let mut shown = described(server);
        shown.insert("enabled_tools".to_owned(), json!(server.enabled_tools));
        let disabled = Some(&server.disabled_tools).filter(|tools| !tools.is_empty());
        shown.insert("disabled_tools".to_owned(), json!(disabled));
        add_times(&mut shown, times);
        writeln!(out, "{}", serde_json::to_string_pretty(&shown)?)?;
        return Ok(());
    }
    if !server.is_enabled {
        writeln!(out, "{name} (disabled)")?;
        return Ok(());
    }
    writeln!(out, "{name}\n  enabled: true")?;
    match &server.transport {
        McpTransport::Stdio(program) => {
            let cwd = program.cwd.as_ref().map(|cwd| cwd.display().to_string()).unwrap_or_default();
            writeln!(out, "  transport: stdio\n  command: {}", program.command)?;
            writeln!(out, "  args: {}\n  cwd: {}", or_dash(program.args.join(" ")), or_dash(cwd))?;
            writeln!(out, "  env: {}", variables(program))?;
        }
        McpTransport::Http(address) => {
            let token = or_dash(address.bearer_token_env_var.clone().unwrap_or_default());
            writeln!(out, "  transport: streamable_http\n  url: {}\n  bearer_token_env_var: {token}", address.url)?;
            let headers = address.http_headers.keys().map(|name| format!("{name}=*****"));
            writeln!(out, "  http_headers: {}", joined(headers))?;
            let headers = address.env_http_headers.iter().map(|(name, variable)| format!("{name}={variable}"));
            writeln!(out, "  env_http_headers: {}", joined(headers))?;
        }
    }
    writeln!(out, "  remove: codex mcp remove {name}")?;
    Ok(())
}

fn for_programs(Listed { server, times }: &Listed, auth: AuthState) -> Value {
    let mut shown = described(server);
    add_times(&mut shown, times);
    shown.insert("auth_status".to_owned(), auth.name().into());
    Value::Object(shown)
}

fn described(server: &McpServer) -> Map<String, Value> {
    let transport = match &server.transport {
        McpTransport::Stdio(McpProgram { command, args, env, env_vars, cwd }) => json!({
            "type": "stdio", "command": command, "args": args, "env": revealed(env), "env_vars": env_vars,
            "cwd": cwd.as_ref().map(|cwd| cwd.display().to_string()),
        }),
        McpTransport::Http(McpAddress { url, bearer_token_env_var, http_headers, env_http_headers, .. }) => json!({
            "type": "streamable_http", "url": url, "bearer_token_env_var": bearer_token_env_var,
            "http_headers": revealed(http_headers),
            "env_http_headers": Some(env_http_headers).filter(|headers| !headers.is_empty()),
        }),
    };
    let members = [("name", json!(server.name)), ("enabled", json!(server.is_enabled)), ("transport", transport)];
    members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn add_times(shown: &mut Map<String, Value>, times: &Times) {
    shown.insert("startup_timeout_sec".to_owned(), json!(times.startup));
    shown.insert("tool_timeout_sec".to_owned(), json!(times.tool));
}

/// The values themselves: programs read them from the JSON, as they did from that of 0.77.
fn revealed(values: &BTreeMap<String, Secret>) -> Option<BTreeMap<&String, &str>> {
    let revealed = || values.iter().map(|(name, value)| (name, value.reveal())).collect();
    (!values.is_empty()).then(revealed)
}

/// The variables of a program, without their values.
fn variables(program: &McpProgram) -> String {
    joined(program.env.keys().chain(&program.env_vars).map(|name| format!("{name}=*****")))
}

fn joined(words: impl Iterator<Item = String>) -> String {
    or_dash(words.collect::<Vec<_>>().join(", "))
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}

fn put(config: &UserConfig<'_>, add: AddArgs) -> anyhow::Result<()> {
    let AddArgs { name, env, url, bearer_token_env_var, oauth_client_id, oauth_resource, command } = add;
    check_name(&name)?;
    let mut server = Map::new();
    let mut words = command.into_iter();
    if let Some(command) = words.next() {
        server.insert("command".to_owned(), command.into());
        let args: Vec<String> = words.collect();
        if !args.is_empty() {
            server.insert("args".to_owned(), json!(args));
        }
        if !env.is_empty() {
            server.insert("env".to_owned(), json!(env.into_iter().collect::<BTreeMap<_, _>>()));
        }
    }
    server.extend(url.map(|url| ("url".to_owned(), url.into())));
    server.extend(bearer_token_env_var.map(|variable| ("bearer_token_env_var".to_owned(), variable.into())));
    server.extend(oauth_client_id.map(|id| ("oauth".to_owned(), json!({"client_id": id}))));
    server.extend(oauth_resource.map(|resource| ("oauth_resource".to_owned(), resource.into())));
    config.write(&WriteRequest::of([ConfigEdit::set(format!("mcp_servers.{name}"), Value::Object(server))]))?;
    writeln!(console::out(), "Added global MCP server '{name}'.")?;
    Ok(())
}

fn remove(config: &UserConfig<'_>, name: &str) -> anyhow::Result<()> {
    check_name(name)?;
    let file = config.file()?;
    let servers = file.get(&["mcp_servers"]).map(|node| &node.value);
    let has = |servers: &Setting| matches!(servers, Setting::Table(_)) && file.get(&["mcp_servers", name]).is_some();
    if !servers.is_some_and(has) {
        writeln!(console::out(), "No MCP server named '{name}' found.")?;
        return Ok(());
    }
    config.write(&WriteRequest::of([ConfigEdit::set(format!("mcp_servers.{name}"), Value::Null)]))?;
    writeln!(console::out(), "Removed global MCP server '{name}'.")?;
    Ok(())
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    anyhow::ensure!(
        !name.is_empty() && name.chars().all(is_plain),
        "invalid server name '{name}' (use letters, numbers, '-', '_')"
    );
    Ok(())
}
