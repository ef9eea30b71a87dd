//! `pelton plugin`: marketplaces that are folders, and plugins copied out of them.

use std::path::Path;

use pelton_testkit::{Script, Step, text};
use serde_json::{Value, json};

use crate::frames::STREAM;
use crate::place::{Commanded, Place, model};

fn json_in(file: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

/// A marketplace with a plugin that has a folder of its own, one that is a part of the marketplace itself, and one from elsewhere.
fn shop(place: &Place) {
    place.put(
        "shop/plugins/kit/.claude-plugin/plugin.json",
        r#"{"name": "kit", "version": "1.0", "dependencies": ["base"]}"#,
    );
    place.put("shop/plugins/kit/commands/look.md", "Look.");
    place.put("shop/plugins/base/skills/one/SKILL.md", "---\ndescription: One.\n---\nOne.");
    place.put("shop/papers/pdf/SKILL.md", "---\ndescription: Pages.\n---\nPages.");
    place.put("shop/papers/other/SKILL.md", "---\ndescription: Not listed.\n---\nNo.");
    let list = json!({"name": "shop", "owner": {"name": "o"}, "plugins": [
        {"name": "kit", "source": "./plugins/kit", "description": "A kit"},
        {"name": "base", "source": "./plugins/base", "version": "2"},
        {"name": "papers", "source": "./", "strict": false, "skills": ["./papers/pdf"]},
        {"name": "far", "source": {"source": "github", "repo": "a/b"}}]});
    place.put("shop/.claude-plugin/marketplace.json", &list.to_string());
}

/// What a session has of plugins: their names, and what can be typed.
fn used(place: &Place) -> (Vec<String>, Vec<String>) {
    let model = model(Script::new().reply([text("Done.")]));
    let ran = place.task(&model, ["hello"].into_iter().chain(STREAM)).run();
    let init = ran.frames().into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    let names = |value: &Value| -> Vec<String> {
        value
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["name"].as_str().or(one.as_str()).unwrap().to_owned())
            .collect()
    };
    (names(&init["plugins"]), names(&init["skills"]))
}

#[test]
fn plugins_are_installed_switched_and_taken_away_again() {
    let place = Place::new();
    shop(&place);
    let well = |words: &[&str]| place.pelton(["plugin"].iter().chain(words).copied()).run().well().to_owned();
    let fails = |words: &[&str]| {
        let ran = place.pelton(["plugin"].iter().chain(words).copied()).run();
        assert_eq!(ran.code, Some(1), "{ran:?}");
        ran.err
    };
    assert!(well(&["list"]).contains("No plugins"));
    assert!(fails(&["install", "kit"]).contains("no marketplace that is known has the plugin 'kit'"));
    assert!(fails(&["marketplace", "add", "owner/repo"]).contains("nothing is fetched"));
    assert!(fails(&["marketplace", "add", "shop/plugins"]).contains("is no marketplace"));
    assert!(well(&["marketplace", "add", "./shop"]).contains("plugins: kit, base, papers, far"));
    assert!(well(&["marketplace", "list"]).contains("shop: "));
    assert!(well(&["list", "--available"]).contains("kit@shop can be installed: A kit"));
    assert!(fails(&["install", "far@shop"]).contains("fetched from elsewhere"));

    let said = well(&["install", "kit"]);
    assert!(
        said.contains("Installed kit@shop") && said.contains("Installed base@shop"),
        "what it needs comes first: {said}"
    );
    well(&["install", "papers@shop", "--scope", "local"]);
    let plugins = place.config().canonicalize().unwrap().join("plugins");
    let installed = json_in(&plugins.join("installed_plugins.json"));
    let kit = &installed["plugins"]["kit@shop"][0];
    assert_eq!((&kit["scope"], &kit["version"]), (&json!("user"), &json!("1.0")));
    assert_eq!(kit["installPath"], json!(plugins.join("cache/shop/kit/1.0")));
    assert_eq!(installed["plugins"]["papers@shop"][0]["projectPath"], json!(place.work()));
    assert_eq!(
        json_in(&place.config().join("settings.json"))["enabledPlugins"],
        json!({"base@shop": true, "kit@shop": true})
    );
    assert_eq!(
        json_in(&place.work().join(".claude/settings.local.json"))["enabledPlugins"],
        json!({"papers@shop": true})
    );
    let (names, typed) = used(&place);
    assert_eq!(names, ["base", "kit", "papers"]);
    assert_eq!(
        typed,
        ["base:one", "kit:look", "papers:pdf"],
        "an entry with `strict: false` says what counts"
    );

    // The copy is what counts, until it is brought up to date.
    place.put("shop/plugins/kit/commands/more.md", "More.");
    assert!(!used(&place).1.contains(&"kit:more".to_owned()));
    well(&["update", "kit"]);
    assert!(used(&place).1.contains(&"kit:more".to_owned()));

    well(&["disable", "kit"]);
    assert_eq!(used(&place).0, ["base", "papers"]);
    assert!(well(&["list"]).contains("kit@shop: off, 1.0, user scope"));
    let listed: Value = serde_json::from_str(&well(&["list", "--json"])).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 3);
    well(&["enable", "kit@shop"]);
    assert!(well(&["details", "kit"]).contains("/kit:look"));
    assert!(fails(&["details", "nothing"]).contains("'nothing'"));
    well(&["disable", "--all"]);
    assert_eq!(used(&place).0, ["papers"], "what the project's own file says is stronger");

    assert!(fails(&["uninstall", "papers"]).contains("not installed for the user scope"));
    well(&["uninstall", "papers", "--scope", "local"]);
    well(&["uninstall", "kit"]);
    assert!(!plugins.join("cache/shop/kit").exists());
    let stray = plugins.join("cache/shop/gone/1");
    std::fs::create_dir_all(&stray).unwrap();
    assert!(well(&["prune", "--dry-run"]).contains("Would be taken away") && stray.exists());
    well(&["prune"]);
    assert!(!stray.exists() && plugins.join("cache/shop/base/2").exists());
    assert!(well(&["marketplace", "update"]).contains("shop: 4 plugins"));
    assert!(well(&["marketplace", "remove", "shop"]).contains("uninstalled base@shop"));
    assert!(fails(&["marketplace", "remove", "shop"]).contains("no marketplace 'shop'"));
    assert_eq!(used(&place), (Vec::new(), Vec::new()));
}

#[test]
fn what_is_wrong_with_plugins_and_marketplaces_is_named() {
    let place = Place::new();
    shop(&place);
    let validate = |path: &str| {
        let ran = place.pelton(["plugin", "validate", path]).run();
        (ran.code, ran.out)
    };
    let (code, said) = validate("shop");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("'far' is to be fetched from elsewhere"), "{said}");
    assert_eq!(validate("shop/plugins/kit/.claude-plugin/plugin.json").0, Some(0));
    place.put("shop/plugins/kit/.claude-plugin/plugin.json", r#"{"name": 3}"#);
    let (code, said) = validate("shop");
    assert!(code == Some(1) && said.contains("the plugin 'kit': `name` must be a text"), "{said}");
    place.put("odd/hooks/hooks.json", r#"{"hooks": {"OnFullMoon": []}}"#);
    let (_, said) = validate("odd");
    assert!(said.contains("OnFullMoon"), "{said}");
    for list in [
        json!({"plugins": []}),
        json!({"name": "inline", "plugins": []}),
        json!({"name": "x"}),
        json!({"name": "x", "plugins": [{"name": "a"}]}),
        json!({"name": "x", "plugins": [{"name": "a", "source": "./../up"}]}),
    ] {
        place.put("bad/.claude-plugin/marketplace.json", &list.to_string());
        assert_eq!(validate("bad").0, Some(1), "{list}");
        assert_eq!(place.pelton(["plugin", "marketplace", "add", "bad"]).run().code, Some(1), "{list}");
    }
    assert_eq!(validate("nowhere").0, Some(1));

    place.pelton(["plugin", "init", "fresh"]).run().well();
    assert_eq!(validate("fresh").0, Some(0));
    assert_eq!(place.pelton(["plugin", "init", "fresh"]).run().code, Some(1));
    // What a policy forbids is not installed, either.
    let managed = json!({"strictKnownMarketplaces": []}).to_string();
    let words = ["plugin", "marketplace", "add", "shop"];
    place.put("shop/plugins/kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    std::fs::write(place.config().join("settings.json"), managed).unwrap();
    let ran = place.pelton(words).run();
    assert!(ran.code == Some(1) && ran.err.contains("strictKnownMarketplaces"), "{ran:?}");
}

#[test]
fn who_pays_and_what_is_wrong_around_a_session_is_told() {
    let place = Place::new();
    let status = |key: &str| {
        let mut command = place.pelton(["auth", "status"]);
        command.env("ANTHROPIC_API_KEY", key);
        command.run()
    };
    let ran = place.pelton(["auth", "status"]).run();
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &said["loggedIn"]), (Some(1), &json!(false)));
    let ran = status("secret-key");
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(
        (ran.code, &said["loggedIn"], &said["authMethod"]),
        (Some(0), &json!(true), &json!("api_key"))
    );
    assert!(!ran.out.contains("secret-key"));

    let doctor = |words: &[&str]| {
        let mut command = place.pelton(["doctor"].iter().chain(words).copied());
        command.env("ANTHROPIC_API_KEY", "any");
        command.run()
    };
    let ran = doctor(&[]);
    assert!(ran.code == Some(0) && ran.out.contains("Nothing is wrong."), "{ran:?}");
    place.put(".claude/settings.json", r#"{"permisions": {}}"#);
    let ran = doctor(&["--json"]);
    let said: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &said["findings"][0]["kind"]), (Some(1), &json!("unknown-key")));
    assert_ne!(doctor(&["--repair"]).code, Some(0), "there is no session to repair");
}

#[test]
fn servers_of_the_desktop_application_are_taken_over_and_choices_forgotten() {
    let place = Place::new();
    let theirs = json!({"mcpServers": {"one": {"command": "serve", "args": ["a"]}, "two": {"command": "x"}, "bad": {"url": "http://a/"}}});
    place.put("desktop.json", &theirs.to_string());
    let ran = place.pelton(["mcp", "add-from-claude-desktop", "--file", "desktop.json", "-s", "user"]).run();
    assert!(ran.code == Some(0) && ran.out.contains("Not added: bad"), "{ran:?}");
    let state = json_in(&place.config().join(".claude.json"));
    assert_eq!(
        state["mcpServers"],
        json!({"one": {"command": "serve", "args": ["a"]}, "two": {"command": "x"}})
    );
    let again =
        place.pelton(["mcp", "add-from-claude-desktop", "--file", "desktop.json", "-s", "user", "one"]).run();
    assert!(again.code == Some(1) && again.out.contains("already"), "{again:?}");
    assert_eq!(place.pelton(["mcp", "add-from-claude-desktop"]).run().code, Some(1), "it is nowhere here");

    place.put(".mcp.json", r#"{"mcpServers": {"p": {"command": "p"}}}"#);
    place.put(".claude/settings.local.json", "{\n  // mine\n  \"enabledMcpjsonServers\": [\"p\"]\n}\n");
    place.pelton(["trust", "--yes"]).run().well();
    let root = place.work().to_str().unwrap().to_owned();
    let approved =
        || json_in(&place.config().join(".claude.json"))["projects"][&root]["approvedMcpServers"].clone();
    assert!(approved()["p"].is_string());
    place.pelton(["mcp", "reset-project-choices"]).run().well();
    assert_eq!(approved(), json!({}));
    let local = place.read(".claude/settings.local.json");
    assert!(local.contains("// mine") && local.contains("\"enabledMcpjsonServers\": []"), "{local}");
}

#[test]
fn a_release_is_tagged_once_everything_agrees_on_it() {
    let place = Place::new();
    let git = |words: &str| {
        let who = "-c user.name=a -c user.email=a@example.org -c init.defaultBranch=main";
        let ran = place.shell(&format!("git {who} {words}")).run();
        assert_eq!(ran.code, Some(0), "{words}: {ran:?}");
        ran.out
    };
    let manifest = |version: &str| json!({"name": "kit", "version": version}).to_string();
    let list = |version: &str| {
        let plugin = json!({"name": "kit", "source": "./kit", "version": version});
        json!({"name": "m", "owner": {"name": "o"}, "plugins": [plugin]}).to_string()
    };
    place.put("kit/.claude-plugin/plugin.json", &manifest("1.0.0"));
    place.put(".claude-plugin/marketplace.json", &list("0.9.0"));
    git("init -q .");
    git("add .");
    git("commit -q -m one");
    git("init -q --bare ../far.git");
    git("remote add origin ../far.git");
    let tag = |words: &[&str]| {
        let mut command = place.pelton(["plugin", "tag", "kit"].iter().chain(words).copied());
        for who in ["GIT_AUTHOR", "GIT_COMMITTER"] {
            command.env(format!("{who}_NAME"), "a").env(format!("{who}_EMAIL"), "a@example.org");
        }
        command.run()
    };
    tag(&[]).failed(1, &["marketplace.json", "0.9.0", "1.0.0"]);
    place.put(".claude-plugin/marketplace.json", &list("1.0.0"));
    git("commit -q -a -m two");
    assert_eq!(tag(&["--dry-run"]).well(), "kit--v1.0.0 would be made\n");
    assert_eq!(git("tag"), "");
    place.put("kit/README.md", "new");
    tag(&[]).failed(1, &["not committed", "README.md"]);
    git("add .");
    git("commit -q -m three");
    tag(&["--push", "--message", "Release %s"]).well();
    assert_eq!(git("tag"), "kit--v1.0.0\n");
    assert_eq!(git("--git-dir ../far.git tag"), "kit--v1.0.0\n");
    assert_eq!(
        git("for-each-ref --format='%(objecttype) %(contents:subject)' refs/tags"),
        "tag Release 1.0.0\n"
    );
    tag(&[]).failed(1, &["kit--v1.0.0", "already"]);
    tag(&["--force"]).well();
    place.put("kit/.claude-plugin/plugin.json", r#"{"name": "kit"}"#);
    tag(&["--force"]).failed(1, &["version"]);
    place.put("kit/.claude-plugin/plugin.json", &manifest("1..0"));
    tag(&["--force"]).failed(1, &[]);
    place.pelton(["plugin", "tag", "nowhere"]).run().failed(1, &["nowhere"]);
}

#[test]
fn all_that_is_kept_of_a_project_can_be_taken_away_and_nothing_else() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let other = place.temp().join("other");
    std::fs::create_dir(&other).unwrap();
    place.put(".mcp.json", "{}");
    place.pelton(["trust", "--yes"]).run().well();
    place.task(&model, ["hi"]).run().well();
    place.task(&model, ["hi"]).current_dir(&other).run().well();
    let (work, config) = (place.work(), place.config());
    let (work, there) = (work.to_str().unwrap(), other.canonicalize().unwrap());
    let prompts = config.join("history.jsonl");
    let line = |words: &str, project: &str| json!({"display": words, "project": project}).to_string();
    let kept = format!("{}\nno JSON\n", line("theirs", there.to_str().unwrap()));
    std::fs::write(&prompts, format!("{}\n{kept}", line("mine", work))).unwrap();
    let folders = || {
        let mut names: Vec<_> =
            std::fs::read_dir(config.join("projects")).unwrap().map(|dir| dir.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let notes = place
        .transcripts()
        .iter()
        .find(|file| !file.to_str().unwrap().contains("other"))
        .unwrap()
        .with_file_name("memory");
    std::fs::create_dir_all(&notes).unwrap();
    std::fs::write(notes.join("MEMORY.md"), "remember").unwrap();
    assert_eq!(folders().len(), 2);
    let before = std::fs::read_to_string(config.join(".claude.json")).unwrap();
    assert!(before.contains(work));

    let dry = place.pelton(["project", "purge", "--dry-run"]).run();
    assert!(dry.well().ends_with("Nothing was changed.\n") && dry.out.contains("session "), "{}", dry.out);
    place.pelton(["project", "purge"]).run().failed(1, &["--yes"]);
    assert_eq!(folders().len(), 2);
    place.pelton(["project", "purge", "--yes"]).run().well();
    assert_eq!(folders().len(), 1);
    assert!(folders()[0].to_str().unwrap().ends_with("other"));
    assert_eq!(std::fs::read_to_string(&prompts).unwrap(), kept);
    assert!(!std::fs::read_to_string(config.join(".claude.json")).unwrap().contains(&format!("{work}\"")));
    assert_eq!(place.read(".mcp.json"), "{}", "the project itself stays");
    assert_eq!(place.pelton(["project", "purge", "--yes"]).run().well(), "Nothing is kept of it.\n");
    // A directory that is gone still has something to take away.
    std::fs::remove_dir_all(&other).unwrap();
    place.pelton(["project", "purge", "--yes", there.to_str().unwrap()]).run().well();
    assert!(folders().is_empty());
    let histories = std::fs::read_dir(config.join("file-history"))
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_dir());
    assert_eq!(histories.count(), 0);
}

/// Two directories may have one folder: its name leaves out what tells them apart.
#[test]
fn what_is_kept_of_a_directory_with_nearly_the_same_name_stays() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Yes.")]).always()));
    let (near, far) = (place.temp().join("proj-x"), place.temp().join("proj/x"));
    for dir in [&near, &far] {
        std::fs::create_dir_all(dir).unwrap();
        place.task(&model, ["hi"]).current_dir(dir).run().well();
    }
    let sessions = place.transcripts();
    let folder = sessions[0].parent().unwrap();
    assert!(sessions.len() == 2 && sessions[1].parent() == Some(folder), "{sessions:?}");
    let is_of = |file: &Path, dir: &Path| {
        let real = dir.canonicalize().unwrap();
        std::fs::read_to_string(file).unwrap().contains(&format!("\"cwd\":{}", json!(real)))
    };
    let [mine, theirs] = [&near, &far].map(|dir| sessions.iter().find(|file| is_of(file, dir)).unwrap());
    let nobodys = folder.join("00000000-0000-4000-8000-000000000007.jsonl");
    std::fs::write(&nobodys, "{}\n").unwrap();
    std::fs::create_dir(folder.join("memory")).unwrap();
    let purge = |words: &[&str]| {
        let words = ["project", "purge"].iter().chain(words).copied();
        place.pelton(words).current_dir(&near).run()
    };
    let dry = purge(&["--dry-run"]);
    let lines: Vec<&str> = dry.well().lines().collect();
    let says = |part: &Path, stays: bool| {
        lines.iter().any(|line| line.contains(part.to_str().unwrap()) && line.contains(" stays: ") == stays)
    };
    assert!(says(mine, false) && !says(mine, true), "{lines:#?}");
    for kept in [theirs.as_path(), &nobodys, folder] {
        assert!(says(kept, true), "{kept:?}: {lines:#?}");
    }
    assert!(dry.out.contains(&format!("it is of {}", far.canonicalize().unwrap().display())), "{}", dry.out);
    purge(&["--yes"]).well();
    assert!(!mine.exists() && theirs.exists() && nobodys.exists() && folder.join("memory").is_dir());
    assert!(purge(&["--yes"]).well().contains("Nothing was changed."));
    // Once nothing of another one is there, the folder goes, too.
    std::fs::remove_file(nobodys).unwrap();
    place.pelton(["project", "purge", "--yes"]).current_dir(&far).run().well();
    assert!(!folder.exists());
}

#[test]
fn a_login_is_forgotten_and_what_stands_beside_it_stays() {
    let place = Place::new();
    let file = place.config().join(".credentials.json");
    assert_eq!(place.pelton(["auth", "logout"]).run().well(), "Nobody is logged in.\n");
    let login = json!({"claudeAiOauth": {"accessToken": "a", "refreshToken": "r", "expiresAt": 1}, "other": {"x": 1}});
    std::fs::write(&file, login.to_string()).unwrap();
    assert_eq!(place.pelton(["auth", "status"]).run().code, Some(0));
    assert!(place.pelton(["auth", "logout"]).run().well().contains("is forgotten"));
    assert_eq!(json_in(&file), json!({"other": {"x": 1}}));
    assert_eq!(place.pelton(["auth", "status"]).run().code, Some(1), "nobody pays");
    place.pelton(["auth", "login"]).run().failed(1, &["ANTHROPIC_API_KEY"]);
    std::fs::write(&file, "{ broken").unwrap();
    assert_eq!(place.pelton(["auth", "logout"]).run().code, Some(1));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{ broken");
}
