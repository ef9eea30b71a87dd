use super::*;
use crate::tools::builtin::tests::Bench;

#[tokio::test]
async fn tasks_are_made_changed_and_listed() {
    let bench = Bench::new();
    let made = bench
        .run("TaskCreate", json!({"subject": "Build", "description": "All of it", "metadata": {"a": 1}}))
        .await;
    assert_eq!(made.ok(), "Task #1 created: Build");
    assert_eq!(made.detail, json!({"task": {"id": "1", "subject": "Build"}}));
    bench
        .run("TaskCreate", json!({"subject": "Test", "description": "Then", "activeForm": "Testing"}))
        .await
        .ok();
    bench.run("TaskCreate", json!({"subject": "Ship", "description": ""})).await.ok();
    let update = bench
        .run("TaskUpdate", json!({"taskId": "#2", "addBlockedBy": ["1"], "addBlocks": ["3"], "owner": "me", "metadata": {"b": 2}}))
        .await;
    assert_eq!(update.detail["updatedFields"], json!(["owner", "metadata", "blocks", "blockedBy"]));
    assert_eq!(
        bench.run("TaskList", json!({})).await.ok(),
        "#1 [pending] Build\n#2 [pending] Test (me) [waits for #1]\n#3 [pending] Ship [waits for #2]"
    );
    let done =
        bench.run("TaskUpdate", json!({"taskId": 1, "status": "completed", "metadata": {"a": null}})).await;
    assert_eq!(done.detail["statusChange"], json!({"from": "pending", "to": "completed"}));
    let list = bench.run("TaskList", json!({})).await;
    assert_eq!(
        list.detail["tasks"][1],
        json!({"id": "2", "subject": "Test", "status": "pending", "blockedBy": [], "owner": "me"})
    );
    let got = bench.run("TaskGet", json!({"taskId": "2"})).await;
    assert_eq!(got.detail["task"]["blockedBy"], json!(["1"]));
    assert_eq!(got.detail["task"]["activeForm"], "Testing");
    assert!(got.ok().contains("Waits for: #1") && got.ok().ends_with("Then"), "{}", got.ok());
    assert!(bench.run("TaskGet", json!({"taskId": "1"})).await.detail["task"].get("metadata").is_none());
    bench.run("TaskUpdate", json!({"taskId": "1", "status": "deleted"})).await.ok();
    let got = bench.run("TaskGet", json!({"taskId": "2"})).await;
    assert_eq!(got.detail["task"]["blockedBy"], json!([]));
    let next = bench.run("TaskCreate", json!({"subject": "More", "description": "x"})).await;
    assert_eq!(next.detail["task"]["id"], "4", "ids are never given again");
}

#[tokio::test]
async fn nothing_waits_for_itself_and_what_is_wrong_changes_nothing() {
    let bench = Bench::new();
    for subject in ["a", "b", "c"] {
        bench.run("TaskCreate", json!({"subject": subject, "description": subject})).await.ok();
    }
    bench.run("TaskUpdate", json!({"taskId": "2", "addBlockedBy": ["1"]})).await.ok();
    bench.run("TaskUpdate", json!({"taskId": "3", "addBlockedBy": ["2"]})).await.ok();
    for (input, why) in [
        (json!({"taskId": "1", "addBlockedBy": ["1"], "subject": "x"}), "wait for itself"),
        (json!({"taskId": "1", "addBlockedBy": ["3"], "subject": "x"}), "waits for it already"),
        (json!({"taskId": "3", "addBlocks": ["1"], "subject": "x"}), "waits for it already"),
        (json!({"taskId": "1", "addBlocks": ["9"], "subject": "x"}), "no task #9"),
        (json!({"taskId": "9", "subject": "x"}), "no task #9"),
        (json!({"taskId": "1", "subject": " "}), "`subject` is empty"),
    ] {
        let answer = bench.run("TaskUpdate", input.clone()).await;
        assert!(answer.error && answer.text.contains(why), "{input}: {}", answer.text);
        assert_eq!(answer.detail["success"], false);
    }
    assert_eq!(bench.run("TaskGet", json!({"taskId": "1"})).await.detail["task"]["subject"], "a");
    assert_eq!(
        bench.run("TaskUpdate", json!({"taskId": "1", "subject": "a"})).await.ok(),
        "Task #1 is as it was."
    );
    for (tool, input) in [
        ("TaskCreate", json!({"subject": "", "description": "x"})),
        ("TaskCreate", json!({"subject": "x"})),
        ("TaskUpdate", json!({"taskId": "1", "status": "done"})),
        ("TaskGet", json!({"taskId": true})),
        ("TaskList", json!({"x": 1})),
    ] {
        assert!(bench.run(tool, input.clone()).await.error, "{tool} {input}");
    }
}

#[test]
fn what_calls_did_can_be_done_again() {
    let mut tasks = TaskList::default();
    for (tool, input) in [
        ("TaskCreate", json!({"subject": "a", "description": "x"})),
        ("Bash", json!({"command": "x"})),
        ("TaskCreate", json!({"nonsense": 1})),
        ("TaskUpdate", json!({"taskId": "1", "status": "in_progress"})),
    ] {
        replay(&mut tasks, tool, &input);
    }
    assert_eq!(tasks.lines(), ["#1 [in_progress] a"]);
}
