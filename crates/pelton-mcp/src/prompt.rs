//! One prompt of a server: users call it like a command.

use std::sync::Weak;

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::command::{Command, CommandCx, CommandError, CommandSpec, Expansion};
use pelton::tools::served_name;
use rmcp::model::{ClientRequest, GetPromptRequest, GetPromptRequestParams};
use serde_json::{Map, Value};

use crate::content;
use crate::server::{Server, words};
use crate::tool::cut;

/// A prompt as its server described it.
pub(crate) struct ServedPrompt {
    /// What users call it by.
    name: String,
    own_name: String,
    description: String,
    hint: String,
    arguments: Vec<Argument>,
    server: Weak<Server>,
}

struct Argument {
    name: String,
    is_needed: bool,
}

impl ServedPrompt {
    /// Reads an entry of the server's list; one without a name is none.
    pub fn read(server_name: &str, server: &Weak<Server>, listed: &Value) -> Option<Self> {
        let own_name = listed.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?;
        let description = listed.get("description").and_then(Value::as_str).unwrap_or_default();
        let arguments: Vec<Argument> = listed
            .get("arguments")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|argument| {
                let is_needed = argument.get("required").and_then(Value::as_bool).unwrap_or_default();
                Some(Argument { name: argument.get("name")?.as_str()?.to_owned(), is_needed })
            })
            .collect();
        let hint = |argument: &Argument| match argument.is_needed {
            true => format!("<{}>", argument.name),
            false => format!("[{}]", argument.name),
        };
        Some(Self {
            name: served_name(server_name, own_name),
            own_name: own_name.to_owned(),
            description: cut(description.to_owned()),
            hint: arguments.iter().map(hint).collect::<Vec<_>>().join(" "),
            arguments,
            server: Weak::clone(server),
        })
    }

    /// What was said behind the name, as the arguments it stands for. The last one takes all that is left.
    fn arguments(&self, said: &str) -> Result<Map<String, Value>, String> {
        let mut rest = said.trim();
        let mut given = Map::new();
        for (nth, argument) in self.arguments.iter().enumerate() {
            let is_last = nth + 1 == self.arguments.len();
            let (word, left) = if is_last { (unquoted(rest), "") } else { next_word(rest) };
            rest = left.trim_start();
            if !word.is_empty() {
                given.insert(argument.name.clone(), Value::String(word.to_owned()));
            } else if argument.is_needed {
                return Err(format!("{} is missing (it takes {})", argument.name, self.hint));
            }
        }
        Ok(given)
    }

    async fn ask(&self, said: &str) -> Result<String, String> {
        let server = self.server.upgrade().ok_or("its server is gone")?;
        let mut params = GetPromptRequestParams::new(self.own_name.clone());
        let arguments = self.arguments(said)?;
        if !arguments.is_empty() {
            params = params.with_arguments(arguments);
        }
        let peer = server.peer().await?;
        let asked = peer.send_request(ClientRequest::GetPromptRequest(GetPromptRequest::new(params)));
        let got = server.in_its_time(asked).await?.map_err(|error| words(&error))?;
        let got = serde_json::to_value(got).unwrap_or_default();
        let messages = got.get("messages").and_then(Value::as_array).into_iter().flatten();
        let text: Vec<String> = messages.map(|message| content::words_of(&message["content"])).collect();
        match text.iter().all(|text| text.trim().is_empty()) {
            true => Err("the server answered with nothing to say".to_owned()),
            false => Ok(text.join("\n\n")),
        }
    }
}

impl Command for ServedPrompt {
    fn spec(&self) -> CommandSpec<'_> {
        CommandSpec { name: &self.name, description: &self.description, argument_hint: &self.hint }
    }

    fn expand<'a>(
        &'a self,
        arguments: &'a str,
        _: &'a CommandCx<'_>,
    ) -> BoxFuture<'a, Result<Expansion, CommandError>> {
        async move { self.ask(arguments).await.map(Expansion::prompt).map_err(CommandError) }.boxed()
    }
}

/// The first word, and what comes behind it. Quotes keep blanks together.
fn next_word(text: &str) -> (&str, &str) {
    for quote in ['"', '\''] {
        if let Some((inside, rest)) = text.strip_prefix(quote).and_then(|text| text.split_once(quote)) {
            return (inside, rest);
        }
    }
    text.split_once(char::is_whitespace).unwrap_or((text, ""))
}

/// All of a text, without the quotes around it.
fn unquoted(text: &str) -> &str {
    match next_word(text) {
        (inside, "") => inside,
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_become_arguments_in_their_order() {
        let listed = json!({"name": "greet", "arguments": [{"name": "who", "required": true}, {"name": "how"}, {"description": "no name"}]});
        let prompt = ServedPrompt::read("my server", &Weak::new(), &listed).unwrap();
        assert_eq!((prompt.name.as_str(), prompt.hint.as_str()), ("mcp__my_server__greet", "<who> [how]"));
        let check = |said: &str, expected: Value| {
            assert_eq!(prompt.arguments(said).map(Value::Object), Ok(expected), "{said}");
        };
        check("Ada", json!({"who": "Ada"}));
        check("Ada very kindly", json!({"who": "Ada", "how": "very kindly"}));
        check("\"Ada L\" 'as ever'", json!({"who": "Ada L", "how": "as ever"}));
        check("\"Ada", json!({"who": "\"Ada"}));
        assert!(prompt.arguments(" ").unwrap_err().contains("who is missing"));
        assert!(ServedPrompt::read("s", &Weak::new(), &json!({"name": ""})).is_none());
    }
}
