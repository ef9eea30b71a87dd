use serde_json::json;

use crate::tools::builtin::tests::Bench;

const NOTEBOOK: &str = "{\n  \"cells\": [\n    {\n      \"cell_type\": \"code\",\n      \"metadata\": {\"tags\":[ ]},\n      \"execution_count\": 1,\n      \"id\": \"one\",\n      \"outputs\": [{\"output_type\": \"stream\", \"name\": \"stdout\", \"text\": [\"hi\\n\"]}],\n      \"source\": [\"print('hi')\"]\n    },\n    {\n      \"cell_type\": \"markdown\",\n      \"id\": \"two\",\n      \"metadata\": {},\n      \"source\": \"words\"\n    }\n  ],\n  \"strange\": {\"b\": 1, \"a\": 1.50},\n  \"nbformat\": 4, \"nbformat_minor\": 5\n}\n\n";

#[tokio::test]
async fn a_cell_is_changed_and_nothing_else() {
    let bench = Bench::new();
    let path = bench.put("a.ipynb", NOTEBOOK);
    let input = json!({"notebook_path": path, "cell_id": "two", "new_source": "other\nwords"});
    bench.run("NotebookEdit", input.clone()).await.refused(&["has not been read"]);
    let shown = bench.read(&path).await;
    shown.says(&["<cell id=\"one\"", "print('hi')", "hi", "<cell id=\"two\"", "words"]);
    bench.run("NotebookEdit", input).await.says(&["Replaced cell two", "other\nwords"]);
    let expected = NOTEBOOK.replace("\"words\"", "\"other\\nwords\"");
    assert_eq!(String::from_utf8(bench.get("a.ipynb")).unwrap(), expected);
    // What it wrote it knows.
    let input = json!({"notebook_path": path, "cell_id": "one", "new_source": "print('ho')"});
    bench.run("NotebookEdit", input).await.ok();
    let expected = expected.replace("print('hi')", "print('ho')");
    assert_eq!(String::from_utf8(bench.get("a.ipynb")).unwrap(), expected);
    let insert = json!({"notebook_path": path, "cell_id": "one", "new_source": "x", "edit_mode": "insert", "cell_type": "code"});
    let inserted = bench.run("NotebookEdit", insert).await;
    let id = inserted.detail["cell_id"].as_str().unwrap().to_owned();
    let delete = json!({"notebook_path": path, "cell_id": id, "new_source": "", "edit_mode": "delete"});
    bench.run("NotebookEdit", delete).await.says(&["Deleted"]);
    assert_eq!(String::from_utf8(bench.get("a.ipynb")).unwrap(), expected);
}

#[tokio::test]
async fn what_cannot_be_done_is_said_and_nothing_is_written() {
    let bench = Bench::new();
    let path = bench.put("a.ipynb", NOTEBOOK);
    bench.read(&path).await.ok();
    for (input, words) in [
        (json!({"notebook_path": path, "cell_id": "none", "new_source": "x"}), "Its cells: one, two"),
        (json!({"notebook_path": path, "new_source": "x"}), "`cell_id` is missing"),
        (json!({"notebook_path": path, "new_source": "x", "edit_mode": "insert"}), "`cell_type` is missing"),
        (json!({"notebook_path": path, "cell_id": "one"}), "`new_source` is missing"),
        (json!({"notebook_path": "a.txt", "cell_id": "one", "new_source": "x"}), "must end in .ipynb"),
        (json!({"notebook_path": path, "cell_id": "one", "new_source": "x", "edit_mode": "move"}), "replace"),
    ] {
        bench.run("NotebookEdit", input).await.refused(&[words]);
    }
    bench.edit(&path, "words", "x").await.refused(&["NotebookEdit"]);
    assert_eq!(bench.get("a.ipynb"), NOTEBOOK.as_bytes());
    let broken = bench.put("b.ipynb", "{\"cells\": 5}");
    bench.read(&broken).await.says(&["{\"cells\": 5}"]);
    bench
        .run("NotebookEdit", json!({"notebook_path": broken, "cell_id": "a", "new_source": "x"}))
        .await
        .refused(&["no notebook"]);
}
