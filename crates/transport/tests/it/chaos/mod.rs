//! Clients that are cut off at any byte and reconnect, again and again, while turns run.

mod cutter;
mod guest;
mod view;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::Barrier;

use self::cutter::Cutter;
use self::guest::Guest;
use self::view::timeless;
use crate::client::Client;
use crate::world::{ASKS, World};

/// The number of cuts. `CODEX_TEST_CUTS` sets another number, for a long run, and `CODEX_TEST_SEED` the seed of an
/// earlier one.
const CUTS: usize = 60;
/// Less than a turn, so that a client that is away for longer has to start over.
const RECENT_BYTES: usize = 24 * 1024;
const GUESTS: usize = 3;
const THREADS: usize = 5;

fn from_env(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Turns with everything that is streamed or needs an approval: reasoning, text, commands, patches.
fn script(turns: usize) -> Value {
    let pieces = |words: &str| -> Vec<String> { (0..40).map(|piece| format!("{words} {piece}, ")).collect() };
    let mut entries = Vec::new();
    for turn in 0..turns {
        let (look, done) = (pieces("I look"), pieces("I am done"));
        // Characters in two pieces, and several commands at once.
        let print = "for i in 1 2 3 4 5 6; do printf 'a\\342\\202'; printf '\\254b\\n'; done";
        let call = |line: &str| json!({"call": "shell", "args": {"command": ["sh", "-c", line]}});
        let text = json!({"text": look.concat(), "deltas": look});
        entries
            .push(json!({"items": [{"reasoning": ["**Thinking** of it."]}, text, call(print), call("echo second")]}));
        let patch = format!("*** Begin Patch\n*** Add File: made-{turn}.txt\n+made\n*** End Patch");
        entries.push(json!({"items": [{"custom": "apply_patch", "input": patch}]}));
        entries.push(json!({"items": [{"text": done.concat(), "deltas": done}]}));
    }
    entries.push(json!({"repeat": true, "items": [{"text": "More.", "deltas": ["Mo", "re."]}]}));
    json!(entries)
}

async fn threads(world: &World, client: &mut Client) -> Vec<String> {
    let mut threads = Vec::new();
    for place in 0..THREADS {
        let cwd = world.path(&format!("work/{place}"));
        std::fs::create_dir(&cwd).expect("a folder can be made");
        let started = client.ok("thread/start", json!({"cwd": cwd})).await;
        threads.push(started["thread"]["id"].as_str().expect("a name").to_owned());
    }
    threads
}

/// A stored thread: its turns with their items, and the input of each.
async fn kept(client: &mut Client, thread: &str) -> (Vec<(String, String, Vec<Value>)>, BTreeMap<String, String>) {
    let read = client.ok("thread/read", json!({"threadId": thread, "includeTurns": true})).await;
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (mut turns, mut said) = (Vec::new(), BTreeMap::new());
    for turn in read["thread"]["turns"].as_array().expect("turns") {
        let items: Vec<Value> = turn["items"].as_array().expect("items").iter().map(timeless).collect();
        for item in items.iter().filter(|item| item["type"] == "userMessage") {
            let twice = said.insert(word(&item["clientId"]), word(&turn["id"]));
            assert_eq!(twice, None, "{item} was said twice");
        }
        turns.push((word(&turn["id"]), word(&turn["status"]), items));
    }
    (turns, said)
}

/// Three clients on five threads are cut off, each for its share of all cuts, and then finish together.
async fn visit(world: &mut World, seed: u64, cuts: usize, threads: &[String]) -> Vec<Guest> {
    let mut addresses = Vec::new();
    for url in ["unix://", "ws://127.0.0.1:0"] {
        addresses.push(world.listen(url).await);
    }
    let all_said = Arc::new(Barrier::new(GUESTS));
    let mut visits = tokio::task::JoinSet::new();
    for name in 0..GUESTS {
        let mut cutters = Vec::new();
        for address in &addresses {
            cutters.push(Cutter::before(address, world.path(&format!("home/run/cutter-{name}"))).await);
        }
        let mut guest = Guest::new(name, seed.wrapping_add(name as u64), threads);
        let all_said = Arc::clone(&all_said);
        visits.spawn(async move {
            for _ in 0..cuts.div_ceil(GUESTS) {
                guest.visit(&cutters).await;
            }
            guest.conclude(&cutters[0], &all_said).await;
            guest
        });
    }
    visits.join_all().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_cut_off_at_any_byte_misses_and_repeats_nothing() {
    let seed = from_env("CODEX_TEST_SEED").unwrap_or_else(|| fastrand::u64(..));
    let cuts = from_env("CODEX_TEST_CUTS").map_or(CUTS, |cuts| usize::try_from(cuts).expect("it is a number"));
    eprintln!("CODEX_TEST_SEED={seed} CODEX_TEST_CUTS={cuts}");
    let mut world = World::remembering(RECENT_BYTES, ASKS, &script(cuts));
    let mut client = Client::within(world.server.connect()).await;
    let threads = threads(&world, &mut client).await;
    drop(client);
    let guests = visit(&mut world, seed, cuts, &threads).await;
    let mut client = Client::within(world.server.connect()).await;
    let mut said = BTreeMap::new();
    for thread in &threads {
        let (turns, keys) = kept(&mut client, thread).await;
        assert!(turns.iter().all(|(_, status, _)| status == "completed"), "{turns:?}");
        for guest in &guests {
            let view = &guest.views[thread];
            view.check();
            let shown = view.shown();
            assert_eq!(shown.len(), turns.len());
            shown.iter().zip(&turns).for_each(|(shown, kept)| assert_eq!(shown, kept));
        }
        said.extend(keys.into_iter().map(|(key, turn)| (key, (thread.clone(), turn))));
    }
    let heard = guests.iter().flat_map(|guest| guest.heard.iter().cloned());
    let heard: BTreeMap<_, _> = heard.map(|(thread, key, turn)| (key, (thread, turn))).collect();
    assert_eq!(heard, said, "what was said is kept once, in the turn that was named");
    let (went_on, anew): (usize, usize) =
        guests.iter().fold((0, 0), |sum, guest| (sum.0 + guest.went_on, sum.1 + guest.began_anew));
    eprintln!("{} said, {went_on} times gone on, {anew} times begun anew", said.len());
    assert!(went_on > 0 && !said.is_empty(), "the cuts came too early to show anything");
    world.end().await;
}
