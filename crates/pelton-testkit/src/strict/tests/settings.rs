//! Fields, headers, limits and model settings.

use super::*;

#[test]
fn bodies() {
    let parse = |body: &[u8]| parse(body, &Strictness::default());
    assert_eq!(parse(b"{}").unwrap(), json!({}));
    assert!(parse(b"{").unwrap_err().message.starts_with("The request body is not valid JSON: EOF"));
    assert_eq!(parse(b"[]").unwrap_err().message, "The request body is not valid JSON: expected an object");
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(200), "]".repeat(200));
    assert!(parse(deep.as_bytes()).unwrap_err().message.contains("recursion limit"));
    let large = parse(&vec![b' '; size::BODY_BYTES_MAX + 1]).unwrap_err();
    assert_eq!((large.status, large.kind, large.rule), (413, "request_too_large", Rule::BodySize));
    assert_eq!(large.message, "Request exceeds the maximum size");
    let context = Context { body_bytes: size::BODY_BYTES_MAX + 1, ..messages() };
    assert_eq!(judged_in(context, &base(OPUS)).unwrap_err().status, 413);
}

#[test]
fn headers() {
    let version = |version| Context { version, ..messages() };
    refused_in(
        version("2020-01-01"),
        base(OPUS),
        |_| {},
        Rule::Shape,
        "anthropic-version: \"2020-01-01\" is not a valid version",
    );
    accepted_in(with_betas("context-1m-2025-08-07, interleaved-thinking-2025-05-14,"), base(OPUS), |_| {});
    refused_in(
        with_betas("effort-2025-11-24,magic-2027-01-01"),
        base(OPUS),
        |_| {},
        Rule::Betas,
        "Unexpected value(s) `magic-2027-01-01` for the `anthropic-beta` header. Please consult our documentation at platform.claude.com/docs or try again without the header.",
    );
}

#[test]
fn top_level_fields() {
    let case = |change: &dyn Fn(&mut Value), message: &str| refused(base(OPUS), change, Rule::Shape, message);
    for field in ["model", "messages", "max_tokens"] {
        case(
            &|r| {
                r.as_object_mut().unwrap().remove(field);
            },
            &format!("{field}: Field required"),
        );
    }
    case(&|r| r["foo"] = json!(1), "foo: Extra inputs are not permitted");
    case(&|r| r["model"] = json!(1), "model: Input should be a valid string");
    case(&|r| r["messages"] = json!("x"), "messages: Input should be a valid array");
    case(&|r| r["messages"] = json!([]), "messages: at least one message is required");
    case(&|r| r["max_tokens"] = json!("x"), "max_tokens: Input should be a valid integer");
    case(&|r| r["stream"] = json!("yes"), "stream: Input should be a valid boolean");
    case(&|r| r["metadata"] = json!({"user": "x"}), "metadata.user: Extra inputs are not permitted");
    case(
        &|r| r["output_config"] = json!({"effort": "huge"}),
        "output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'",
    );
    case(
        &|r| r["output_config"] = json!({"task_budget": {"type": "tokens", "total": 30000}}),
        "output_config.task_budget: Extra inputs are not permitted",
    );
    case(
        &|r| r["context_management"] = json!({"edits": []}),
        "context_management: Extra inputs are not permitted",
    );
    accepted_in(with_betas("context-management-2025-06-27"), base(OPUS), |r| {
        r["context_management"] = json!({"edits": []});
    });
    refused_in(
        with_betas("task-budgets-2026-03-13"),
        base(OPUS),
        |r| r["output_config"] = json!({"task_budget": {"type": "tokens", "total": 5}}),
        Rule::Shape,
        "output_config.task_budget.total: Input should be greater than or equal to 20000",
    );
    case(&|r| r["messages"][0]["id"] = json!("x"), "messages.0.id: Extra inputs are not permitted");
    case(
        &|r| {
            r["messages"][0].as_object_mut().unwrap().remove("content");
        },
        "messages.0.content: Field required",
    );
    case(&|r| r["messages"][0] = json!("hi"), "messages.0: Input should be an object");
    case(&|r| r["model"] = json!(""), "model: String should have at least 1 character");
    case(&|r| r["messages"][0]["role"] = json!(7), "messages.0.role: Input should be a valid string");
    case(&|r| r["metadata"] = json!("x"), "metadata: Input does not match the expected shape.");
    case(&|r| r["metadata"] = json!({"user_id": 7}), "metadata.user_id: Input should be a valid string");
    case(&|r| r["output_config"] = json!("x"), "output_config: Input does not match the expected shape.");
    case(&|r| r["inference_geo"] = json!("moon"), "inference_geo: must be one of ['global', 'us']");
    case(&|r| r["service_tier"] = json!("fast"), "service_tier: Input should be 'auto' or 'standard_only'");
    case(&|r| r["stop_sequences"] = json!([1]), "stop_sequences.0: Input should be a valid string");
    case(
        &|r| r["container"] = json!("container_x"),
        "container: Container identifier can only be provided when using the code execution tool",
    );
    // Null is absence for some fields and a wrong type for the others.
    for field in ["metadata", "inference_geo", "stop_sequences", "cache_control", "container"] {
        accepted(base(OPUS), |r| r[field] = Value::Null);
    }
    for (field, wants) in [
        ("system", "a valid array"),
        ("tools", "a valid array"),
        ("thinking", "an object"),
        ("tool_choice", "an object"),
        ("stream", "a valid boolean"),
        ("temperature", "a valid number"),
        ("top_k", "a valid integer"),
        ("service_tier", "a valid string"),
    ] {
        case(&|r| r[field] = Value::Null, &format!("{field}: Input should be {wants}"));
    }
    // Two faults: the API's order decides, and unknown fields come last.
    case(
        &|r| {
            r["unknown"] = json!(1);
            r["stream"] = json!("x");
            r["tools"] = json!("x");
        },
        "tools: Input should be a valid array",
    );
    let fast = |r: &mut Value| r["speed"] = json!("fast");
    accepted(base(OPUS), fast);
    refused(base("claude-opus-5"), fast, Rule::Shape, "speed: Extra inputs are not permitted");
    accepted_in(with_betas("fast-mode-2026-02-01"), base("claude-opus-5"), fast);
    refused(base(HAIKU), fast, Rule::Shape, "'claude-haiku-4-5' does not support the `speed` parameter.");
    let counting = Context { endpoint: Endpoint::CountTokens, ..messages() };
    accepted_in(counting, base(OPUS), |r| {
        r.as_object_mut().unwrap().remove("max_tokens");
    });
    refused_in(counting, base(OPUS), |_| {}, Rule::Shape, "max_tokens: Extra inputs are not permitted");
    refused(base("gpt-5"), |_| {}, Rule::KnownModel, "model: gpt-5");
    let refusal = judged_in(messages(), &base("gpt-5")).unwrap_err();
    assert_eq!((refusal.status, refusal.kind), (404, "not_found_error"));
}

#[test]
fn output_tokens() {
    refused(
        base(HAIKU),
        |r| r["max_tokens"] = json!(64_001),
        Rule::MaxTokens,
        "max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for claude-haiku-4-5",
    );
    refused(
        base(OPUS),
        |r| r["max_tokens"] = json!(-1),
        Rule::MaxTokens,
        "max_tokens: must be greater than or equal to 0",
    );
    accepted(base(OPUS), |r| r["max_tokens"] = json!(128_000));
    accepted(base(OPUS), |r| r["max_tokens"] = json!(0));
    refused(
        base(OPUS),
        |r| {
            r["max_tokens"] = json!(0);
            r["stream"] = json!(true);
        },
        Rule::MaxTokens,
        "max_tokens: 0 cannot be combined with `stream`",
    );
}

#[test]
fn the_context_window() {
    let long =
        |tokens: usize| move |r: &mut Value| r["messages"][0]["content"] = json!("x".repeat(tokens * 4));
    accepted(base(HAIKU), long(199_000));
    refused(
        base(HAIKU),
        long(208_303),
        Rule::ContextWindow,
        "prompt is too long: 208310 tokens > 200000 maximum",
    );
    let both = |r: &mut Value| {
        long(178_952)(r);
        r["max_tokens"] = json!(32_000);
    };
    refused(
        base("claude-opus-4-1"),
        both,
        Rule::ContextWindow,
        "input length and `max_tokens` exceed context limit: 178959 + 32000 > 200000, decrease input length or `max_tokens` and try again",
    );
    accepted(base("claude-sonnet-4-5"), both);
    accepted_in(with_betas("model-context-window-exceeded-2025-08-26"), base("claude-opus-4-1"), both);
    let counting = Context { endpoint: Endpoint::CountTokens, ..messages() };
    refused_in(
        counting,
        base(HAIKU),
        |r| {
            long(208_303)(r);
            r.as_object_mut().unwrap().remove("max_tokens");
        },
        Rule::ContextWindow,
        "prompt is too long: 208310 tokens > 200000 maximum",
    );
}

#[test]
fn thinking_settings() {
    let case = |model, thinking: Value, message: &str| {
        refused(base(model), |r| r["thinking"] = thinking, Rule::ThinkingConfig, message);
    };
    let adaptive = " is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.";
    case(
        OPUS,
        json!({"type": "enabled", "budget_tokens": 1024}),
        &format!("\"thinking.type.enabled\"{adaptive}"),
    );
    case(OPUS, json!({"type": "disabled"}), &format!("\"thinking.type.disabled\"{adaptive}"));
    case(OPUS, json!({"type": "between_tools"}), &format!("\"thinking.type.between_tools\"{adaptive}"));
    case("claude-fable-5", json!({"type": "disabled"}), &format!("\"thinking.type.disabled\"{adaptive}"));
    case(
        "claude-sonnet-5-5",
        json!({"type": "disabled"}),
        "To turn thinking off on this model, send \"thinking\": {\"type\": \"between_tools\"} instead of {\"type\": \"disabled\"}. The model does not think before responding. The short updates it writes between tool calls come back as thinking blocks.",
    );
    case(HAIKU, json!({"type": "adaptive"}), "adaptive thinking is not supported on this model");
    case(
        HAIKU,
        json!({"type": "between_tools"}),
        "\"thinking.type.between_tools\" is not supported for this model.",
    );
    case(
        HAIKU,
        json!({"type": "enabled", "budget_tokens": 1023}),
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    );
    case(
        HAIKU,
        json!({"type": "enabled", "budget_tokens": 2000}),
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult …",
    );
    case(HAIKU, json!({"type": "enabled"}), "thinking.enabled.budget_tokens: Field required");
    case(
        OPUS,
        json!({"type": "adaptive", "budget_tokens": 1024}),
        "thinking.adaptive.budget_tokens: Extra inputs are not permitted",
    );
    case(
        OPUS,
        json!({"type": "sometimes"}),
        "thinking: Input tag 'sometimes' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'",
    );
    case(
        OPUS,
        json!({"type": "adaptive", "display": "updates"}),
        "thinking.adaptive.display: Input should be 'summarized' or 'omitted'",
    );
    case(
        OPUS,
        json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}),
        "thinking.adaptive.block_binding: Extra inputs are not permitted",
    );
    let effort = |r: &mut Value, effort: &str, thinking: &str| {
        r["output_config"] = json!({"effort": effort});
        r["thinking"] = json!({"type": thinking});
    };
    refused(
        base("claude-opus-5"),
        |r| effort(r, "xhigh", "disabled"),
        Rule::ThinkingConfig,
        "output_config.effort 'xhigh' is not supported when thinking is disabled on this model. Use effort 'high' or below, or enable thinking.",
    );
    accepted(base("claude-opus-5"), |r| effort(r, "high", "disabled"));
    refused(
        base("claude-sonnet-5-5"),
        |r| effort(r, "max", "between_tools"),
        Rule::ThinkingConfig,
        "output_config.effort 'max' is not supported when thinking is between_tools on this model. Use …",
    );
    accepted(base("claude-sonnet-5-5"), |r| effort(r, "high", "between_tools"));
    refused(
        base(HAIKU),
        |r| r["output_config"] = json!({"effort": "low"}),
        Rule::ThinkingConfig,
        "This model does not support the effort parameter.",
    );
    refused(
        base("claude-opus-4-5"),
        |r| r["output_config"] = json!({"effort": "max"}),
        Rule::ThinkingConfig,
        "This model does not support effort level 'max'. Supported levels: high, low, medium.",
    );
    refused(
        base("claude-opus-4-6"),
        |r| r["output_config"] = json!({"effort": "xhigh"}),
        Rule::ThinkingConfig,
        "This model does not support effort level 'xhigh'. Supported levels: high, low, max, medium.",
    );
    accepted(base(HAIKU), |r| r["thinking"] = json!({"type": "enabled", "budget_tokens": 1999}));
    accepted_in(with_betas("interleaved-thinking-2025-05-14"), tool_turn(HAIKU), |r| {
        r["thinking"] = json!({"type": "enabled", "budget_tokens": 9000});
        r["messages"] = json!([{"role": "user", "content": "hi"}]);
    });
    accepted_in(with_betas("thinking-display-updates-2026-08-18"), base(OPUS), |r| {
        r["thinking"] = json!({"type": "adaptive", "display": "updates"});
    });
    for (model, kinds) in [
        ("claude-opus-4-6", "adaptive disabled"),
        ("claude-opus-4-7", "adaptive disabled"),
        ("claude-sonnet-5", "adaptive disabled"),
        ("claude-haiku-5-5", "adaptive disabled"),
    ] {
        kinds.split(' ').for_each(|kind| accepted(base(model), |r| r["thinking"] = json!({"type": kind})));
    }
}

#[test]
fn sampling() {
    let case = |model, members: &[(&str, Value)], message: &str| {
        refused(
            base(model),
            |r| members.iter().for_each(|(name, value)| r[name] = value.clone()),
            Rule::Sampling,
            message,
        );
    };
    case(HAIKU, &[("temperature", json!(1.5))], "temperature: range: 0..1");
    case(HAIKU, &[("top_p", json!(-0.1))], "top_p: range: 0..1");
    case(
        HAIKU,
        &[("top_p", json!(0.9)), ("thinking", json!({"type": "enabled", "budget_tokens": 1024}))],
        "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.",
    );
    case(
        HAIKU,
        &[("temperature", json!(0.5)), ("top_p", json!(0.5))],
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
    );
    case(
        HAIKU,
        &[("temperature", json!(0.5)), ("thinking", json!({"type": "enabled", "budget_tokens": 1024}))],
        "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. …",
    );
    case(OPUS, &[("temperature", json!(0))], "`temperature` is deprecated for this model.");
    case(OPUS, &[("top_k", json!(5))], "`top_k` is deprecated for this model.");
    accepted(base(HAIKU), |r| r["temperature"] = json!(0.2));
    accepted(base(OPUS), |r| r["temperature"] = json!(1));
    let newest = Context { version: "2026-10-21", ..messages() };
    for name in ["temperature", "top_p", "top_k"] {
        refused_in(
            newest,
            base(HAIKU),
            |r| r[name] = json!(1),
            Rule::Sampling,
            &format!("{name}: Extra inputs are not permitted"),
        );
    }
    accepted_in(newest, tool_turn(OPUS), |_| {});
    let document =
        json!({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}});
    refused_in(
        newest,
        tool_turn(OPUS),
        |r| r["messages"][1]["content"][0] = document.clone(),
        Rule::Roles,
        "messages.1.content: 'document' blocks are not permitted within assistant turns",
    );
    refused_in(
        newest,
        base(OPUS),
        |r| r["messages"][0]["content"] = json!([{"type": "text", "text": "x", "citations": [{}]}]),
        Rule::Shape,
        "messages.0.content.0.text.citations: Extra inputs are not permitted",
    );
}
