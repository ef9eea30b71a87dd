//! Tool definitions, tool choice, and calls with their results.

use super::*;

#[test]
fn tool_definitions() {
    let case = |rule, member: &str, value: Value, message: &str| {
        refused(tool_turn(OPUS), |r| r["tools"][1][member] = value, rule, message);
    };
    case(Rule::ToolNames, "name", json!("Read"), "tools: Tool names must be unique.");
    case(
        Rule::ToolNames,
        "name",
        json!("a.b"),
        "tools.1.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    );
    case(
        Rule::ToolNames,
        "name",
        json!("a".repeat(129)),
        "tools.1.custom.name: String should have at most 128 characters",
    );
    case(Rule::ToolNames, "name", json!(""), "tools.1.custom.name: String should have at least 1 character");
    case(Rule::Shape, "foo", json!(1), "tools.1.custom.foo: Extra inputs are not permitted");
    case(
        Rule::Shape,
        "type",
        json!("function"),
        "tools.1: Input tag 'function' found using 'type' does not match any of the expected tags: 'bash_20250124', …",
    );
    let schema = |schema: Value, message: &str| {
        case(Rule::ToolSchemas, "input_schema", schema, &format!("tools.1.custom.input_schema{message}"));
    };
    schema(json!([]), ": Input should be an object");
    schema(json!({}), ".type: Field required");
    schema(json!({"type": "string"}), ".type: Input should be 'object'");
    schema(
        json!({"type": "object", "anyOf": [{"required": ["a"]}]}),
        ": input_schema does not support oneOf, allOf, or anyOf at the top level",
    );
    schema(
        json!({"type": "object", "properties": {"a b": {}}}),
        ".properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'",
    );
    for broken in [
        json!({"type": "OBJECT"}),
        json!({"type": ["string", "string"]}),
        json!({"required": ["a", "a"]}),
        json!({"properties": {"a": []}}),
        json!({"items": [{"type": "string"}]}),
        json!({"anyOf": []}),
        json!({"enum": "a"}),
        json!({"minLength": -1}),
        json!({"description": 5}),
    ] {
        schema(
            json!({"type": "object", "properties": {"a": broken}}),
            ": JSON schema is invalid. It must match JSON Schema draft 2020-12 …",
        );
    }
    accepted(tool_turn(OPUS), |r| {
        r["tools"][1]["input_schema"] = json!({"$schema": "x", "type": "object", "required": [], "additionalProperties": false,
        "$defs": {"b": {"type": ["string", "null"]}}, "properties": {"a": {"anyOf": [{"$ref": "#/$defs/b"}, true]}, "c": {"type": "array", "items": {"enum": [1]}, "minItems": 1.0}}});
    });
    refused(
        tool_turn(OPUS),
        |r| {
            r["tools"][0]["defer_loading"] = json!(true);
            r["tools"][1]["defer_loading"] = json!(true);
        },
        Rule::Shape,
        "At least one tool must have defer_loading=false. All tools cannot be deferred.",
    );
    let find = |content: Value| move |r: &mut Value| r["messages"][2]["content"][0]["content"] = content;
    let reference = |name: &str| json!({"type": "tool_reference", "tool_name": name});
    accepted(tool_turn(OPUS), find(json!([reference("Read"), reference("Bash")])));
    refused(
        tool_turn(OPUS),
        find(json!([reference("Write")])),
        Rule::UndefinedTools,
        "Tool reference 'Write' not found in available tools",
    );
    refused(
        tool_turn(OPUS),
        find(json!([reference("Read"), text("found")])),
        Rule::Shape,
        "Tool definitions/code execution functions cannot be mixed with other content",
    );
    let open = "For 'object' type, 'additionalProperties' must be explicitly set to false";
    case(Rule::ToolSchemas, "strict", json!(true), &format!("tools.1.custom: {open}"));
    let closed = json!({"type": "object", "additionalProperties": false, "properties": {"a": {"type": "array", "items": {"type": "string"}}}});
    accepted(tool_turn(OPUS), |r| {
        r["tools"][1]["strict"] = json!(true);
        r["tools"][1]["input_schema"] = closed.clone();
    });
    let format = |schema: &Value| json!({"format": {"type": "json_schema", "schema": schema}});
    accepted(base(OPUS), |r| r["output_config"] = format(&closed));
    let mut ajar = closed.clone();
    ajar["properties"]["a"]["items"] = json!({"type": "object"});
    refused(
        base(OPUS),
        |r| r["output_config"] = format(&ajar),
        Rule::Shape,
        &format!("output_config.format.schema: {open}"),
    );
    accepted(tool_turn(OPUS), |r| {
        r["tools"][1] = json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3});
    });
    refused(
        tool_turn(OPUS),
        |r| {
            r.as_object_mut().unwrap().remove("tools");
        },
        Rule::UndefinedTools,
        "Requests which include `tool_use` or `tool_result` blocks must define tools.",
    );
    refused(
        tool_turn(OPUS),
        |r| r["tools"] = json!([]),
        Rule::UndefinedTools,
        "Requests which include `tool_use` or `tool_result` blocks must define tools.",
    );
}

#[test]
fn tool_choice() {
    let case = |model, choice: Value, message: &str| {
        refused(tool_turn(model), |r| r["tool_choice"] = choice, Rule::ToolChoice, message);
    };
    let forced = "tool_choice: type \"tool\" and \"any\" are not supported for this model.";
    case(OPUS, json!({"type": "any"}), forced);
    case("claude-sonnet-5-5", json!({"type": "tool", "name": "Read"}), forced);
    case(HAIKU, json!({"type": "tool", "name": "Write"}), "Tool 'Write' not found in provided tools");
    case(HAIKU, json!({"type": "tool"}), "tool_choice.tool.name: Field required");
    case(
        HAIKU,
        json!({"type": "must"}),
        "tool_choice: Input tag 'must' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'",
    );
    case(
        HAIKU,
        json!({"type": "none", "name": "x"}),
        "tool_choice.none.name: Extra inputs are not permitted",
    );
    refused(
        base(HAIKU),
        |r| r["tool_choice"] = json!({"type": "any"}),
        Rule::ToolChoice,
        "tool_choice.any may only be specified while providing tools",
    );
    refused(
        tool_turn("claude-haiku-5-5"),
        |r| {
            r["tool_choice"] = json!({"type": "any"});
            r["thinking"] = json!({"type": "adaptive"});
        },
        Rule::ToolChoice,
        "Thinking may not be enabled when tool_choice forces tool use.",
    );
    accepted(tool_turn(HAIKU), |r| {
        r["tool_choice"] = json!({"type": "tool", "name": "Read", "disable_parallel_tool_use": true});
    });
    accepted(tool_turn("claude-haiku-5-5"), |r| r["tool_choice"] = json!({"type": "any"}));
    accepted(base(OPUS), |r| r["tool_choice"] = json!({"type": "auto"}));
}

#[test]
fn tool_pairs() {
    let unanswered = |index: usize, ids: &str| {
        format!(
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next message."
        )
    };
    let unexpected = |path: &str, id: &str| {
        format!(
            "{path}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    };
    let case = |change: &dyn Fn(&mut Value), message: &str| {
        refused(tool_turn(OPUS), change, Rule::ToolPairs, message);
    };
    case(
        &|r| {
            r["messages"].as_array_mut().unwrap().pop();
        },
        &unanswered(1, "toolu_1, toolu_2"),
    );
    case(
        &|r| {
            r["messages"][2]["content"].as_array_mut().unwrap().remove(1);
        },
        &unanswered(1, "toolu_2"),
    );
    case(&|r| r["messages"][2]["content"] = json!("never mind"), &unanswered(1, "toolu_1, toolu_2"));
    case(
        &|r| {
            r["messages"][1]["content"].as_array_mut().unwrap().remove(1);
        },
        &unexpected("messages.2.content.0", "toolu_1"),
    );
    case(&|r| r["messages"][1]["content"] = json!("nothing"), &unexpected("messages.2.content.0", "toolu_1"));
    case(
        &|r| r["messages"][0]["content"] = json!([{"type": "tool_result", "tool_use_id": "toolu_0"}]),
        &unexpected("messages.0.content.0", "toolu_0"),
    );
    case(
        &|r| r["messages"][1]["content"][2]["id"] = json!("toolu_1"),
        "messages.1.content.2: `tool_use` ids must be unique",
    );
    case(
        &|r| {
            let again = r["messages"][2]["content"][0].clone();
            r["messages"][2]["content"].as_array_mut().unwrap().insert(2, again);
        },
        "messages.2.content.2: each tool_use must have a single result. Found multiple `tool_result` blocks with id: toolu_1",
    );
    let first = |change: &dyn Fn(&mut Vec<Value>)| {
        refused(
            tool_turn(OPUS),
            |r| change(r["messages"][2]["content"].as_array_mut().unwrap()),
            Rule::ResultsFirst,
            &unanswered(1, "toolu_1, toolu_2"),
        );
    };
    first(&|blocks| blocks.rotate_right(1));
    refused(
        tool_turn(OPUS),
        |r| r["messages"][2]["content"].as_array_mut().unwrap().swap(1, 2),
        Rule::ResultsFirst,
        &unanswered(1, "toolu_2"),
    );
    // Messages of one role are one turn: results may be spread over neighbours, calls too.
    accepted(tool_turn(OPUS), |r| {
        r["messages"] = json!([
            {"role": "user", "content": "a"}, {"role": "user", "content": "b"},
            {"role": "assistant", "content": [r["messages"][1]["content"][0], r["messages"][1]["content"][1]]},
            {"role": "assistant", "content": [r["messages"][1]["content"][2]]},
            {"role": "user", "content": [r["messages"][2]["content"][1]]},
            {"role": "user", "content": [r["messages"][2]["content"][0], text("go on")]},
        ]);
    });
    refused(
        tool_turn(OPUS),
        |r| {
            r["messages"] = json!([
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": [r["messages"][1]["content"][1]]},
                {"role": "assistant", "content": [r["messages"][1]["content"][2]]},
                {"role": "user", "content": [r["messages"][2]["content"][0]]},
            ]);
        },
        Rule::ToolPairs,
        &unanswered(2, "toolu_2"),
    );
}

#[test]
fn server_tools() {
    let call =
        json!({"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}});
    let result = json!({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []});
    let talk = |blocks: Vec<Value>, more: bool| {
        let mut request = json!({"model": OPUS, "max_tokens": 5, "tools": [{"type": "web_search_20250305", "name": "web_search"}],
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": blocks}]});
        if more {
            request["messages"].as_array_mut().unwrap().extend([
                json!({"role": "user", "content": "and"}),
                json!({"role": "assistant", "content": "so"}),
                json!({"role": "user", "content": "ok"}),
            ]);
        }
        request
    };
    accepted(talk(vec![call.clone(), result.clone()], true), |_| {});
    refused(
        talk(vec![call.clone()], false),
        |r| r["messages"][1]["content"][0]["id"] = json!("call_1"),
        Rule::Shape,
        "messages.1.content.0.server_tool_use.id: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'",
    );
    accepted(talk(vec![call.clone()], false), |_| {}); // a paused turn is sent back as it is
    refused(
        talk(vec![call], true),
        |_| {},
        Rule::ToolPairs,
        "messages.1: `web_search` tool use with id `srvtoolu_1` was found without a corresponding `web_search_tool_result` block",
    );
    refused(
        talk(vec![result], true),
        |_| {},
        Rule::ToolPairs,
        "messages.1.content.0: unexpected `tool_use_id` found in `web_search_tool_result` blocks: srvtoolu_1. Each …",
    );
}
