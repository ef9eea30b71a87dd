//! Skills and custom commands: which there are, how they are called, and what they may do.

use pelton::event::Init;
use pelton::permission::Mode;
use pelton::{Event, MemorySources, Options, SkillSources};
use pelton_testkit::{Script, Step, When, error, text, tool};
use serde_json::{Value, json};

use crate::stage::{Stage, Told, blocks, last_user_blocks, lines, results_in, resume_from, run, unmarked};

fn with_skills(options: &mut Options) {
    options.skills = Some(SkillSources::project());
}

async fn stage(script: Script, files: &[(&str, &str)]) -> Stage {
    let stage = Stage::new(script).await;
    for (name, content) in files {
        std::fs::create_dir_all(stage.path(name).parent().unwrap()).unwrap();
        stage.write(name, content);
    }
    stage
}

fn skill(name: &str, args: &str) -> pelton_testkit::Part {
    tool("Skill", json!({"skill": name, "args": args}))
}

fn init(told: &Told) -> &Init {
    told.0.iter().find_map(|event| if let Event::Init(init) = event { Some(&**init) } else { None }).unwrap()
}

fn words(blocks: &[Value]) -> String {
    blocks.iter().filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n")
}

const GREET: (&str, &str) = (
    ".claude/skills/greet/SKILL.md",
    "---\ndescription: Greets people\nargument-hint: [name]\n---\nSay hello to $0.",
);

#[tokio::test]
async fn loop_S5_what_is_there_is_found_and_stated_before_anything_else() {
    let files = [
        GREET,
        (".claude/skills/mine/SKILL.md", "---\ndisable-model-invocation: true\n---\nFor the user."),
        (".claude/skills/yours/SKILL.md", "---\nuser-invocable: no\n---\nFor the model."),
        (".claude/commands/tidy.md", "Tidy up."),
    ];
    let stage = stage(Script::new().reply([text("Hello.")]), &files).await;
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        options.memory = Some(MemorySources::project());
    });
    let told = run(&mut engine, "Hi.").await;
    told.assert_completed();
    assert!(matches!(told.0[0], Event::Init(_)));
    let init = init(&told);
    assert_eq!(init.skills, ["greet", "mine", "yours", "tidy"]);
    let commands: Vec<&str> = init.commands.iter().map(|command| command.name.as_str()).collect();
    assert_eq!(commands[..7], ["greet", "mine", "tidy", "compact", "clear", "uncompact", "context"]);
    assert!(commands.contains(&"help"));
    assert_eq!(init.commands[0].argument_hint, "[name]");
    assert_eq!((init.cwd.clone(), init.session_id), (stage.cwd(), engine.session_id()));
    assert_eq!(init.agents, ["general-purpose", "Explore", "Plan"]);
    assert!(init.tools.contains(&"Skill".to_owned()) && init.servers.is_empty());
    assert_eq!((init.mode, init.model.as_str()), (Mode::BypassPermissions, Options::DEFAULT_MODEL));
    let request = stage.request(1);
    let listing = blocks(&request, "user")
        .iter()
        .map(|block| block["text"].as_str().unwrap())
        .collect::<Vec<_>>()
        .join("\n");
    assert!(listing.contains("- greet: Greets people") && listing.contains("- yours: For the model."));
    assert!(!listing.contains("mine"), "the model does not call it");
    assert!(!request["tools"].to_string().contains("Greets people"), "the list of tools stays the same");
}

#[tokio::test]
async fn a_user_calls_a_skill_by_its_name() {
    let files = [GREET, (".claude/commands/show.md", "It prints: !`echo $ARGUMENTS | tr a-z A-Z` and more.")];
    let script = Script::new().reply([text("Hello, Ada.")]).reply([text("Shown.")]);
    let stage = stage(script, &files).await;
    let mut engine = stage.engine_with(with_skills);
    run(&mut engine, "/greet 'Ada L'").await.assert_completed();
    let sent = words(last_user_blocks(&stage.request(1)));
    assert!(
        sent.contains("<command-name>/greet</command-name>") && sent.ends_with("Say hello to Ada L."),
        "{sent}"
    );
    run(&mut engine, "/show loud").await.assert_completed();
    let sent = words(last_user_blocks(&stage.request(2)));
    assert!(sent.ends_with("It prints: LOUD and more."), "{sent}");
    let told = run(&mut engine, "/nothing").await;
    assert_eq!(told.outcome().text, "Unknown command: /nothing");
    stage.assert_all_played();
}

#[tokio::test]
async fn loop_I11_a_skill_the_model_calls_comes_behind_the_results_and_once() {
    let script = Script::new()
        .reply([skill("greet", "Ada")])
        .reply([skill("greet", "Ada"), skill("mine", ""), skill("none", "")])
        .reply([text("Hello, Ada.")]);
    let mine = (".claude/skills/mine/SKILL.md", "---\ndisable-model-invocation: true\n---\nFor the user.");
    let stage = stage(script, &[GREET, mine]).await;
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        options.mode = Mode::Default;
    });
    run(&mut engine, "Greet Ada.").await.assert_completed();
    let second = stage.request(2);
    let (results, behind) = last_user_blocks(&second).split_at(1);
    assert_eq!(results[0]["type"], "tool_result");
    assert!(words(behind).contains("Say hello to Ada."), "{behind:?}");
    let third = stage.request(3);
    let results: Vec<String> = results_in(&third).into_iter().map(|(_, _, text)| text).collect();
    assert!(results[1].contains("already"), "{results:?}");
    assert!(results[2].contains("/mine") || results[2].contains("Only the user"), "{results:?}");
    assert!(results[3].contains("there are: greet"), "{results:?}");
    assert_eq!(third["messages"].to_string().matches("Say hello to Ada.").count(), 1);
    let (old, new) = (unmarked(&second["messages"]), unmarked(&third["messages"]));
    assert_eq!(new.as_array().unwrap()[..old.as_array().unwrap().len()], old.as_array().unwrap()[..]);
    let told = lines(&engine.transcript_file().unwrap());
    let kinds: Vec<&Value> =
        told.iter().filter_map(|line| line.get("attachment")).map(|about| &about["type"]).collect();
    assert_eq!(kinds, ["skill_listing", "invoked_skill"]);
}

#[tokio::test]
async fn a_skill_that_a_user_calls_again_is_not_told_twice() {
    let script = (0..4).fold(Script::new(), |script, _| script.reply([text("Hello.")]));
    let stage = stage(script, &[GREET]).await;
    let mut engine = stage.engine_with(with_skills);
    for prompt in ["/greet Ada", "/greet Ada", "/greet Bob"] {
        run(&mut engine, prompt).await.assert_completed();
    }
    let told_times = |n: usize, words: &str| stage.request(n).to_string().matches(words).count();
    assert_eq!(told_times(2, "Say hello to Ada."), 1);
    let again = words(last_user_blocks(&stage.request(2)));
    assert!(
        again.contains("<command-name>/greet") && again.contains("You have the text of this skill already")
    );
    assert_eq!(told_times(3, "Say hello to Bob."), 1, "that is another text");
    // What was dropped has to be told again.
    run(&mut engine, "/context drop 2-3").await;
    run(&mut engine, "/greet Bob").await.assert_completed();
    assert_eq!((told_times(4, "Say hello to Ada."), told_times(4, "Say hello to Bob.")), (1, 1));
}

#[tokio::test]
async fn loop_I11_skills_below_are_told_when_a_file_there_is_touched_and_the_tools_stay() {
    let files = [
        ("sub/a.txt", "a"),
        ("sub/.claude/skills/deep/SKILL.md", "---\ndescription: Goes deep\n---\nDig."),
        ("sub/CLAUDE.md", "Of the part."),
    ];
    let script = Script::new()
        .reply([tool("Read", json!({"file_path": "sub/a.txt"}))])
        .reply([skill("deep", "")])
        .reply([text("Done.")]);
    let stage = stage(script, &files).await;
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        options.memory = Some(MemorySources::project());
    });
    run(&mut engine, "Look.").await.assert_completed();
    assert!(!stage.request(1)["messages"].to_string().contains("Goes deep"));
    let second = words(last_user_blocks(&stage.request(2)));
    assert!(second.contains("- deep: Goes deep") && second.contains("Of the part."), "{second}");
    assert!(words(last_user_blocks(&stage.request(3))).contains("Dig."));
    assert_eq!(stage.request(1)["tools"], stage.request(3)["tools"]);
    assert_eq!(stage.request(1)["system"], stage.request(3)["system"]);
}

#[tokio::test]
async fn loop_S1_skills_that_one_submission_came_upon_are_not_those_of_the_next() {
    let files = [
        ("sub/a.txt", "a"),
        ("sub/.claude/skills/deep/SKILL.md", "---\ndescription: Goes deep\n---\nDig."),
        ("other/a.txt", "a"),
        ("other/.claude/skills/deep/SKILL.md", "---\ndescription: Goes deep, too\n---\nDig elsewhere."),
    ];
    let script = Script::new()
        .reply([tool("Read", json!({"file_path": "sub/a.txt"}))])
        .reply([text("Seen.")])
        .reply([skill("deep", "")])
        .reply([tool("Read", json!({"file_path": "other/a.txt"}))])
        .reply([text("Dug.")])
        .reply([tool("Read", json!({"file_path": "sub/a.txt"})), tool("Bash", json!({"command": "echo"}))])
        .reply([text("Again.")]);
    let stage = stage(script, &files).await;
    let mut engine = stage.engine_with(with_skills);
    run(&mut engine, "Look.").await.assert_completed();

    // Not stated any more, but the model was told of it and may call it; another of its name is not mixed up with it.
    let told = run(&mut engine, "Dig.").await;
    told.assert_completed();
    assert!(init(&told).skills.is_empty(), "{:?}", init(&told).skills);
    assert!(words(last_user_blocks(&stage.request(4))).contains("Dig."));
    let news = words(last_user_blocks(&stage.request(5)));
    assert!(news.contains("Goes deep, too") && !news.contains("- deep:"), "{news}");

    // Come upon again, it is the same, and no news.
    let told = run(&mut engine, "Look again.").await;
    told.assert_completed();
    assert!(init(&told).skills.is_empty(), "{:?}", init(&told).skills);
    assert!(!words(last_user_blocks(&stage.request(7))).contains("Goes deep"));
    stage.assert_all_played();
}

#[tokio::test]
async fn what_a_skill_grants_holds_for_the_submission_and_needs_approval_itself() {
    let grants = (".claude/skills/grants/SKILL.md", "---\nallowed-tools: Bash(touch made)\n---\nTouch it.");
    let touch = || tool("Bash", json!({"command": "touch made"}));
    let script = Script::new()
        .reply([skill("grants", "")])
        .reply([text("Refused.")])
        .reply([touch()])
        .reply([text("Made.")])
        .reply([touch()])
        .reply([text("Refused again.")]);
    let stage = stage(script, &[grants]).await;
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        options.mode = Mode::Default;
    });
    // A repository does not grant itself anything: nobody has approved of it.
    let told = run(&mut engine, "Do it.").await;
    assert_eq!(told.outcome().denials.len(), 1);
    // The user calls it.
    let told = run(&mut engine, "/grants").await;
    assert_eq!(told.outcome().denials.len(), 0, "{:?}", told.outcome());
    assert!(stage.path("made").exists());
    let told = run(&mut engine, "Again.").await;
    assert_eq!(told.outcome().denials.len(), 1, "it held for that prompt only");
}

#[tokio::test]
async fn a_command_in_a_skill_that_may_not_run_ends_it() {
    let files = [
        (".claude/commands/bad.md", "!`touch made`"),
        (".claude/commands/fails.md", "!`cat no_such_file`"),
        (".claude/commands/off.md", "x !`echo run` y"),
    ];
    let stage = stage(Script::new().reply([text("Fine.")]), &files).await;
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        options.mode = Mode::Default;
    });
    let told = run(&mut engine, "/bad").await;
    assert!(
        told.outcome().is_error && told.outcome().text.contains("not allowed to run"),
        "{:?}",
        told.outcome()
    );
    assert!(!stage.path("made").exists());
    let told = run(&mut engine, "/fails").await;
    assert!(told.outcome().is_error && told.outcome().text.contains("failed"), "{:?}", told.outcome());
    drop(engine);
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        options.skills.as_mut().unwrap().run_commands = false;
    });
    run(&mut engine, "/off").await.assert_completed();
    assert!(words(last_user_blocks(&stage.request(1))).contains("x [commands in skills are not run here] y"));
}

#[tokio::test]
async fn a_skill_may_be_followed_by_an_agent() {
    let fork = (".claude/skills/survey/SKILL.md", "---\ncontext: fork\n---\nSurvey $ARGUMENTS and report.");
    let script = Script::new()
        .reply([skill("survey", "the moon")])
        .reply([text("It is dusty.")])
        .reply([text("Dusty, they say.")]);
    let stage = stage(script, &[fork]).await;
    let mut engine = stage.engine_with(with_skills);
    run(&mut engine, "Survey.").await.assert_completed();
    let agents = stage.request(2);
    assert!(words(last_user_blocks(&agents)).ends_with("Survey the moon and report."));
    assert!(results_in(&stage.request(3))[0].2.contains("It is dusty."));
}

#[tokio::test]
async fn where_an_answer_has_a_form_the_model_gives_it_behind_the_report_of_an_agent() {
    let fork = (".claude/skills/survey/SKILL.md", "---\ncontext: fork\n---\nSurvey $ARGUMENTS and report.");
    let script =
        Script::new().reply([text("It is dusty.")]).reply([tool("StructuredOutput", json!({"dust": true}))]);
    let stage = stage(script, &[fork]).await;
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        let dust =
            json!({"type": "object", "properties": {"dust": {"type": "boolean"}}, "required": ["dust"]});
        options.json_schema = Some(dust);
    });
    let told = run(&mut engine, "/survey the moon").await;
    told.assert_completed();
    assert_eq!(told.outcome().structured_output, Some(json!({"dust": true})));
    assert!(words(last_user_blocks(&stage.request(2))).contains("It is dusty."));
    stage.assert_all_played();
}

#[tokio::test]
async fn an_agent_that_follows_what_a_user_calls_answers_by_itself() {
    let fork = (
        ".claude/skills/survey/SKILL.md",
        "---\ncontext: fork\nallowed-tools: Bash(touch *)\n---\nSurvey $ARGUMENTS and report.",
    );
    let script = Script::new()
        .reply([tool("Bash", json!({"command": "touch seen"}))])
        .reply([text("It is dusty.")])
        .reply([text("As I heard.")])
        .reply([text("Still so.")]);
    let stage = stage(script, &[fork]).await;
    let file = {
        let mut engine = stage.engine_with(|options| {
            with_skills(options);
            options.mode = Mode::Default;
        });
        let told = run(&mut engine, "/survey the moon").await;
        let outcome = told.outcome();
        assert_eq!((outcome.text.as_str(), outcome.num_turns, outcome.is_error), ("It is dusty.", 0, false));
        assert!(words(last_user_blocks(&stage.request(1))).ends_with("Survey the moon and report."));
        assert!(stage.path("seen").exists());
        run(&mut engine, "So?").await.assert_completed();
        engine.transcript_file().unwrap()
    };
    // What was lent is taken back, and what was said is known, also by another process.
    let mut engine = stage.engine_with(|options| resume_from(options, &file));
    run(&mut engine, "And now?").await.assert_completed();
    for nth in [3, 4] {
        let sent = stage.request(nth)["messages"].to_string();
        assert!(sent.contains("<command-args>the moon") && sent.contains("It is dusty."), "{sent}");
        assert!(!sent.contains("Survey the moon"), "{sent}");
    }
}

#[tokio::test]
async fn what_a_skill_lends_is_there_for_agents_and_still_there_behind_them() {
    let fork = ".claude/skills/survey/SKILL.md";
    let files = [
        (fork, "---\ncontext: fork\nallowed-tools: Bash(touch *)\n---\nSurvey."),
        (".claude/skills/mark/SKILL.md", "---\nallowed-tools: Bash(touch *)\n---\nMark."),
    ];
    let touch = |name: &str| tool("Bash", json!({"command": format!("touch {name}")}));
    let agent = tool("Agent", json!({"description": "Look", "prompt": "Look.", "run_in_background": false}));
    let script = Script::new()
        .reply([agent])
        .reply([touch("by-agent")])
        .reply([text("Looked.")])
        .reply([touch("behind-it")])
        .reply([text("Done.")])
        .reply([skill("survey", "")])
        .reply([touch("by-fork")])
        .reply([text("Surveyed.")])
        .reply([text("Done, too.")])
        .reply([touch("afterwards")])
        .reply([text("Refused.")]);
    let stage = stage(script, &files).await;
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        options.mode = Mode::Default;
        options.rules.allow.push("Skill".parse().unwrap());
    });
    for prompt in ["/mark", "Survey it.", "Touch it."] {
        run(&mut engine, prompt).await.assert_completed();
    }
    for (name, is_there) in
        [("by-agent", true), ("behind-it", true), ("by-fork", true), ("afterwards", false)]
    {
        assert_eq!(stage.path(name).exists(), is_there, "{name}");
    }
}

#[tokio::test]
async fn a_skill_for_an_agent_that_is_not_there_says_so() {
    let fork = (".claude/skills/survey/SKILL.md", "---\ncontext: fork\nagent: nobody\n---\nSurvey.");
    let stage = stage(Script::new(), &[fork]).await;
    let told = run(&mut stage.engine_with(with_skills), "/survey").await;
    assert!(told.outcome().is_error && told.outcome().text.contains("nobody"), "{:?}", told.outcome());
}

#[tokio::test]
async fn a_session_that_goes_on_hears_of_new_skills_alone() {
    let script = Script::new().reply([text("One.")]).reply([text("Two.")]);
    let stage = stage(script, &[GREET]).await;
    let mut engine = stage.engine_with(with_skills);
    run(&mut engine, "One.").await.assert_completed();
    let file = engine.transcript_file().unwrap();
    drop(engine);
    std::fs::create_dir_all(stage.path(".claude/commands")).unwrap();
    stage.write(".claude/commands/late.md", "Came late.");
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        resume_from(options, &file);
    });
    run(&mut engine, "Two.").await.assert_completed();
    let sent = stage.request(2)["messages"].to_string();
    assert_eq!((sent.matches("- greet").count(), sent.matches("- late").count()), (1, 1));
}

#[tokio::test]
async fn a_skill_about_some_files_is_told_when_one_of_them_is_read() {
    let read = |name: &str| tool("Read", json!({"file_path": name}));
    let script = Script::new()
        .reply([read("notes.txt")])
        .reply([read("src/deep/a.rs")])
        .reply([skill("rusty", "")])
        .reply([text("Done.")]);
    let stage = stage(
        script,
        &[
            (
                ".claude/skills/rusty/SKILL.md",
                "---\ndescription: How Rust is written here\npaths: [\"src/**/*.rs\"]\n---\nUse iterators.",
            ),
            (".claude/skills/plain/SKILL.md", "---\ndescription: Always there\n---\nBe kind."),
            ("notes.txt", "n"),
            ("src/deep/a.rs", "fn main() {}"),
        ],
    )
    .await;
    run(&mut stage.engine_with(with_skills), "Go.").await.assert_completed();
    let told = |nth: usize| {
        words(
            &stage.request(nth)["messages"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|message| message["content"].as_array().unwrap().clone())
                .collect::<Vec<_>>(),
        )
    };
    assert!(told(1).contains("- plain: Always there") && !told(1).contains("rusty"), "{}", told(1));
    assert!(!told(2).contains("rusty"), "another file is no reason: {}", told(2));
    assert!(told(3).contains("- rusty: How Rust is written here"), "{}", told(3));
    assert!(told(4).contains("Use iterators."), "{}", told(4));
}

#[tokio::test]
async fn what_a_skill_forbids_and_whom_it_asks_holds_until_the_next_prompt() {
    let write = |name: &str| tool("Write", json!({"file_path": name, "content": "x"}));
    let script = Script::new()
        .reply([write("before.txt")])
        .reply([skill("careful", "")])
        .reply([write("during.txt")])
        .reply([text("Done.")])
        .reply([write("after.txt")])
        .reply([text("Done.")]);
    let head = "---\ndescription: Looks only\ndisallowed-tools: Write Edit\nmodel: claude-haiku-5-5\n---\nOnly look.";
    let stage = stage(script, &[(".claude/skills/careful/SKILL.md", head)]).await;
    let mut engine = stage.engine_with(with_skills);
    run(&mut engine, "Go.").await.assert_completed();
    assert!(stage.path("before.txt").exists() && !stage.path("during.txt").exists());
    let models: Vec<String> =
        (1..=4).map(|nth| stage.request(nth)["model"].as_str().unwrap().to_owned()).collect();
    assert_eq!(models[2..], ["claude-haiku-5-5", "claude-haiku-5-5"], "{models:?}");
    run(&mut engine, "Again.").await.assert_completed();
    assert!(stage.path("after.txt").exists(), "that was for one prompt");
    assert_eq!(stage.request(5)["model"], models[0]);

    // The same when the user calls it.
    let stage = stage.playing(Script::new().reply([write("called.txt")]).reply([text("Done.")])).await;
    run(&mut stage.engine_with(with_skills), "/careful").await.assert_completed();
    assert!(!stage.path("called.txt").exists());
    assert_eq!(stage.request(1)["model"], "claude-haiku-5-5");
}

#[tokio::test]
async fn loop_F2_loop_P8_an_answer_that_loads_a_skill_is_kept_for_the_next_model() {
    let second = "claude-opus-5-5";
    let script = Script::new()
        .step(Step::status(529).times(2))
        .step(Step::reply([skill("greet", "Ada"), error("overloaded_error", "")]))
        .step(Step::reply([text("Hello, Ada.")]).when(When::any().model(second)));
    let stage = stage(script, &[GREET]).await;
    let mut engine = stage.engine_with(|options| {
        with_skills(options);
        options.fallback_models = vec![second.to_owned()];
    });
    let told = run(&mut engine, "Greet Ada.").await;
    assert_eq!(told.assert_completed().text, "Hello, Ada.");
    // Nobody is told a skill that nobody called: the call goes along with it.
    let asked = stage.request(4);
    assert_eq!(results_in(&asked).len(), 1);
    assert!(words(last_user_blocks(&asked)).contains("Say hello to Ada."));
    stage.assert_all_played();
}

/// Two that follow one skill at the same time are told apart by the call that each of them names.
#[tokio::test]
async fn agents_that_follow_the_same_skill_name_calls_of_their_own() {
    let fork = (".claude/skills/survey/SKILL.md", "---\ncontext: fork\n---\nSurvey $ARGUMENTS and report.");
    let script = Script::new().reply([text("one")]).reply([text("two")]);
    let stage = stage(script, &[fork]).await;
    let mut engine = stage.engine_with(with_skills);
    let mut calls = Vec::new();
    for words in ["/survey here", "/survey there"] {
        let told = run(&mut engine, words).await;
        let named = told.0.iter().find_map(|event| match event {
            Event::Agent(told) => Some(told.agent.call.to_string()),
            _ => None,
        });
        calls.push(named.unwrap());
    }
    assert!(calls.iter().all(|call| call.starts_with("forked-command-survey-")), "{calls:?}");
    assert_ne!(calls[0], calls[1]);
}

/// Words that somebody else said, or that the list of skills has in it, are not the text of a command.
#[tokio::test]
async fn a_command_whose_words_were_said_by_others_is_told_all_the_same() {
    let command = (".claude/commands/go.md", "Go on, please.");
    let script = Script::new().step(Step::reply([text("Yes.")]).always());
    let stage = stage(script, &[command]).await;
    let mut engine = stage.engine_with(with_skills);
    for words in ["I said: Go on, please. And then?", "/go", "/go"] {
        run(&mut engine, words).await.assert_completed();
    }
    let told = |nth| words(last_user_blocks(&stage.request(nth)));
    assert!(told(1).contains("- go: Go on, please."), "the list has it, too: {}", told(1));
    assert!(told(2).ends_with("Go on, please."), "{}", told(2));
    assert!(
        !told(3).contains("Go on, please.") && told(3).contains("already"),
        "once is enough: {}",
        told(3)
    );
}
