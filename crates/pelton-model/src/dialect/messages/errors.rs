//! What a server means by an error.
//!
//! Several conditions have no code of their own, only words, and every maker has its own words. All of them are
//! here, in one function, [`kind`].

use serde_json::Value;

use crate::error::{ErrorKind, ModelError};

/// The longest error text that is kept, in characters.
const MESSAGE_CHARS_MAX: usize = 2000;

/// The error behind an answer that is no success.
pub(crate) fn from_answer(status: u16, body: &[u8], request_id: Option<&str>) -> ModelError {
    let said = match serde_json::from_slice::<Value>(body) {
        Ok(value) => Said::of(&value),
        Err(_) => Said { message: page_text(&String::from_utf8_lossy(body)), ..Said::default() },
    };
    said.into_error(Some(status), request_id)
}

/// The error behind an event of a stream that began well.
pub(crate) fn from_event(data: &str) -> ModelError {
    let said = serde_json::from_str::<Value>(data).map(|value| Said::of(&value)).unwrap_or_default();
    said.into_error(None, None)
}

/// What an error body says, in whichever shape.
#[derive(Default)]
struct Said {
    error_type: Option<String>,
    code: Option<String>,
    message: Option<String>,
    request_id: Option<String>,
}

impl Said {
    fn of(body: &Value) -> Self {
        let text = |value: &Value| match value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        let error = match &body["error"] {
            Value::Object(_) => &body["error"],
            _ => body,
        };
        let message =
            [&error["message"], &body["error"], &body["message"], &body["detail"]].into_iter().find_map(text);
        Self {
            // At the top `type` names the kind of message, not of error.
            error_type: text(&error["type"]).filter(|name| name != "error"),
            code: text(&error["details"]["error_code"]).or_else(|| text(&error["code"])),
            message,
            request_id: text(&body["request_id"]),
        }
    }

    fn into_error(self, status: Option<u16>, request_id: Option<&str>) -> ModelError {
        let name = self.error_type.as_deref().unwrap_or_default();
        let code = self.code.as_deref().unwrap_or_default();
        let mut message = self.message.unwrap_or_else(|| nothing_said(status));
        if let Some((end, _)) = message.char_indices().nth(MESSAGE_CHARS_MAX) {
            message.truncate(end);
        }
        ModelError {
            kind: kind(status, name, code, &message),
            status,
            error_type: self.error_type,
            message,
            in_answer: false,
            tried: Default::default(),
            request_id: request_id.map(str::to_owned).or(self.request_id),
        }
    }
}

fn nothing_said(status: Option<u16>) -> String {
    match status {
        Some(300..400) => {
            "the server points to another address; a request with credentials is not sent there"
        }
        _ => "the server gave no reason",
    }
    .to_owned()
}

/// What a page that is no JSON says: proxies answer with such pages.
fn page_text(page: &str) -> Option<String> {
    let page = page.trim();
    let text = if page.starts_with('<') {
        let title = page.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
        title.map_or("the answer is a web page", |(title, _)| title.trim())
    } else {
        page
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn kind(status: Option<u16>, name: &str, code: &str, message: &str) -> ErrorKind {
    let words = message.replace('`', "").to_ascii_lowercase();
    let says = |phrase: &str| words.contains(phrase);

    if refuses_fast_mode(status, &words) {
        return ErrorKind::FastModeRefused;
    }
    let unpaid = matches!(code, "enforced_spend_limit_reached" | "insufficient_quota")
        || says("credit balance is too low")
        || says("spend limit")
        || says("specified api usage limits");
    if unpaid {
        return ErrorKind::Billing;
    }
    // "Too many tokens, please wait" is about speed, not about size.
    let throttled = says("rate limit") || says("too many requests") || says("throttl") || says("please wait");
    let about_size = !throttled && !matches!(status, Some(401..=404 | 429 | 529));
    if let Some(kind) = about_size.then(|| size(name, code, &words)).flatten() {
        return kind;
    }
    match status {
        Some(status) => by_status(status, name, &words, message),
        // A relay that has begun a stream reports the status of a failure as its code.
        None => match (by_name(name), code.parse()) {
            (Some(kind), _) => specific(kind, &words, message),
            (None, Ok(status)) => by_status(status, name, &words, message),
            (None, Err(_)) => ErrorKind::Server,
        },
    }
}

/// Whether a failure is about fast mode itself. Too much of it at once is a rate limit like any other.
fn refuses_fast_mode(status: Option<u16>, words: &str) -> bool {
    const NEVER: &[&str] = &[
        "overage",
        "extra usage",
        "not enabled",
        "not available",
        "not supported",
        "not allowed",
        "disabled",
    ];
    let about_it = words.contains("fast mode") || words.contains("fast_mode");
    let unknown = words.starts_with("speed:") || words.contains("fast-mode-20");
    matches!(status, Some(400 | 403 | 429) | None)
        && (unknown || about_it && NEVER.iter().any(|never| words.contains(never)))
}

/// Failures that something is too large, in the words of many makers.
fn size(name: &str, code: &str, words: &str) -> Option<ErrorKind> {
    let after = |phrase: &str| words.split_once(phrase).map(|(_, rest)| numbers(rest));
    if let Some([input, max_tokens, limit, ..]) = after("exceed context limit:").as_deref() {
        return Some(ErrorKind::OutputOverflow { input: *input, max_tokens: *max_tokens, limit: *limit });
    }
    let too_much = words.contains("which is the maximum allowed number of output tokens");
    if let (true, Some([_, limit, ..])) = (too_much, after("max_tokens:").as_deref()) {
        return Some(ErrorKind::MaxTokensTooHigh { limit: *limit });
    }
    // The phrase, and where its numbers stand: (tokens, limit), counted from the phrase's own beginning.
    const TOO_LONG: &[(&str, Option<usize>, Option<usize>)] = &[
        ("prompt is too long", Some(0), Some(1)),
        ("maximum context length is", Some(1), Some(0)),
        ("input token count", Some(0), Some(1)),
        ("too large for model with", None, Some(0)),
        ("exceeds the available context size", None, Some(0)),
        ("reduce the length of the messages", None, None),
        ("greater than the context length", None, None),
        ("prompt too long; exceeded max context length", None, None),
        ("input is too long for requested model", None, None),
        ("exceeds the context window", None, None),
    ];
    for (phrase, tokens, limit) in TOO_LONG {
        if let Some(found) = after(phrase) {
            let pick = |at: &Option<usize>| at.and_then(|at| found.get(at).copied());
            return Some(ErrorKind::PromptTooLong { tokens: pick(tokens), limit: pick(limit) });
        }
    }
    if code == "context_length_exceeded" || name == "exceed_context_size_error" {
        return Some(ErrorKind::PromptTooLong { tokens: None, limit: None });
    }
    let bytes = name == "request_too_large"
        || words.contains("request exceeds the maximum size")
        || words.contains("maximum allowed content length")
        || words.contains("too much media");
    bytes.then_some(ErrorKind::RequestTooLarge)
}

fn by_status(status: u16, name: &str, words: &str, message: &str) -> ErrorKind {
    match status {
        400 | 422 => specific(by_name(name).unwrap_or(ErrorKind::InvalidRequest), words, message),
        401 => ErrorKind::Authentication,
        402 => ErrorKind::Billing,
        // A token that was called back is as good as none; a new one may be better.
        403 if words.contains("token") && words.contains("revoked") => ErrorKind::Authentication,
        // Clouds say so of credentials that have run out, and of signatures made with them.
        403 if says_expired(words) => ErrorKind::Authentication,
        403 => ErrorKind::Permission,
        404 => ErrorKind::NotFound,
        408 | 504 => ErrorKind::Timeout,
        // A conflict passes, as a failure of the server does.
        409 => ErrorKind::Server,
        413 => ErrorKind::RequestTooLarge,
        429 => ErrorKind::RateLimited,
        529 => ErrorKind::Overloaded,
        500.. => by_name(name).filter(|kind| *kind != ErrorKind::InvalidRequest).unwrap_or(ErrorKind::Server),
        _ => by_name(name).unwrap_or(ErrorKind::Other),
    }
}

fn says_expired(words: &str) -> bool {
    let about = ["token", "credential", "signature"].iter().any(|what| words.contains(what));
    about && words.contains("expired") || words.contains("security token included in the request is invalid")
}

fn by_name(name: &str) -> Option<ErrorKind> {
    Some(match name {
        "overloaded_error" => ErrorKind::Overloaded,
        "rate_limit_error" => ErrorKind::RateLimited,
        "authentication_error" => ErrorKind::Authentication,
        "permission_error" => ErrorKind::Permission,
        "billing_error" => ErrorKind::Billing,
        "not_found_error" => ErrorKind::NotFound,
        "invalid_request_error" => ErrorKind::InvalidRequest,
        "timeout_error" => ErrorKind::Timeout,
        "api_error" | "conflict_error" => ErrorKind::Server,
        _ => return None,
    })
}

/// An invalid request whose words tell what can be repaired.
fn specific(kind: ErrorKind, words: &str, message: &str) -> ErrorKind {
    if kind != ErrorKind::InvalidRequest {
        return kind;
    }
    let says = |phrase: &str| words.contains(phrase);
    let thinking = says("invalid signature in thinking block")
        || says("bound to a different conversation")
        || says("blocks in the latest assistant message cannot be modified")
        || says("expected thinking or redacted_thinking");
    if thinking {
        return ErrorKind::ThinkingBound;
    }
    if let Some(names) = refused_betas(words) {
        return ErrorKind::BetaRefused { names };
    }
    let path = media_path(message);
    if path.is_some()
        || says("could not process image")
        || says("image dimensions exceed")
        || says("image exceeds")
    {
        return ErrorKind::Image { path };
    }
    ErrorKind::InvalidRequest
}

/// The beta features that a refusal names, if it is one of those.
fn refused_betas(words: &str) -> Option<Vec<String>> {
    let says = |phrase: &str| words.contains(phrase);
    let about_header = says("anthropic-beta") || says("anthropic_beta");
    let refused = about_header
        && ["unexpected value", "unsupported", "not supported", "not permitted", "invalid", "unknown"]
            .iter()
            .any(|phrase| words.contains(phrase))
        || says("invalid beta flag")
        || says("unsupported beta")
        || says("unknown beta");
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    refused.then(|| words.split(|c| !word(c)).filter(|name| is_beta(name)).map(str::to_owned).collect())
}

/// Whether a word looks like the name of a beta feature: words and the date it began, as in `thing-2026-01-31`.
fn is_beta(word: &str) -> bool {
    let mut parts = word.rsplitn(4, '-');
    let number = |part: Option<&str>, digits: usize| {
        part.is_some_and(|part| part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let last = parts.next();
    if number(last, 8) {
        return parts.next().is_some_and(|name| !name.is_empty());
    }
    number(last, 2)
        && number(parts.next(), 2)
        && number(parts.next(), 4)
        && parts.next().is_some_and(|name| !name.is_empty())
}

/// The block that a path such as `messages.7.content.3.image.source.base64.data: …` leads to.
fn media_path(message: &str) -> Option<String> {
    let (path, _) = message.split_once(':')?;
    if !path.starts_with("messages.") || path.contains(char::is_whitespace) {
        return None;
    }
    let media = path.find(".image").or_else(|| path.find(".document"))?;
    Some(path[..media].to_owned())
}

/// The whole numbers of a text, in order; thousands may be set apart by commas.
fn numbers(text: &str) -> Vec<u64> {
    let digits = |c: char| c.is_ascii_digit() || c == ',';
    text.split(|c| !digits(c)).filter_map(|number| number.replace(',', "").parse().ok()).collect()
}
