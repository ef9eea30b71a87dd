"""The official Python client streams from the scripted model: text, thinking, tools and errors."""

from __future__ import annotations

import asyncio

import anthropic
import httpx2
import pytest

MODEL = "claude-opus-5-5"
READ = {
    "name": "Read",
    "description": "Reads a file.",
    "input_schema": {"type": "object", "properties": {"file_path": {"type": "string"}}, "required": ["file_path"]},
}


def ask(text: str = "Hello", **more: object) -> dict:
    return {"model": MODEL, "max_tokens": 4096, "messages": [{"role": "user", "content": text}], **more}


def answered(request: dict, message: anthropic.types.Message, *results: dict) -> dict:
    """The request that follows: the answer as it was received, then the tools' results."""
    content = [block.model_dump(mode="json", exclude_none=True) for block in message.content]
    turn = [{"role": "assistant", "content": content}, {"role": "user", "content": list(results)}]
    return {**request, "messages": [*request["messages"], *turn]}


def result(block: anthropic.types.ToolUseBlock, text: str) -> dict:
    return {"type": "tool_result", "tool_use_id": block.id, "content": text}


def test_text_streams_in_the_pieces_of_the_script(client):
    model = client({"reply": [{"text": "Hello, world", "fragments": [5, 7]}]})
    with model.messages.stream(**ask()) as stream:
        pieces = list(stream.text_stream)
        message = stream.get_final_message()
    assert pieces == ["Hello", ", ", "world"]
    assert message.stop_reason == "end_turn"
    assert message.model == MODEL
    assert message.usage.input_tokens > 0 and message.usage.output_tokens > 0
    assert stream.request_id


def test_characters_survive_being_cut_into_single_bytes(client):
    text = "naïve 🦀 日本語"
    model = client({"reply": [{"text": text, "fragments": "random"}], "pace": {"chunk_bytes": 1}}, seed=7)
    with model.messages.stream(**ask()) as stream:
        assert stream.get_final_text() == text


def test_thinking_streams_and_its_signature_is_accepted_when_replayed(client):
    model = client(
        {"reply": [{"thinking": "Which file?"}, {"tool": "Read", "input": {"file_path": "a"}}]},
        {"reply": [{"text": "Done."}]},
    )
    request = ask(tools=[READ], thinking={"type": "adaptive", "display": "summarized"})
    with model.messages.stream(**request) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_message()
    assert "thinking" in kinds and "signature" in kinds
    thinking, call = message.content
    assert (thinking.type, thinking.thinking) == ("thinking", "Which file?")
    assert thinking.signature
    with model.messages.stream(**answered(request, message, result(call, "contents"))) as stream:
        assert stream.get_final_text() == "Done."


def test_changed_thinking_is_refused(client):
    model = client({"reply": [{"thinking": "Which file?"}, {"tool": "Read", "input": {"file_path": "a"}}]})
    request = ask(tools=[READ], thinking={"type": "adaptive", "display": "summarized"})
    with model.messages.stream(**request) as stream:
        message = stream.get_final_message()
    message.content[0].thinking = "Something else."
    with pytest.raises(anthropic.BadRequestError, match="thinking"):
        model.messages.create(**answered(request, message, result(message.content[1], "contents")))


def test_parallel_tools_stream_their_input_and_take_their_results(client):
    model = client(
        {
            "reply": [
                {"text": "Both."},
                {"tool": "Read", "input": {"file_path": "a"}, "fragments": "random"},
                {"tool": "Read", "input": {"file_path": "b"}, "fragments": 3},
            ]
        },
        {"when": {"last_tool_result": "of b"}, "reply": [{"text": "Seen."}]},
        seed=3,
    )
    request = ask(tools=[READ])
    with model.messages.stream(**request) as stream:
        partial = [event.partial_json for event in stream if event.type == "input_json"]
        message = stream.get_final_message()
    assert len(partial) >= 3
    assert message.stop_reason == "tool_use"
    _, first, second = message.content
    assert [first.input, second.input] == [{"file_path": "a"}, {"file_path": "b"}]
    assert first.id != second.id
    follow = answered(request, message, result(first, "contents of a"), result(second, "contents of b"))
    with model.messages.stream(**follow) as stream:
        assert stream.get_final_text() == "Seen."


def test_a_call_left_unanswered_is_refused_in_the_words_of_the_api(client):
    model = client({"reply": [{"tool": "Read", "input": {"file_path": "a"}}]})
    request = ask(tools=[READ])
    message = model.messages.create(**request)
    follow = answered(request, message, {"type": "text", "text": "Never mind."})
    with pytest.raises(anthropic.BadRequestError) as caught:
        model.messages.create(**follow)
    assert caught.value.body["error"]["type"] == "invalid_request_error"
    assert "tool_use" in str(caught.value) and message.content[0].id in str(caught.value)


def test_unknown_events_pings_and_comments_are_passed_over(client):
    model = client(
        {
            "reply": [
                {"comment": "keep"},
                {"ping": True},
                {"event": {"name": "future_event", "data": {"type": "future_event", "x": 1}}},
                {"text": "Still here."},
            ]
        }
    )
    with model.messages.stream(**ask()) as stream:
        assert stream.get_final_text() == "Still here."


def test_an_answer_without_streaming_is_the_same_message(client):
    reply = [{"text": "Hello."}, {"tool": "Read", "input": {"file_path": "a"}}]
    model = client({"reply": reply}, {"reply": reply})
    request = ask(tools=[READ])
    plain = model.messages.create(**request)
    with model.messages.stream(**request) as stream:
        streamed = stream.get_final_message()
    assert [block.type for block in plain.content] == ["text", "tool_use"]
    assert plain.content[0].text == streamed.content[0].text
    assert plain.content[1].input == streamed.content[1].input
    assert plain.stop_reason == streamed.stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, anthropic.BadRequestError, "invalid_request_error"),
        (401, anthropic.AuthenticationError, "authentication_error"),
        (403, anthropic.PermissionDeniedError, "permission_error"),
        (404, anthropic.NotFoundError, "not_found_error"),
        (413, anthropic.APIStatusError, "request_too_large"),
        (429, anthropic.RateLimitError, "rate_limit_error"),
        (500, anthropic.InternalServerError, "api_error"),
        (529, anthropic.InternalServerError, "overloaded_error"),
    ],
)
def test_statuses_become_the_client_s_own_errors(client, status, error, kind):
    model = client({"status": status})
    with pytest.raises(error) as caught, model.messages.stream(**ask()):
        pass
    assert caught.value.status_code == status
    assert caught.value.body["error"]["type"] == kind
    assert caught.value.request_id


def test_the_client_s_own_retry_gets_through(client):
    model = client(
        {"status": 529, "headers": {"retry-after": "0"}},
        {"status": 429, "headers": {"retry-after": "0"}},
        {"reply": [{"text": "At last."}]},
        retries=2,
    )
    with model.messages.stream(**ask()) as stream:
        assert stream.get_final_text() == "At last."


def test_an_error_inside_a_stream_is_raised_after_what_came_before_it(client):
    model = client({"reply": [{"text": "So far"}, {"error": "overloaded_error"}]})
    seen = []
    with pytest.raises(anthropic.APIStatusError) as caught, model.messages.stream(**ask()) as stream:
        for text in stream.text_stream:
            seen.append(text)
    assert "".join(seen) == "So far"
    assert caught.value.body["error"]["type"] == "overloaded_error"


def test_a_connection_cut_in_mid_stream_is_an_error_and_no_short_answer(client):
    model = client({"fault": {"cut_after_events": 4}, "reply": [{"text": "Hello, world", "fragments": [5, 7]}]})
    with pytest.raises((anthropic.APIConnectionError, httpx2.TransportError)), model.messages.stream(**ask()) as stream:
        stream.until_done()


def test_many_streams_at_once_keep_apart(scripted):
    count = 20
    steps = [{"when": {"last_user_text": f"^number {n}$"}, "reply": [{"text": f"answer {n}"}]} for n in range(count)]
    address = scripted(*steps)

    async def run() -> list[str]:
        async with anthropic.AsyncAnthropic(base_url=address, api_key="test", max_retries=0) as model:

            async def one(n: int) -> str:
                async with model.messages.stream(**ask(f"number {n}")) as stream:
                    return await stream.get_final_text()

            return await asyncio.gather(*(one(n) for n in range(count)))

    assert asyncio.run(run()) == [f"answer {n}" for n in range(count)]


def test_a_script_that_has_ended_says_so(client):
    model = client({"reply": [{"text": "Once."}]})
    model.messages.create(**ask())
    with pytest.raises(anthropic.BadRequestError, match="no step left"):
        model.messages.create(**ask())


def test_tokens_are_counted_and_models_are_listed(client):
    model = client()
    short = model.messages.count_tokens(model=MODEL, messages=ask("Hi")["messages"]).input_tokens
    longer = model.messages.count_tokens(model=MODEL, messages=ask("Hi " * 500)["messages"]).input_tokens
    assert 0 < short < longer
    assert MODEL in [known.id for known in model.models.list()]
    with pytest.raises(anthropic.NotFoundError, match="no-such-model"):
        model.messages.create(**{**ask(), "model": "no-such-model"})


def test_the_prompt_cache_is_written_then_read(client):
    model = client({"reply": [{"text": "One."}]}, {"reply": [{"text": "Two."}]})
    system = [{"type": "text", "text": "Rules. " * 3000, "cache_control": {"type": "ephemeral"}}]
    first = model.messages.create(**ask(system=system)).usage
    second = model.messages.create(**ask(system=system)).usage
    assert first.cache_creation_input_tokens > 0 and first.cache_read_input_tokens == 0
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.cache_creation_input_tokens == 0


def test_a_request_for_no_tokens_warms_the_cache(client):
    model = client({"reply": [{"text": "One."}]})
    system = [{"type": "text", "text": "Rules. " * 3000, "cache_control": {"type": "ephemeral"}}]
    warmed = model.messages.create(**{**ask(system=system), "max_tokens": 0})
    assert (warmed.content, warmed.stop_reason, warmed.usage.output_tokens) == ([], "max_tokens", 0)
    asked = model.messages.create(**ask(system=system))
    assert asked.content[0].text == "One."
    assert asked.usage.cache_read_input_tokens == warmed.usage.cache_creation_input_tokens > 0


def test_an_image_with_too_many_bytes_is_refused_in_the_words_of_the_api(client):
    model = client()
    source = {"type": "base64", "media_type": "image/png", "data": "A" * (5 * 1024 * 1024 + 4)}
    content = [{"type": "text", "text": "Look."}, {"type": "image", "source": source}]
    with pytest.raises(anthropic.BadRequestError) as caught:
        model.messages.create(**{**ask(), "messages": [{"role": "user", "content": content}]})
    assert caught.value.body["error"]["message"] == (
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5242884 bytes > 5242880 bytes"
    )
