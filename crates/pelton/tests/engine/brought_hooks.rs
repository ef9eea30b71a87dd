//! Hooks that a skill or an agent brings: called while it counts, and for whom it counts.

use pelton::history::Kind;
use pelton::tools::AgentDefinition;
use pelton::{Options, SkillSources};
use pelton_testkit::{Part, Script, text, tool};
use serde_json::json;

use crate::hooks::said;
use crate::stage::{Stage, Told, resume_from, run};

/// A skill that lets no command run.
const CAREFUL: &str = "---
description: Careful work
hooks:
  PreToolUse:
    - matcher: Bash
      hooks:
        - type: command
          command: echo 'look first' >&2; exit 2
---
Be careful.";

async fn stage(script: Script, skill: &str) -> Stage {
    let stage = Stage::new(script).await;
    std::fs::create_dir_all(stage.path(".claude/skills/careful")).unwrap();
    stage.write(".claude/skills/careful/SKILL.md", skill);
    stage
}

fn with_skills(options: &mut Options) {
    options.skills = Some(SkillSources::project());
}

fn bash(line: &str) -> Part {
    tool("Bash", json!({"command": line}))
}

/// Whether each call was let through.
fn ran(told: &Told) -> Vec<bool> {
    let results = told.entries().into_iter().filter(|entry| matches!(entry.kind, Kind::ToolResult { .. }));
    results.map(|result| !String::from_utf8_lossy(&result.json).contains("look first")).collect()
}

#[tokio::test]
async fn hooks_of_a_skill_are_called_from_its_call_to_the_end_of_the_session() {
    let script = Script::new()
        .reply([bash("echo before")])
        .reply([tool("Skill", json!({"skill": "careful"}))])
        .reply([bash("touch after")])
        .reply([text("Refused.")])
        .reply([bash("touch next")])
        .reply([text("Refused again.")])
        .reply([bash("touch cleared")])
        .reply([text("Done.")]);
    let stage = stage(script, CAREFUL).await;
    let mut engine = stage.engine_with(with_skills);
    let told = run(&mut engine, "Work.").await;
    told.assert_completed();
    assert_eq!(ran(&told), [true, true, false]);
    // Of one session all prompts, …
    assert_eq!(ran(&run(&mut engine, "More.").await), [false]);
    assert!(!stage.path("after").exists() && !stage.path("next").exists());
    // … and of no other any.
    run(&mut engine, "/clear").await;
    assert_eq!(ran(&run(&mut engine, "More.").await), [true]);
    assert!(stage.path("cleared").exists());
    stage.assert_all_played();
}

#[tokio::test]
async fn hooks_of_a_skill_that_a_user_calls_are_called_too_unless_nobody_wants_them() {
    for wanted in [true, false] {
        let script = Script::new().reply([bash("touch made")]).reply([text("Done.")]);
        let stage = stage(script, CAREFUL).await;
        let mut engine = stage.engine_with(|options| {
            let mut skills = SkillSources::project();
            skills.hooks = wanted;
            options.skills = Some(skills);
        });
        let told = run(&mut engine, "/careful").await;
        told.assert_completed();
        assert_eq!((ran(&told), stage.path("made").exists()), (vec![!wanted], !wanted));
    }
}

#[tokio::test]
async fn hooks_of_a_skill_are_called_in_a_process_that_goes_on_with_the_session() {
    for by_user in [true, false] {
        let script = match by_user {
            true => Script::new(),
            false => Script::new().reply([tool("Skill", json!({"skill": "careful"}))]),
        };
        let script = script.reply([text("Careful.")]).reply([bash("touch made")]).reply([text("Refused.")]);
        let stage = stage(script, CAREFUL).await;
        let mut engine = stage.engine_with(with_skills);
        run(&mut engine, if by_user { "/careful" } else { "Be careful." }).await.assert_completed();
        let file = engine.transcript_file().unwrap();
        drop(engine);
        let mut engine = stage.engine_with(|options| {
            with_skills(options);
            resume_from(options, &file);
        });
        let told = run(&mut engine, "Work.").await;
        assert_eq!((ran(&told), stage.path("made").exists()), (vec![false], false), "{by_user}");
        stage.assert_all_played();
    }
}

#[tokio::test]
async fn a_hook_of_a_skill_may_be_called_once() {
    let skill = "---
description: Checked work
hooks:
  Stop:
    - hooks:
        - type: command
          command: echo called >> calls; echo 'check it' >&2; exit 2
          once: true
    - hooks: none
---
Check.";
    let script = Script::new().reply([text("Done.")]).reply([text("Checked.")]).reply([text("More.")]);
    let stage = stage(script, skill).await;
    let mut engine = stage.engine_with(with_skills);
    let told = run(&mut engine, "/careful").await;
    assert_eq!(told.assert_completed().text, "Checked.");
    let wrong = "/careful: `hooks.Stop[1].hooks` must be a list of hooks";
    assert!(said(&told).iter().any(|(words, _)| words == wrong), "{:?}", said(&told));
    assert_eq!(run(&mut engine, "/careful").await.assert_completed().text, "More.");
    assert_eq!(stage.read("calls"), "called\n");
    stage.assert_all_played();
}

#[tokio::test]
async fn hooks_of_an_agent_are_called_while_it_runs_and_its_stop_is_its_own() {
    let script = Script::new()
        .reply([tool("Agent", json!({"description": "d", "prompt": "p", "subagent_type": "careful"}))])
        .reply([bash("touch inside")])
        .reply([text("Not yet.")])
        .reply([text("Reported.")])
        .reply([bash("touch outside")])
        .reply([text("Done.")]);
    let stage = Stage::new(script).await;
    let mut agent = AgentDefinition::new("careful", "Careful work.", "You are careful.");
    let keeps = "tr -d '\\n' >> heard; echo >> heard; test -e blocked && exit 0; touch blocked; exit 2";
    agent.hooks = Some(json!({
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "echo 'look first' >&2; exit 2"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": keeps}]}],
        "Stopp": [],
    }));
    let mut engine = stage.engine_with(|options| options.agents = vec![agent]);
    let told = run(&mut engine, "Work.").await;
    told.assert_completed();
    assert!(!stage.path("inside").exists() && stage.path("outside").exists());
    let heard: Vec<serde_json::Value> =
        stage.read("heard").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> =
        heard.iter().map(|heard| (&heard["hook_event_name"], &heard["agent_type"])).collect();
    let own = (&json!("SubagentStop"), &json!("careful"));
    assert_eq!(events, [own, own], "sent back once, and the main thread has an end of its own");
    let wrong = "The agent 'careful': `hooks.Stopp` is no event we know: its hooks are never called";
    assert!(said(&told).iter().any(|(words, _)| words == wrong), "{:?}", said(&told));
    stage.assert_all_played();
}
