//! Generated conversations: the legal ones are never refused, and each way to break one meets its own rule.

use super::*;
use proptest::prelude::*;

const MODELS: [&str; 8] = [
    OPUS,
    HAIKU,
    "claude-sonnet-5-5",
    "claude-fable-5-2",
    "claude-opus-5",
    "claude-opus-4-8",
    "claude-sonnet-4-6",
    "claude-sonnet-4-5",
];

/// What one assistant turn and the user turn after it hold.
#[derive(Debug, Clone)]
struct Round {
    thoughts: usize,
    texts: usize,
    calls: usize,
    split: bool,
    note: bool,
    picture: bool,
}

fn round() -> impl Strategy<Value = Round> {
    (0..3usize, 0..3usize, 0..4usize, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(thoughts, texts, calls, split, note, picture)| Round {
            thoughts,
            texts,
            calls,
            split,
            note,
            picture,
        },
    )
}

fn conversation() -> impl Strategy<Value = Value> {
    (proptest::sample::select(&MODELS[..]), proptest::collection::vec(round(), 0..5), 0..4usize)
        .prop_map(|(model, rounds, marks)| play(model, &rounds, marks))
}

/// Plays a conversation the way an honest client and this server would.
fn play(model: &str, rounds: &[Round], marks: usize) -> Value {
    let issued = Issued::new(1);
    let facts = catalogue::model(model).unwrap();
    let mut request = json!({
        "model": model,
        "max_tokens": 2000,
        "system": [text("be brief"), text("be kind")],
        "tools": [tool("Read"), tool("Bash")],
        "messages": [{"role": "user", "content": "start"}],
    });
    for (i, round) in rounds.iter().enumerate() {
        let mut blocks: Vec<Value> = Vec::new();
        for n in 0..round.thoughts.max(round.texts) {
            if n < round.thoughts {
                let thought = format!("thought {i} {n}");
                let signature = issued.sign(&request, &blocks, model, &thought);
                blocks.push(json!({"type": "thinking", "thinking": thought, "signature": signature}));
            }
            if n < round.texts {
                blocks.push(text(&format!("words {i} {n}")));
            }
        }
        if round.texts + round.calls == 0 {
            blocks.push(text("done"));
        }
        let ids: Vec<String> = (0..round.calls).map(|n| format!("toolu_{i}_{n}")).collect();
        blocks.extend(
            ids.iter().map(|id| json!({"type": "tool_use", "id": id, "name": "Read", "input": {"n": i}})),
        );
        let mut answer: Vec<Value> =
            ids.iter().map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "ok"})).collect();
        if round.picture {
            answer.push(png(20, 30));
        }
        answer.push(text("go on"));

        let messages = request["messages"].as_array_mut().unwrap();
        if round.split {
            messages.extend(blocks.into_iter().map(|block| json!({"role": "assistant", "content": [block]})));
            messages.extend(answer.into_iter().map(|block| json!({"role": "user", "content": [block]})));
        } else {
            messages.push(json!({"role": "assistant", "content": blocks}));
            messages.push(json!({"role": "user", "content": answer}));
        }
        if round.note && facts.system_role {
            messages.push(json!({"role": "system", "content": "a note"}));
        }
    }
    // Marks move from request to request, so they are set only now.
    let mark = json!({"type": "ephemeral"});
    for at in 0..marks.min(2) {
        request["system"][at]["cache_control"] = mark.clone();
    }
    if marks > 2 {
        request["tools"][1]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
        request["cache_control"] = mark;
    }
    request
}

/// The last user message; `play` always leaves one.
fn last_user(request: &mut Value) -> &mut Value {
    request["messages"].as_array_mut().unwrap().iter_mut().rfind(|m| m["role"] == "user").unwrap()
}

fn find_block<'a>(request: &'a mut Value, kind: &str) -> Option<&'a mut Value> {
    request["messages"]
        .as_array_mut()?
        .iter_mut()
        .filter_map(|message| message["content"].as_array_mut())
        .flatten()
        .find(|block| block["type"] == kind)
}

fn show(request: &mut Value, images: Vec<Value>) {
    let message = last_user(request);
    if !message["content"].is_array() {
        message["content"] = json!([text("look")]);
    }
    message["content"].as_array_mut().unwrap().extend(images);
}

/// Breaks one rule and nothing that is judged before it, or returns `None` when this conversation cannot break it.
fn break_rule(rule: Rule, request: &mut Value, context: &mut Context<'_>) -> Option<()> {
    let facts = catalogue::model(request["model"].as_str()?)?;
    match rule {
        Rule::ToolPairs => find_block(request, "tool_result")?["tool_use_id"] = json!("toolu_nobody"),
        Rule::ResultsFirst => {
            let messages = request["messages"].as_array_mut()?;
            let (at, _) =
                messages.iter().enumerate().find(|(_, m)| m["content"][0]["type"] == "tool_result")?;
            messages.insert(at, json!({"role": "user", "content": "before"}));
        }
        Rule::Roles => last_user(request)["role"] = json!("tool"),
        Rule::EmptyText => request["messages"][0]["content"] = json!(" "),
        Rule::CacheMarks => {
            let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
            request["system"] = json!(vec![marked; 5]);
        }
        Rule::ThinkingUnchanged => find_block(request, "thinking")?["thinking"] = json!("something else"),
        Rule::ForeignSignature => {
            find_block(request, "thinking").filter(|_| facts.id == "claude-opus-5")?;
            request["model"] = json!("claude-opus-4-8");
        }
        Rule::PrefixBinding => {
            find_block(request, "thinking").filter(|_| facts.binds_prefix)?;
            request["system"] = json!("be different");
        }
        Rule::Prefill => {
            Some(()).filter(|()| !facts.prefill)?;
            request["messages"].as_array_mut()?.push(json!({"role": "assistant", "content": "So"}));
        }
        Rule::ImageSize => show(request, vec![png(8001, 1)]),
        Rule::ImageCount => show(request, vec![png(1, 1); 601]),
        Rule::BodySize => context.body_bytes = 40_000_000,
        Rule::ContextWindow => {
            Some(()).filter(|()| facts.window_tokens < 500_000)?;
            last_user(request)["content"].as_array_mut()?.push(text(&"x".repeat(900_000)));
        }
        Rule::UndefinedTools => {
            find_block(request, "tool_use")?;
            request["tools"] = json!([]);
        }
        Rule::ToolNames => request["tools"][1]["name"] = json!("Read"),
        Rule::ToolSchemas => {
            request["tools"][0]["input_schema"] = json!({"type": "object", "required": "path"});
        }
        Rule::MaxTokens => request["max_tokens"] = json!(facts.output_tokens_max + 1),
        Rule::ThinkingConfig => {
            let wrong = if facts.accepts_thinking("adaptive") { "between_tools" } else { "adaptive" };
            Some(()).filter(|()| !facts.accepts_thinking(wrong))?;
            request["thinking"] = json!({"type": wrong});
        }
        Rule::ToolChoice => request["tool_choice"] = json!({"type": "tool", "name": "Nobody"}),
        Rule::Sampling => request["temperature"] = json!(2),
        Rule::KnownModel => request["model"] = json!("claude-nobody-1"),
        Rule::Betas => context.betas = "nothing-2026-01-01",
        Rule::Shape => request["surprise"] = json!(true),
        Rule::Credentials => return None, // headers are judged by the server, before the body
    }
    Some(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn legal_conversations_are_never_refused(request in conversation()) {
        prop_assert_eq!(judged_in(messages(), &request), Ok(()));
    }

    #[test]
    fn each_way_to_break_a_conversation_meets_its_own_rule(request in conversation(), rule in proptest::sample::select(Rule::ALL)) {
        let (mut broken, mut context) = (request, messages());
        if break_rule(rule, &mut broken, &mut context).is_some() {
            let refusal = judged_in(context, &broken).expect_err("broken");
            prop_assert_eq!(refusal.rule, rule, "{}", refusal.message);
        }
    }
}

/// Any JSON, made mostly of the words requests are made of.
fn anything() -> impl Strategy<Value = Value> {
    let words = [
        "model",
        "messages",
        "role",
        "content",
        "type",
        "text",
        "tool_use",
        "tool_result",
        "tool_use_id",
        "id",
        "user",
        "assistant",
        "system",
        "thinking",
        "signature",
        "redacted_thinking",
        "data",
        "image",
        "source",
        "base64",
        "media_type",
        "image/png",
        "document",
        "citations",
        "cache_control",
        "ephemeral",
        "ttl",
        "1h",
        "tools",
        "name",
        "input_schema",
        "object",
        "properties",
        "tool_choice",
        "any",
        "tool",
        "enabled",
        "budget_tokens",
        "max_tokens",
        "output_config",
        "effort",
        "block_binding",
        "claude-opus-5-5",
        "",
        " ",
        "server_tool_use",
        "web_search_tool_result",
    ];
    let word = proptest::sample::select(words.to_vec());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 80, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::vec((word.clone(), inner), 0..8)
                .prop_map(|members| members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<Value>()),
        ]
    })
}

proptest! {
    #[test]
    fn no_request_makes_the_server_panic(body in anything(), blocks in anything(), rule in proptest::sample::select(Rule::ALL)) {
        let mut request = base(OPUS);
        for (name, value) in body.as_object().into_iter().flatten() {
            request[name] = value.clone();
        }
        if request["messages"][0].is_object() {
            request["messages"][0]["content"] = blocks.clone();
        }
        let issued = Issued::new(1);
        for strictness in [Strictness::default(), Strictness::none(), Strictness::only(&[rule])] {
            let _ = check(&request, &messages(), &issued, &strictness);
            let _ = check(&body, &messages(), &issued, &strictness);
        }
        let usage = crate::cache::PromptCache::default().account(&request, std::time::Duration::ZERO);
        prop_assert_eq!(usage.total(), crate::tokens::count(&request));
        let _ = issued.sign(&request, blocks.as_array().map_or(&[], Vec::as_slice), OPUS, "hm");
    }
}

#[test]
fn every_rule_can_be_broken() {
    let round = Round { thoughts: 2, texts: 1, calls: 2, split: false, note: false, picture: true };
    for &rule in Rule::ALL.iter().filter(|&&rule| rule != Rule::Credentials) {
        let refused = MODELS.iter().any(|model| {
            let (mut request, mut context) = (play(model, &[round.clone(), round.clone()], 1), messages());
            break_rule(rule, &mut request, &mut context).is_some()
                && judged_in(context, &request).is_err_and(|refusal| refusal.rule == rule)
        });
        assert!(refused, "no conversation breaks {rule}");
    }
}

#[test]
fn a_conversation_replayed_to_a_restarted_server_is_still_legal() {
    let round = Round { thoughts: 2, texts: 1, calls: 2, split: true, note: true, picture: false };
    let request = play(OPUS, &[round.clone(), round], 3);
    assert_eq!(check(&request, &messages(), &Issued::new(1), &Strictness::default()), Ok(()));
    let other_seed = check(&request, &messages(), &Issued::new(2), &Strictness::default()).unwrap_err();
    assert_eq!(other_seed.rule, Rule::ThinkingUnchanged);
}
