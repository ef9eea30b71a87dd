//! ToolSearch: tools that the model knows by name only, and how it gets to know them.
//!
//! The list of tools stands in front of every request, and a server may serve hundreds. Those go on a [`Shelf`]: the model is told
//! their names at the end of the conversation, finds their schemas by a call, and calls them by name, or by CallTool where only listed
//! tools can be called. Nothing of it touches the front.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::lenient;
use super::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};
use crate::limits::{TOOL_SEARCH_RESULTS_DEFAULT, TOOL_SEARCH_RESULTS_MAX, TOOL_SEARCH_WORDS_MAX};

/// Its name.
pub(crate) const NAME: &str = "ToolSearch";
/// The tool that calls others.
pub(crate) const CALL: &str = "CallTool";

/// When the tools of servers are sent by name only.
///
/// ```
/// use pelton::tools::ToolSearch;
///
/// assert_eq!("auto:20".parse(), Ok(ToolSearch::AboveShare { percent: 20 }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolSearch {
    /// Never: all of them stand in front of every request.
    Off,
    /// Always.
    Always,
    /// When their schemas have more tokens than this, about.
    AboveTokens(u64),
    /// When their schemas have more than a part of the context window.
    AboveShare {
        /// In hundredths.
        percent: u8,
    },
}

impl Default for ToolSearch {
    fn default() -> Self {
        Self::AboveTokens(crate::limits::SERVED_TOKENS_SENT_MAX)
    }
}

/// A word that does not say when tools are sent by name only.
///
/// ```
/// use pelton::tools::ToolSearch;
///
/// let error = "sometimes".parse::<ToolSearch>().unwrap_err();
/// assert!(error.to_string().contains("write true, false, auto or auto:N"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' does not say when tools are searched for: write true, false, auto or auto:N with N from 0 to 100"
)]
pub struct UnknownToolSearch(pub String);

impl std::str::FromStr for ToolSearch {
    type Err = UnknownToolSearch;

    fn from_str(text: &str) -> Result<Self, UnknownToolSearch> {
        let unknown = || UnknownToolSearch(text.to_owned());
        match text.trim().to_ascii_lowercase().as_str() {
            "true" | "1" | "yes" | "on" => Ok(Self::Always),
            "false" | "0" | "no" | "off" => Ok(Self::Off),
            "auto" => Ok(Self::AboveShare { percent: 10 }),
            other => {
                let percent = other.strip_prefix("auto:").and_then(|percent| percent.trim().parse().ok());
                let percent = percent.filter(|percent| *percent <= 100).ok_or_else(unknown)?;
                Ok(Self::AboveShare { percent })
            }
        }
    }
}

impl ToolSearch {
    /// The most tokens of schemas that are sent; `None` for all there are.
    pub(crate) fn tokens_max(self, window_tokens: u64) -> Option<u64> {
        match self {
            Self::Off => None,
            Self::Always => Some(0),
            Self::AboveTokens(tokens) => Some(tokens),
            Self::AboveShare { percent } => Some(window_tokens.saturating_mul(percent.into()) / 100),
        }
    }
}

/// Tools that are there and not sent. All clones are one.
#[derive(Clone, Default)]
pub(crate) struct Shelf(Arc<Mutex<Shelved>>);

#[derive(Default)]
struct Shelved {
    tools: Vec<Arc<dyn Tool>>,
    /// Those that were there: nobody is told of them, and a call of one is answered by it.
    gone: Vec<Arc<dyn Tool>>,
}

impl Shelf {
    /// Puts a tool there, in the place of one of the same name.
    pub fn put(&self, tool: Arc<dyn Tool>) {
        let mut shelved = self.lock();
        shelved.gone.retain(|gone| gone.spec().name != tool.spec().name);
        match shelved.tools.iter_mut().find(|known| known.spec().name == tool.spec().name) {
            Some(known) => *known = tool,
            None => shelved.tools.push(tool),
        }
    }

    /// Nobody is told any more of those that are gone.
    pub fn take_away(&self, is_gone: impl Fn(&str) -> bool) {
        let mut shelved = self.lock();
        let (gone, there): (Vec<_>, Vec<_>) =
            std::mem::take(&mut shelved.tools).into_iter().partition(|tool| is_gone(tool.spec().name));
        shelved.tools = there;
        shelved.gone.extend(gone);
    }

    /// A tool that is there, or was.
    pub fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let shelved = self.lock();
        shelved.tools.iter().chain(&shelved.gone).find(|tool| tool.spec().name == name).cloned()
    }

    pub fn all(&self) -> Vec<Arc<dyn Tool>> {
        self.lock().tools.clone()
    }

    /// The tools of this shelf: one to search it, one to call what is on it.
    pub fn tools(&self) -> [Arc<dyn Tool>; 2] {
        [Arc::new(Search(self.clone())), Arc::new(CallTool)]
    }

    fn lock(&self) -> MutexGuard<'_, Shelved> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call of CallTool as the call that is meant by it; any other call as it is.
pub(crate) fn meant(tool: &str, input: &Value) -> Option<(String, Value)> {
    let call: CallInput = (tool == CALL).then(|| parse_input(input).ok())??;
    Some((call.name, Value::Object(call.input)))
}

const SPEC: Spec<'static> = Spec {
    name: NAME,
    description: include_str!("tool_search.md"),
    input_schema: r#"{"type":"object","properties":{"query":{"type":"string"},"max_results":{"type":"integer"}},"required":["query"]}"#,
};
const CALL_SPEC: Spec<'static> = Spec {
    name: CALL,
    description: include_str!("call_tool.md"),
    input_schema: r#"{"type":"object","properties":{"name":{"type":"string"},"input":{"type":"object"}},"required":["name","input"]}"#,
};

struct Search(Shelf);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchInput {
    query: String,
    #[serde(default, deserialize_with = "lenient::count")]
    max_results: Option<u64>,
}

impl Tool for Search {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        parse_input::<SearchInput>(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        let output = match parse_input::<SearchInput>(&input) {
            Ok(input) => {
                let most = input
                    .max_results
                    .map_or(TOOL_SEARCH_RESULTS_DEFAULT, |most| usize::try_from(most).unwrap_or(usize::MAX));
                told(&self.0.all(), &input.query, most.clamp(1, TOOL_SEARCH_RESULTS_MAX))
            }
            Err(InvalidInput(why)) => Output::unusable(why),
        };
        async move { output }.boxed()
    }
}

struct CallTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallInput {
    name: String,
    input: serde_json::Map<String, Value>,
}

/// Calls that mean another tool are taken for calls of that one before they get here.
impl Tool for CallTool {
    fn spec(&self) -> Spec<'_> {
        CALL_SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        let call: CallInput = parse_input(input)?;
        Err(InvalidInput(format!("{} cannot be called by another tool: call it directly", call.name)))
    }

    fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        async { Output::unusable("call the tool directly") }.boxed()
    }
}

fn told(shelf: &[Arc<dyn Tool>], query: &str, most: usize) -> Output {
    let (found, lost) = found(shelf, query, most);
    let names: Vec<&str> = found.iter().map(|tool| tool.spec().name).collect();
    let detail = json!({"matches": names, "query": query, "total_deferred_tools": shelf.len()});
    let mut lines: Vec<String> = found.iter().map(|tool| tool.spec().json().to_string()).collect();
    if !lost.is_empty() {
        lines.push(format!("[There is no tool {}.]", lost.join(", ")));
    }
    if found.is_empty() {
        lines.push(format!("No tool was found for '{query}' among {}.", shelf.len()));
        let near: Vec<&str> =
            shelf.iter().map(|tool| tool.spec().name).take(TOOL_SEARCH_RESULTS_MAX).collect();
        if !near.is_empty() {
            lines.push(format!("Some of them: {}", near.join(", ")));
        }
    }
    let output = Output::text(lines.join("\n")).with_detail(detail);
    Output { is_error: !lost.is_empty() && found.is_empty(), ..output }
}

/// The tools a query means, the best first, and names it asks for that are not there.
fn found<'a>(shelf: &'a [Arc<dyn Tool>], query: &str, most: usize) -> (Vec<&'a Arc<dyn Tool>>, Vec<String>) {
    if let Some(names) = query.trim().strip_prefix("select:") {
        let (mut found, mut lost): (Vec<&Arc<dyn Tool>>, Vec<String>) = (Vec::new(), Vec::new());
        for name in
            names.split(',').map(str::trim).filter(|name| !name.is_empty()).take(TOOL_SEARCH_RESULTS_MAX)
        {
            let is_it = |tool: &&Arc<dyn Tool>| {
                let known = tool.spec().name;
                known.eq_ignore_ascii_case(name)
                    || known.rsplit("__").next().is_some_and(|own| own.eq_ignore_ascii_case(name))
            };
            match shelf.iter().find(|tool| tool.spec().name == name).or_else(|| shelf.iter().find(is_it)) {
                Some(tool) => found.push(tool),
                None => lost.push(name.to_owned()),
            }
        }
        return (found, lost);
    }
    let words: Vec<(String, bool)> = query
        .to_lowercase()
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.trim_start_matches('+').is_empty())
        .map(|word| (word.trim_start_matches('+').to_owned(), word.starts_with('+')))
        .take(TOOL_SEARCH_WORDS_MAX)
        .collect();
    let mut ranked: Vec<(u32, usize)> = Vec::new();
    for (at, tool) in shelf.iter().enumerate() {
        let score = score(&tool.spec(), &words);
        if score > 0 {
            ranked.push((score, at));
        }
    }
    // The best first; among equals as they were served.
    ranked.sort_by_key(|(score, at)| (std::cmp::Reverse(*score), *at));
    (ranked.into_iter().take(most).map(|(_, at)| &shelf[at]).collect(), Vec::new())
}

/// How well a tool fits the words; 0 if it does not.
fn score(spec: &Spec<'_>, words: &[(String, bool)]) -> u32 {
    let name = spec.name.to_lowercase();
    let parts: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty()).collect();
    let description = spec.description.to_lowercase();
    let mut sum = 0;
    for (word, must) in words {
        let score = if parts.contains(&word.as_str()) || name == *word {
            10
        } else if name.contains(word.as_str()) {
            5
        } else if description.split(|c: char| !c.is_alphanumeric()).any(|part| part == word) {
            3
        } else {
            u32::from(description.contains(word.as_str()))
        };
        if score == 0 && *must {
            return 0;
        }
        sum += score;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str, &'static str);

    impl Tool for Named {
        fn spec(&self) -> Spec<'_> {
            Spec { name: self.0, description: self.1, input_schema: r#"{"type":"object"}"# }
        }

        fn safety(&self, _: &Value) -> Safety {
            Safety::Shared
        }

        fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
            Ok(Access::Nothing)
        }

        fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
            async { Output::text("ran") }.boxed()
        }
    }

    fn search(query: &str, most: usize) -> Vec<String> {
        let shelf = Shelf::default();
        for tool in [
            Named("mcp__chat__send_message", "Sends words to a channel."),
            Named("mcp__chat__list_channels", "Lists the channels."),
            Named("mcp__mail__send", "Sends a letter, also to a channel of letters."),
            Named("mcp__files__find", "Finds files by name."),
        ] {
            shelf.put(Arc::new(tool));
        }
        let output = told(&shelf.all(), query, most);
        let names = output.detail.unwrap()["matches"].as_array().unwrap().clone();
        names.iter().map(|name| name.as_str().unwrap().trim_start_matches("mcp__").to_owned()).collect()
    }

    #[test]
    fn tools_are_found_by_name_and_by_words() {
        assert_eq!(search("select:mcp__mail__send, mcp__files__find", 1), ["mail__send", "files__find"]);
        assert_eq!(search("select:find,nonsense", 5), ["files__find"]);
        assert_eq!(search("send", 5), ["chat__send_message", "mail__send"]);
        assert_eq!(search("+mail send", 5), ["mail__send"]);
        assert_eq!(search("channels", 5), ["chat__list_channels"]);
        assert_eq!(search("channel letter", 1), ["mail__send"]);
        assert_eq!(search("chat", 1), ["chat__send_message"]);
        assert_eq!(search("zebra", 5), [""; 0]);
        assert_eq!(search("", 5), [""; 0]);
    }

    #[test]
    fn what_is_not_there_is_said() {
        let shelf: Vec<Arc<dyn Tool>> = vec![Arc::new(Named("mcp__a__b", "x"))];
        let none = told(&shelf, "select:c", 5);
        assert!(none.is_error && none.words().contains("no tool c") && none.words().contains("mcp__a__b"));
        let one = told(&shelf, "select:mcp__a__b", 5).words();
        assert_eq!(one, r#"{"name":"mcp__a__b","description":"x","input_schema":{"type":"object"}}"#);
    }

    #[test]
    fn a_call_by_another_tool_is_the_call_it_means() {
        let input = json!({"name": "mcp__a__b", "input": {"x": 1}});
        assert_eq!(meant(CALL, &input), Some(("mcp__a__b".to_owned(), json!({"x": 1}))));
        assert_eq!(meant("Read", &input), None);
        assert_eq!(meant(CALL, &json!({"name": "x"})), None);
    }

    #[test]
    fn the_variable_is_read() {
        for (text, tokens) in
            [("true", Some(0)), ("false", None), ("auto", Some(20_000)), ("AUTO:5", Some(10_000))]
        {
            assert_eq!(text.parse::<ToolSearch>().unwrap().tokens_max(200_000), tokens, "{text}");
        }
        for text in ["", "auto:", "auto:101", "maybe"] {
            assert!(text.parse::<ToolSearch>().is_err(), "{text}");
        }
        assert_eq!(ToolSearch::default().tokens_max(1), Some(3_000));
    }
}
