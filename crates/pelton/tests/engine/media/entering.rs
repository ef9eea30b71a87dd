//! Every picture is brought down on its way in.

use image::{DynamicImage, ImageFormat};
use pelton::PromptBlock;
use pelton::{Event, Prompt};
use pelton_testkit::{Script, Step, text, tool};
use serde_json::{Value, json};

use super::{Album, encoded, page, pictures, png, seen};
use crate::stage::{Stage, Told, blocks, entry_of, last_user_blocks, rest, results_in, run};

#[tokio::test]
async fn pit_L6_twenty_five_pictures_one_of_them_too_wide_are_all_small_enough() {
    let read = |n: usize| tool("Read", json!({"file_path": format!("{n}.png")}));
    let script = Script::new().reply((0..25).map(read)).reply([text("Nice.")]);
    let stage = Stage::new(script).await;
    for n in 0..25 {
        let picture = if n == 7 { png(2162, 322) } else { png(60 + n, 40) };
        std::fs::write(stage.path(&format!("{n}.png")), picture).unwrap();
    }

    let told = run(&mut stage.engine(), "Look at them.").await;

    assert_eq!(told.assert_completed().text, "Nice.");
    let seen = pictures(&stage.request(2));
    assert_eq!(seen.len(), 25);
    assert!(seen.iter().all(|(_, _, size)| size.0.max(size.1) <= 2000), "{seen:?}");
    assert_eq!(seen[7].2, (2000, 298));
    assert_eq!(seen[8].2, (68, 40));
    let results = results_in(&stage.request(2));
    assert!(results[7].2.contains("Scaled down from 2162×322 to 2000×298 pixels."), "{results:?}");
    assert_eq!(results[8].2, "");
    // The model would have refused one that is too wide among so many.
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L6_pictures_of_any_tool_are_brought_down_and_called_what_they_are() {
    let photo = DynamicImage::ImageRgb8(image::RgbImage::from_fn(3000, 1500, |x, y| {
        image::Rgb([x as u8, y as u8, (x * y) as u8])
    }));
    let album = Album::of([
        encoded(&photo, ImageFormat::Jpeg),
        encoded(&photo.crop_imm(0, 0, 90, 60), ImageFormat::WebP),
        png(50, 50)[..200].to_vec(),
        b"<svg/>".to_vec(),
    ]);
    let script = Script::new().reply((0..4).map(|n| tool("Album", page(n)))).reply([text("Nice.")]);
    let stage = Stage::new(script).await;
    let mut engine = stage.engine_with(|options| options.tools.push(album));

    run(&mut engine, "Look.").await.assert_completed();

    let seen = pictures(&stage.request(2));
    assert_eq!(
        seen,
        [
            ("image/jpeg".to_owned(), ImageFormat::Jpeg, (2000, 1000)),
            ("image/webp".to_owned(), ImageFormat::WebP, (90, 60)),
        ]
    );
    let results = results_in(&stage.request(2));
    assert!(results[0].2.starts_with("Page 0.[Scaled down from 3000×1500"), "{results:?}");
    assert!(
        results[2]
            .2
            .starts_with("Page 2.[An image was left out here. It is a PNG image that cannot be opened")
    );
    assert!(
        results[3]
            .2
            .starts_with("Page 3.[An image was left out here. It is not a PNG, JPEG, GIF or WebP image")
    );
    stage.assert_all_played();
}

#[tokio::test]
async fn a_picture_that_is_read_comes_with_its_structured_twin() {
    let script = Script::new()
        .reply([
            // By content: the name lies.
            tool("Read", json!({"file_path": "shot.txt"})),
            tool("Read", json!({"file_path": "broken.jpg"})),
            tool("Read", json!({"file_path": "wall.png"})),
        ])
        .reply([text("Seen.")]);
    let stage = Stage::new(script).await;
    let bytes = png(2400, 600);
    std::fs::write(stage.path("shot.txt"), &bytes).unwrap();
    std::fs::write(stage.path("broken.jpg"), b"\xFF\xD8\xFF\xE0 and nothing more").unwrap();
    let mut wall = png(8, 8);
    wall[16..24].copy_from_slice(b"\0\x01\0\0\0\x01\0\0");
    std::fs::write(stage.path("wall.png"), wall).unwrap();

    let told = run(&mut stage.engine(), "Look.").await;

    told.assert_completed();
    let results: Vec<_> = told.0.iter().filter_map(entry_of).filter(|entry| entry.detail.is_some()).collect();
    let detail: Value = serde_json::from_slice(results[0].detail.as_ref().unwrap()).unwrap();
    let file = &detail["file"];
    assert_eq!((&detail["type"], &file["type"]), (&json!("image"), &json!("image/png")));
    assert_eq!(file["originalSize"], bytes.len());
    assert_eq!(
        file["dimensions"],
        json!({"originalWidth": 2400, "originalHeight": 600, "displayWidth": 2000, "displayHeight": 500})
    );
    let request = stage.request(2);
    let shown = blocks(&request, "user").into_iter().find(|block| block["type"] == "tool_result").unwrap();
    assert_eq!(shown["content"][0]["source"]["data"], file["base64"]);
    let answers = results_in(&request);
    assert!(
        answers[1].1 && answers[1].2.contains("broken.jpg is a JPEG image that cannot be opened"),
        "{answers:?}"
    );
    assert!(answers[2].1 && answers[2].2.contains("wall.png has 65536×65536 pixels"), "{answers:?}");
    assert!(answers[2].2.contains("ImageMagick"), "a way out");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L6_a_picture_that_is_refused_all_the_same_becomes_a_stub_and_the_turn_goes_on() {
    let refusal = "messages.2.content.1.tool_result.content.1.image.source.base64.data: At least one of the image \
                   dimensions exceed max allowed size for many-image requests: 2000 pixels";
    let script = Script::new()
        .reply((0..3).map(|n| tool("Album", page(n))))
        .step(Step::status(400).message(refusal))
        .reply([text("Nice.")])
        .reply([text("Yes.")]);
    let stage = Stage::new(script).await;
    let mut engine =
        stage.engine_with(|options| options.tools.push(Album::of([png(30, 30), png(31, 31), png(32, 32)])));

    let told = run(&mut engine, "Look.").await;

    assert_eq!(told.assert_completed().text, "Nice.");
    assert_eq!(told.transitions(), ["next_turn", "request_repair"]);
    assert!(!told.0.iter().any(|event| matches!(event, Event::Synthetic(_))), "no error is shown");
    let widths = |n: usize| pictures(&stage.request(n)).iter().map(|seen| seen.2.0).collect::<Vec<_>>();
    assert_eq!((widths(2), widths(3)), (vec![30, 31, 32], vec![30, 32]));
    assert!(results_in(&stage.request(3))[1].2.contains("was left out here"));
    run(&mut engine, "Sure?").await.assert_completed();
    assert_eq!(widths(4), [30, 32], "it does not come back");
    stage.assert_all_played();
}

#[tokio::test]
async fn pit_L6_pictures_of_prompts_and_mentions_are_brought_down_too() {
    let stage = Stage::new(Script::new().reply([text("Nice.")])).await;
    std::fs::write(stage.path("wide.png"), png(2400, 60)).unwrap();
    let image = |bytes: &[u8]| PromptBlock::Image {
        media_type: "image/gif".to_owned(),
        base64: base64::Engine::encode(&base64::engine::general_purpose::STANDARD, bytes),
    };
    let words = PromptBlock::Text("Compare with @wide.png".to_owned());
    let prompt = Prompt::blocks([words, image(&png(30, 3000)), image(b"no picture")]).unwrap();

    let told = Told(rest(&mut stage.engine().submit(prompt)).await);

    assert_eq!(told.assert_completed().text, "Nice.");
    let request = stage.request(1);
    let all = blocks(&request, "user");
    let images: Vec<_> = all.iter().filter(|block| block["type"] == "image").collect();
    let sizes: Vec<_> = images.iter().map(|image| seen(image).2).collect();
    assert_eq!(sizes, [(2000, 50), (20, 2000)]);
    assert_eq!(images[1]["source"]["media_type"], "image/png");
    let said = request.to_string();
    assert!(said.contains("Scaled down from 30×3000 to 20×2000 pixels"));
    assert!(said.contains("Scaled down from 2400×60 to 2000×50 pixels"));
    assert!(said.contains("An image was left out here. It is not a PNG"));
    stage.assert_all_played();
}

#[tokio::test]
async fn a_short_pdf_is_shown_as_the_document_it_is() {
    let script = Script::new().reply([tool("Read", json!({"file_path": "a.pdf"}))]).reply([text("Read.")]);
    let stage = Stage::new(script).await;
    let objects = "1 0 obj <</Type /Catalog /Pages 2 0 R>> endobj\n2 0 obj <</Type /Pages /Kids [3 0 R] /Count 1>> endobj\n\
                   3 0 obj <</Type /Page /Parent 2 0 R>> endobj\n";
    stage.write("a.pdf", &format!("%PDF-1.4\n{objects}trailer <</Root 1 0 R>>\n%%EOF\n"));
    run(&mut stage.engine(), "Read it.").await.assert_completed();
    let request = stage.request(2);
    let content = &last_user_blocks(&request)[0]["content"];
    assert!(content[0]["text"].as_str().unwrap().contains("PDF document, 1 page"), "{content}");
    assert_eq!(content[1]["type"], "document");
    assert_eq!(content[1]["source"]["media_type"], "application/pdf");
    stage.assert_all_played();
}
