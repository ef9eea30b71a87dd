use std::sync::Arc;

use pelton_testkit::{Script, text, tool};
use serde_json::json;

use super::{Album, noise};
use crate::stage::{Stage, run};

#[tokio::test]
async fn a_picture_is_kept_once_beside_the_transcript_and_sent_again() {
    use std::os::unix::fs::PermissionsExt;

    let show = || tool("Album", json!({"page": 0}));
    let script = Script::new().reply([show(), show()]).reply([text("Seen.")]).reply([text("Still seen.")]);
    let stage = Stage::new(script).await;
    let album = Album::of([noise(300, 300)]);
    let mut engine = stage.engine_with(|options| options.tools.push(Arc::clone(&album)));
    run(&mut engine, "Look.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);

    assert!(file.metadata().unwrap().len() < 20_000, "the picture is not in there");
    let kept: Vec<_> = std::fs::read_dir(file.with_extension("").join("blobs"))
        .unwrap()
        .map(|kept| kept.unwrap().path())
        // What stands in front of the messages is kept there, too.
        .filter(|kept| !std::fs::read(kept).unwrap().starts_with(b"{\"system\":"))
        .collect();
    assert_eq!(kept.len(), 1, "two results hold the same");
    assert_eq!(kept[0].metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(kept[0].parent().unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);

    let copy = file.with_file_name("b0b5c1de-0000-4000-8000-000000000001.jsonl");
    pelton::transcript::copy_as(&file, &copy, uuid::Uuid::from_u128(5)).unwrap();
    // The one it was copied from is deleted, as the SDKs do it.
    std::fs::remove_file(&file).unwrap();
    std::fs::remove_dir_all(file.with_extension("")).unwrap();
    let mut engine = stage.engine_with(|options| {
        options.tools.push(Arc::clone(&album));
        crate::stage::resume_from(options, &copy);
        assert_eq!(options.resume.as_ref().unwrap().conversation.lines_skipped, 0);
    });
    run(&mut engine, "And now?").await.assert_completed();
    let (before, after) =
        (crate::stage::unmarked(&stage.request(2)), crate::stage::unmarked(&stage.request(3)));
    let count = before["messages"].as_array().unwrap().len();
    assert_eq!(after["messages"].as_array().unwrap()[..count], before["messages"].as_array().unwrap()[..]);
    stage.assert_all_played();
}
