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

/// The published list, kept apart from the table: window and outputs in thousands of tokens, then the five prices.
#[rustfmt::skip]
const LIST: &[(&str, u64, u32, u32, [f64; 5])] = &[
    ("claude-fable-5-2",  1000, 128, 128, [8.0, 40.0, 10.0, 16.0, 0.20]),
    ("claude-mythos-5-2", 1000, 128, 128, [8.0, 40.0, 10.0, 16.0, 0.20]),
    ("claude-fable-5-1",  1000, 128,  64, [10.0, 50.0, 12.5, 20.0, 0.25]),
    ("claude-mythos-5-1", 1000, 128,  64, [10.0, 50.0, 12.5, 20.0, 0.25]),
    ("claude-fable-5",    1000, 128, 128, [10.0, 50.0, 12.5, 20.0, 1.00]),
    ("claude-mythos-5",   1000, 128, 128, [10.0, 50.0, 12.5, 20.0, 1.00]),
    ("claude-opus-5-5",   1000, 128, 128, [4.0, 20.0, 5.0, 8.0, 0.20]),
    ("claude-opus-5",     1000, 128,  64, [5.0, 25.0, 6.25, 10.0, 0.50]),
    ("claude-opus-4-8",   1000, 128,  64, [5.0, 25.0, 6.25, 10.0, 0.50]),
    ("claude-opus-4-7",   1000, 128,  64, [5.0, 25.0, 6.25, 10.0, 0.50]),
    ("claude-opus-4-6",    200, 128,  64, [5.0, 25.0, 6.25, 10.0, 0.50]),
    ("claude-opus-4-5",    200,  64,  32, [5.0, 25.0, 6.25, 10.0, 0.50]),
    ("claude-sonnet-5-5", 1000, 128, 128, [2.0, 10.0, 2.5, 4.0, 0.10]),
    ("claude-sonnet-5",   1000, 128,  64, [2.0, 10.0, 2.5, 4.0, 0.20]),
    ("claude-sonnet-4-6",  200, 128,  32, [3.0, 15.0, 3.75, 6.0, 0.30]),
    ("claude-sonnet-4-5",  200,  64,  32, [3.0, 15.0, 3.75, 6.0, 0.30]),
    ("claude-haiku-5-5",  1000, 128, 128, [0.10, 0.50, 0.125, 0.20, 0.01]),
    ("claude-haiku-4-5",   200,  64,  32, [1.0, 5.0, 1.25, 2.0, 0.10]),
];

#[test]
fn every_row_is_as_published() {
    assert_eq!(LIST.len(), models().len());
    for (id, window, output_max, output_default, prices) in LIST {
        let model = caps(id).unwrap();
        assert_eq!((model.window, model.output_max), (window * 1000, output_max * 1000), "{id}");
        assert_eq!(model.output_default, output_default * 1000, "{id}");
        let Rates { input, output, cache_write_5m, cache_write_1h, cache_read } = model.prices.rates;
        assert_eq!([input, output, cache_write_5m, cache_write_1h, cache_read], *prices, "{id}");
        let tiered = (*id == "claude-haiku-5-5").then(|| super::prices(0.50, 2.50, 0.625, 1.00, 0.05).rates);
        assert_eq!(model.prices.long_prompt, tiered.map(|rates| (100_000, rates)), "{id}");
    }
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
