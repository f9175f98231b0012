//! Every method that the newest release calls stable is answered, or refused with a reason.

use serde_json::json;

use crate::app_client::AppClient;

/// The methods that 0.166 calls stable, one per line.
const STABLE: &str = include_str!("stable_methods_0.166.txt");

#[tokio::test]
async fn no_stable_method_is_unknown() {
    let mut client = AppClient::start_new("").await;
    let mut refused = Vec::new();
    for method in STABLE.lines() {
        // Without parameters most requests are refused because a member is missing. The test checks that the method is
        // known.
        if let Err(error) = client.call(method, json!({})).await {
            let message = error["message"].as_str().expect("a message");
            assert!(!message.contains("unknown variant"), "{method}: {message}");
            if let Some((_, why)) = message.split_once(&format!("unsupported method `{method}`: ")) {
                assert!(why.len() > 10, "{method}: {message}");
                refused.push(method);
            }
        }
    }
    assert!(refused.contains(&"plugin/read") && !refused.contains(&"fs/readFile"), "{refused:?}");
    client.end_unread().await;
}
