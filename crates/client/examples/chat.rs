//! A chat in the terminal: `cargo run -p codex-client --example chat [THREAD]`
//!
//! Ends with the end of the input.

#![expect(clippy::print_stdout, reason = "the conversation goes there")]

use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use codex_client::approvals::{Approvals, Ask, Decision};
use codex_client::event::Part;
use codex_client::supervisor::Launch;
use codex_client::{Client, Event, Events, Options, Supervisor};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

/// The lines of the input. The chat and the questions of the server read them in turn.
type Lines = Arc<Mutex<mpsc::Receiver<String>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let lines = input();
    let asking = Arc::clone(&lines);
    let approvals = Approvals::handler(move |ask| decide(ask, Arc::clone(&asking)));
    let mut supervisor = Supervisor::start(Launch::codex(), Options::new("chat", "1.0"), approvals, |_| {});
    let (client, mut events) = supervisor.connection().await.ok_or("the server cannot be started")?;
    let opened = match std::env::args().nth(1) {
        Some(thread) => client.raw("thread/resume", json!({"threadId": thread})).await?,
        None => client.raw("thread/start", json!({})).await?,
    };
    let thread = &opened["thread"]["id"];
    while let Some(prompt) = read("> ", &lines).await {
        if !prompt.trim().is_empty() {
            turn(&client, &mut events, thread, &prompt).await?;
        }
    }
    println!("\nthread {}", thread.as_str().unwrap_or_default());
    supervisor.stop().await;
    Ok(())
}

/// Reads lines on a thread of its own, because reading a terminal blocks.
fn input() -> Lines {
    let (sender, lines) = mpsc::channel(16);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    Arc::new(Mutex::new(lines))
}

async fn read(prompt: &str, lines: &Lines) -> Option<String> {
    show(prompt);
    lines.lock().await.recv().await
}

/// Asks the person. The connection continues meanwhile.
async fn decide(ask: Ask, lines: Lines) -> Decision {
    let subject = ["command", "reason"].iter().find_map(|name| ask.params.get(name)?.as_str());
    let prompt = format!("\nallow {}? [y/N] ", plain(subject.unwrap_or(&ask.method)));
    match read(&prompt, &lines).await {
        Some(answer) if answer.trim().eq_ignore_ascii_case("y") => Decision::Allow,
        _ => Decision::deny("the user said no"),
    }
}

async fn turn(client: &Client, events: &mut Events, thread: &Value, prompt: &str) -> Result<(), Box<dyn Error>> {
    let input = json!([{"type": "text", "text": prompt}]);
    client.raw("turn/start", json!({"threadId": thread, "input": input})).await?;
    while let Some(event) = events.next().await {
        match event {
            Event::Delta(delta) if delta.part == Part::Message => show(&plain(&delta.text)),
            Event::ItemStarted { item, .. } if item["type"] == "commandExecution" => {
                let command = item.get("command").and_then(Value::as_str).unwrap_or_default();
                println!("\n$ {}", plain(command));
            }
            Event::Error { message, .. } | Event::Warning { message, .. } => println!("\n! {}", plain(&message)),
            Event::TurnEnded { status, .. } => {
                println!("{}", if status == "completed" { String::new() } else { format!("\n({status})") });
                return Ok(());
            }
            _ => {}
        }
    }
    Err("the server has ended".into())
}

fn show(text: &str) {
    print!("{text}");
    let _: std::io::Result<()> = std::io::stdout().flush();
}

/// Text without control characters: the model and the commands that it runs are not trusted with the terminal.
fn plain(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control() || matches!(letter, '\n' | '\t')).collect()
}
