use super::*;
use proptest::prelude::*;
use serde_json::json;

impl CacheUsage {
    /// The whole prompt.
    pub(crate) fn total(&self) -> u64 {
        self.input_tokens + self.cache_read_input_tokens + self.write_5m + self.write_1h
    }
}

impl PromptCache {
    /// Accounts for a request that is answered at once.
    pub(crate) fn account(&mut self, request: &Value, now: Duration) -> CacheUsage {
        let (usage, pending) = self.begin(request, now);
        self.commit(pending, now);
        usage
    }
}

const MARK: &str = "cache_control";

fn mark() -> Value {
    json!({"type": "ephemeral"})
}

fn hour() -> Value {
    json!({"type": "ephemeral", "ttl": "1h"})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn marked(text: &str, mark: &Value) -> Value {
    json!({"type": "text", "text": text, "cache_control": mark})
}

/// A conversation with a mark at the end of each section, every section long enough to be cached alone.
fn conversation() -> Value {
    json!({
        "model": "claude-opus-5-5",
        "max_tokens": 100,
        "tools": [{"name": "Read", "description": "r".repeat(3000), "input_schema": {"type": "object"}, "cache_control": mark()}],
        "system": [marked(&"s".repeat(3000), &mark())],
        "messages": [{"role": "user", "content": [marked(&"m".repeat(3000), &mark())]}],
    })
}

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// After one request at time 0, `change` is applied and the second request must read this many sections.
#[track_caller]
fn check_reads(sections: usize, change: impl Fn(&mut Value)) {
    let mut cache = PromptCache::default();
    let first = conversation();
    let ends = running_sum(tokens::of_parts(tokens::facts_of(&first), &prompt::parts(&first)));
    assert_eq!(cache.account(&first, secs(0)).cache_read_input_tokens, 0);
    let mut second = first.clone();
    change(&mut second);
    let usage = cache.account(&second, secs(1));
    let expected = sections.checked_sub(1).map_or(0, |last| ends[last]);
    assert_eq!(usage.cache_read_input_tokens, expected, "{usage:?}");
    assert_eq!(usage.total(), tokens::count(&second));
}

#[test]
fn a_change_loses_what_the_table_says() {
    check_reads(3, |_| {});
    check_reads(0, |r| r["model"] = json!("claude-sonnet-5-5"));
    check_reads(0, |r| r["tools"][0]["description"] = json!("x".repeat(3000)));
    check_reads(0, |r| {
        r["tools"]
            .as_array_mut()
            .unwrap()
            .insert(0, json!({"name": "A", "input_schema": {"type": "object"}}));
    });
    check_reads(1, |r| r["system"][0]["text"] = json!("x".repeat(3000)));
    check_reads(1, |r| r["speed"] = json!("fast"));
    check_reads(1, |r| {
        r["tools"].as_array_mut().unwrap().push(json!({"type": "web_search_20250305", "name": "web_search"}));
    });
    check_reads(2, |r| r["tool_choice"] = json!({"type": "none"}));
    check_reads(2, |r| r["thinking"] = json!({"type": "adaptive"}));
    check_reads(2, |r| r["output_config"] = json!({"effort": "low"}));
    check_reads(2, |r| r["messages"][0]["content"][0]["text"] = json!("x".repeat(3000)));
    check_reads(2, |r| {
        let image = json!({"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}});
        r["messages"][0]["content"].as_array_mut().unwrap().push(image);
    });
    check_reads(3, |r| r["max_tokens"] = json!(5));
    check_reads(3, |r| r["metadata"] = json!({"user_id": "x"}));
}

#[test]
fn moving_the_mark_forward_keeps_the_prefix() {
    let mut cache = PromptCache::default();
    let mut request = conversation();
    let first = cache.account(&request, secs(0));
    request["messages"][0]["content"][0].as_object_mut().unwrap().remove(MARK);
    request["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": "ok"}),
        json!({"role": "user", "content": [marked("go on", &mark())]}),
    ]);
    let second = cache.account(&request, secs(1));
    assert_eq!(second.cache_read_input_tokens, first.write_5m);
    assert!(second.write_5m > 0);
    assert_eq!(second.input_tokens, tokens::REQUEST_TOKENS);
}

#[test]
fn a_mark_looks_back_over_twenty_blocks_and_no_more() {
    let with_blocks = |count: usize| {
        let mut content: Vec<Value> =
            (0..count).map(|i| text(&format!("{i} {}", "x".repeat(3000)))).collect();
        content[count - 1][MARK] = mark();
        json!({"model": "claude-opus-5-5", "messages": [{"role": "user", "content": content}]})
    };
    let read_after = |more: usize| {
        let mut cache = PromptCache::default();
        let _ = cache.account(&with_blocks(3), secs(0));
        cache.account(&with_blocks(3 + more), secs(1)).cache_read_input_tokens
    };
    assert!(read_after(19) > 0);
    assert_eq!(read_after(20), 0);
}

#[test]
fn entries_die_and_a_hit_keeps_them_alive() {
    let mut cache = PromptCache::default();
    let mut request = conversation();
    let five = |cache: &mut PromptCache, request: &Value, at| {
        cache.account(request, secs(at)).cache_read_input_tokens
    };
    assert_eq!(five(&mut cache, &request, 0), 0);
    assert!(five(&mut cache, &request, 299) > 0);
    assert!(five(&mut cache, &request, 299 + 299) > 0, "the hit refreshed it");
    assert_eq!(five(&mut cache, &request, 299 + 299 + 300), 0);

    request["system"] = json!("another prompt");
    request["tools"][0][MARK] = hour();
    request["messages"][0]["content"][0][MARK] = hour();
    let usage = cache.account(&request, secs(10_000));
    assert_eq!((usage.write_5m, usage.write_1h > 0), (0, true));
    assert!(five(&mut cache, &request, 13_599) > 0);
    assert_eq!(five(&mut cache, &request, 17_199), 0);
}

#[test]
fn both_lifetimes_are_written_as_two_stretches() {
    let mut request = conversation();
    request["tools"][0][MARK] = hour();
    request["system"][0][MARK] = hour();
    let ends = running_sum(tokens::of_parts(tokens::facts_of(&request), &prompt::parts(&request)));
    let usage = PromptCache::default().account(&request, secs(0));
    assert_eq!((usage.write_1h, usage.write_5m), (ends[1], ends[2] - ends[1]));
}

#[test]
fn short_prefixes_are_not_cached() {
    let request = |model: &str, chars: usize| json!({"model": model, "cache_control": mark(), "messages": [{"role": "user", "content": "x".repeat(chars)}]});
    let written =
        |model: &str, chars| PromptCache::default().account(&request(model, chars), secs(0)).write_5m;
    assert_eq!(written("claude-opus-5-5", 1500), 0);
    assert!(written("claude-opus-5-5", 1600) > 512);
    assert_eq!(written("claude-haiku-4-5", 16_000), 0);
    assert!(written("claude-haiku-4-5", 16_400) > 4096);
}

#[test]
fn an_entry_is_readable_only_once_it_is_committed() {
    let mut cache = PromptCache::default();
    let request = conversation();
    let (first, pending) = cache.begin(&request, secs(0));
    let (second, other) = cache.begin(&request, secs(0));
    assert_eq!(first, second, "a parallel request reads nothing yet");
    cache.commit(pending, secs(1));
    assert!(cache.account(&request, secs(1)).cache_read_input_tokens > 0);
    cache.commit(other, secs(2));
}

#[test]
fn the_number_of_entries_is_bounded() {
    let mut cache = PromptCache::default();
    for i in 0..ENTRIES_MAX as u64 + 50 {
        cache.commit(Pending { entries: vec![(i, Ttl::OneHour)], arrived: secs(i / 100) }, secs(i / 100));
    }
    assert_eq!(cache.entries.len(), ENTRIES_MAX);
}

fn blocks() -> impl Strategy<Value = Vec<(usize, u8)>> {
    proptest::collection::vec((1..4000usize, 0..8u8), 1..30)
}

/// Turns sizes and dice into blocks; dice below 2 bring a mark while marks last.
fn build(blocks: &[(usize, u8)]) -> Value {
    let mut marks_left = 4;
    let content: Vec<Value> = blocks
        .iter()
        .map(|&(size, dice)| {
            let mut block = text(&"y".repeat(size));
            if dice < 2 && marks_left > 0 {
                marks_left -= 1;
                block[MARK] = mark();
            }
            block
        })
        .collect();
    json!({"model": "claude-opus-5-5", "system": "be brief", "messages": [{"role": "user", "content": content}]})
}

proptest! {
    #[test]
    fn read_written_and_plain_tokens_add_up(requests in proptest::collection::vec((blocks(), 0..400u64), 1..6)) {
        let mut cache = PromptCache::default();
        let mut now = secs(0);
        for (blocks, wait) in requests {
            now += secs(wait);
            let request = build(&blocks);
            prop_assert_eq!(cache.account(&request, now).total(), tokens::count(&request));
        }
    }

    #[test]
    fn a_repeated_request_reads_up_to_its_last_mark(blocks in blocks()) {
        let mut cache = PromptCache::default();
        let request = build(&blocks);
        let first = cache.account(&request, secs(0));
        let second = cache.account(&request, secs(1));
        prop_assert_eq!(second.cache_read_input_tokens, first.write_5m + first.cache_read_input_tokens);
        prop_assert_eq!((second.write_5m, second.input_tokens), (0, first.input_tokens));
    }

    #[test]
    fn growing_conversations_never_read_less(blocks in blocks(), more in blocks()) {
        let mut cache = PromptCache::default();
        let mut request = build(&blocks);
        let first = cache.account(&request, secs(0));
        let grown: Vec<Value> = more.iter().take(LOOKBACK_BLOCKS_MAX).map(|&(size, _)| text(&"z".repeat(size))).collect();
        request["messages"][0]["content"].as_array_mut().unwrap().extend(grown);
        let second = cache.account(&request, secs(1));
        prop_assert_eq!(second.cache_read_input_tokens, first.write_5m, "its marks have not moved");
    }
}

#[test]
fn lifetimes_count_from_the_request_and_not_from_its_answer() {
    let mut cache = PromptCache::default();
    let (_, pending) = cache.begin(&conversation(), secs(0));
    cache.commit(pending, secs(200));
    let (usage, _pending) = cache.begin(&conversation(), secs(299));
    assert!(usage.cache_read_input_tokens > 0);
    let mut cache = PromptCache::default();
    let (_, pending) = cache.begin(&conversation(), secs(0));
    cache.commit(pending, secs(200));
    let (usage, _pending) = cache.begin(&conversation(), secs(301));
    assert_eq!(usage.cache_read_input_tokens, 0);
}

#[test]
fn tools_that_are_not_loaded_cost_nothing_and_lose_nothing() {
    let mut cache = PromptCache::default();
    let first = cache.account(&conversation(), secs(0));
    let mut second = conversation();
    let later = json!({"name": "Later", "description": "d".repeat(3000), "input_schema": {"type": "object"}, "defer_loading": true});
    second["tools"].as_array_mut().unwrap().push(later);
    let usage = cache.account(&second, secs(1));
    assert_eq!((usage.total(), usage.cache_read_input_tokens), (first.total(), first.write_5m));
}
