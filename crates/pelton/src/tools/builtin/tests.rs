//! What the tests of all tools need, and what holds for all tools.

mod facts; // what each page must tell

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pelton_model::RealWorld;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::todo::Todos;
use super::*;
use crate::host::Host;
use crate::limits::ToolLimits;
use crate::tools::background::Background;
use crate::tools::file_memory::FileMemory;
use crate::tools::tool::{InvalidInput, Progress, Readable, Report, ResultBlock, Safety, Spec};

/// A session in a directory of its own.
pub(super) struct Bench {
    /// Holds the session's directory `work`, and things outside of it.
    pub home: TempDir,
    pub cx: ToolCx,
    pub reports: Arc<Mutex<Vec<String>>>,
}

impl Bench {
    pub fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let work = fs::canonicalize(home.path()).unwrap().join("work");
        fs::create_dir(&work).unwrap();
        let reports = Arc::new(Mutex::new(Vec::new()));
        let sink = reports.clone();
        let variable = |name: &str, value: &str| (OsString::from(name), OsString::from(value));
        let cx = ToolCx {
            call_id: "toolu_1".into(),
            cwd: work.clone(),
            judged: None,
            may_look: true,
            roots: [work.clone()].into(),
            readable: Readable::everything(),
            env: [variable("PATH", "/usr/local/bin:/usr/bin:/bin"), variable("HOME", work.to_str().unwrap())]
                .into(),
            env_file: PathBuf::new(),
            files: Arc::new(FileMemory::new()),
            spill_dir: work.with_file_name("spill"),
            secrets: Default::default(),
            limits: Arc::new(ToolLimits::default()),
            world: Arc::new(RealWorld::new()),
            cancel: CancellationToken::new(),
            progress: Progress::new(move |_, report| match report {
                Report::OutputLine(line) => sink.lock().unwrap().push(line),
            }),
            host: Host::default(),
            background: Background::default(),
            todos: Todos::default(),
            tasks: super::tasks::Tasks::default(),
            agents: None,
            sandbox: None,
            door: None,
            web: None,
            aside: None,
        };
        Self { home, cx, reports }
    }

    pub fn with_limits(change: impl FnOnce(&mut ToolLimits)) -> Self {
        let mut bench = Self::new();
        change(Arc::make_mut(&mut bench.cx.limits));
        bench
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.cx.cwd.join(name)
    }

    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub fn get(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    pub async fn run(&self, name: &str, input: Value) -> Answer {
        let tool = all().into_iter().find(|tool| tool.spec().name == name).unwrap();
        let output = tool.run(input, &self.cx).await;
        let text = match &output.content[..] {
            [ResultBlock::Text(text)] => text.clone(),
            other => panic!("not one text: {other:?}"),
        };
        assert!(!text.trim().is_empty(), "an answer is never blank");
        Answer {
            text,
            error: output.is_error,
            detail: output.detail.unwrap_or(Value::Null),
            new_cwd: output.new_cwd,
        }
    }

    pub async fn read(&self, path: impl AsRef<Path>) -> Answer {
        self.run("Read", json!({"file_path": path.as_ref()})).await
    }

    pub async fn edit(&self, path: impl AsRef<Path>, old: &str, new: &str) -> Answer {
        self.run("Edit", json!({"file_path": path.as_ref(), "old_string": old, "new_string": new})).await
    }

    pub async fn bash(&self, command: &str) -> Answer {
        self.run("Bash", json!({"command": command})).await
    }
}

#[derive(Debug)]
pub(super) struct Answer {
    pub text: String,
    pub error: bool,
    pub detail: Value,
    pub new_cwd: Option<PathBuf>,
}

impl Answer {
    /// The text of an answer that is no error.
    #[track_caller]
    pub fn ok(&self) -> &str {
        assert!(!self.error, "{}", self.text);
        &self.text
    }

    /// The text of an answer that is an error and holds all these words.
    #[track_caller]
    pub fn refused(&self, words: &[&str]) -> &str {
        assert!(self.error, "not an error: {}", self.text);
        self.says(words)
    }

    #[track_caller]
    pub fn says(&self, words: &[&str]) -> &str {
        for word in words {
            assert!(self.text.contains(word), "no {word:?} in: {}", self.text);
        }
        &self.text
    }
}

#[test]
fn the_tools_are_in_the_order_of_their_names() {
    let tools = all();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name).collect();
    assert_eq!(
        names,
        [
            "Agent",
            "AskUserQuestion",
            "Bash",
            "Edit",
            "EnterPlanMode",
            "ExitPlanMode",
            "Glob",
            "Grep",
            "NotebookEdit",
            "Read",
            "SendMessage",
            "Skill",
            "TaskCreate",
            "TaskGet",
            "TaskList",
            "TaskOutput",
            "TaskStop",
            "TaskUpdate",
            "TodoWrite",
            "WebFetch",
            "WebSearch",
            "Write"
        ]
    );
}

#[test]
fn schemas_are_json_and_name_what_the_tools_take() {
    let bench = Bench::new();
    for tool in all() {
        let schema: Value = serde_json::from_str(tool.spec().input_schema).unwrap();
        assert_eq!(schema["type"], "object");
        // Every field of the schema is understood: `null` stands for "left out", or is of the wrong type, but never
        // unknown.
        for field in schema["properties"].as_object().unwrap().keys() {
            let option = |label: &str| json!({"label": label, "description": "x"});
            let question = json!({"question": "x", "header": "x", "multiSelect": false,
                "options": [option("a"), option("b")]});
            let mut input = json!({"file_path": "/x", "command": "x", "pattern": "x", "todos": [], "notebook_path": "x.ipynb",
                "url": "https://example.com/", "questions": [question]});
            let required = schema["required"].as_array().into_iter().flatten();
            let required: Vec<&str> = required.map(|name| name.as_str().unwrap()).collect();
            input.as_object_mut().unwrap().retain(|name, _| required.contains(&name.as_str()));
            for name in required {
                if input.get(name).is_none() {
                    input[name] = json!(format!("some {name}"));
                }
            }
            if input.get(field).is_none() {
                input[field] = Value::Null;
            }
            let access = tool.access(&input, &bench.cx);
            assert!(access.is_ok(), "{}: {field}: {access:?}", tool.spec().name);
        }
        if schema["additionalProperties"] == true {
            continue;
        }
        let unknown = tool.access(&json!({"surprise": 1}), &bench.cx).unwrap_err();
        assert!(unknown.0.contains("surprise") || unknown.0.contains("missing field"), "{}", unknown.0);
    }
}

#[test]
fn only_readers_share() {
    for tool in all() {
        let input =
            json!({"command": "rm x", "file_path": "x", "pattern": "x", "content": "", "old_string": ""});
        let expected = match tool.spec().name {
            "Read" | "Glob" | "Grep" | "TaskGet" | "TaskList" | "WebFetch" | "WebSearch" => Safety::Shared,
            "Agent" | "Skill" | "TaskOutput" => Safety::Beside,
            _ => Safety::Alone,
        };
        assert_eq!(tool.safety(&input), expected, "{}", tool.spec().name);
        if tool.spec().name == "Bash" {
            assert_eq!(tool.safety(&json!({"command": "ls -l"})), Safety::Shared);
        }
    }
}

#[tokio::test]
async fn unusable_input_is_wrapped_for_clients() {
    let bench = Bench::new();
    for (tool, input) in [
        ("Read", json!({"file_path": 5})),
        ("Read", json!({"file_path": ""})),
        ("Read", json!({})),
        ("Write", json!({"file_path": "x"})),
        ("Edit", json!({"file_path": "x", "old_string": "a", "new_string": "a"})),
        ("Bash", json!({"command": " "})),
        ("Bash", json!({"command": "ls", "run_in_background": 2})),
        ("Glob", json!({"pattern": "a{"})),
        ("Glob", json!({"pattern": "../*"})),
        ("Grep", json!({"pattern": "x", "output_mode": "all"})),
        ("NotebookEdit", json!({"notebook_path": "x.ipynb", "new_source": "x"})),
    ] {
        let answer = bench.run(tool, input).await;
        let text = answer.refused(&[]);
        assert!(text.starts_with("<tool_use_error>") && text.ends_with("</tool_use_error>"), "{text}");
    }
}

#[tokio::test]
async fn a_field_of_the_wrong_type_or_none_at_all_is_named_by_every_tool() {
    let bench = Bench::new();
    let (mut tried, mut taken) = (0, Vec::new());
    for tool in all() {
        let Spec { name, input_schema, .. } = tool.spec();
        let schema: Value = serde_json::from_str(input_schema).unwrap();
        let required = schema["required"].as_array().into_iter().flatten();
        let required: Vec<&str> = required.map(|field| field.as_str().unwrap()).collect();
        let fitting = |field: &str| match schema["properties"][field]["type"].as_str() {
            Some("array") => json!([]),
            Some("object") => json!({}),
            _ => json!("https://example.com/x.ipynb"),
        };
        let right: serde_json::Map<String, Value> =
            required.iter().map(|field| ((*field).to_owned(), fitting(field))).collect();
        for (field, about) in schema["properties"].as_object().unwrap() {
            // What is accepted and has no effect may be anything.
            if name == "Agent" && matches!(field.as_str(), "run_in_background" | "name" | "isolation") {
                continue;
            }
            let wrong = match about["type"].as_str() {
                Some("string") | None => vec![json!(5), json!({}), json!(["x"]), json!(true)],
                Some("integer") => vec![json!("many"), json!({}), json!([1]), json!(-1), json!(1.5)],
                Some("boolean") => vec![json!("perhaps"), json!({}), json!([true]), json!(2)],
                Some("array") => vec![json!("x"), json!(5), json!({"a": 1})],
                _ => vec![json!("x"), json!(5)],
            };
            let missing = required.contains(&field.as_str()).then_some(Value::Null);
            for value in wrong.into_iter().chain(missing) {
                // A plan may be in the conversation, nothing is put in the place of a cell that goes, and numbers are names.
                let is_borne = matches!(
                    (name, field.as_str(), &value),
                    ("ExitPlanMode", "plan", Value::Null)
                        | ("NotebookEdit", "new_source", Value::Null)
                        | ("TaskGet" | "TaskUpdate", "taskId", Value::Number(_))
                );
                if is_borne {
                    continue;
                }
                let mut input = right.clone();
                match value {
                    Value::Null => _ = input.remove(field),
                    value => _ = input.insert(field.clone(), value),
                }
                let input = Value::Object(input);
                match tool.access(&input, &bench.cx) {
                    Err(InvalidInput(why)) if why.contains(field.as_str()) => {}
                    other => taken.push(format!("{name} {input}: {other:?}")),
                }
                let answer = bench.run(name, input.clone()).await;
                if !(answer.error && answer.text.contains("tool_use_error")) {
                    taken.push(format!("{name} {input} ran: {}", answer.text));
                }
                tried += 1;
            }
        }
    }
    assert!(taken.is_empty(), "{taken:#?}");
    assert!(tried > 150, "{tried}");
    assert!(fs::read_dir(&bench.cx.cwd).unwrap().next().is_none(), "nothing was made");
}

#[tokio::test]
async fn a_panic_inside_is_an_error_result() {
    let output = changing(CancellationToken::new(), |_| panic!("oh no")).await;
    assert!(output.is_error);
}
