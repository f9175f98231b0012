//! Questions to a person, and the answers.

use expect_test::expect;

use crate::client::{Client, say};

fn answer(id: &str, kind: &str, name: &str, decision: &str) -> String {
    format!(r#"{{"id":"{id}","op":{{"type":"{kind}","id":"{name}","decision":"{decision}"}}}}"#)
}

#[tokio::test(start_paused = true)]
async fn several_questions_are_answered_by_their_calls_and_the_last_one_by_its_turn() {
    let script = r#"[{"items": [{"call": "shell", "args": {"command": ["touch", "a"]}},
                                {"call": "shell", "args": {"command": ["touch", "b"]}}]},
                     {"items": [{"text": "done"}]}]"#;
    let mut client = Client::start(script).await;
    client.forget_greeting().await;
    client.send(r#"{"id":"0","op":{"type":"override_turn_context","approval_policy":"untrusted"}}"#).await;
    client.send(&say("1", "hi")).await;
    client.until("exec_approval_request").await;
    client.until("exec_approval_request").await;
    client.send(&answer("2", "exec_approval", "1", "denied")).await;
    client.until("warning").await;
    client.send(&answer("3", "exec_approval", "call-1-2", "denied")).await;
    client.send(&answer("4", "exec_approval", "1", "denied")).await;
    client.end_and_check(expect![[r#"
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"exec_approval_request","call_id":"call-1-1","turn_id":"1","command":["touch","a"],"cwd":"TEMP/project","proposed_execpolicy_amendment":["touch","a"],"parsed_cmd":[{"type":"unknown","cmd":"touch a"}]}}
        {"id":"1","msg":{"type":"exec_approval_request","call_id":"call-1-2","turn_id":"1","command":["touch","b"],"cwd":"TEMP/project","proposed_execpolicy_amendment":["touch","b"],"parsed_cmd":[{"type":"unknown","cmd":"touch b"}]}}
        {"id":"2","msg":{"type":"warning","message":"no single open request matches \"1\"; name a `call_id`"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"done"}}
        {"id":"1","msg":{"type":"agent_message","message":"done"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":"done"}}
    "#]]).await;
}

#[tokio::test]
async fn a_question_about_a_patch_names_the_folder_that_a_yes_opens() {
    let patch = |name: &str| {
        let patch = format!("*** Begin Patch\\n*** Add File: {name}\\n+x\\n*** End Patch");
        format!(r#"{{"items": [{{"custom": "apply_patch", "input": "{patch}"}}]}}"#)
    };
    let script = format!(r#"[{}, {}, {{"items": [{{"text": "done"}}]}}]"#, patch("a"), patch("b"));
    let mut client = Client::start(&script).await;
    client.forget_greeting().await;
    client.send(&say("1", "hi")).await;
    client.until("apply_patch_approval_request").await;
    client.send(&answer("2", "patch_approval", "call-1-1", "approved_for_session")).await;
    client.end_and_check(expect![[r#"
        {"id":"1","msg":{"type":"task_started","model_context_window":272000}}
        {"id":"1","msg":{"type":"user_message","message":"hi","images":[]}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"apply_patch_approval_request","call_id":"call-1-1","turn_id":"1","changes":{"TEMP/project/a":{"add":{"content":"x\n"}}},"reason":"the patch writes outside of what the sandbox lets it write","grant_root":"TEMP/project"}}
        {"id":"1","msg":{"type":"patch_apply_begin","call_id":"call-1-1","turn_id":"1","auto_approved":false,"changes":{"TEMP/project/a":{"add":{"content":"x\n"}}}}}
        {"id":"1","msg":{"type":"patch_apply_end","call_id":"call-1-1","turn_id":"1","stdout":"Success. Updated the following files:\nA a\n","stderr":"","success":true,"changes":{"TEMP/project/a":{"add":{"content":"x\n"}}}}}
        {"id":"1","msg":{"type":"turn_diff","unified_diff":"diff --git a/a b/a\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..587be6b4c3f93f93c489c0111bba5596147a26cb\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\n"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"patch_apply_begin","call_id":"call-2-1","turn_id":"1","auto_approved":true,"changes":{"TEMP/project/b":{"add":{"content":"x\n"}}}}}
        {"id":"1","msg":{"type":"patch_apply_end","call_id":"call-2-1","turn_id":"1","stdout":"Success. Updated the following files:\nA b\n","stderr":"","success":true,"changes":{"TEMP/project/b":{"add":{"content":"x\n"}}}}}
        {"id":"1","msg":{"type":"turn_diff","unified_diff":"diff --git a/a b/a\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..587be6b4c3f93f93c489c0111bba5596147a26cb\n--- /dev/null\n+++ b/a\n@@ -0,0 +1 @@\n+x\ndiff --git a/b b/b\nnew file mode 100644\nindex 0000000000000000000000000000000000000000..587be6b4c3f93f93c489c0111bba5596147a26cb\n--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"agent_message_delta","delta":"done"}}
        {"id":"1","msg":{"type":"agent_message","message":"done"}}
        {"id":"1","msg":{"type":"token_count",…}}
        {"id":"1","msg":{"type":"task_complete","last_agent_message":"done"}}
    "#]]).await;
}
