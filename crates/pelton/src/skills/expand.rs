//! From the text of a skill to what the model reads: arguments are put in once, over the text as it is written, and
//! commands in it are run where permissions allow it. What they bring is not looked at again.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;

use super::skill::Skill;
use crate::permission::{Access, Found, HookSays, Judged, Permissions};
use crate::plugins::Plugin;
use crate::tools::{Tool, ToolCx};

/// What a text can be made of.
pub(crate) struct Expander<'a> {
    pub arguments: &'a str,
    pub session_id: &'a str,
    pub effort: &'a str,
    pub project_dir: &'a str,
    /// Runs commands, where that is wanted.
    pub shell: Option<(&'a Permissions, Arc<dyn Tool>)>,
}

/// What the model reads, or why the skill cannot be followed.
pub(crate) async fn expand(skill: &Skill, expander: &Expander<'_>, cx: &ToolCx) -> Result<String, String> {
    let mut values = Values::new(skill, expander);
    let mut text = String::new();
    for piece in pieces(&skill.body) {
        match piece {
            Piece::Text(piece) => text.push_str(&values.put_into(piece)),
            Piece::Command(command) => {
                // What somebody has set is no part of a line for the shell.
                values.plugin = None;
                let command = values.put_into(command);
                values.plugin = skill.plugin.as_deref();
                text.push_str(&run(command.trim(), expander, cx).await?);
            }
        }
    }
    if !values.is_used && !expander.arguments.trim().is_empty() {
        let _ = write!(text, "\n\nARGUMENTS: {}", expander.arguments.trim());
    }
    if let Some(dir) = &skill.dir {
        text = format!("Base directory of this skill: {}\n\n{text}", dir.display());
    }
    Ok(text)
}

/// Whether a text has commands in it.
pub fn has_commands(body: &str) -> bool {
    pieces(body).iter().any(|piece| matches!(piece, Piece::Command(_)))
}

async fn run(command: &str, expander: &Expander<'_>, cx: &ToolCx) -> Result<String, String> {
    let Some((permissions, shell)) = &expander.shell else {
        return Ok("[commands in skills are not run here]".to_owned());
    };
    let access = Access::Shell(command.to_owned());
    let input = json!({"command": command});
    let call = Judged { tool: "Bash", input: &input, access: &access, cwd: &cx.cwd, hook: HookSays::Nothing };
    if !permissions.gate().judge_at(&call, &Found::of(&access)).is_allowed() {
        return Err(format!("its command `{command}` is not allowed to run"));
    }
    let output = shell.run(input, cx).await;
    if output.is_error {
        return Err(format!("its command `{command}` failed: {}", output.words()));
    }
    let printed =
        |key: &str| output.detail.as_ref().and_then(|detail| detail[key].as_str()).map(str::to_owned);
    let printed = [printed("stdout"), printed("stderr")].into_iter().flatten().collect::<Vec<_>>().join("\n");
    Ok(printed.trim().to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Piece<'a> {
    Text(&'a str),
    Command(&'a str),
}

/// Commands stand as `` !`command` `` at the beginning of a word, or in a fence that begins with ` ```! `.
fn pieces(body: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = body;
    let mut before = None;
    while let Some(at) = next_command(rest, before) {
        let (text, command) = rest.split_at(at);
        let taken = match command.strip_prefix("```!") {
            Some(fence) => fence.find("\n```").map(|end| (&fence[..end], &fence[end + 4..])),
            None => command[2..].find('`').map(|end| (&command[2..2 + end], &command[3 + end..])),
        };
        let Some((command, after)) = taken.filter(|(command, _)| !command.trim().is_empty()) else {
            // It is never closed: what begins here is text.
            let skip = at + if command.starts_with('`') { 4 } else { 2 };
            pieces.push(Piece::Text(&rest[..skip]));
            before = rest[..skip].chars().next_back();
            rest = &rest[skip..];
            continue;
        };
        pieces.extend([Piece::Text(text), Piece::Command(command)]);
        before = Some('`');
        rest = after;
    }
    pieces.push(Piece::Text(rest));
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}

/// Where the next command begins. `before` is what stands before the text.
fn next_command(text: &str, before: Option<char>) -> Option<usize> {
    let preceding = |at: usize| text[..at].chars().next_back().or(before.filter(|_| at == 0));
    let inline =
        text.match_indices("!`").map(|(at, _)| at).find(|at| preceding(*at).is_none_or(char::is_whitespace));
    let fence =
        text.match_indices("```!").map(|(at, _)| at).find(|at| preceding(*at).is_none_or(|c| c == '\n'));
    match (inline, fence) {
        (Some(inline), Some(fence)) => Some(inline.min(fence)),
        (one, other) => one.or(other),
    }
}

/// What names in a text stand for.
struct Values<'a> {
    arguments: &'a str,
    words: Vec<String>,
    names: &'a [String],
    variables: Vec<(&'static str, String)>,
    /// Whose user has set something that the text may name.
    plugin: Option<&'a Plugin>,
    /// An argument was put in.
    is_used: bool,
}

impl<'a> Values<'a> {
    fn new(skill: &'a Skill, expander: &Expander<'a>) -> Self {
        let dir = skill.dir.as_ref().map(|dir| dir.display().to_string()).unwrap_or_default();
        let mut variables = vec![
            ("${CLAUDE_SESSION_ID}", expander.session_id.to_owned()),
            ("${CLAUDE_EFFORT}", expander.effort.to_owned()),
            ("${CLAUDE_SKILL_DIR}", dir),
            ("${CLAUDE_PROJECT_DIR}", expander.project_dir.to_owned()),
        ];
        if let Some(plugin) = &skill.plugin {
            variables.push(("${CLAUDE_PLUGIN_ROOT}", plugin.root.display().to_string()));
            variables.push(("${CLAUDE_PLUGIN_DATA}", plugin.data.display().to_string()));
        }
        let arguments = expander.arguments.trim();
        let (words, names, plugin) = (shell_words(arguments), &skill.arguments, skill.plugin.as_deref());
        Self { arguments, words, names, variables, plugin, is_used: false }
    }

    fn put_into(&mut self, text: &str) -> String {
        let mut made = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            let before = &rest[..at];
            if let Some(before) = before.strip_suffix('\\') {
                made.push_str(before);
                made.push('$');
                rest = &rest[at + 1..];
                continue;
            }
            made.push_str(before);
            let (value, length) = self.value(&rest[at..]);
            made.push_str(&value);
            rest = &rest[at + length..];
        }
        made.push_str(rest);
        made
    }

    /// What stands for what a text begins with, and how long that is.
    fn value(&mut self, text: &str) -> (String, usize) {
        if let Some((name, value)) = self.variables.iter().find(|(name, _)| text.starts_with(name)) {
            return (value.clone(), name.len());
        }
        if let Some((key, _)) = text.strip_prefix("${user_config.").and_then(|rest| rest.split_once('}'))
            && let Some(value) = self.plugin.and_then(|plugin| plugin.option_in_texts(key))
        {
            return (value.to_owned(), "${user_config.}".len() + key.len());
        }
        if let Some(behind) = text.strip_prefix("$ARGUMENTS") {
            let index = behind.strip_prefix('[').and_then(|behind| behind.split_once(']'));
            if let Some((digits, _)) = index
                && let Some(word) = digits.parse::<usize>().ok().and_then(|index| self.words.get(index))
            {
                self.is_used = true;
                return (word.clone(), "$ARGUMENTS[]".len() + digits.len());
            }
            if index.is_none() && !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_') {
                self.is_used = true;
                return (self.arguments.to_owned(), "$ARGUMENTS".len());
            }
        }
        let name: &str = text[1..]
            .split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')))
            .next()
            .unwrap_or_default();
        let digits = name.len() - name.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        if digits > 0
            && let Some(word) = name[..digits].parse::<usize>().ok().and_then(|index| self.words.get(index))
        {
            self.is_used = true;
            return (word.clone(), 1 + digits);
        }
        if let Some(at) = self.names.iter().position(|known| known == name) {
            self.is_used = true;
            return (self.words.get(at).cloned().unwrap_or_default(), 1 + name.len());
        }
        ("$".to_owned(), 1)
    }
}

/// The words of a text as a shell would have them, quotes and backslashes taken off.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None | Some('"'), '\\') => word.get_or_insert_default().extend(chars.next()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use super::*;

    fn skill(body: &str) -> Skill {
        let text = format!("---\narguments: [file, line]\n---\n{body}");
        Skill::read("x", Path::new("/s/x/SKILL.md"), Some(Path::new("/s/x")), &text)
    }

    fn put(body: &str, arguments: &str) -> String {
        let expander =
            Expander { arguments, session_id: "id", effort: "high", project_dir: "/p", shell: None };
        let text =
            futures::executor::block_on(expand(&skill(body), &expander, &ToolCx::outside("/"))).unwrap();
        text.strip_prefix("Base directory of this skill: /s/x\n\n").unwrap().to_owned()
    }

    #[test]
    fn arguments_are_put_in_once() {
        let check = |body: &str, arguments: &str, expected: &str| {
            assert_eq!(put(body, arguments), expected, "{body}");
        };
        check("do $ARGUMENTS now", "a b", "do a b now");
        check("do $0 and $1", "'a b' c", "do a b and c");
        check("do $ARGUMENTS[1]", "a \"b c\"", "do b c");
        check("do $5 and $0", "a", "do $5 and a");
        check("$file:$line", "main.rs 3", "main.rs:3");
        check("$file:$line.", "main.rs", "main.rs:.");
        check("do it", "a b", "do it\n\nARGUMENTS: a b");
        check("do it", "", "do it");
        check("cost \\$0 $0", "$ARGUMENTS", "cost $0 $ARGUMENTS");
        check(
            "${CLAUDE_SESSION_ID} ${CLAUDE_SKILL_DIR} ${CLAUDE_PROJECT_DIR} ${CLAUDE_EFFORT}",
            "",
            "id /s/x /p high",
        );
        check("$HOME ${X} $", "", "$HOME ${X} $");
        check("$ARGUMENTSX", "a", "$ARGUMENTSX\n\nARGUMENTS: a");
    }

    #[test]
    fn commands_stand_at_the_beginning_of_words_or_in_fences() {
        use Piece::{Command, Text};
        let check = |body: &str, expected: &[Piece<'_>]| assert_eq!(pieces(body), expected, "{body}");
        check("a !`b` c", &[Text("a "), Command("b"), Text(" c")]);
        check("!`b`", &[Command("b")]);
        check("no!`b`", &[Text("no!`b`")]);
        check("a\n```!\nb\nc\n```\nd", &[Text("a\n"), Command("\nb\nc"), Text("\nd")]);
        check("!`never", &[Text("!`"), Text("never")]);
        check("!``", &[Text("!`"), Text("`")]);
        check("```\n!b\n```", &[Text("```\n!b\n```")]);
        assert_eq!(put("x !`echo hi`", ""), "x [commands in skills are not run here]");
        // What an argument brings is no command.
        assert_eq!(put("do $ARGUMENTS", "!`rm x`"), "do !`rm x`");
    }

    proptest! {
        #[test]
        fn any_body_is_survived(body in r"[\$!`\n a0\[\]\\\{\}é]{0,60}", arguments in r#"['"\\ ab\$]{0,20}"#) {
            let together: usize = pieces(&body).iter().map(|piece| match piece {
                Piece::Text(text) | Piece::Command(text) => text.len(),
            }).sum();
            prop_assert!(together <= body.len());
            let _ = put(&body, &arguments);
        }
    }
}
