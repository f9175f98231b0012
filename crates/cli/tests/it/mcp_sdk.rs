//! `codex mcp-server` with the official SDK for Python, in each version of the protocol and over each transport. It runs
//! if `CODEX_TEST_MCP_SDK` names a Python that has the package `mcp`.

use std::process::Command;

use serde_json::{Value, json};

use crate::program::Place;
use crate::sockets::Server;

const PYTHON: &str = "CODEX_TEST_MCP_SDK";
const TOKEN: &str = "a-token-for-tests-0123456789";
/// Every command is asked about.
const CONFIG: &str = "model_provider = 'mine'\napproval_policy = 'untrusted'\nsandbox_mode = 'danger-full-access'\n\
                      [model_providers.mine]\nname = 'Mine'\nwire_api = 'scripted'\nscript = 'script.json'\n";

/// A model that wants to run a command, and then answers.
fn place() -> Place {
    let script = json!([
        {"items": [{"call": "shell", "args": {"command": ["sh", "-c", "touch out"]}}]},
        {"items": [{"text": "Done."}]},
        {"items": [{"text": "More."}]},
    ]);
    let place = Place::new().variable("CODEX_APP_SERVER_TOKEN", TOKEN);
    place.file("home/config.toml", CONFIG).file("home/script.json", &script.to_string())
}

fn run(python: &str, place: &Place, words: &[&str]) -> Value {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/mcp_sdk.py");
    let mut sdk = Command::new(python);
    sdk.arg(script).args(words).env("CODEX_HOME", place.path("home")).current_dir(place.path("project"));
    let ran = sdk.output().expect("the SDK runs");
    let told = String::from_utf8_lossy(&ran.stderr);
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}\n{told}"))
}

#[test]
fn the_official_sdk_drives_the_server_in_every_version_and_over_every_transport() {
    let Ok(python) = std::env::var(PYTHON) else { return };
    for way in ["stdio", "http"] {
        for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")] {
            let place = place();
            let server = (way == "http").then(|| {
                let set = ["-c", "model_provider=mine"];
                Server::start_as("mcp-server", &place, &["127.0.0.1:0"], &set)
            });
            let program = env!("CARGO_BIN_EXE_codex").to_owned();
            let whom = server.as_ref().map_or(program, |server| server.urls[0].clone());
            let expected = json!({
                "version": version,
                "tools": ["codex", "codex-reply"],
                "answers": ["Done.", "More."],
                "wrong": true,
                "asked": 1,
                "progress": ["Started", "Running sh -c 'touch out'", "Done."],
            });
            assert_eq!(run(&python, &place, &[way, mode, &whom, TOKEN]), expected, "{way} {mode}");
            assert!(place.path("project/out").exists(), "{way} {mode}: the command ran");
        }
    }
}
