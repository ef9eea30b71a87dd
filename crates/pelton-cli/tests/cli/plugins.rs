//! Folders that bring skills, commands, agents, hooks and programs.

use pelton_testkit::{Script, Step, When, text, tool};
use serde_json::json;

use crate::frames::STREAM;
use crate::place::{Commanded, Place, model};

/// A plugin that brings a bit of everything.
fn kit(place: &Place, root: &str) {
    place.put(&format!("{root}/.claude-plugin/plugin.json"), r#"{"name": "kit", "version": "1.0"}"#);
    place.put(&format!("{root}/commands/look.md"), "Look at $ARGUMENTS in ${CLAUDE_PLUGIN_ROOT}.");
    place.put(
        &format!("{root}/skills/dir-name/SKILL.md"),
        "---\nname: brew\ndescription: Makes tea.\n---\nBoil it.",
    );
    place.put(
        &format!("{root}/agents/r.md"),
        "---\nname: reviewer\ndescription: Reviews.\n---\nYou review for the kit.",
    );
    let command =
        r#"echo "$CLAUDE_PLUGIN_ROOT" > hooked; test -d "$CLAUDE_PLUGIN_DATA" && echo yes >> hooked"#;
    let hooks = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": command}]}]}});
    place.put(&format!("{root}/hooks/hooks.json"), &hooks.to_string());
    let program = place.put(&format!("{root}/bin/kit-program"), "#!/bin/sh\necho from the kit\n");
    std::fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_plugin_of_the_command_line_brings_all_it_has() {
    let place = Place::new();
    kit(&place, "kit");
    let script = Script::new()
        .reply([
            tool("Skill", json!({"skill": "kit:brew"})).id("toolu_s"),
            tool("Bash", json!({"command": "kit-program"})).id("toolu_b"),
            tool("Agent", json!({"subagent_type": "kit:reviewer", "description": "d", "prompt": "p"}))
                .id("toolu_a"),
        ])
        .step(Step::reply([text("Reviewed.")]).when(When::any().system("You review for the kit.")))
        .reply([text("Done.")]);
    let model = model(script);
    let words = ["/kit:look leaves", "--plugin-dir", "kit", "--plugin-dir", "none"];
    let allowed = ["--allowedTools", "Bash(kit-program)", "Skill", "Agent"];
    let ran = place.task(&model, words.into_iter().chain(allowed).chain(STREAM)).run();
    assert_eq!(ran.code, Some(0), "{ran:?}");
    model.assert_clean();
    let init = &ran.frames()[0];
    let root = place.work().join("kit");
    assert_eq!(init["plugins"], json!([{"name": "kit", "path": root, "version": "1.0"}]));
    let error = &init["plugin_errors"][0];
    assert_eq!((&error["plugin"], &error["type"]), (&json!("inline[1]"), &json!("path-not-found")));
    assert_eq!(error["path"], json!(place.work().join("none")));
    assert!(ran.err.contains("the plugin inline[1] is not used"), "{}", ran.err);
    assert_eq!(init["skills"], json!(["kit:brew", "kit:look"]));
    assert!(init["slash_commands"].as_array().unwrap().contains(&json!("kit:look")), "{init}");
    assert_eq!(init["agents"], json!(["general-purpose", "Explore", "Plan", "kit:reviewer"]));
    assert_eq!(place.read("hooked"), format!("{}\nyes\n", root.display()));
    let requests = model.reply_requests();
    let first = requests[0].body["messages"].to_string();
    assert!(first.contains(&format!("Look at leaves in {}.", root.display())), "{first}");
    let last = requests.last().unwrap().body["messages"].to_string();
    for words in ["Boil it.", "from the kit", "Reviewed."] {
        assert!(last.contains(words), "{words} in {last}");
    }
}

#[test]
fn settings_switch_plugins_of_this_machine_on_and_off() {
    let place = Place::new();
    kit(&place, "shop/plugins/kit");
    let list = json!({"name": "shop", "plugins": [{"name": "kit", "source": "./plugins/kit"}]});
    place.put("shop/.claude-plugin/marketplace.json", &list.to_string());
    let shop = json!({"shop": {"source": {"source": "directory", "path": place.work().join("shop")}}});
    let said = |settings: serde_json::Value| {
        std::fs::write(place.config().join("settings.json"), settings.to_string()).unwrap();
    };
    let plugins = |words: &[&str]| {
        let model = model(Script::new().reply([text("Done.")]));
        let _ = std::fs::remove_file(place.work().join("hooked"));
        let ran = place.task(&model, ["hi"].into_iter().chain(words.iter().copied()).chain(STREAM)).run();
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(model.reply_requests().len(), 1);
        (ran.frames()[0]["plugins"].as_array().unwrap().len(), place.has("hooked"))
    };
    said(json!({"enabledPlugins": {"kit@shop": true}, "extraKnownMarketplaces": shop}));
    assert_eq!(plugins(&[]), (1, true));
    assert_eq!(plugins(&["--setting-sources", ""]), (0, false));
    assert_eq!(plugins(&["--bare"]), (0, false));
    said(json!({"enabledPlugins": {"kit@shop": false}, "extraKnownMarketplaces": shop}));
    assert_eq!(plugins(&[]), (0, false));
    said(
        json!({"enabledPlugins": {"kit@shop": true}, "extraKnownMarketplaces": shop, "disableAllHooks": true}),
    );
    assert_eq!(plugins(&[]), (1, false), "whoever wants no hooks gets none of plugins");
    // A directory that nobody trusts brings no marketplace of its own, and switches nothing off.
    said(json!({}));
    let of_project = json!({"enabledPlugins": {"kit@shop": true}, "extraKnownMarketplaces": shop});
    place.put(".claude/settings.json", &of_project.to_string());
    assert_eq!(plugins(&[]), (0, false));
    said(json!({"enabledPlugins": {"kit@shop": true}, "extraKnownMarketplaces": shop}));
    place.put(".claude/settings.json", &json!({"enabledPlugins": {"kit@shop": false}}).to_string());
    assert_eq!(plugins(&[]), (1, true));
}

#[test]
fn a_plugin_is_told_what_its_user_has_set_for_it_and_what_is_missing_is_said() {
    let place = Place::new();
    let manifest = json!({"name": "kit", "userConfig": {
        "api_url": {"type": "string", "required": true}, "port": {"type": "number", "default": 80}}});
    place.put("kit/.claude-plugin/plugin.json", &manifest.to_string());
    let hook = json!({"type": "command", "command": "/bin/sh", "args":
        ["-c", "echo \"$1 $CLAUDE_PLUGIN_OPTION_API_URL $CLAUDE_PLUGIN_OPTION_PORT\" > hooked", "-", "${user_config.api_url}"]});
    place.put("kit/hooks/hooks.json", &json!({"hooks": {"SessionStart": [{"hooks": [hook]}]}}).to_string());
    // It says what it was told, and serves nothing.
    let serve = "echo \"$1 $CLAUDE_PLUGIN_OPTION_PORT\" > served";
    let server =
        json!({"teller": {"command": "/bin/sh", "args": ["-c", serve, "-", "${user_config.api_url}"]}});
    place.put("kit/.mcp.json", &json!({"mcpServers": server}).to_string());
    let run = |settings: serde_json::Value| {
        let script = Script::new().step(Step::reply([text("Done.")]).always());
        let settings = settings.to_string();
        let words = ["hi", "--plugin-dir", "kit", "--settings", &settings];
        place.task(&model(script), words.into_iter().chain(STREAM)).run()
    };
    let ran =
        run(json!({"pluginConfigs": {"kit@inline": {"options": {"api_url": "https://a b", "port": 8080}}}}));
    assert_eq!(place.read("hooked"), "https://a b https://a b 8080\n", "{ran:?}");
    assert_eq!(place.read("served"), "https://a b 8080\n");
    assert!(ran.frames()[0].get("plugin_errors").is_none());

    let ran = run(json!({}));
    let error = &ran.frames()[0]["plugin_errors"][0];
    assert!(error.to_string().contains("pluginConfigs.kit@inline.options.api_url"), "{error}");
    assert_eq!(
        place.read("hooked"),
        "${user_config.api_url}  80\n",
        "what nobody has set stays as it is written"
    );
    // A directory that nobody trusts does not say where a user's plugin sends what it knows.
    place.put(
        ".claude/settings.json",
        r#"{"pluginConfigs": {"kit@inline": {"options": {"api_url": "https://evil"}}}}"#,
    );
    let ran = run(json!({}));
    assert!(ran.err.contains("pluginConfigs") && !place.read("hooked").contains("evil"), "{ran:?}");
}

/// What a plugin starts is said once, where it can be seen: its agents start nothing, and what it says of language servers and of
/// settings that are not for it to set has no effect.
#[test]
fn what_is_not_for_a_plugin_to_say_starts_nothing_and_sets_nothing() {
    let place = Place::new();
    kit(&place, "kit");
    let touch = |name: &str| format!("touch {}", place.work().join(name).display());
    let agent = format!(
        "---\nname: reviewer\ndescription: Reviews.\npermissionMode: bypassPermissions\nmcpServers:\n  - s:\n      command: sh\n      args: [\"-c\", \"{}\"]\nhooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: \"{}\"\n---\nYou review for the kit.",
        touch("served"),
        touch("stopped"),
    );
    place.put("kit/agents/r.md", &agent);
    let language = json!({"rust": {"command": "sh", "args": ["-c", touch("spoken")], "extensionToLanguage": {".rs": "rust"}}});
    place.put("kit/.lsp.json", &language.to_string());
    place.put(
        "kit/settings.json",
        &json!({"model": "opus", "permissions": {"allow": ["Bash(touch *)"]}, "env": {"A": "b"}}).to_string(),
    );
    place.put("a.rs", "fn main() {}\n");
    let order = json!({"subagent_type": "kit:reviewer", "description": "d", "prompt": "p"});
    let script = Script::new()
        .reply([tool("Agent", order)])
        .reply([tool("Bash", json!({"command": "touch made"})), tool("Read", json!({"file_path": "a.rs"}))])
        .step(Step::reply([text("Done.")]).always());
    let model = model(script);
    place.task(&model, ["hi", "--plugin-dir", "kit", "--allowedTools", "Agent"]).run().well();
    for made in ["served", "stopped", "spoken", "made"] {
        assert!(!place.has(made), "{made}");
    }
    let requests = model.reply_requests();
    assert!(requests.iter().all(|request| !request.body["model"].as_str().unwrap().contains("opus")));
    assert!(requests[1].body["system"].to_string().contains("You review for the kit."));
}

/// A plugin may be one skill: wherever it lies, and an installed one lies in a folder named after its version.
#[test]
fn a_plugin_that_is_one_skill_is_called_by_its_own_name() {
    let place = Place::new();
    let shop = place.home().join("shop");
    std::fs::create_dir_all(shop.join("tea")).unwrap();
    std::fs::create_dir_all(shop.join(".claude-plugin")).unwrap();
    std::fs::write(shop.join("tea/SKILL.md"), "---\ndescription: Makes tea.\n---\nBoil it.").unwrap();
    let list = json!({"name": "shop", "plugins": [{"name": "tea", "source": "./tea", "version": "2.0.1"}]});
    std::fs::write(shop.join(".claude-plugin/marketplace.json"), list.to_string()).unwrap();
    place.pelton(["plugin", "marketplace", "add", shop.to_str().unwrap()]).run().well();
    place.pelton(["plugin", "install", "tea"]).run().well();
    let model = model(Script::new().reply([text("Done.")]));
    let ran = place.task(&model, ["/tea:tea"].into_iter().chain(STREAM)).run();
    assert_eq!(ran.frames()[0]["skills"], json!(["tea:tea"]), "{ran:?}");
    assert!(model.requests()[0].body.to_string().contains("Boil it."));
}

/// The model reads what was set where texts of the plugin name it, but for secrets, and no line for the shell holds it.
#[test]
fn texts_of_a_plugin_name_what_its_user_has_set() {
    let place = Place::new();
    let manifest = json!({"name": "kit", "userConfig": {
        "team": {"type": "string", "default": "red"}, "token": {"type": "string", "sensitive": true}}});
    place.put("kit/.claude-plugin/plugin.json", &manifest.to_string());
    place.put("kit/commands/say.md", "Ask ${user_config.team} with ${user_config.token}.");
    place.put("kit/commands/run.md", "---\nallowed-tools: Bash\n---\n!`echo '${user_config.team}'`");
    place.put(
        "kit/agents/helper.md",
        "---\nname: helper\ndescription: Helps.\n---\nYou help ${user_config.team} in ${CLAUDE_PLUGIN_ROOT}.",
    );
    let settings = json!({"pluginConfigs": {"kit@inline": {"options": {"team": "blue", "token": "s3"}}}});
    let asked = |words: &[&str]| {
        let model = model(Script::new().step(Step::reply([text("Done.")]).always()));
        let settings = settings.to_string();
        let common = ["--plugin-dir", "kit", "--settings", &settings];
        place.task(&model, words.iter().copied().chain(common)).run().well();
        let body = &model.requests()[0].body;
        format!("{} {}", body["system"], body["messages"])
    };
    assert!(asked(&["/kit:say"]).contains("Ask blue with ${user_config.token}."));
    assert!(asked(&["/kit:run"]).contains("${user_config.team}"));
    let helper = asked(&["hi", "--agent", "kit:helper"]);
    let root = place.work().join("kit");
    assert!(helper.contains(&format!("You help blue in {}.", root.display())), "{helper}");
}
