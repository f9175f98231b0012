use codex_wire::ids::ThreadId;
use futures_util::FutureExt;

use super::*;

fn tree(most: usize) -> Arc<TreeRequests> {
    let tree = Arc::new(TreeRequests::new(most));
    tree.expect_agents();
    tree
}

fn is_granted(place: &Place) -> bool {
    place.granted().now_or_never().is_some()
}

#[tokio::test(start_paused = true)]
async fn a_place_is_free_when_its_request_ends_or_is_canceled() {
    let (tree, agent) = (tree(1), || Some(ThreadId::fresh()));
    let first = tree.place(agent(), "p");
    let (canceled, second, elsewhere) = (tree.place(agent(), "p"), tree.place(agent(), "p"), tree.place(agent(), "q"));
    assert!(is_granted(&first) && is_granted(&elsewhere), "each provider has a queue of its own");
    assert!(!is_granted(&canceled) && !is_granted(&second));
    drop(canceled);
    assert!(!is_granted(&second));
    drop(first);
    second.granted().await;
}

#[tokio::test(start_paused = true)]
async fn a_root_without_agents_waits_for_nobody_and_counts_once_it_has_some() {
    let tree = Arc::new(TreeRequests::new(1));
    let alone = tree.place(None, "p");
    assert!(matches!(alone, Place::Alone(_)) && is_granted(&alone) && alone.pace().is_none());
    assert!(tree.lock().is_empty(), "no queue was made");
    tree.expect_agents();
    let child = tree.place(Some(ThreadId::fresh()), "p");
    assert!(!is_granted(&child), "the request of the root still runs");
    drop(alone);
    child.granted().await;
    let root = tree.place(None, "p");
    assert!(!is_granted(&root), "from now on it has its turn like others");
    drop(child);
    root.granted().await;
}

#[tokio::test(start_paused = true)]
async fn after_a_refusal_all_wait_and_the_root_goes_on_first() {
    let tree = tree(1);
    let refused = tree.place(Some(ThreadId::fresh()), "p");
    refused.granted().await;
    let (other, root) = (tree.place(Some(ThreadId::fresh()), "p"), tree.place(None, "p"));
    let begun = Instant::now();
    let pace = refused.pace().expect("it has a pace");
    let again = pace.wait(Duration::from_secs(30));
    tokio::select! {
        () = again => panic!("the root is first"),
        () = other.granted() => panic!("the root is first"),
        () = root.granted() => assert_eq!(begun.elapsed().as_secs(), 30),
    }
    drop(root);
    tokio::select! {
        biased;
        () = refused.granted() => panic!("the other one waits longer"),
        () = other.granted() => {}
    }
    drop(other);
    refused.granted().await;
    assert_eq!(begun.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn those_who_wait_go_on_though_the_refused_one_is_canceled() {
    let tree = tree(1);
    let refused = tree.place(Some(ThreadId::fresh()), "p");
    let other = tree.place(Some(ThreadId::fresh()), "p");
    let begun = Instant::now();
    let pace = refused.pace().expect("it has a pace");
    let waiting = async {
        tokio::time::timeout(Duration::from_secs(1), pace.wait(Duration::from_secs(30))).await.expect_err("it waits");
        drop(refused);
    };
    tokio::join!(waiting, other.granted());
    assert_eq!(begun.elapsed().as_secs(), 30);
}
