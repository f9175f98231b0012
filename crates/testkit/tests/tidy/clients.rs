//! HTTP clients are built in one place, so that proxies and certificates of the user apply to every connection.

use crate::{Source, no_complaints, sources};

const CLIENTS: &str = "crates/model/src/http/clients.rs";

/// Other ways to get a client.
const WAYS: [&str; 5] = ["Client::builder(", "Client::new()", "ClientBuilder::new(", "reqwest::get(", "connect_async("];

fn complaints(source: &Source) -> Vec<String> {
    if source.is_test() || source.name == CLIENTS || !source.text.contains("reqwest") {
        return Vec::new();
    }
    let ways = WAYS.iter().filter(|way| source.text.contains(**way));
    ways.map(|way| format!("{}: {way}: use `codex_model::http_client`", source.name)).collect()
}

#[test]
fn http_clients_are_built_in_one_place() {
    no_complaints(sources().iter().flat_map(complaints).collect());
}

#[test]
fn another_http_client_is_noticed() {
    let source = |name: &str, text: &str| Source { name: name.to_owned(), text: text.to_owned() };
    let text = "use reqwest::Client; fn a() { Client::builder().build() }";
    assert_eq!(complaints(&source("crates/mcp/src/new.rs", text)).len(), 1);
    assert!(complaints(&source(CLIENTS, text)).is_empty());
    assert!(complaints(&source("crates/mcp/tests/new.rs", text)).is_empty());
    assert!(complaints(&source("crates/tui/src/new.rs", "struct Client; Client::new()")).is_empty());
}
