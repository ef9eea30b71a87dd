//! Thinking blocks that come back: unchanged, changed, from another model, after another history.

use super::*;

const SONNET_4_5: &str = "claude-sonnet-4-5";
const OPUS_4_8: &str = "claude-opus-4-8";

/// Three exchanges with a tool call each; the answers think first, as the server signed them.
fn conversation(model: &str) -> Value {
    let issued = Issued::new(1);
    let mut request = json!({"model": model, "max_tokens": 2000, "system": "be brief", "tools": [tool("Read")],
        "messages": [{"role": "user", "content": "start"}]});
    for round in 0..3 {
        let thought = format!("thought {round}");
        let mut blocks = vec![
            json!({"type": "thinking", "thinking": thought, "signature": issued.sign(&request, &[], model, &thought)}),
        ];
        blocks.push(text("looking"));
        let signature = issued.sign(&request, &blocks, model, "");
        blocks.push(json!({"type": "thinking", "thinking": "", "signature": signature}));
        blocks.push(
            json!({"type": "redacted_thinking", "data": issued.redact(&request, &blocks, model, "secret")}),
        );
        blocks.push(json!({"type": "tool_use", "id": format!("toolu_{round}"), "name": "Read", "input": {"path": "a"}}));
        let messages = request["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": blocks}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": format!("toolu_{round}"), "content": "ok"}]}));
    }
    request
}

fn drop_blocks(request: &mut Value, message: usize, gone: impl Fn(usize, &Value) -> bool) {
    let blocks = request["messages"][message]["content"].as_array_mut().unwrap();
    let mut at = 0;
    blocks.retain(|block| {
        at += 1;
        !gone(at - 1, block)
    });
}

fn is_thought(block: &Value) -> bool {
    matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"))
}

const MODIFIED: &str = "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.";

#[test]
fn blocks_as_issued_are_accepted_by_every_model() {
    for model in
        [OPUS, "claude-sonnet-5-5", "claude-fable-5-2", "claude-fable-5", OPUS_4_8, SONNET_4_5, HAIKU]
    {
        accepted(conversation(model), |_| {});
        accepted(conversation(model), |r| r["model"] = json!(format!("{model}-20260101")));
    }
}

#[test]
fn changed_blocks_are_refused() {
    for model in [OPUS, OPUS_4_8, SONNET_4_5] {
        let case = |message: usize, block: usize, member: &str, value: Value, says: &str| {
            refused(
                conversation(model),
                |r| r["messages"][message]["content"][block][member] = value,
                Rule::ThinkingUnchanged,
                &format!("messages.{message}.content.{block}{says}"),
            );
        };
        case(5, 0, "thinking", json!("other"), &format!(": {MODIFIED}"));
        case(5, 2, "thinking", json!("filled in"), &format!(": {MODIFIED}"));
        case(1, 0, "thinking", json!("other"), ": Invalid `signature` in `thinking` block");
        case(1, 0, "signature", json!("EqQBAAAA"), ": Invalid `signature` in `thinking` block");
        case(5, 0, "signature", json!("EqQBAAAA"), ": Invalid `signature` in `thinking` block");
        case(5, 3, "data", json!("AAAA"), ": Invalid `data` in `redacted_thinking` block");
        case(3, 0, "signature", json!(""), ".thinking: each thinking block must contain thinking");
    }
    refused(
        conversation(OPUS),
        |r| {
            r["messages"][5]["content"][0].as_object_mut().unwrap().remove("signature");
        },
        Rule::Shape,
        "messages.5.content.0.thinking.signature: Field required",
    );
    refused(
        conversation(OPUS),
        |r| r["messages"][5]["content"][0]["cache_control"] = json!({"type": "ephemeral"}),
        Rule::CacheMarks,
        "messages.5.content.0.thinking.cache_control: Extra inputs are not permitted",
    );
}

#[test]
fn a_gap_in_the_latest_message_is_a_change() {
    for model in [OPUS, OPUS_4_8, SONNET_4_5] {
        refused(
            conversation(model),
            |r| drop_blocks(r, 5, |at, _| at == 0),
            Rule::ThinkingUnchanged,
            &format!("messages.5.content.1: {MODIFIED}"),
        );
        refused(
            conversation(model),
            |r| r["messages"][5]["content"].as_array_mut().unwrap().swap(2, 3),
            Rule::ThinkingUnchanged,
            &format!("messages.5.content.2: {MODIFIED}"),
        );
    }
    // The turn may arrive as several messages; it is one turn all the same.
    accepted(conversation(OPUS), |r| {
        let messages = r["messages"].as_array_mut().unwrap();
        let blocks = messages[5]["content"].as_array().unwrap().clone();
        messages
            .splice(5..6, blocks.into_iter().map(|block| json!({"role": "assistant", "content": [block]})));
    });
}

#[test]
fn blocks_of_another_model_are_refused_or_dropped() {
    let foreign = "messages.1.content.0: Invalid `signature` in `thinking` block";
    refused(conversation(OPUS), |r| r["model"] = json!(OPUS_4_8), Rule::ForeignSignature, foreign);
    refused(conversation(SONNET_4_5), |r| r["model"] = json!(HAIKU), Rule::ForeignSignature, foreign);
    accepted(conversation(OPUS_4_8), |r| r["model"] = json!(OPUS));
    accepted(conversation(OPUS), |r| r["model"] = json!("claude-haiku-5-5"));
    accepted(conversation(OPUS), |r| {
        r["model"] = json!(OPUS_4_8);
        (0..6).filter(|i| i % 2 == 1).for_each(|i| drop_blocks(r, i, |_, block| is_thought(block)));
    });
}

#[test]
fn a_changed_prefix_is_refused_where_blocks_are_bound() {
    let says = |at: &str| {
        format!(
            "{at}: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header."
        )
    };
    type Change<'a> = (&'a str, &'a str, &'a dyn Fn(&mut Value));
    let system = " The `system` prompt differs from the one this block was created with.";
    let tools = " The `tools` list differs from the one this block was created with.";
    let changes: [Change<'_>; 6] = [
        ("messages.1.content.0", system, &|r| r["system"] = json!("be long")),
        ("messages.1.content.0", tools, &|r| r["tools"][0]["description"] = json!("reads")),
        ("messages.1.content.0", tools, &|r| r["tools"].as_array_mut().unwrap().push(tool("Bash"))),
        ("messages.1.content.0", "", &|r| r["messages"][0]["content"] = json!("begin")),
        ("messages.3.content.0", "", &|r| r["messages"][2]["content"][0]["content"] = json!("[cleared]")),
        ("messages.3.content.0", "", &|r| r["messages"][1]["content"][4]["input"] = json!({"path": "b"})),
    ];
    for (at, changed, change) in changes {
        for model in [
            OPUS,
            "claude-sonnet-5-5",
            "claude-haiku-5-5",
            "claude-fable-5-1",
            "claude-mythos-5-1",
            "claude-fable-5-2",
            "claude-mythos-5-2",
        ] {
            refused(conversation(model), change, Rule::PrefixBinding, &format!("{}{changed}", says(at)));
            accepted_in(with_betas("thinking-binding-controls-2026-08-01"), conversation(model), |r| {
                change(r);
                r["thinking"] =
                    json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
            });
        }
        for model in ["claude-fable-5", "claude-opus-5", OPUS_4_8, SONNET_4_5] {
            accepted(conversation(model), change);
        }
    }
    let counting = Context { endpoint: Endpoint::CountTokens, ..messages() };
    refused_in(
        counting,
        conversation(OPUS),
        |r| {
            r.as_object_mut().unwrap().remove("max_tokens");
            r["system"] = json!("be long");
        },
        Rule::PrefixBinding,
        &format!("{}{system}", says("messages.1.content.0")),
    );
    refused_in(
        with_betas("thinking-binding-controls-2026-08-01"),
        conversation(OPUS),
        |r| r["system"] = json!("x"),
        Rule::PrefixBinding,
        &format!("{}{system}", says("messages.1.content.0").split_once(" That").unwrap().0),
    );
}

#[test]
fn what_is_no_change_of_the_prefix() {
    let mark = json!({"type": "ephemeral"});
    accepted(conversation(OPUS), |r| {
        r["messages"][2]["content"][0]["cache_control"] = mark.clone();
        r["messages"][6]["content"][0]["cache_control"] = mark.clone();
        r["tools"][0]["cache_control"] = mark.clone();
        r["system"] = json!([{"type": "text", "text": "be brief", "cache_control": mark}]);
    });
    accepted(conversation(OPUS), |r| {
        r["messages"][0]["content"] = json!([{"text": "start", "type": "text"}]);
    });
    accepted(conversation(OPUS), |r| {
        r["output_config"] = json!({"effort": "low"});
        r["max_tokens"] = json!(9);
        r["thinking"] = json!({"type": "adaptive"});
    });
    accepted(conversation(OPUS), |r| {
        r["messages"].as_array_mut().unwrap().push(json!({"role": "user", "content": "and then?"}));
    });
}

#[test]
fn thinking_may_be_left_out_from_the_front_but_not_from_the_middle() {
    let strip = |r: &mut Value, message| drop_blocks(r, message, |_, block| is_thought(block));
    accepted(conversation(OPUS), |r| strip(r, 1));
    accepted(conversation(OPUS), |r| drop_blocks(r, 1, |at, _| at == 0));
    accepted(conversation(OPUS), |r| {
        strip(r, 1);
        strip(r, 3);
    });
    accepted(conversation(OPUS), |r| {
        strip(r, 1);
        strip(r, 3);
        strip(r, 5);
    });
    accepted(conversation(OPUS), |r| {
        strip(r, 3);
        strip(r, 5);
    });
    refused(
        conversation(OPUS),
        |r| strip(r, 3),
        Rule::PrefixBinding,
        "messages.5.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\". That setting requires the `thinking-binding-controls-2026-08-01` value in the `anthropic-beta` header. The `thinking` block that preceded this one when it was created is missing from this request.",
    );
    accepted(conversation(OPUS_4_8), |r| strip(r, 3));
}

#[test]
fn with_a_budget_an_open_tool_turn_begins_with_thinking() {
    let budget = |r: &mut Value| r["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    accepted(conversation(HAIKU), budget);
    let expected = |at: &str, found: &str| {
        format!(
            "{at}.type: Expected `thinking` or `redacted_thinking`, but found `{found}`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding…"
        )
    };
    refused(tool_turn(HAIKU), budget, Rule::ThinkingConfig, &expected("messages.1.content.0", "text"));
    refused(
        conversation(HAIKU),
        |r| {
            budget(r);
            drop_blocks(r, 1, |_, block| is_thought(block) || block["type"] == "text");
        },
        Rule::ThinkingConfig,
        &expected("messages.1.content.0", "tool_use"),
    );
    // Later calls of the same turn need no thinking of their own, and a new question closes the turn.
    accepted(conversation(HAIKU), |r| {
        budget(r);
        drop_blocks(r, 3, |_, block| is_thought(block));
        drop_blocks(r, 5, |_, block| is_thought(block));
    });
    accepted(tool_turn(HAIKU), |r| {
        budget(r);
        r["messages"].as_array_mut().unwrap().extend([
            json!({"role": "assistant", "content": "done"}),
            json!({"role": "user", "content": "thanks"}),
        ]);
    });
    accepted(tool_turn("claude-sonnet-4-6"), |r| r["thinking"] = json!({"type": "adaptive"}));
}
