//! AskUserQuestion: a choice that only the user can make. The question is asked where permissions are asked for, and
//! the answers come back with the permission to run.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::host::Elicited;
use crate::tools::tool::{Access, InvalidInput, Output, Safety, Spec, Tool, ToolCx, parse_input};

/// The tool's name.
pub(crate) const NAME: &str = "AskUserQuestion";

/// The tool.
pub(super) fn tool() -> Arc<dyn Tool> {
    Arc::new(AskUserQuestion { description: include_str!("ask_user.md") })
}

/// The same for whoever shows what options look like as a page: previews are HTML.
///
/// ```
/// let tool = pelton::tools::asking_with_html();
/// assert!(tool.spec().description.contains("HTML"));
/// ```
pub fn asking_with_html() -> Arc<dyn Tool> {
    const DESCRIPTION: &str = concat!(
        include_str!("ask_user.md"),
        "\nA `preview` is a fragment of HTML that needs nothing else: no scripts, no files, styles inside."
    );
    Arc::new(AskUserQuestion { description: DESCRIPTION })
}

struct AskUserQuestion {
    description: &'static str,
}

const INPUT: &str = r#"{"type":"object","properties":{"questions":{"type":"array","minItems":1,"maxItems":4,"items":{"type":"object","properties":{"question":{"type":"string"},"header":{"type":"string"},"options":{"type":"array","minItems":2,"maxItems":4,"items":{"type":"object","properties":{"label":{"type":"string"},"description":{"type":"string"},"preview":{"type":"string"}},"required":["label","description"]}},"multiSelect":{"type":"boolean"}},"required":["question","header","options","multiSelect"]}}},"required":["questions"]}"#;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Input {
    questions: Vec<Asked>,
    /// Filled in by whoever asked the user: what was chosen, by question.
    #[serde(default)]
    answers: BTreeMap<String, String>,
    /// Further words of theirs about the answers.
    #[serde(default)]
    annotations: Option<Value>,
    #[serde(default)]
    metadata: Option<Value>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Asked {
    question: String,
    #[serde(default)]
    header: String,
    options: Vec<Choice>,
    #[serde(default)]
    multi_select: bool,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Choice {
    label: String,
    #[serde(default)]
    description: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    preview: Option<String>,
}

impl Tool for AskUserQuestion {
    fn spec(&self) -> Spec<'_> {
        Spec { name: NAME, description: self.description, input_schema: INPUT }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Alone
    }

    fn access(&self, input: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        let input = parse(input)?;
        let questions: Vec<&str> = input.questions.iter().map(|asked| asked.question.as_str()).collect();
        Ok(Access::Person(questions.join(" ")))
    }

    fn run<'a>(&'a self, input: Value, cx: &'a ToolCx) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match parse(&input) {
                Ok(input) => answered(input, cx).await,
                Err(InvalidInput(why)) => Output::unusable(why),
            }
        })
    }
}

fn parse(input: &Value) -> Result<Input, InvalidInput> {
    let input: Input = parse_input(input)?;
    let wrong = |why: String| Err(InvalidInput(why));
    if !(1..=4).contains(&input.questions.len()) {
        return wrong(format!("`questions` has {} entries: ask 1 to 4 questions", input.questions.len()));
    }
    for (at, asked) in input.questions.iter().enumerate() {
        if !(2..=4).contains(&asked.options.len()) {
            return wrong(format!(
                "`questions[{at}].options` has {} entries: give 2 to 4; the user can always write something else",
                asked.options.len()
            ));
        }
        if input.questions[..at].iter().any(|before| before.question == asked.question) {
            return wrong(format!("`questions[{at}].question` is asked twice"));
        }
        let twice = asked
            .options
            .iter()
            .enumerate()
            .find(|(n, option)| asked.options[..*n].iter().any(|before| before.label == option.label));
        if let Some((n, _)) = twice {
            return wrong(format!("`questions[{at}].options[{n}].label` is there twice"));
        }
    }
    Ok(input)
}

async fn answered(input: Input, cx: &ToolCx) -> Output {
    let answers = match input.answers.is_empty() {
        false => input.answers,
        // Whoever was asked for permission had no way to answer: a host that can ask is asked.
        true => match cx.elicit(NAME, words(&input.questions), schema(&input.questions)).await {
            Elicited::Accept(Value::Object(answers)) => chosen(answers),
            Elicited::Accept(_) | Elicited::Decline | Elicited::Cancel => BTreeMap::new(),
        },
    };
    if answers.is_empty() {
        return Output::error(
            "The user did not answer. Go on with what you think is best, and say what you assumed.",
        );
    }
    // In the order they were asked in; a host may have added some.
    let place = |question: &String| input.questions.iter().position(|asked| asked.question == *question);
    let mut told: Vec<(&String, &String)> = answers.iter().collect();
    told.sort_by_key(|(question, _)| place(question).unwrap_or(usize::MAX));
    let lines: Vec<String> =
        told.into_iter().map(|(question, answer)| format!("\"{question}\": {answer}")).collect();
    let mut detail = json!({"questions": input.questions, "answers": answers});
    if let Some(annotations) = input.annotations {
        detail["annotations"] = annotations;
    }
    Output::text(format!("The user answered:\n{}", lines.join("\n"))).with_detail(detail)
}

fn words(questions: &[Asked]) -> String {
    questions.iter().map(|asked| asked.question.as_str()).collect::<Vec<_>>().join("\n")
}

/// A form with one field for each question.
fn schema(questions: &[Asked]) -> Value {
    let fields: Map<String, Value> = questions
        .iter()
        .map(|asked| {
            let labels: Vec<&str> = asked.options.iter().map(|option| option.label.as_str()).collect();
            let one = json!({"type": "string", "examples": labels});
            let field = if asked.multi_select { json!({"type": "array", "items": one}) } else { one };
            (asked.question.clone(), field)
        })
        .collect();
    json!({"type": "object", "properties": fields})
}

fn chosen(answers: Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    answers.into_iter().map(|(question, answer)| (question, text(answer))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::builtin::tests::Bench;

    fn question() -> Value {
        json!({"question": "Which?", "header": "Choice", "multiSelect": false,
            "options": [{"label": "A", "description": "a"}, {"label": "B", "description": "b"}]})
    }

    #[tokio::test]
    async fn answers_that_came_with_the_permission_are_told() {
        let bench = Bench::new();
        let input = json!({"questions": [question()], "answers": {"Which?": "B"}});
        let answer = bench.run(NAME, input).await;
        assert_eq!(answer.ok(), "The user answered:\n\"Which?\": B");
        assert_eq!(answer.detail["answers"], json!({"Which?": "B"}));
        let silent = bench.run(NAME, json!({"questions": [question()]})).await;
        silent.refused(&["did not answer"]);
    }

    #[tokio::test]
    async fn only_a_person_can_let_it_run_and_bad_questions_are_named() {
        let bench = Bench::new();
        let access = |input: Value| tool().access(&input, &bench.cx);
        assert_eq!(access(json!({"questions": [question()]})), Ok(Access::Person("Which?".to_owned())));
        let mut one_option = question();
        one_option["options"].as_array_mut().unwrap().pop();
        let mut same_label = question();
        same_label["options"][1]["label"] = json!("A");
        for (questions, named) in [
            (json!([]), "`questions`"),
            (json!([one_option]), "questions[0].options"),
            (json!([same_label]), "questions[0].options[1].label"),
            (json!([question(), question()]), "questions[1].question"),
        ] {
            let Err(InvalidInput(why)) = access(json!({"questions": questions})) else {
                panic!("{questions}")
            };
            assert!(why.contains(named), "{why}");
        }
    }
}
