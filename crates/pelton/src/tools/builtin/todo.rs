//! TodoWrite: what is to be done, for the model and for whoever watches.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::limits::{TODO_REMINDER_TURNS, TODOS_MAX};
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// Its name.
pub(crate) const NAME: &str = "TodoWrite";

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(TodoWrite)
}

/// The list of a session. All clones are one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Todos(Arc<Mutex<List>>);

#[derive(Debug, Default)]
struct List {
    todos: Vec<Todo>,
    /// Turns since it was written.
    turns: u32,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Todo {
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TodoStatus,
    /// What is being done, while it is.
    #[serde(default)]
    pub active_form: String,
}

/// How far something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TodoStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
}

impl Todo {
    /// What the model reads.
    pub fn line(&self) -> String {
        let mark = match self.status {
            TodoStatus::Pending => "[ ]",
            TodoStatus::InProgress => "[in progress]",
            TodoStatus::Completed => "[done]",
        };
        format!("- {mark} {}", self.content)
    }
}

impl Todos {
    /// A list that stands already.
    pub fn of(todos: Vec<Todo>) -> Self {
        Self(Arc::new(Mutex::new(List { todos, turns: 0 })))
    }

    /// The list as it stands.
    #[cfg(test)]
    pub fn list(&self) -> Vec<Todo> {
        self.lock().todos.clone()
    }

    fn replace(&self, todos: Vec<Todo>) -> Vec<Todo> {
        std::mem::replace(&mut *self.lock(), List { todos, turns: 0 }).todos
    }

    /// A turn is over. What the model is reminded of, if it has not written the list for a while and is not done with it.
    pub fn turn_passed(&self) -> Option<String> {
        let mut list = self.lock();
        let open = list.todos.iter().any(|todo| todo.status != TodoStatus::Completed);
        list.turns = if open { list.turns + 1 } else { 0 };
        if list.turns < TODO_REMINDER_TURNS {
            return None;
        }
        list.turns = 0;
        let mut words =
            "The list of things to do was not updated for a while. If it no longer fits, bring it up to date with TodoWrite. \
             This is how it stands:"
                .to_owned();
        for Todo { content, status, .. } in &list.todos {
            let mark = match status {
                TodoStatus::Pending => ' ',
                TodoStatus::InProgress => '~',
                TodoStatus::Completed => 'x',
            };
            // Writing to a string cannot fail.
            let _ = write!(words, "\n[{mark}] {content}");
        }
        Some(words)
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct TodoWrite;

const SPEC: Spec<'static> = Spec {
    name: NAME,
    description: include_str!("todo.md"),
    input_schema: r#"{"type":"object","properties":{"todos":{"type":"array","items":{"type":"object","properties":{"content":{"type":"string"},"status":{"enum":["pending","in_progress","completed"]},"activeForm":{"type":"string"}},"required":["content","status","activeForm"]}}},"required":["todos"]}"#,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Input {
    todos: Vec<Todo>,
}

impl Tool for TodoWrite {
    fn spec(&self) -> Spec<'_> {
        SPEC
    }

    fn safety(&self, _: &Value) -> Safety {
        // The last list counts, so they are taken in turn.
        Safety::Alone
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        parse(input).map(|_| Access::Nothing)
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        let output = match parse(&input) {
            Ok(Input { todos }) => note(&todos, cx),
            Err(InvalidInput(why)) => Output::unusable(why),
        };
        async move { output }.boxed()
    }
}

fn parse(input: &Value) -> Result<Input, InvalidInput> {
    let input: Input = parse_input(input)?;
    if input.todos.len() > TODOS_MAX {
        return Err(InvalidInput(format!("`todos` has more than {TODOS_MAX} entries: write larger steps")));
    }
    if let Some(at) = input.todos.iter().position(|todo| todo.content.trim().is_empty()) {
        return Err(InvalidInput(format!("`todos[{at}].content` is empty: say what is to be done")));
    }
    Ok(input)
}

fn note(todos: &[Todo], cx: &ToolCx) -> Output {
    let count = |status| todos.iter().filter(|todo| todo.status == status).count();
    let text = format!(
        "Noted: {} done, {} in progress, {} to do.",
        count(TodoStatus::Completed),
        count(TodoStatus::InProgress),
        count(TodoStatus::Pending)
    );
    let old = cx.todos.replace(todos.to_vec());
    Output::text(text).with_detail(json!({"oldTodos": old, "newTodos": todos}))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::builtin::tests::Bench;

    #[tokio::test]
    async fn a_list_takes_the_place_of_the_last_one() {
        let bench = Bench::new();
        let todo = |content: &str, status: &str| json!({"content": content, "status": status, "activeForm": "Doing"});
        let first = json!({"todos": [todo("a", "in_progress"), todo("b", "pending")]});
        bench.run("TodoWrite", first.clone()).await.ok();
        let second = json!({"todos": [todo("a", "completed"), todo("b", "in_progress")]});
        let answer = bench.run("TodoWrite", second.clone()).await;
        assert_eq!(answer.ok(), "Noted: 1 done, 1 in progress, 0 to do.");
        assert_eq!(answer.detail, json!({"oldTodos": first["todos"], "newTodos": second["todos"]}));
        assert_eq!(bench.cx.todos.list()[0].status, TodoStatus::Completed);
    }

    #[tokio::test]
    async fn what_is_wrong_is_named() {
        let bench = Bench::new();
        for (input, named) in [
            (json!({"todos": [{"content": "a", "status": "done", "activeForm": "b"}]}), "todos[0].status"),
            (
                json!({"todos": [{"content": " ", "status": "pending", "activeForm": "b"}]}),
                "todos[0].content",
            ),
            (json!({"todos": "a"}), "todos"),
            (json!({}), "todos"),
        ] {
            let Err(InvalidInput(why)) = tool().access(&input, &bench.cx) else { panic!("{input}") };
            assert!(why.contains(named), "{why}");
        }
        assert!(bench.cx.todos.list().is_empty());
    }
}
