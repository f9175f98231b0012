//! Copies of a loaded thread.

use std::borrow::Cow;
use std::sync::Arc;

use codex_engine::Setup;
use codex_log::history::SharedHistory;
use codex_log::settings::SettingsChange;
use codex_log::{Body, TurnId};
use codex_thread::{ExplicitOverrides, InitialHistory};
use codex_wire::conversation_item::ConversationItem;

use crate::law;
use crate::world::{one_turn, said};

const HELLO: &str = r#"[{"items": [{"text": "Hello."}]}]"#;

/// The place of an item's text in memory.
fn place(item: &ConversationItem) -> *const u8 {
    let Cow::Borrowed(json) = item.json() else { panic!("a short item is encoded once") };
    json.as_ptr()
}

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_loaded_thread_shares_its_conversation_and_the_providers_cache() {
    let original = one_turn(HELLO).await;
    let known = original.thread.state().await.expect("the thread is open").expect("it is saved");
    let items: Vec<_> = known.conversation.items().iter().map(place).collect();
    let position = original.rollout().metadata().expect("it has a file").len();
    let of = Arc::new(SharedHistory { state: (*known).clone(), position, cache_key: original.thread.id() });
    for is_saved in [true, false] {
        let (setup, prompts) = original.world.setup(HELLO);
        let shared = InitialHistory::Shared { of: Arc::clone(&of), explicit: ExplicitOverrides::default() };
        let initial_history = if is_saved { shared } else { InitialHistory::Unsaved(Box::new(shared)) };
        let (copy, mut feed) = Setup { initial_history, ..setup }.start().await.expect("the copy starts");
        assert_eq!(copy.started().meta.lineage.forked_from_id, Some(original.thread.id()));
        copy.say(TurnId::new("2"), vec![said("go on")], SettingsChange::default()).await.expect("it is open");
        while !matches!(feed.next().await.expect("the turn ends").body, Body::TurnEnded(_)) {}
        let asked = prompts.all().pop().expect("the model was asked");
        assert_eq!((asked.cache_key, asked.thread), (original.thread.id(), copy.id()));
        let sent: Vec<_> = asked.input.iter().map(place).collect();
        assert!(sent.len() > items.len() && sent.starts_with(&items), "no text is copied");
        if is_saved {
            law::memory_equals_file(&copy, &original.world.store).await;
        }
        copy.close().await;
    }
    let now = original.thread.state().await.expect("the thread is open").expect("it is saved");
    assert_eq!(now.conversation.items().len(), items.len(), "the thread itself stays as it is");
}
