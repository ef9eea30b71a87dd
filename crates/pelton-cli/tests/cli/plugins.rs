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
    assert_eq!(init["agents"], json!(["general-purpose", "kit:reviewer"]));
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
