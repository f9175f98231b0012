//! `codex demo --servers N`: servers that share a database, one of which is killed in the middle of a turn.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use codex_client::approvals::Approvals;
use codex_client::{Client, Event, Events, Options};
use codex_postgres::PrivateCluster;
use codex_printer::Terminal;
use codex_transport::Address;
use serde_json::json;

const SCRIPT: &str = include_str!("../../demo/servers.json");
const CONFIG: &str = "model_provider = \"scripted\"\napproval_policy = \"never\"\nsandbox_mode = \"read-only\"\n\
                      [model_providers.scripted]\nname = \"Scripted\"\nwire_api = \"scripted\"\nscript = \"script.json\"\n";
/// The time limit for the database and a server to start.
const START: Duration = Duration::from_secs(30);
/// The time limit for another server to have the thread: its lease ends after 15 s.
const TAKE_OVER: Duration = Duration::from_secs(60);

/// A server that ends with the demo.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _: std::io::Result<()> = self.0.kill();
        let _: std::io::Result<std::process::ExitStatus> = self.0.wait();
    }
}

/// Shows the servers in a temporary folder.
pub(super) async fn show<W: Write>(count: u8, folder: &Path, mut terminal: Terminal<W>) -> anyhow::Result<()> {
    let names: Vec<String> = (b'a'..b'a' + count).map(|letter| char::from(letter).to_string()).collect();
    terminal
        .line(&format!("{count} servers, one PostgreSQL database, and a scripted model: no API key, no network."))?;
    let database = PrivateCluster::start(folder)?;
    let mut servers = Vec::new();
    for name in &names {
        servers.push(start_server(folder, name, &database.url())?);
        dial(folder, name).await?;
    }
    let (client, mut events) = dial(folder, "a").await?;
    let opened = client.raw("thread/start", json!({"cwd": folder.join("a")})).await?;
    let thread = opened["thread"]["id"].as_str().context("the server has not named the thread")?.to_owned();
    ask(&client, &thread, "What does the greeting do?", &mut terminal).await?;
    follow(&mut events, "a", &mut terminal, |event| matches!(event, Event::TurnEnded { .. })).await?;

    ask(&client, &thread, "Take your time.", &mut terminal).await?;
    follow(&mut events, "a", &mut terminal, |event| matches!(event, Event::Delta(_))).await?;
    terminal.line("\nkill -9 a")?;
    drop(servers.remove(0));
    let killed = Instant::now();

    let (client, mut events) = take_over(folder, "b", &thread).await?;
    let turns = turns(&client, &thread).await?;
    let seconds = killed.elapsed().as_secs_f32();
    terminal.line(&format!("b has the thread after {seconds:.1} s; the turns were {}.\n", turns.join(", ")))?;
    ask(&client, &thread, "Who continues?", &mut terminal).await?;
    follow(&mut events, "b", &mut terminal, |event| matches!(event, Event::TurnEnded { .. })).await?;

    if let Some(last) = names.get(2) {
        let (client, _events) = dial(folder, last).await?;
        let turns = self::turns(&client, &thread).await?;
        terminal.line(&format!("{last} reads the same thread: {}.", turns.join(", ")))?;
    }
    terminal.line("\nNext: docs/scale.md tells how to set up servers of your own")?;
    Ok(())
}

async fn ask<W: Write>(client: &Client, thread: &str, text: &str, terminal: &mut Terminal<W>) -> anyhow::Result<()> {
    terminal.line(&format!("\n> {text}"))?;
    let input = json!([{"type": "text", "text": text}]);
    client.raw("turn/start", json!({"threadId": thread, "input": input})).await?;
    Ok(())
}

/// Shows the answers of a server until an event.
async fn follow<W: Write>(
    events: &mut Events,
    server: &str,
    terminal: &mut Terminal<W>,
    is_last: impl Fn(&Event) -> bool,
) -> anyhow::Result<()> {
    loop {
        let next = tokio::time::timeout(START, events.next()).await.context("the server says nothing")?;
        let event = next.context("the server has ended")?;
        match &event {
            Event::ItemCompleted { item, .. } if item["type"] == "agentMessage" => {
                terminal.line(&format!("{server}: {}", item["text"].as_str().unwrap_or_default()))?;
            }
            Event::Delta(delta) if is_last(&event) => {
                terminal.line(&format!("{server}: {}…", delta.text.trim_end()))?;
            }
            _ => {}
        }
        if is_last(&event) {
            return Ok(());
        }
    }
}

/// Resumes the thread at another server, as soon as that may have it.
async fn take_over(folder: &Path, server: &str, thread: &str) -> anyhow::Result<(Client, Events)> {
    let began = Instant::now();
    let (client, events) = dial(folder, server).await?;
    loop {
        match client.raw("thread/resume", json!({"threadId": thread})).await {
            Ok(_) => return Ok((client, events)),
            Err(error) if began.elapsed() > TAKE_OVER => return Err(error.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// The states of the thread's turns.
async fn turns(client: &Client, thread: &str) -> anyhow::Result<Vec<String>> {
    let read = client.raw("thread/read", json!({"threadId": thread, "includeTurns": true})).await?;
    let turns = read["thread"]["turns"].as_array().context("the server has not listed the turns")?;
    Ok(turns.iter().map(|turn| turn["status"].as_str().unwrap_or("unknown").to_owned()).collect())
}

fn socket(folder: &Path, server: &str) -> PathBuf {
    folder.join(server).join("run/app-server.sock")
}

async fn dial(folder: &Path, server: &str) -> anyhow::Result<(Client, Events)> {
    let (address, began) = (Address::Unix(Some(socket(folder, server))), Instant::now());
    loop {
        let options = Options::new("codex_demo", env!("CARGO_PKG_VERSION"));
        match codex_client::dial(&address, None, options, Approvals::deny_all()).await {
            Ok(connected) => return Ok(connected),
            Err(error) if began.elapsed() > START => return Err(error).context("the server cannot be reached"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

fn start_server(folder: &Path, name: &str, url: &str) -> anyhow::Result<Running> {
    let home = folder.join(name);
    std::fs::create_dir_all(&home)?;
    std::fs::write(home.join("config.toml"), CONFIG)?;
    std::fs::write(home.join("script.json"), SCRIPT)?;
    let address = format!("store.advertise=unix://{}", socket(folder, name).display());
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["app-server", "--listen", "unix://", "-c", &format!("store.server_name={name}"), "-c", &address]);
    command.env("CODEX_HOME", &home).env("CODEX_STORE_URL", url).current_dir(&home);
    let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Ok(Running(child.context("could not start a server")?))
}
