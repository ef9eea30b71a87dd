//! WebFetch: one page of the web, and what it says about a question.

use std::sync::Arc;

use futures::future::BoxFuture;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::INTERRUPTED;
use crate::aside::{AsideQuestion, Whom};
use crate::limits::{
    WEB_ANSWER_TOKENS_MAX, WEB_ASKED_CHARS_MAX, WEB_BODY_BYTES_MAX, WEB_ERROR_CHARS_MAX, WEB_SHOWN_CHARS_MAX,
};
use crate::spill::{self, first_chars};
use crate::tools::lenient;
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};
use crate::tools::web::{self, Page, Said};

/// Its name, which rules are written for.
pub(crate) const NAME: &str = "WebFetch";

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(WebFetch)
}

struct WebFetch;

const SPEC: Spec<'static> = Spec {
    name: NAME,
    description: include_str!("web_fetch.md"),
    input_schema: r#"{"type":"object","properties":{"url":{"type":"string"},"prompt":{"type":"string"},"offset":{"type":"integer","minimum":0}},"required":["url","prompt"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    url: String,
    prompt: String,
    #[serde(default, deserialize_with = "lenient::count")]
    offset: Option<u64>,
}

impl Tool for WebFetch {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        let input: Input = parse_input(input)?;
        let url = web::address(&input.url).map_err(|why| InvalidInput(format!("`url`: {why}")))?;
        // Rules are about the host that is really asked.
        Ok(Access::Url(url.into()))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match parse_input::<Input>(&input) {
                Ok(input) => fetch(input, cx).await,
                Err(InvalidInput(why)) => Output::unusable(why),
            }
        })
    }
}

async fn fetch(input: Input, cx: &ToolCx) -> Output {
    let began = cx.world.monotonic();
    let url = match web::address(&input.url) {
        Ok(url) => url,
        Err(why) => return Output::unusable(format_args!("`url`: {why}")),
    };
    let Some(web) = &cx.web else {
        return Output::error("There is no road to the web from here.");
    };
    let page = match web.page(NAME, &url, cx).await {
        Ok(page) => page,
        Err(_) if cx.cancel.is_cancelled() => return Output::error(INTERRUPTED),
        Err(why) => return Output::error(format!("{url} was not fetched: {why}.")),
    };
    let (is_error, result) = told(&page, &input, cx).await;
    let took = cx.world.monotonic().saturating_sub(began);
    let output = if is_error { Output::error(result.clone()) } else { Output::text(result.clone()) };
    output.with_detail(json!({
        "bytes": page.bytes,
        "code": page.code,
        "codeText": code_text(page.code),
        "result": result,
        "durationMs": u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        "url": page.url,
    }))
}

/// What the model reads of a page, and whether that is an error.
async fn told(page: &Page, input: &Input, cx: &ToolCx) -> (bool, String) {
    let Page { url, code, said, .. } = page;
    match said {
        Said::Elsewhere(to) => (
            false,
            format!(
                "{url} redirects to another host ({code} {}), which was not asked:\n{to}\nFetch that address if it is what you \
                 want.",
                code_text(*code)
            ),
        ),
        Said::Binary { media_type, is_cut: true, .. } => {
            let mb = WEB_BODY_BYTES_MAX / (1024 * 1024);
            (true, format!("{url} is a file ({media_type}) of more than {mb} MB, which is not fetched here."))
        }
        Said::Binary { media_type, content, .. } => {
            let id = format!("{}-page", cx.call_id);
            let kept =
                spill::keep_as(&cx.spill_dir, &cx.secrets, &id, extension(media_type), content.clone());
            let size = content.len();
            match kept.await {
                Ok(path) => {
                    let path = path.display();
                    let told =
                        format!("{url} is a file ({media_type}, {size} bytes). It was saved as {path}");
                    let how = match media_type.as_str() {
                        "application/pdf" => ": Read shows it.",
                        kind if kind.starts_with("image/") => ": Read shows it.",
                        _ => ".",
                    };
                    (*code >= 400, told + how)
                }
                Err(why) => (
                    true,
                    format!("{url} is a file ({media_type}, {size} bytes), which could not be saved: {why}."),
                ),
            }
        }
        Said::Text { text, .. } if *code >= 400 => {
            let shown = first_chars(text.trim(), WEB_ERROR_CHARS_MAX);
            (true, format!("{url} answered {code} {}.\n\n{shown}", code_text(*code)).trim_end().to_owned())
        }
        Said::Text { title, text, is_cut } => (false, answered(page, title, text, *is_cut, input, cx).await),
    }
}

/// What a page says: to the question if somebody can be asked, else as it is.
async fn answered(page: &Page, title: &str, text: &str, is_cut: bool, input: &Input, cx: &ToolCx) -> String {
    let offset = usize::try_from(input.offset.unwrap_or_default()).unwrap_or(usize::MAX);
    let chars = text.chars().count();
    if text.trim().is_empty() {
        return format!("{} is empty: there are no words on it.", page.url);
    }
    if offset >= chars {
        return format!("The page has {chars} characters: there is nothing at offset {offset}.");
    }
    let from = &text[text.char_indices().nth(offset).map_or(0, |(at, _)| at)..];
    let part = first_chars(from, WEB_ASKED_CHARS_MAX);
    let (answer, shown, note) = match ask(page, title, part, input, cx).await {
        Ok(answer) => (answer, part, String::new()),
        Err(why) => {
            let part = first_chars(from, WEB_SHOWN_CHARS_MAX);
            let title = if title.is_empty() { String::new() } else { format!("Title: {title}\n") };
            let said = format!("{title}Address: {}\n\n{part}", page.url);
            (
                said,
                part,
                why.map(|why| {
                    format!("\n\n[The question was not answered: {why}. This is the page itself.]")
                })
                .unwrap_or_default(),
            )
        }
    };
    let end = offset + shown.chars().count();
    let rest = match (end < chars, is_cut) {
        (true, _) => format!("\n\n[Characters {offset} to {end} of {chars}: go on with `offset` {end}.]"),
        (false, true) => {
            format!("\n\n[The page is longer than what is read: this is up to character {chars}.]")
        }
        (false, false) => String::new(),
    };
    format!("{answer}{rest}{note}")
}

/// Asks the small model. Fails with why, if there is one to ask and it did not answer.
async fn ask(
    page: &Page,
    title: &str,
    part: &str,
    input: &Input,
    cx: &ToolCx,
) -> Result<String, Option<String>> {
    let aside = cx.aside.as_ref().filter(|aside| aside.has_small()).ok_or(None)?;
    let question = AsideQuestion {
        purpose: "a question about a page",
        whom: Whom::Small,
        system: include_str!("../web/page_answer.md"),
        prompt: format!(
            "The page {}{}{title}:\n<page>\n{part}\n</page>\n\n{}",
            page.url,
            if title.is_empty() { "" } else { ", " },
            input.prompt
        ),
        max_tokens: WEB_ANSWER_TOKENS_MAX,
        server_tools: String::new(),
        searches_max: 0,
    };
    let told = tokio::select! {
        biased;
        () = cx.cancel.cancelled() => return Err(Some("interrupted by the user".to_owned())),
        answer = aside.ask(question) => answer.map_err(Some)?,
    };
    // A part of what the page says is worth more than nothing.
    let words = told.words();
    if words.is_empty() { Err(Some("the answer had no words".to_owned())) } else { Ok(words) }
}

fn code_text(code: u16) -> &'static str {
    StatusCode::from_u16(code).ok().and_then(|code| code.canonical_reason()).unwrap_or("unknown")
}

/// What a saved file is called, for those who go by that.
fn extension(media_type: &str) -> &'static str {
    match media_type {
        "application/pdf" => "pdf",
        "image/png" => "png",
        "image/jpeg" => "jpg",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/zip" => "zip",
        "application/gzip" | "application/x-gzip" => "gz",
        "application/wasm" => "wasm",
        _ => "bin",
    }
}
