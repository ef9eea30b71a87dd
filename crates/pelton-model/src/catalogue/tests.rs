use pelton_wire::usage::{CacheCreation, ServerToolUse};

use super::*;

#[test]
fn names_lead_to_models() {
    for (name, id, window) in [
        ("claude-opus-5-5", "claude-opus-5-5", 1_000_000),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5", 200_000),
        ("claude-sonnet-4-6", "claude-sonnet-4-6", 200_000),
        ("claude-sonnet-4-6[1m]", "claude-sonnet-4-6", 1_000_000),
        ("claude-opus-4-6-20260101[1M]", "claude-opus-4-6", 1_000_000),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5", 200_000),
        ("us.anthropic.claude-opus-4-5-20251101-v1:0", "claude-opus-4-5", 200_000),
        ("anthropic/claude-opus-5", "claude-opus-5", 1_000_000),
    ] {
        let caps = caps(name).unwrap_or_else(|| panic!("{name} is unknown"));
        assert_eq!((caps.id, caps.window), (id, window), "{name}");
    }
    for stranger in
        ["", "[1m]", "gpt-9", "claude-opus", "my-claude-opus-5-5", "claude-opus-5-5-2025", "\u{1F600}[1"]
    {
        assert!(caps(stranger).is_none(), "{stranger}");
    }
}

#[test]
fn aliases_are_resolved() {
    for (alias, id) in [
        ("sonnet", "claude-sonnet-5-5"),
        ("Opus", "claude-opus-5-5"),
        ("haiku", "claude-haiku-5-5"),
        ("fable", "claude-fable-5-2"),
        ("sonnet[1m]", "claude-sonnet-5-5[1m]"),
        ("claude-opus-5", "claude-opus-5"),
        ("anything else", "anything else"),
    ] {
        assert_eq!(resolve(alias), id);
    }
    assert_eq!(api_id("claude-sonnet-5-5[1m]"), "claude-sonnet-5-5");
}

#[test]
fn effort_goes_down_to_what_the_model_accepts() {
    let effort = |model: &str, asked| caps(model).unwrap().effort(asked);
    assert_eq!(effort("claude-opus-5-5", Effort::XHigh), Some(Effort::XHigh));
    assert_eq!(effort("claude-opus-4-6", Effort::XHigh), Some(Effort::High));
    assert_eq!(effort("claude-opus-4-6", Effort::Max), Some(Effort::Max));
    assert_eq!(effort("claude-opus-4-5", Effort::Max), Some(Effort::High));
    assert_eq!(effort("claude-haiku-4-5", Effort::Low), None);
}

#[test]
fn every_row_is_sane() {
    for model in models() {
        assert!(model.output_default <= model.output_max, "{}", model.id);
        assert!(u64::from(model.output_max) < model.window, "{}", model.id);
        assert!(model.effort_default.is_none_or(|effort| model.efforts.contains(&effort)), "{}", model.id);
        let Rates { input, output, cache_write_5m, cache_write_1h, cache_read } = model.prices.rates;
        assert!(
            cache_read < input && input < cache_write_5m && cache_write_5m < cache_write_1h,
            "{}",
            model.id
        );
        assert!((output / input - 5.0).abs() < 1e-9, "{}", model.id);
    }
}

fn check_cost(model: &str, usage: &Usage, dollars: f64) {
    let cost = cost(model, usage, &[]).unwrap();
    assert!((cost - dollars).abs() < 1e-9, "{model}: {cost} instead of {dollars}");
}

#[test]
fn costs_follow_the_formula() {
    let usage = Usage {
        input_tokens: 1_000_000,
        output_tokens: 100_000,
        cache_creation_input_tokens: 30_000,
        cache_creation: CacheCreation {
            ephemeral_5m_input_tokens: 10_000,
            ephemeral_1h_input_tokens: 20_000,
        },
        cache_read_input_tokens: 500_000,
        ..Usage::default()
    };
    // 1.0·4 + 0.1·20 + 0.01·5 + 0.02·8 + 0.5·0.2
    check_cost("claude-opus-5-5", &usage, 6.31);
    check_cost("opus", &usage, 6.31);
    check_cost("claude-opus-5-5", &Usage { speed: Some("fast".into()), ..usage.clone() }, 12.62);
    check_cost("claude-opus-5-5", &Usage { inference_geo: Some("us".into()), ..usage.clone() }, 6.941);
    let searched = ServerToolUse { web_search_requests: 3, web_fetch_requests: 9 };
    check_cost("claude-opus-5-5", &Usage { server_tool_use: searched, ..usage.clone() }, 6.34);
    // Without the split all cache writes are of the short kind.
    check_cost("claude-opus-5-5", &Usage { cache_creation: CacheCreation::default(), ..usage }, 6.25);
}

#[test]
fn a_long_prompt_changes_the_price_of_the_whole_call() {
    let short = Usage {
        input_tokens: 60_000,
        cache_read_input_tokens: 40_000,
        output_tokens: 1000,
        ..Usage::default()
    };
    check_cost("claude-haiku-5-5", &short, 0.0069);
    let long = Usage { input_tokens: 60_001, ..short };
    check_cost("claude-haiku-5-5", &long, 0.0345005);
}

#[test]
fn an_unknown_model_has_no_cost() {
    let usage = Usage { input_tokens: 1, ..Usage::default() };
    assert_eq!(cost("mystery", &usage, &[]), None);
    let own = [("mystery".to_owned(), prices(1e6, 0.0, 0.0, 0.0, 0.0))];
    assert_eq!(cost("mystery", &usage, &own), Some(1.0));
}
