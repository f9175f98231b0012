//! Programs that give each other a thread, and are killed.

use serde_json::{Value, json};

use crate::program::{Place, Running};
use crate::sockets::{hello, proxy_ask};

/// Rounds of: one program takes the thread, and is killed while its turn runs.
const ROUNDS: u32 = 3;

fn server(place: &Place) -> Running {
    let mut server = place.start(&["app-server"]);
    proxy_ask(&mut server, &hello(1));
    server
}

fn resume(server: &mut Running, thread: &str) {
    let answer = proxy_ask(server, &json!({"id": 2, "method": "thread/resume", "params": {"threadId": thread}}));
    assert_eq!(answer["result"]["thread"]["id"], thread, "{answer}");
}

fn say(server: &mut Running, thread: &str, text: &str) {
    let input = json!([{"type": "text", "text": text}]);
    let answer =
        proxy_ask(server, &json!({"id": text, "method": "turn/start", "params": {"threadId": thread, "input": input}}));
    assert!(answer["error"].is_null(), "{answer}");
}

#[test]
fn a_program_that_is_killed_with_a_thread_it_was_given_leaves_it_to_the_others() {
    let place = crate::chat::place("", &json!([{"repeat": true, "items": [{"text": "Done."}]}]));
    let hangs = json!([{"items": [{"text": "Ha", "done": false}, {"hang": true}]}]);
    let mut keeper = server(&place);
    let started = proxy_ask(&mut keeper, &json!({"id": 3, "method": "thread/start", "params": {}}));
    let thread = started["result"]["thread"]["id"].as_str().expect("a name").to_owned();
    let path = started["result"]["thread"]["path"].as_str().expect("a path").to_owned();
    for round in 0..ROUNDS {
        say(&mut keeper, &thread, &format!("kept {round}"));
        while keeper.message()["method"] != "turn/completed" {}
        // Each program plays the script from its beginning.
        let usual = std::fs::read(place.path("home/script.json")).expect("it can be read");
        std::fs::write(place.path("home/script.json"), hangs.to_string()).expect("it can be written");
        let mut taker = server(&place);
        resume(&mut taker, &thread);
        std::fs::write(place.path("home/script.json"), usual).expect("it can be written");
        say(&mut taker, &thread, &format!("hang {round}"));
        while taker.message()["method"] != "item/agentMessage/delta" {}
        // Dropping it kills it with SIGKILL.
        drop(taker);
    }
    say(&mut keeper, &thread, "kept to the end");
    while keeper.message()["method"] != "turn/completed" {}
    // The keeper is killed too, while another program has the thread.
    let mut last = server(&place);
    resume(&mut last, &thread);
    drop(keeper);
    say(&mut last, &thread, "the last");
    while last.message()["method"] != "turn/completed" {}
    let text = std::fs::read_to_string(path).expect("it can be read");
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("every line is whole"));
    let said: Vec<String> = lines
        .filter(|line| line["payload"]["type"] == "user_message")
        .map(|line| line["payload"]["message"].as_str().expect("a text").to_owned())
        .collect();
    let expected: Vec<String> = (0..ROUNDS)
        .flat_map(|round| [format!("kept {round}"), format!("hang {round}")])
        .chain(["kept to the end".to_owned(), "the last".to_owned()])
        .collect();
    assert_eq!(said, expected);
}
