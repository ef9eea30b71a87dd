//! What an agent has of its own besides its task: a checkout, notes, skills.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use pelton::tools::{AgentDefinition, Isolation, MemoryScope};
use pelton::{Event, MemorySources, Options, SkillSources, WorktreeBase};
use pelton_testkit::{Script, Step, When, text, tool};
use serde_json::{Value, json};

use crate::hooks::{hook, on};
use crate::stage::{Stage, results_in, run, sh};

const TINKERER: &str = "You tinker.";

fn of_child() -> When {
    When::any().system(TINKERER)
}

/// One call of an agent that makes these calls and reports.
fn tinkers(calls: Vec<pelton_testkit::Part>) -> Script {
    let ask = tool("Agent", json!({"description": "d", "prompt": "Tinker.", "subagent_type": "tinkerer"}));
    let script = Script::new().reply([ask]);
    let script = if calls.is_empty() { script } else { script.step(Step::reply(calls).when(of_child())) };
    script.step(Step::reply([text("Tinkered.")]).when(of_child())).reply([text("Done.")])
}

fn with_tinkerer(options: &mut Options, change: impl FnOnce(&mut AgentDefinition)) {
    let mut agent = AgentDefinition::new("tinkerer", "Tinkers.", TINKERER);
    change(&mut agent);
    options.agents.push(agent);
    options.worktrees.base = WorktreeBase::Head;
    options.env.push(("HOME".into(), options.temp_dir.clone().into()));
}

fn git(stage: &Stage, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]).args(words);
    let output = git.current_dir(stage.cwd()).output().unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

async fn repository(script: Script) -> Stage {
    let stage = Stage::new(script).await;
    stage.write("kept.txt", "kept");
    stage.write(".gitignore", "secret.env\nignored.log\n.claude/\n");
    git(&stage, &["init", "-q"]);
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "-qm", "one"]);
    stage
}

fn worktrees(stage: &Stage) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(stage.path(".claude/worktrees")) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test]
async fn an_agent_with_a_checkout_of_its_own_leaves_the_users_files_alone() {
    let calls = vec![tool("Bash", sh("echo other > kept.txt; cat secret.env; ls link; cat ignored.log"))];
    let stage = repository(tinkers(calls)).await;
    stage.write("secret.env", "needed");
    stage.write("ignored.log", "noise");
    stage.write(".worktreeinclude", "*.env\n");
    std::fs::create_dir(stage.path("link")).unwrap();
    stage.write("link/inside", "");
    let mut engine = stage.engine_with(|options| {
        with_tinkerer(options, |agent| agent.isolation = Some(Isolation::Worktree));
        options.worktrees.linked_directories = vec!["link".to_owned(), "../out".to_owned()];
    });
    run(&mut engine, "Go.").await.assert_completed();

    assert_eq!(stage.read("kept.txt"), "kept");
    let [place] = &worktrees(&stage)[..] else { panic!("{:?}", worktrees(&stage)) };
    assert_eq!(std::fs::read_to_string(place.join("kept.txt")).unwrap(), "other\n");
    let seen = &results_in(&stage.request(3))[0].2;
    assert!(seen.contains("needed") && seen.contains("inside") && !seen.contains("noise"), "{seen}");
    assert!(stage.request(2).to_string().contains(place.to_str().unwrap()), "it knows where it works");
    // Whoever asked is told where the changes are, and on which branch.
    let report = &results_in(&stage.request(4))[0].2;
    let branch = format!("worktree-{}", place.file_name().unwrap().to_str().unwrap());
    assert!(report.contains(place.to_str().unwrap()) && report.contains(&branch), "{report}");
    assert!(git(&stage, &["branch", "--list", &branch]).contains(&branch));
    stage.assert_all_played();
}

#[tokio::test]
async fn a_checkout_in_which_nothing_was_changed_goes_and_files_outside_are_refused() {
    let stage = repository(Script::new()).await;
    let outside = stage.path("made.txt");
    let calls = vec![
        tool("Write", json!({"file_path": outside, "content": "x"})),
        tool("Read", json!({"file_path": "kept.txt"})),
    ];
    let stage = stage.playing(tinkers(calls)).await;
    let mut engine = stage.engine_with(|options| {
        with_tinkerer(options, |agent| agent.isolation = Some(Isolation::Worktree));
        options.mode = pelton::permission::Mode::AcceptEdits;
    });
    run(&mut engine, "Go.").await.assert_completed();
    let results = results_in(&stage.request(3));
    assert!(results[0].1, "it works in its own place: {results:?}");
    assert!(results[1].2.contains("kept") && !outside.exists());
    assert_eq!(worktrees(&stage), [""; 0].map(PathBuf::from));
    assert_eq!(git(&stage, &["branch", "--list", "worktree-*"]), "");
    assert!(!results_in(&stage.request(4))[0].2.contains("worktree"));
}

#[tokio::test]
async fn a_call_may_want_a_checkout_and_without_a_repository_there_is_none() {
    let order = json!({"description": "d", "prompt": "Tinker.", "isolation": "worktree"});
    let stage = Stage::new(Script::new().reply([tool("Agent", order)]).reply([text("Done.")])).await;
    run(&mut stage.engine(), "Go.").await.assert_completed();
    let (_, is_error, said) = results_in(&stage.request(2)).remove(0);
    assert!(is_error && said.contains("wants a worktree") && said.contains("git"), "{said}");
}

#[tokio::test]
async fn hooks_may_make_the_checkout_and_hear_when_it_is_left() {
    for (make, expected) in
        [("mkdir -p own && echo making && echo own", Some("own")), ("echo none >&2; exit 1", None)]
    {
        let script = match expected {
            Some(_) => tinkers(vec![tool("Bash", sh("pwd"))]),
            None => Script::new()
                .reply([tool(
                    "Agent",
                    json!({"description": "d", "prompt": "Tinker.", "subagent_type": "tinkerer"}),
                )])
                .reply([text("Done.")]),
        };
        let stage = Stage::new(script).await;
        let heard = stage.path("heard.txt");
        let listen = format!("tr -d '\\n' >> {0}; echo >> {0}", heard.display());
        let mut settings = on("WorktreeCreate", &[&format!("{listen}; {make}")]);
        settings["WorktreeRemove"] = on("WorktreeRemove", &[&listen])["WorktreeRemove"].clone();
        let mut engine = stage.engine_with(|options| {
            hook(options, &settings);
            with_tinkerer(options, |agent| agent.isolation = Some(Isolation::Worktree));
        });
        run(&mut engine, "Go.").await.assert_completed();
        let heard: Vec<Value> =
            stage.read("heard.txt").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(heard[0]["name"].as_str().unwrap().starts_with("agent-"), "{heard:?}");
        match expected {
            Some(own) => {
                assert!(results_in(&stage.request(3))[0].2.contains(stage.path(own).to_str().unwrap()));
                assert_eq!(heard[1]["worktree_path"].as_str(), stage.path(own).to_str());
            }
            None => {
                let (_, is_error, said) = results_in(&stage.request(2)).remove(0);
                assert!(
                    is_error && said.contains("did not make a worktree") && said.contains("none"),
                    "{said}"
                );
                assert_eq!(heard.len(), 1);
            }
        }
    }
}

#[tokio::test]
async fn an_agent_has_notes_of_its_own_where_its_description_says_so() {
    for (scope, place) in [
        (MemoryScope::Project, "work/.claude/agent-memory/tinkerer"),
        (MemoryScope::Local, "work/.claude/agent-memory-local/tinkerer"),
        (MemoryScope::User, "config/agent-memory/tinkerer"),
    ] {
        let stage = Stage::new(tinkers(Vec::new())).await;
        let dir = stage.cwd().parent().unwrap().join(place);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("MEMORY.md"), "- Screws turn right.").unwrap();
        let mut engine = stage.engine_with(|options| {
            with_tinkerer(options, |agent| agent.memory = Some(scope));
            let mut memory = MemorySources::default();
            memory.user_dir = Some(stage.config_dir());
            memory.notes_dir = Some(stage.path("notes-of-main"));
            options.memory = Some(memory);
        });
        run(&mut engine, "Go.").await.assert_completed();
        let sent = stage.request(2);
        assert!(sent["messages"].to_string().contains("Screws turn right."), "{scope:?}: {sent}");
        let system = sent["system"].to_string();
        assert!(system.contains(dir.to_str().unwrap()) && !system.contains("notes-of-main"), "{system}");
    }
}

#[tokio::test]
async fn notes_of_an_agent_that_a_link_leads_out_of_the_project_are_none() {
    let stage = Stage::new(tinkers(Vec::new())).await;
    let outside = stage.cwd().parent().unwrap().join("outside");
    std::fs::create_dir_all(outside.join("tinkerer")).unwrap();
    std::fs::write(outside.join("tinkerer/MEMORY.md"), "- Not for it.").unwrap();
    std::fs::create_dir_all(stage.path(".claude")).unwrap();
    std::os::unix::fs::symlink(&outside, stage.path(".claude/agent-memory")).unwrap();
    let mut engine = stage.engine_with(|options| {
        with_tinkerer(options, |agent| agent.memory = Some(MemoryScope::Project));
        options.memory = Some(MemorySources::default());
    });
    run(&mut engine, "Go.").await.assert_completed();
    let sent = stage.request(2).to_string();
    assert!(!sent.contains("Not for it.") && !sent.contains("agent-memory"), "{sent}");
}

#[tokio::test]
async fn an_agent_knows_its_skills_from_the_start() {
    let stage = Stage::new(tinkers(Vec::new())).await;
    for name in ["glue", "paint"] {
        let file = stage.path(&format!(".claude/skills/{name}/SKILL.md"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, format!("---\ndescription: d\n---\nHow to {name}: $ARGUMENTS slowly.")).unwrap();
    }
    let mut engine = stage.engine_with(|options| {
        with_tinkerer(options, |agent| agent.skills = vec!["glue".to_owned(), "weld".to_owned()]);
        options.skills = Some(SkillSources::project());
    });
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    let task = stage.request(2)["messages"].to_string();
    assert!(
        task.contains("How to glue:") && task.contains("Tinker.") && !task.contains("How to paint:"),
        "{task}"
    );
    assert!(format!("{:?}", told.0).contains("does without the skill 'weld'"));
}

/// Reaches what it is asked for: a calculator, if it is called so.
#[derive(Default)]
struct Maker(std::sync::Mutex<Vec<Value>>);

impl pelton::tools::ServerMaker for Maker {
    fn make(&self, written: &Value) -> futures::future::BoxFuture<'static, pelton::tools::MadeServers> {
        self.0.lock().unwrap().push(written.clone());
        let mut made = pelton::tools::MadeServers::default();
        let calculator = crate::servers::Calculator::with(pelton::tools::ServerState::Connected, &["sine"]);
        made.servers.push(calculator);
        made.problems.push("the MCP server 'broken' is not there".to_owned());
        Box::pin(async move { made })
    }
}

#[tokio::test]
async fn an_agent_has_the_servers_that_it_brings_and_nobody_else_has() {
    let calls = vec![tool("mcp__calc__sine", json!({})).id("toolu_sine")];
    let stage = Stage::new(tinkers(calls)).await;
    let maker = Arc::new(Maker::default());
    let mut engine = stage.engine_with(|options| {
        options.server_maker = Some(maker.clone());
        with_tinkerer(options, |agent| {
            agent.mcp_servers = vec![json!("somebody"), json!({"calc": {"command": "calc"}, "broken": {}})];
        });
    });
    let told = run(&mut engine, "Go.").await;
    told.assert_completed();
    let expected = json!({"calc": {"command": "calc"}, "broken": {}});
    assert_eq!(*maker.0.lock().unwrap(), [expected], "its own, and once");
    assert!(
        told.0.iter().any(
            |event| matches!(event, Event::Informational { content, .. } if content.contains("'broken'"))
        )
    );
    let (parent, child) = (stage.request(1)["tools"].to_string(), stage.request(2)["tools"].to_string());
    assert!(!parent.contains("mcp__calc__sine") && child.contains("mcp__calc__sine"), "{child}");
    let [(_, false, words)] = &results_in(&stage.request(3))[..] else { panic!() };
    assert!(words.contains("sine"), "{words}");
}

/// What a repository names as filters is not run when a checkout is made of it.
#[tokio::test]
async fn making_a_checkout_runs_nothing_of_the_repository() {
    let stage = repository(tinkers(vec![tool("Bash", sh("cat kept.txt"))])).await;
    stage.write(".gitattributes", "* filter=odd\n");
    git(&stage, &["add", "-A"]);
    git(&stage, &["commit", "-qm", "two"]);
    let ran = stage.path("ran");
    for name in ["smudge", "clean"] {
        git(&stage, &["config", &format!("filter.odd.{name}"), &format!("touch {}; cat", ran.display())]);
    }
    git(&stage, &["config", "filter.odd.required", "true"]);
    std::fs::write(stage.path(".git/hooks/post-checkout"), format!("#!/bin/sh\ntouch {}\n", ran.display()))
        .unwrap();
    let mut engine = stage.engine_with(|options| {
        with_tinkerer(options, |agent| agent.isolation = Some(Isolation::Worktree));
    });
    run(&mut engine, "Go.").await.assert_completed();
    assert!(results_in(&stage.request(3))[0].2.contains("kept"), "{}", stage.request(3));
    assert!(!ran.exists());
    stage.assert_all_played();
}
