//! What stands in front of every request: tools and system prompt, the same bytes whatever happens around them.

use std::sync::{Arc, Mutex};

use futures::FutureExt;
use futures::future::BoxFuture;
use pelton::event::CacheReport;
use pelton::permission::{Change, Mode, Update};
use pelton::tools::{Access, InvalidInput, Output, Safety, ServerState, Spec, Tool, ToolCx, ToolServer};
use pelton::{Event, MemorySources, SkillSources};
use pelton_testkit::{Part, Script, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, marks, run, sh, unmarked};

/// A server that is there from some moment on.
#[derive(Default)]
struct Late(Mutex<bool>);

impl ToolServer for Late {
    fn name(&self) -> &str {
        "late"
    }

    fn state(&self) -> ServerState {
        if *self.0.lock().unwrap() { ServerState::Connected } else { ServerState::Pending }
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        if *self.0.lock().unwrap() { vec![Arc::new(Bell)] } else { Vec::new() }
    }

    fn instructions(&self) -> Option<String> {
        None
    }
}

struct Bell;

impl Tool for Bell {
    fn spec(&self) -> Spec<'_> {
        Spec { name: "ring", description: "Rings.", input_schema: r#"{"type":"object"}"# }
    }

    fn safety(&self, _: &Value) -> Safety {
        Safety::Shared
    }

    fn access(&self, _: &Value, _: &ToolCx) -> Result<Access, InvalidInput> {
        Ok(Access::Nothing)
    }

    fn run<'a>(&'a self, _: Value, _: &'a ToolCx) -> BoxFuture<'a, Output> {
        async { Output::text("rung") }.boxed()
    }
}

/// A session of yesterday goes on where everything around it is another: the day, the branch, the files, the memory.
#[tokio::test]
async fn pit_B2_a_day_later_with_everything_changed_the_same_bytes_are_sent() {
    let script = Script::new()
        .reply([tool("Read", json!({"file_path": "sub/a.txt"}))])
        .reply([text("Read.")])
        .reply([text("Still there.")]);
    let stage = Stage::new(script).await;
    let put = |name: &str, content: &str| {
        std::fs::create_dir_all(stage.path(name).parent().unwrap()).unwrap();
        stage.write(name, content);
    };
    let git = |words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=A", "-c", "user.email=a@b"]).args(words);
        assert!(git.current_dir(stage.cwd()).env("HOME", stage.cwd()).output().unwrap().status.success());
    };
    put("CLAUDE.md", "Speak plainly.");
    put("sub/a.txt", "a");
    put("sub/CLAUDE.md", "Of the part.");
    put(".claude/skills/one/SKILL.md", "One.");
    git(&["init", "-q", "-b", "trunk"]);
    let engine = |change: &dyn Fn(&mut pelton::Options)| {
        stage.engine_with(|options| {
            options.memory = Some(MemorySources::project());
            options.skills = Some(SkillSources::project());
            options.git_state = true;
            change(options);
        })
    };
    let mut first = engine(&|_| {});
    run(&mut first, "Read it.").await.assert_completed();
    let file = first.transcript_file().unwrap();
    drop(first);

    git(&["add", "."]);
    git(&["commit", "-q", "-m", "All of it"]);
    git(&["checkout", "-q", "-b", "elsewhere"]);
    put("CLAUDE.md", "Speak in riddles.");
    put("sub/CLAUDE.md", "Of another part.");
    put(".claude/skills/two/SKILL.md", "Two.");
    let mut second = engine(&|options| {
        crate::stage::resume_from(options, &file);
        options.world = crate::streams::months_later();
    });
    run(&mut second, "And now?").await.assert_completed();

    let requests = stage.model.reply_requests();
    let (old, new) = (unmarked(&requests[1].body), unmarked(&requests[2].body));
    for part in ["system", "tools"] {
        assert_eq!(old[part].to_string(), new[part].to_string(), "{part}");
    }
    let (old, new) = (old["messages"].as_array().unwrap(), new["messages"].as_array().unwrap());
    assert_eq!(Value::from(new[..old.len()].to_vec()).to_string(), Value::from(old.clone()).to_string());
    let news = Value::from(new[old.len()..].to_vec()).to_string();
    for told in ["another day", "Speak in riddles.", "Of another part."] {
        assert!(news.contains(told), "what changed is told at the end: {told:?} is missing: {news}");
    }
    let usage = |at: usize| requests[at].reply.usage.clone().unwrap();
    let held = usage(1)["cache_read_input_tokens"].as_u64().unwrap()
        + usage(1)["cache_creation_input_tokens"].as_u64().unwrap();
    assert_eq!(usage(2)["cache_read_input_tokens"].as_u64(), Some(held), "all of it is read from the cache");
}

fn missed(event: &Event) -> Option<&CacheReport> {
    match event {
        Event::Cache(report) => Some(report).filter(|report| report.missed > 0),
        _ => None,
    }
}

#[tokio::test]
async fn pit_B3_twenty_turns_of_changes_and_a_late_server_leave_the_prefix_alone() {
    let write = |n: usize| tool("Write", json!({"file_path": format!("{n}.txt"), "content": "x"}));
    let turns: Vec<Part> = vec![
        write(1),
        tool("Read", json!({"file_path": "sub/a.txt"})),
        tool("Bash", sh("git checkout -q -b other 2>/dev/null; echo changed > sub/a.txt")),
        tool("Skill", json!({"skill": "deep"})),
        tool("Edit", json!({"file_path": "1.txt", "old_string": "x", "new_string": "y"})),
        tool("Bash", sh("echo '# new' >> CLAUDE.md")),
        write(2),
        tool("Glob", json!({"pattern": "*"})),
        tool("Bash", sh("mkdir -p .claude/commands && echo Late. > .claude/commands/late.md")),
    ];
    let mut script = Script::new();
    for part in turns {
        script = script.reply([part]);
    }
    script = script.reply([text("One.")]);
    for n in 3..8 {
        script = script.reply([write(n)]);
    }
    script = script.reply([text("Two.")]).reply([tool("mcp__late__ring", json!({}))]);
    script = script.reply([write(8)]).reply([write(9)]).reply([text("Three.")]);
    let stage = Stage::new(script).await;
    let put = |name: &str, content: &str| {
        std::fs::create_dir_all(stage.path(name).parent().unwrap()).unwrap();
        stage.write(name, content);
    };
    put("CLAUDE.md", "Speak plainly.");
    put("sub/a.txt", "a");
    put("sub/CLAUDE.md", "Of the part.");
    put("sub/.claude/skills/deep/SKILL.md", "Dig.");
    put(".git/HEAD", "ref: refs/heads/trunk\n");
    let server = Arc::new(Late::default());
    let mut engine = stage.engine_with(|options| {
        options.memory = Some(MemorySources::project());
        options.skills = Some(SkillSources::project());
        options.git_state = true;
        options.servers = vec![Arc::clone(&server) as Arc<dyn ToolServer>];
    });
    run(&mut engine, "One.").await.assert_completed();
    put(".git/HEAD", "ref: refs/heads/elsewhere\n");
    put("1.txt", "by somebody else");
    engine.permissions().apply(&Update::session(Change::SetMode(Mode::AcceptEdits))).unwrap();
    assert_eq!(engine.permissions().mode(), Mode::AcceptEdits);
    let told = run(&mut engine, "Two.").await;
    told.assert_completed();
    assert_eq!(told.0.iter().filter_map(missed).count(), 0, "edits and modes cost no cache");
    *server.0.lock().unwrap() = true;
    let told = run(&mut engine, "Three.").await;
    told.assert_completed();
    assert_eq!(told.0.iter().filter_map(missed).count(), 0, "tools that come late are told of at the end");
    stage.assert_all_played();

    let requests = stage.model.reply_requests();
    assert_eq!(requests.len(), 20);
    let prefix =
        |at: usize| (requests[at].body["system"].to_string(), requests[at].body["tools"].to_string());
    let breaks: Vec<usize> = (1..requests.len()).filter(|at| prefix(*at) != prefix(at - 1)).collect();
    assert_eq!(breaks, [0; 0], "system prompt and tools are the same bytes to the end");
    for at in 1..requests.len() {
        let (old, new) =
            (unmarked(&requests[at - 1].body["messages"]), unmarked(&requests[at].body["messages"]));
        let (old, new) = (old.as_array().unwrap(), new.as_array().unwrap());
        assert_eq!(new[..old.len() - 1], old[..old.len() - 1], "request {at}: nothing is spliced in");
        let (last, same) = (&old[old.len() - 1], &new[old.len() - 1]);
        let grown = same["content"].as_array().unwrap();
        let was = last["content"].as_array().unwrap();
        assert_eq!(grown[..was.len()], was[..], "request {at}: what was sent stays");
    }
    assert!(requests.iter().all(|request| marks(&request.body) <= 4));
    let all = requests[19].body["messages"].to_string();
    for news in ["Of the part.", "has changed on disk", "Dig.", "- late", "mcp__late__ring"] {
        assert!(all.contains(news), "{news} was told");
    }
}

#[tokio::test]
async fn pit_B3_a_branch_that_changed_is_told_behind_what_was_sent_and_once() {
    let script = (0..5).fold(Script::new(), |script, _| script.reply([text("Yes.")]));
    let stage = Stage::new(script).await;
    let git = |words: &str| {
        let mut git = std::process::Command::new("git");
        git.args(words.split(' ')).current_dir(stage.cwd()).env("HOME", stage.cwd());
        assert!(git.output().unwrap().status.success(), "{words}");
    };
    git("init -q -b trunk");
    let mut engine = stage.engine();
    run(&mut engine, "One?").await.assert_completed();
    git("symbolic-ref HEAD refs/heads/twig");
    run(&mut engine, "Two?").await.assert_completed();
    run(&mut engine, "Three?").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    run(&mut stage.resume(&file), "Four?").await.assert_completed();
    git("symbolic-ref HEAD refs/heads/trunk");
    run(&mut stage.resume(&file), "Five?").await.assert_completed();
    let news = |nth: usize, branch: &str| {
        let sent = stage.request(nth)["messages"].to_string();
        sent.matches(&format!("The repository is now on branch {branch}")).count()
    };
    let twig: Vec<usize> = (1..=5).map(|nth| news(nth, "twig")).collect();
    let trunk: Vec<usize> = (1..=5).map(|nth| news(nth, "trunk")).collect();
    assert_eq!((twig, trunk), (vec![0, 1, 1, 1, 1], vec![0, 0, 0, 0, 1]));
    let messages = |nth| unmarked(&stage.request(nth))["messages"].as_array().unwrap().clone();
    for nth in 1..5 {
        let (before, after) = (messages(nth), messages(nth + 1));
        assert_eq!(before[..], after[..before.len()], "request {}", nth + 1);
    }
    stage.assert_all_played();
}
