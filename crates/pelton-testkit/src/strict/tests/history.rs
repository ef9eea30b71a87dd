//! Who speaks when, and what a message may hold.

use super::*;

#[test]
fn roles() {
    refused(
        base(OPUS),
        |r| r["messages"][0]["role"] = json!("tool"),
        Rule::Roles,
        "messages: Unexpected role \"tool\". Allowed roles are \"user\" or \"assistant\". For instructions on how to use tools, see https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview.",
    );
    refused(
        base(OPUS),
        |r| r["messages"][0]["role"] = json!("developer"),
        Rule::Roles,
        "messages: Unexpected role \"developer\". Allowed roles are \"user\" or \"assistant\"",
    );
    refused(
        tool_turn(OPUS),
        |r| r["messages"][1]["content"][0] = png(1, 1),
        Rule::Roles,
        "messages.1.content: 'image' blocks are not permitted within assistant turns",
    );
    for thought in [
        json!({"type": "thinking", "thinking": "x", "signature": "x"}),
        json!({"type": "redacted_thinking", "data": "x"}),
    ] {
        refused(
            base(OPUS),
            |r| r["messages"][0]["content"] = json!([thought]),
            Rule::Roles,
            "messages.0.content: thinking blocks may only be in `assistant` messages",
        );
    }
    refused(
        tool_turn(OPUS),
        |r| {
            r["messages"].as_array_mut().unwrap().insert(0, json!({"role": "assistant", "content": "hi"}));
        },
        Rule::Roles,
        "messages: first message must use the \"user\" role",
    );
    refused(
        tool_turn(OPUS),
        |r| r["messages"][1]["content"][0] = json!({"type": "tool_result", "tool_use_id": "x"}),
        Rule::Roles,
        "messages.1: `tool_result` blocks can only be in `user` messages",
    );
    refused(
        tool_turn(OPUS),
        |r| {
            r["messages"][0]["content"] =
                json!([{"type": "tool_use", "id": "x", "name": "Read", "input": {}}]);
        },
        Rule::Roles,
        "messages.0: `tool_use` blocks can only be in `assistant` messages",
    );
    accepted(base(OPUS), |r| {
        r["messages"] = json!([{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]);
    });
}

#[test]
fn system_messages_inside_the_conversation() {
    let anywhere = "; the directive-only form (content: [] with output_config) is accepted at any position";
    let talk = |roles: &str| -> Value {
        let messages = roles.chars().map(|role| match role {
            'u' => json!({"role": "user", "content": "hi"}),
            'a' => json!({"role": "assistant", "content": "ok"}),
            _ => json!({"role": "system", "content": "note"}),
        });
        json!({"model": OPUS, "max_tokens": 5, "messages": messages.collect::<Vec<_>>()})
    };
    let case = |roles: &str, message: &str| {
        refused(talk(roles), |_| {}, Rule::Roles, &format!("{message}{anywhere}"));
    };
    ["us", "usau", "ussauuss", "uusauus"].iter().for_each(|roles| accepted(talk(roles), |_| {}));
    let follow =
        "role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result";
    let precede = "role 'system' must precede an 'assistant' message or end the array";
    case("uasu", &format!("messages.2: {follow}"));
    case("uassu", &format!("messages.2: {follow}"));
    case("uuasu", &format!("messages.3: {follow}"));
    case("ussu", &format!("messages.2: {precede}"));
    case("ssu", "messages.0: use the top-level 'system' parameter for the initial system prompt");
    refused(
        talk("us"),
        |r| r["model"] = json!("claude-opus-4-7"),
        Rule::Roles,
        "role 'system' is not supported on this model",
    );
    refused(
        talk("us"),
        |r| r["messages"][1]["content"] = json!([png(1, 1)]),
        Rule::Roles,
        "messages.1: role 'system' supports text, tool_addition, and tool_removal blocks only",
    );
    refused(
        talk("us"),
        |r| r["messages"][1]["content"] = json!(""),
        Rule::EmptyText,
        "messages.1: system content must contain at least one block",
    );
    for blank in [json!("  "), json!([text("x"), text("")])] {
        refused(
            talk("us"),
            |r| r["messages"][1]["content"] = blank,
            Rule::EmptyText,
            "messages.1: system text blocks must contain non-whitespace text",
        );
    }
    refused(
        talk("us"),
        |r| r["messages"][1]["clear_at"] = json!("next_user_message"),
        Rule::Shape,
        "messages.1.clear_at: Extra inputs are not permitted",
    );
    accepted_in(with_betas("mid-conversation-system-clear-at-2026-08-21"), talk("us"), |r| {
        r["messages"][1]["clear_at"] = json!("next_user_message");
    });
    accepted_in(with_betas("mid-conversation-output-config-2026-07-01"), talk("uasu"), |r| {
        r["messages"][2] = json!({"role": "system", "content": [], "output_config": {"effort": "low"}});
    });
}

#[test]
fn empty_text() {
    let case = |content: Value, message: &str| {
        refused(base(OPUS), |r| r["messages"][0]["content"] = content, Rule::EmptyText, message);
    };
    case(json!([text("")]), "messages: text content blocks must be non-empty");
    case(json!([text("x"), text(" \n\t")]), "messages: text content blocks must contain non-whitespace text");
    case(json!("  "), "messages: text content blocks must contain non-whitespace text");
    case(json!(""), "messages.0: user messages must have non-empty content");
    case(json!([]), "messages.0: user messages must have non-empty content");
    let mark = json!({"type": "ephemeral"});
    case(
        json!([text("x"), {"type": "text", "text": "", "cache_control": mark}]),
        "messages.0.content.1.text: cache_control cannot be set for empty text blocks",
    );
    refused(
        base(OPUS),
        |r| r["system"] = json!([{"type": "text", "text": "", "cache_control": mark}]),
        Rule::EmptyText,
        "system.0: cache_control cannot be set for empty text blocks",
    );
    refused(
        base(OPUS),
        |r| r["system"] = json!([text("")]),
        Rule::EmptyText,
        "system: text content blocks must be non-empty",
    );
    refused(
        base(OPUS),
        |r| r["system"] = json!(" "),
        Rule::EmptyText,
        "system: text content blocks must contain non-whitespace text",
    );
    refused(
        tool_turn(OPUS),
        |r| r["messages"][2]["content"][0]["content"] = json!([text("")]),
        Rule::EmptyText,
        "messages: text content blocks must be non-empty",
    );
    accepted(base(OPUS), |r| r["system"] = json!(""));
}

#[test]
fn empty_turns() {
    let talk = |turns: &[(&str, Value)]| {
        let messages = turns.iter().map(|(role, content)| json!({"role": role, "content": content}));
        json!({"model": OPUS, "max_tokens": 5, "messages": messages.collect::<Vec<_>>()})
    };
    let case =
        |turns: &[(&str, Value)], message: &str| refused(talk(turns), |_| {}, Rule::EmptyText, message);
    let (user, assistant) = ("user", "assistant");
    // Neighbours of one role are one turn: only the whole of it must say something.
    accepted(talk(&[(user, json!([])), (user, json!("a"))]), |_| {});
    accepted(talk(&[(user, json!("a")), (user, json!([]))]), |_| {});
    case(
        &[(user, json!("a")), (assistant, json!("b")), (user, json!([])), (user, json!(""))],
        "messages.2: user messages must have non-empty content",
    );
    // An empty last turn of the assistant is neither refused nor a prefill; an earlier one is.
    accepted(talk(&[(user, json!("a")), (assistant, json!([]))]), |_| {});
    case(
        &[(user, json!("a")), (assistant, json!([])), (user, json!("b"))],
        "messages.1: all messages must have non-empty content except for the optional final assistant message",
    );
}

#[test]
fn prefill() {
    let answer = |content: Value| {
        move |r: &mut Value| {
            r["messages"].as_array_mut().unwrap().push(json!({"role": "assistant", "content": content}));
        }
    };
    let never = "This model does not support assistant message prefill. The conversation must end with a user message.";
    for model in [OPUS, "claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-5"] {
        refused(base(model), answer(json!("Sure")), Rule::Prefill, never);
    }
    for model in [HAIKU, "claude-sonnet-4-5", "claude-opus-4-5"] {
        accepted(base(model), answer(json!("Sure")));
    }
    refused(
        base(HAIKU),
        answer(json!("Sure ")),
        Rule::Prefill,
        "messages: final assistant content cannot end with trailing whitespace",
    );
    accepted(base(HAIKU), answer(json!("")));
    let thought = json!([{"type": "thinking", "thinking": "x", "signature": "x"}]);
    refused(
        base(HAIKU),
        answer(thought.clone()),
        Rule::Prefill,
        "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request.",
    );
    refused(
        base(HAIKU),
        |r| {
            answer(thought)(r);
            r["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
        },
        Rule::Prefill,
        "messages.1: The final block in an assistant message cannot be `thinking`.",
    );
    accepted(base(OPUS), answer(json!([{"type": "compaction", "content": "so far"}])));
}
