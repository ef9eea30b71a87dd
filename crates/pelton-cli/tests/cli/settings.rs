//! Settings files: which count, what wins, and what is told of those that cannot be right.

use std::path::Path;
use std::process::Command;

use pelton_testkit::strict::{Rule, Strictness};
use pelton_testkit::{Script, ScriptedModel, Step, When, text, tool};
use serde_json::{Value, json};

use crate::frames::STREAM;
use crate::place::{Commanded, Place, Ran, model, of_type};

impl Place {
    fn user_settings(&self, settings: &Value) {
        std::fs::write(self.config().join("settings.json"), settings.to_string()).unwrap();
    }
}

/// Whatever the model is called.
fn hello() -> Script {
    any_model(Script::new().step(Step::reply([text("Hello.")]).always()))
}

fn any_model(script: Script) -> Script {
    script.strict(Strictness::default().relax(Rule::KnownModel))
}

/// Writes a file and says so.
fn writes() -> Script {
    Script::new().reply([tool("Bash", json!({"command": "touch made"}))]).reply([text("Done.")])
}

fn init(ran: &Ran) -> Value {
    let frames = ran.frames();
    of_type(&frames, "system").into_iter().find(|frame| frame["subtype"] == "init").unwrap().clone()
}

fn model_asked(place: &Place, words: &[&str], set: &[(&str, &str)]) -> String {
    let model = model(hello());
    let mut task = place.task(&model, ["hi"].into_iter().chain(words.iter().copied()));
    // Nobody knows what these models cost, and that is said.
    let ran = task.envs(set.iter().copied()).run();
    assert_eq!((ran.code, ran.err.lines().count()), (Some(0), 1), "{ran:?}");
    model.requests()[0].body["model"].as_str().unwrap().to_owned()
}

fn git(place: &Place, words: &[&str]) {
    let mut git = Command::new("git");
    git.args(words).current_dir(place.work()).env("HOME", place.home());
    git.env("GIT_CONFIG_NOSYSTEM", "1").stdout(std::process::Stdio::null());
    assert!(git.status().unwrap().success());
}

#[test]
fn the_nearest_word_on_the_model_counts() {
    let place = Place::new();
    assert_eq!(model_asked(&place, &[], &[("ANTHROPIC_DEFAULT_MODEL", "m-default")]), "m-default");
    place.user_settings(&json!({"model": "m-user"}));
    assert_eq!(model_asked(&place, &[], &[("ANTHROPIC_DEFAULT_MODEL", "m-default")]), "m-user");
    place.put(".claude/settings.json", r#"{"model": "m-project"}"#);
    assert_eq!(model_asked(&place, &[], &[]), "m-project");
    place.put(".claude/settings.local.json", "// mine\n{\"model\": \"m-local\",}");
    assert_eq!(model_asked(&place, &[], &[]), "m-local");
    let flag = ["--settings", r#"{"model": "m-flag"}"#];
    assert_eq!(model_asked(&place, &flag, &[]), "m-flag");
    let file = place.put("my.json", r#"{"model": "m-file"}"#);
    assert_eq!(model_asked(&place, &["--settings", file.to_str().unwrap()], &[]), "m-file");
    assert_eq!(model_asked(&place, &flag, &[("ANTHROPIC_MODEL", "m-env")]), "m-env");
    assert_eq!(model_asked(&place, &["--model", "m-said"], &[("ANTHROPIC_MODEL", "m-env")]), "m-said");
    // What a family's name means can be set too.
    let opus = [("ANTHROPIC_DEFAULT_OPUS_MODEL", "m-opus")];
    assert_eq!(model_asked(&place, &["--model", "opus"], &opus), "m-opus");
    // And which files count at all.
    assert_eq!(model_asked(&place, &["--setting-sources", "user"], &[]), "m-user");
    assert_eq!(model_asked(&place, &["--setting-sources", "user,project"], &[]), "m-project");
    assert_eq!(model_asked(&place, &["--setting-sources=", "--model", "x"], &[]), "x");
}

#[test]
fn settings_reach_the_run() {
    let place = Place::new();
    place.user_settings(&json!({
        "permissions": {"allow": ["Bash(touch *)"], "defaultMode": "dontAsk"},
        "env": {"GREETING": "moin"},
        "effortLevel": "low",
    }));
    let script = Script::new()
        .reply([
            tool("Bash", json!({"command": "touch \"made\""})),
            tool("Bash", json!({"command": "touch $GREETING"})),
        ])
        .reply([text("Done.")]);
    let model = model(script);
    let ran = place.task(&model, ["hi"].into_iter().chain(STREAM)).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(init(&ran)["permissionMode"], "dontAsk");
    assert!(place.has("made"));
    assert_eq!(model.requests()[0].body["output_config"]["effort"], "low");

    let place = Place::new();
    let model = crate::place::model(
        Script::new()
            .reply([tool("Bash", json!({"command": "echo $GREETING > made"}))])
            .reply([text("Done.")]),
    );
    let settings = r#"{"env": {"GREETING": "moin"}, "permissions": {"allow": ["Bash"]}}"#;
    place.task(&model, ["hi", "--settings", settings]).run().well();
    assert_eq!(place.read("made"), "moin\n");
}

#[test]
fn fallback_models_come_from_settings_as_one_list() {
    let script = Script::new()
        .step(Step::status(529).header("retry-after-ms", "10").times(3).when(When::any().model("m-one")))
        .step(Step::reply([text("Done.")]).when(When::any().model("m-three")));
    let (place, model) = (Place::new(), model(any_model(script)));
    place.user_settings(&json!({"model": "m-one", "fallbackModel": ["m-two"]}));
    place.put(".claude/settings.json", r#"{"fallbackModel": ["m-three"]}"#);
    assert_eq!(place.task(&model, ["hi"]).run().out, "Done.\n");
}

#[test]
fn a_repository_may_restrict_but_grants_itself_nothing_until_it_is_trusted() {
    let place = Place::new();
    place.put(
        ".claude/settings.json",
        &json!({"permissions": {"allow": ["Bash"], "additionalDirectories": [".."], "defaultMode": "acceptEdits"},
                "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "GREETING": "moin"}})
        .to_string(),
    );
    let model = model(writes());
    let ran = place.task(&model, ["hi"].into_iter().chain(STREAM)).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let [warning] = &ran.err.lines().collect::<Vec<_>>()[..] else { panic!("one warning: {ran:?}") };
    for word in [
        "settings.json",
        "not trusted",
        "1 allow rule",
        "additionalDirectories",
        "acceptEdits",
        "env.ANTHROPIC_BASE_URL",
    ] {
        assert!(warning.contains(word), "{word}: {warning}");
    }
    assert!(!place.has("made"), "it was not allowed");
    assert_eq!(ran.result()["permission_denials"].as_array().unwrap().len(), 1);
    assert_eq!(init(&ran)["permissionMode"], "default");

    // The same directory, trusted.
    let state = json!({"projects": {place.work().to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    std::fs::write(place.config().join(".claude.json"), state.to_string()).unwrap();
    let model = crate::place::model(writes());
    let allow = json!({"permissions": {"allow": ["Bash"]}}).to_string();
    place.put(".claude/settings.json", &allow);
    place.task(&model, ["hi"]).run().well();
    assert!(place.has("made"));

    // What it forbids counts in any case.
    let place = Place::new();
    place.put(".claude/settings.json", r#"{"permissions": {"deny": ["Bash(touch *)"]}}"#);
    let model = crate::place::model(writes());
    let ran = place.task(&model, ["hi", "--allowedTools", "Bash"].into_iter().chain(STREAM)).run();
    ran.well();
    assert!(!place.has("made"));
}

#[test]
fn hooks_of_a_project_run_without_anybody_watching() {
    let place = Place::new();
    let hook = json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}});
    place.put(".claude/settings.json", &hook.to_string());
    let model = model(hello());
    place.task(&model, ["hi", "--setting-sources", "user"]).run().well();
    assert!(!place.has("ran"));
    place.task(&model, ["hi", "--settings", r#"{"disableAllHooks": true}"#]).run().well();
    assert!(!place.has("ran"));
    place.task(&model, ["hi"]).run().well();
    assert!(place.has("ran"));
}

#[test]
fn a_users_own_file_for_a_project_may_grant_unless_it_came_with_the_repository() {
    let grants = r#"{"permissions": {"allow": ["Bash"]}}"#;
    let place = Place::new();
    git(&place, &["init", "-q"]);
    place.put(".claude/settings.local.json", grants);
    place.put("sub/a", "");
    let model = model(writes());
    // It is found from below, too.
    place.task(&model, ["hi"]).current_dir(place.work().join("sub")).run().well();
    assert!(place.has("sub/made"));

    let came_along = |place: &Place| {
        let model = crate::place::model(writes());
        let ran = place.task(&model, ["hi"]).run();
        assert!(ran.err.contains("not trusted") && !place.has("made"), "{ran:?}");
    };
    git(&place, &["add", "-f", ".claude/settings.local.json"]);
    came_along(&place);

    let place = Place::new();
    place.put("elsewhere/settings.local.json", grants);
    std::os::unix::fs::symlink(Path::new("elsewhere"), place.work().join(".claude")).unwrap();
    came_along(&place);
}

#[test]
fn what_is_wrong_in_a_file_is_told_and_the_rest_counts() {
    let (place, model) = (Place::new(), model(hello()));
    place.user_settings(&json!({"model": "m-user", "fastMode": "yes"}));
    let ran = place.task(&model, ["hi"]).run();
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "Hello.\n"));
    assert!(ran.err.contains("settings.json: `fastMode` must be true or false"), "{ran:?}");
    assert_eq!(model.requests()[0].body["model"], "m-user");

    // On the command line it is a mistake.
    place.user_settings(&json!({}));
    for (settings, words) in [
        (r#"{"fastMode": 1}"#, "`fastMode` must be true or false"),
        (r#"{"model": }"#, "--settings: expected value"),
        ("missing.json", "there is no such file"),
    ] {
        place.task(&model, ["hi", "--settings", settings]).run().failed(1, &["--settings", words]);
    }
    place
        .task(&model, ["hi", "--setting-sources", "users"])
        .run()
        .failed(1, &["'users'", "user, project, local"]);
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn while_a_file_is_broken_nothing_is_allowed_that_it_might_forbid() {
    let place = Place::new();
    let broken = place.config().join("settings.json");
    std::fs::write(&broken, "{\"permissions\": {\"deny\": [\"Bash(touch *)\"]}").unwrap();
    let model = model(writes());
    let ran = place.task(&model, ["hi", "--permission-mode", "acceptEdits"]).run();
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.err.contains("settings.json: EOF") && ran.err.contains("acceptEdits is refused"), "{ran:?}");
    assert_eq!(model.requests().len(), 0);

    let ran = place.task(&model, ["hi", "--allowedTools", "Bash"]).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.err.contains("no allow rule counts") && !place.has("made"), "{ran:?}");
    assert!(std::fs::read_to_string(&broken).unwrap().starts_with('{'), "the file is left as it is");
}

#[test]
fn how_often_and_how_long_calls_are_repeated_can_be_set() {
    let overloaded = || Script::new().step(Step::status(529).header("retry-after-ms", "100").always());
    let requests = |settings: &str, set: &[(&str, &str)]| {
        let (place, model) = (Place::new(), model(overloaded()));
        let ran = place.task(&model, ["hi", "--settings", settings]).envs(set.iter().copied()).run();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        model.requests().len()
    };
    assert_eq!(requests(r#"{"retry": {"maxRetries": 2}}"#, &[]), 3);
    assert_eq!(requests(r#"{"retry": {"maxRetries": 2}}"#, &[("CLAUDE_CODE_MAX_RETRIES", "1")]), 2);
    assert_eq!(requests(r#"{"retry": {"maxRetries": 99, "horizonSeconds": 0}}"#, &[]), 1);
    let within_a_second = requests(r#"{"retry": {"horizonSeconds": 1}}"#, &[]);
    assert!((5..=10).contains(&within_a_second), "{within_a_second}");
}

#[test]
fn pit_B4_what_an_unknown_model_costs_is_not_counted_and_one_warning_says_so() {
    let script =
        || any_model(Script::new().reply([tool("Glob", json!({"pattern": "*"}))]).reply([text("Done.")]));
    let (place, model) = (Place::new(), model(script()));
    let ran = place.task(&model, ["hi", "--model", "mine"].into_iter().chain(STREAM)).run();
    ran.well();
    let frames = ran.frames();
    let warnings: Vec<&Value> =
        of_type(&frames, "system").into_iter().filter(|frame| frame["subtype"] == "informational").collect();
    let [warning] = warnings[..] else { panic!("{frames:?}") };
    assert_eq!((&warning["level"], &warning["prevent_continuation"]), (&json!("warning"), &json!(false)));
    assert!(warning["content"].as_str().unwrap().contains("modelPricing"), "{warning}");
    let result = ran.result();
    assert_eq!(result["total_cost_usd"], 0.0);
    let used = &result["modelUsage"]["mine"];
    assert_eq!((&used["costUSD"], &used["costBasis"]), (&json!(0.0), &json!("unknown")));
    assert!(used["outputTokens"].as_u64().unwrap() > 0);

    let model = crate::place::model(script());
    let ran = place.task(&model, ["hi", "--model", "mine"]).run();
    assert_eq!((ran.code, ran.out.as_str(), ran.err.lines().count()), (Some(0), "Done.\n", 1), "{ran:?}");
    assert!(ran.err.contains("The price of mine is not known"), "{ran:?}");
    // With a price there is nothing to warn of.
    let model = crate::place::model(script());
    let prices = r#"{"modelPricing": {"mine": {"input": 1, "output": 5}}}"#;
    let ran =
        place.task(&model, ["hi", "--model", "mine", "--settings", prices].into_iter().chain(STREAM)).run();
    ran.well();
    assert!(ran.result()["total_cost_usd"].as_f64().unwrap() > 0.0);
    assert!(ran.result()["modelUsage"]["mine"].get("costBasis").is_none());
}

#[test]
fn a_budget_needs_a_price_and_settings_can_give_it() {
    let (place, model) = (Place::new(), model(hello()));
    let words = ["hi", "--model", "mine", "--max-budget-usd", "1"];
    place.task(&model, words).run().failed(1, &["the price of mine is not known", "modelPricing"]);
    assert_eq!(model.requests().len(), 0);
    let prices = r#"{"modelPricing": {"mine": {"input": 1000000, "output": 0}}}"#;
    let ran = place.task(&model, words.into_iter().chain(["--settings", prices]).chain(STREAM)).run();
    assert_eq!(ran.result()["subtype"], "error_max_budget_usd", "{ran:?}");
    assert!(ran.result()["total_cost_usd"].as_f64().unwrap() > 1.0);
}

/// A task under settings of the administrator.
fn managed(place: &Place, model: &ScriptedModel, settings: &Value, more: &[&str]) -> Command {
    let mut task = place.task(model, ["go"].into_iter().chain(more.iter().copied()));
    task.arg("--managed-settings").arg(settings.to_string());
    task
}

#[test]
fn nobody_says_more_than_the_administrator() {
    let place = Place::new();
    let hook =
        |file: &str| json!({"Stop": [{"hooks": [{"type": "command", "command": format!("touch {file}")}]}]});
    place.user_settings(&json!({"permissions": {"allow": ["Bash(touch *)"]}, "hooks": hook("by-user")}));
    let only = json!({"allowManagedPermissionRulesOnly": true, "allowManagedHooksOnly": true, "hooks": hook("by-admin"),
        "permissions": {"disableBypassPermissionsMode": "disable"}});
    let ran = managed(&place, &self::model(writes()), &only, &["--allowedTools", "Bash(touch *)"]).run();
    assert!(!place.has("made"), "{ran:?}");
    assert!(place.has("by-admin") && !place.has("by-user"), "{ran:?}");
    for part in ["1 allow rule, hooks", "--allowedTools is not used"] {
        assert!(ran.err.contains(part), "{part}: {}", ran.err);
    }
    let ran = managed(&place, &self::model(writes()), &only, &["--dangerously-skip-permissions"]).run();
    assert!(ran.code != Some(0) && ran.err.contains("disableBypassPermissionsMode"), "{ran:?}");
    // Rules that restrict count whoever said them, and the administrator's allow.
    let allows =
        json!({"allowManagedPermissionRulesOnly": true, "permissions": {"allow": ["Bash(touch *)"]}});
    managed(&place, &self::model(writes()), &allows, &[]).run();
    assert!(place.has("made"));
    std::fs::remove_file(place.work().join("made")).unwrap();
    let ran = managed(&place, &self::model(writes()), &allows, &["--disallowedTools", "Bash(touch *)"]).run();
    assert!(!place.has("made"), "{ran:?}");
    // Flags and other files do not change what was said there.
    let settings = json!({"model": "m-admin", "permissions": {"defaultMode": "plan"}});
    let model = model(any_model(writes()));
    let flags = ["--model", "m-flag", "--permission-mode", "acceptEdits", "--setting-sources", ""];
    managed(&place, &model, &settings, &flags).env("ANTHROPIC_MODEL", "m-env").run();
    assert_eq!(model.requests()[0].body["model"], "m-admin");
    assert!(!place.has("made"));
    // Whoever switches hooks off switches off their own.
    std::fs::remove_file(place.work().join("by-admin")).unwrap();
    place.user_settings(&json!({"disableAllHooks": true, "allowManagedHooksOnly": true}));
    let ran = managed(&place, &self::model(writes()), &json!({"hooks": hook("by-admin")}), &["--bare"]).run();
    assert!(place.has("by-admin"), "{ran:?}");
    assert!(ran.err.contains("is for managed settings"), "{}", ran.err);
}
