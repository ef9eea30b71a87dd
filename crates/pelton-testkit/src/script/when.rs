//! Which request a step answers.

use super::ScriptError;
use regex::Regex;

/// Conditions on a request. All that are given must hold; with none given, every request will do.
///
/// The text conditions are regular expressions, searched for anywhere in the text.
///
/// ```
/// # use std::sync::Arc;
/// # use futures::StreamExt;
/// # use pelton_model::{Ask, Auth, Client, Endpoint, Prefix, RetryPolicy, Secret};
/// # use pelton_testkit::{ScriptedModel, SeededWorld};
/// # async fn ask(model: &ScriptedModel, messages: &'static str) {
/// #     let endpoint = Endpoint::new(model.base_url(), Auth::ApiKey(Secret::new("any")));
/// #     let mut policy = RetryPolicy::default();
/// #     (policy.retries_max, policy.non_streaming_fallback) = (0, false);
/// #     let client = Client::new(endpoint, Arc::new(model.transport()), policy, Arc::new(SeededWorld::new(7)));
/// #     let ask = Ask::new("claude-sonnet-5-5", 1000, Arc::new(Prefix::default()), vec![messages.into()]);
/// #     client.call(ask).for_each(async |_| {}).await;
/// # }
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pelton_testkit::{Script, Step, When, text};
///
/// let model = Script::new()
///     .step(Step::reply([text("A title.")]).when(When::any().system("write a title")))
///     .step(Step::reply([text("Hello.")]).when(When::any().last_user_text("^Hi")))
///     .start_in_memory()?;
/// ask(&model, r#"{"role":"user","content":"Hi."}"#).await; // a client of yours
/// assert_eq!(model.requests()[0].step, Some(2));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct When {
    pub(crate) nth: Option<u32>,
    pub(crate) model: Option<String>,
    pub(crate) last_tool_result: Option<String>,
    pub(crate) last_user_text: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) system: Option<String>,
    pub(crate) has_tool: Option<String>,
    pub(crate) path: Option<String>,
    pub(crate) stream: Option<bool>,
    pub(crate) headers: Vec<(String, String)>,
}

impl When {
    /// No condition yet.
    pub fn any() -> Self {
        Self::default()
    }

    /// The n-th request (from 1) of those that meet the other conditions.
    #[must_use]
    pub fn nth(mut self, nth: u32) -> Self {
        self.nth = Some(nth);
        self
    }

    /// The model asked for.
    #[must_use]
    pub fn model(mut self, pattern: impl Into<String>) -> Self {
        self.model = Some(pattern.into());
        self
    }

    /// The text of a tool result that came since the model last spoke.
    #[must_use]
    pub fn last_tool_result(mut self, pattern: impl Into<String>) -> Self {
        self.last_tool_result = Some(pattern.into());
        self
    }

    /// The user's text since the model last spoke.
    #[must_use]
    pub fn last_user_text(mut self, pattern: impl Into<String>) -> Self {
        self.last_user_text = Some(pattern.into());
        self
    }

    /// A result of the tool of this name came since the model last spoke.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tool = Some(name.into());
        self
    }

    /// The system prompt.
    #[must_use]
    pub fn system(mut self, pattern: impl Into<String>) -> Self {
        self.system = Some(pattern.into());
        self
    }

    /// The request offers a tool of this name.
    #[must_use]
    pub fn has_tool(mut self, name: impl Into<String>) -> Self {
        self.has_tool = Some(name.into());
        self
    }

    /// The exact path. Without it a step answers only requests for a reply, never token counts or model lists.
    #[must_use]
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Whether a stream was asked for.
    #[must_use]
    pub fn stream(mut self, stream: bool) -> Self {
        self.stream = Some(stream);
        self
    }

    /// A request header, by name and pattern of its value.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, pattern: impl Into<String>) -> Self {
        self.headers.push((name.into(), pattern.into()));
        self
    }
}

/// What conditions look at, in no dialect's terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    /// Whether the path is the one that asks for a reply.
    pub(crate) asks_for_reply: bool,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) system: String,
    pub(crate) tools: Vec<String>,
    /// Name of the tool and text of its result, since the model last spoke, in order.
    pub(crate) results: Vec<(String, String)>,
    pub(crate) user_text: String,
}

/// What the conditions' groups caught, by number and by name.
pub(crate) type Captured = Vec<(String, String)>;

/// Conditions with their patterns compiled.
#[derive(Debug, Clone)]
pub(crate) struct Matcher {
    when: When,
    model: Option<Regex>,
    last_tool_result: Option<Regex>,
    last_user_text: Option<Regex>,
    system: Option<Regex>,
    headers: Vec<(String, Regex)>,
}

impl Matcher {
    pub(crate) fn new(when: &When, place: &str) -> Result<Self, ScriptError> {
        if when.nth == Some(0) {
            return Err(ScriptError::new(place, "when.nth", "requests are counted from 1", "write `nth: 1`"));
        }
        let optional = |pattern: &Option<String>, field: &str| {
            pattern.as_ref().map(|pattern| compile(pattern, field, place)).transpose()
        };
        let header = |(name, pattern): &(String, String)| {
            Ok((name.clone(), compile(pattern, &format!("when.header.{name}"), place)?))
        };
        Ok(Self {
            model: optional(&when.model, "when.model")?,
            last_tool_result: optional(&when.last_tool_result, "when.last_tool_result")?,
            last_user_text: optional(&when.last_user_text, "when.last_user_text")?,
            system: optional(&when.system, "when.system")?,
            headers: when.headers.iter().map(header).collect::<Result<_, _>>()?,
            when: when.clone(),
        })
    }

    /// The n of `nth`, which the caller counts.
    pub(crate) fn nth(&self) -> Option<u32> {
        self.when.nth
    }

    /// Judges everything but `nth`. On a miss, the name of the first condition that did not hold.
    pub(crate) fn judge(&self, facts: &Facts) -> Result<Captured, &'static str> {
        let when = &self.when;
        match &when.path {
            Some(path) => hold("path", *path == facts.path)?,
            None => hold("path", facts.asks_for_reply)?,
        }
        hold("stream", when.stream.is_none_or(|stream| stream == facts.stream))?;
        hold("has_tool", when.has_tool.as_ref().is_none_or(|name| facts.tools.contains(name)))?;
        let from_tool = |name: &String| when.tool.as_ref().is_none_or(|wanted| wanted == name);
        hold("tool", when.tool.is_none() || facts.results.iter().any(|(name, _)| from_tool(name)))?;
        for (name, pattern) in &self.headers {
            let mut values = facts.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
            hold("header", values.any(|(_, value)| pattern.is_match(value)))?;
        }
        // The first pattern below that is given is the one whose groups `${match.1}` means.
        let mut captured = None;
        if let Some(pattern) = &self.last_tool_result {
            let mut results = facts.results.iter().rev().filter(|(name, _)| from_tool(name));
            let groups = results.find_map(|(_, text)| groups(pattern, text)).ok_or("last_tool_result")?;
            captured.get_or_insert(groups);
        }
        for (field, pattern, text) in [
            ("last_user_text", &self.last_user_text, &facts.user_text),
            ("system", &self.system, &facts.system),
            ("model", &self.model, &facts.model),
        ] {
            if let Some(pattern) = pattern {
                captured.get_or_insert(groups(pattern, text).ok_or(field)?);
            }
        }
        Ok(captured.unwrap_or_default())
    }
}

fn hold(field: &'static str, holds: bool) -> Result<(), &'static str> {
    if holds { Ok(()) } else { Err(field) }
}

fn compile(pattern: &str, field: &str, place: &str) -> Result<Regex, ScriptError> {
    Regex::new(pattern).map_err(|error| {
        let way_out = r"put `\` before characters meant literally";
        ScriptError::new(place, field, format!("not a regular expression: {error}"), way_out)
    })
}

fn groups(pattern: &Regex, text: &str) -> Option<Captured> {
    let captures = pattern.captures(text)?;
    let numbered = captures.iter().enumerate().map(|(number, group)| (number.to_string(), group));
    let named = pattern.capture_names().flatten().map(|name| (name.to_owned(), captures.name(name)));
    Some(
        numbered
            .chain(named)
            .map(|(name, group)| (name, group.map_or(String::new(), |group| group.as_str().to_owned())))
            .collect(),
    )
}
