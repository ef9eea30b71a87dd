//! The form of blocks, cache marks and images.

use super::*;

#[test]
fn blocks() {
    let case = |block: Value, message: &str| {
        refused(
            base(OPUS),
            |r| r["messages"][0]["content"] = json!([text("x"), block]),
            Rule::Shape,
            message,
        );
    };
    case(
        json!({"type": "future_block"}),
        "messages.0.content.1: Input tag 'future_block' found using 'type' does not match any of the expected tags: 'advisor_tool_result', …",
    );
    case(json!({"text": "x"}), "messages.0.content.1.type: Field required");
    case(json!({"type": "text"}), "messages.0.content.1.text.text: Field required");
    case(
        json!({"type": "text", "text": 1}),
        "messages.0.content.1.text.text: Input should be a valid string",
    );
    case(
        json!({"type": "text", "text": "x", "id": 1}),
        "messages.0.content.1.text.id: Extra inputs are not permitted",
    );
    case(json!({"type": "image"}), "messages.0.content.1.image.source: Field required");
    case(
        json!({"type": "image", "source": {"type": "magic"}}),
        "messages.0.content.1.image.source: Input tag 'magic' found using 'type' does not match any of the expected tags: 'base64', 'file', 'url'",
    );
    case(
        json!({"type": "image", "source": {"type": "url"}}),
        "messages.0.content.1.image.source.url.url: Field required",
    );
    case(json!("x"), "messages.0.content.1: Input should be an object");
    refused(
        base(OPUS),
        |r| r["system"] = json!([{"type": "image"}]),
        Rule::Shape,
        "system.0.type: Input should be 'text'",
    );
    refused(
        base(OPUS),
        |r| r["system"] = json!([7]),
        Rule::Shape,
        "system.0: Input does not match the expected shape.",
    );
    let call = |r: &mut Value, member: &str, value| r["messages"][1]["content"][1][member] = value;
    refused(
        tool_turn(OPUS),
        |r| call(r, "input", json!("x")),
        Rule::Shape,
        "messages.1.content.1.tool_use.input: Input should be an object",
    );
    refused(
        tool_turn(OPUS),
        |r| {
            r["messages"][1]["content"][1].as_object_mut().unwrap().remove("name");
        },
        Rule::Shape,
        "messages.1.content.1.tool_use.name: Field required",
    );
    refused(
        tool_turn(OPUS),
        |r| call(r, "id", json!("a.b")),
        Rule::Shape,
        "messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    );
    let result = |content| move |r: &mut Value| r["messages"][2]["content"][0]["content"] = content;
    refused(
        tool_turn(OPUS),
        result(json!([{"type": "tool_use", "id": "x"}])),
        Rule::Shape,
        "messages.2.content.0.tool_result.content.0: Input tag 'tool_use' found using 'type' does not match any of the expected tags: 'document', 'image', 'search_result', 'text', 'tool_reference'",
    );
    refused(
        tool_turn(OPUS),
        result(json!([{"type": "image", "data": "x"}])),
        Rule::Shape,
        "messages.2.content.0.tool_result.content.0.image.source: Field required",
    );
    refused(
        tool_turn(OPUS),
        result(json!(5)),
        Rule::Shape,
        "messages.2.content.0.tool_result.content: Input should be a valid array",
    );
    accepted(tool_turn(OPUS), |r| {
        r["messages"][2]["content"][0].as_object_mut().unwrap().remove("content");
    });
    accepted(tool_turn(OPUS), result(json!("")));
    accepted(tool_turn(OPUS), result(json!([{"type": "tool_reference", "tool_name": "Read"}])));
}

#[test]
fn blocks_the_script_issues_may_come_back() {
    let mut issued = Issued::new(1);
    issued.allow_block_type("future_block");
    let mut request = tool_turn(OPUS);
    request["messages"][1]["content"]
        .as_array_mut()
        .unwrap()
        .insert(0, json!({"type": "future_block", "x": 1}));
    assert_eq!(check(&request, &messages(), &issued, &Strictness::default()), Ok(()));
    assert_eq!(judged_in(messages(), &request).unwrap_err().rule, Rule::Shape);
}

#[test]
fn cache_marks() {
    let mark = json!({"type": "ephemeral"});
    let hour = json!({"type": "ephemeral", "ttl": "1h"});
    let marked = |mark: &Value| json!({"type": "text", "text": "x", "cache_control": mark});
    let case = |change: &dyn Fn(&mut Value), message: &str| {
        refused(tool_turn(OPUS), change, Rule::CacheMarks, message);
    };
    accepted(tool_turn(OPUS), |r| {
        r["system"] = json!([marked(&hour), marked(&hour), marked(&mark), marked(&mark)]);
    });
    case(
        &|r| r["system"] = json!(vec![marked(&mark); 5]),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    );
    case(
        &|r| {
            r["system"] = json!(vec![marked(&mark); 3]);
            r["tools"][0]["cache_control"] = mark.clone();
            r["messages"][2]["content"][0]["content"] = json!([marked(&mark)]);
            r["messages"][2]["content"][0]["cache_control"] = mark.clone();
        },
        "A maximum of 4 blocks with cache_control may be provided. Found 6.",
    );
    case(
        &|r| {
            r["system"] = json!(vec![marked(&mark); 4]);
            r["cache_control"] = mark.clone();
        },
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    );
    case(
        &|r| {
            r["messages"][2]["content"][2]["cache_control"] = hour.clone();
            r["cache_control"] = mark.clone();
        },
        "cache_control.ttl: must equal the ttl of messages.2.content.2.cache_control, the last block of the request",
    );
    accepted(tool_turn(OPUS), |r| {
        r["messages"][2]["content"][2]["cache_control"] = hour.clone();
        r["cache_control"] = hour.clone();
    });
    let order = "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.";
    case(
        &|r| {
            r["tools"][0]["cache_control"] = mark.clone();
            r["messages"][2]["content"][2]["cache_control"] = hour.clone();
        },
        &format!("messages.2.content.2.cache_control.ttl: {order}"),
    );
    case(
        &|r| r["system"] = json!([marked(&mark), marked(&hour)]),
        &format!("system.1.cache_control.ttl: {order}"),
    );
    case(
        &|r| r["system"] = json!([marked(&json!({"type": "eternal"}))]),
        "system.0.cache_control: Input tag 'eternal' found using 'type' does not match any of the expected tags: 'ephemeral'",
    );
    case(
        &|r| r["system"] = json!([marked(&json!({"type": "ephemeral", "ttl": "2h"}))]),
        "system.0.cache_control.ephemeral.ttl: Input should be '5m' or '1h'",
    );
    case(
        &|r| r["system"] = json!([marked(&json!({"type": "ephemeral", "scope": "global"}))]),
        "system.0.cache_control.ephemeral.scope: Extra inputs are not permitted",
    );
    case(
        &|r| {
            r["tools"][1]["defer_loading"] = json!(true);
            r["tools"][1]["cache_control"] = mark.clone();
        },
        "Tool 'Bash' cannot have both defer_loading=true and cache_control set. Tools with defer_loading cannot use prompt caching.",
    );
}

#[test]
fn images() {
    let show = |images: Vec<Value>| move |r: &mut Value| r["messages"][0]["content"] = json!(images);
    let case =
        |images: Vec<Value>, message: &str| refused(base(OPUS), show(images), Rule::ImageSize, message);
    accepted(base(OPUS), show(vec![png(8000, 8000)]));
    accepted(base(OPUS), show(vec![png(8000, 10); 20]));
    accepted(base(OPUS), show(vec![png(2000, 2000); 21]));
    let large = "At least one of the image dimensions exceed max allowed size";
    case(
        vec![png(10, 8001)],
        &format!("messages.0.content.0.image.source.base64.data: {large}: 8000 pixels"),
    );
    let mut many = vec![png(10, 10); 20];
    many.push(png(2162, 322));
    case(
        many,
        &format!(
            "messages.0.content.20.image.source.base64.data: {large} for many-image requests: 2000 pixels"
        ),
    );
    refused(
        tool_turn(OPUS),
        |r| r["messages"][2]["content"][0]["content"] = json!([text("x"), png(9000, 1)]),
        Rule::ImageSize,
        &format!("messages.2.content.0.tool_result.content.1.image.source.base64.data: {large}: 8000 pixels"),
    );
    case(
        vec![image("image/png", "not base64")],
        "messages.0.content.0.image.source.base64: invalid base64 data",
    );
    case(
        vec![image("image/png", "data:image/png;base64,aGk=")],
        "messages.0.content.0.image.source.base64: invalid base64 data",
    );
    let five_mb = "A".repeat(5 * 1024 * 1024);
    case(
        vec![image("image/png", &format!("{five_mb}AAAA"))],
        "messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes",
    );
    case(vec![image("image/png", &five_mb)], "Could not process image");
    case(vec![image("image/png", "")], "messages.0.content.0.image.source.base64: image cannot be empty");
    case(vec![image("image/png", "aGk=")], "Could not process image");
    case(vec![image("image/png", &base64::encode(b"\x89PNG\r\n\x1a\n"))], "Could not process image");
    case(
        vec![image("image/bmp", "aGk=")],
        "messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    );
    let jpeg = base64::encode(&samples::jpeg(10, 10));
    case(
        vec![image("image/png", &jpeg)],
        "messages.0.content.0.image.source.base64: The image was specified using the image/png media type, but the image appears to be a image/jpeg image",
    );
    accepted(
        base(OPUS),
        show(vec![image("image/jpeg", &jpeg), image("image/gif", &base64::encode(&samples::gif(1, 1)))]),
    );
    accepted(base(HAIKU), show(vec![png(1, 1); 100]));
    refused(
        base(HAIKU),
        show(vec![png(1, 1); 101]),
        Rule::ImageCount,
        "Too much media: 0 document pages + 101 images > 100",
    );
    accepted(base(OPUS), show(vec![png(1, 1); 600]));
    refused(
        base(OPUS),
        show(vec![png(1, 1); 601]),
        Rule::ImageCount,
        "Too much media: 0 document pages + 601 images > 600",
    );
}

#[test]
fn documents() {
    let pdf = |data: &str| json!({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data}});
    let pages = |pages| pdf(&base64::encode(&crate::pdf::sample(pages)));
    let show = |blocks: Vec<Value>| move |r: &mut Value| r["messages"][0]["content"] = json!(blocks);
    let case = |block: Value, message: &str| refused(base(OPUS), show(vec![block]), Rule::ImageSize, message);
    case(pdf(""), "messages.0.content.0.document.source.base64: PDF cannot be empty");
    case(pdf("?"), "messages.0.content.0.document.source.base64: invalid base64 data");
    case(pdf("aGk="), "messages.0.content.0.pdf.source.base64.data: The PDF specified was not valid.");
    case(
        pdf(&base64::encode(b"%PDF-1.7 trailer <</Encrypt 9 0 R>>")),
        "messages.0.content.0.pdf.source.base64.data: The PDF specified is password protected.",
    );
    let mut wrong = pages(1);
    wrong["source"]["media_type"] = json!("text/plain");
    case(wrong, "messages.0.content.0.document.source.base64.media_type: Input should be 'application/pdf'");
    accepted(base(HAIKU), show(vec![pages(100)]));
    accepted(base(OPUS), show(vec![pages(600)]));
    for (model, most) in [(HAIKU, 100), (OPUS, 600)] {
        refused(
            base(model),
            show(vec![text("x"), pages(most + 1)]),
            Rule::ImageCount,
            &format!(
                "messages.0.content.1.pdf.source.base64.data: A maximum of {most} PDF pages may be provided."
            ),
        );
    }
    refused(
        base(HAIKU),
        show(vec![pages(60), pages(40), png(1, 1)]),
        Rule::ImageCount,
        "Too much media: 100 document pages + 1 images > 100",
    );
    accepted(
        base(HAIKU),
        show(vec![json!({"type": "document", "source": {"type": "url", "url": "https://x"}})]),
    );
}
