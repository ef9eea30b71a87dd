use std::fs;

use super::*;
use crate::permission::Loan;

struct Here(tempfile::TempDir);

impl Here {
    fn new(files: &[(&str, &str)]) -> Self {
        let here = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(here.path("repo/.git")).unwrap();
        fs::create_dir_all(here.path("repo/part")).unwrap();
        files.iter().for_each(|(name, text)| here.write(name, text));
        here
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    fn skills(&self) -> Skills {
        let mut sources = SkillSources::project();
        sources.managed_dir = Some(self.path("managed"));
        sources.user_dir = Some(self.path("user"));
        Skills::new(Some(sources), &[], &self.path("repo/part"), &[self.path("more")])
    }
}

fn told(skills: &Skills, chars_max: usize) -> String {
    skills.news(chars_max).map(|news| news.text).unwrap_or_default()
}

#[tokio::test]
async fn the_nearer_authority_counts_and_a_skill_before_a_command() {
    let here = Here::new(&[
        ("managed/.claude/skills/a/SKILL.md", "managed a"),
        ("user/skills/a/SKILL.md", "user a"),
        ("user/skills/b/SKILL.md", "user b"),
        ("user/skills/synced/SKILL.md", "reserved"),
        ("repo/part/.claude/skills/b/SKILL.md", "project b"),
        ("repo/part/.claude/commands/c.md", "command c"),
        ("repo/part/.claude/commands/deep/d.md", "command d"),
        ("repo/.claude/skills/c/SKILL.md", "skill c of the root"),
        ("repo/.claude/skills/empty/other.md", "none"),
        (".claude/skills/above/SKILL.md", "above the repository"),
        ("more/.claude/skills/e/SKILL.md", "another directory's"),
    ]);
    let skills = here.skills();
    skills.discover().await;
    let all: Vec<(String, String)> =
        skills.all().iter().map(|skill| (skill.name.clone(), skill.body.clone())).collect();
    let expected = [
        ("a", "managed a"),
        ("b", "user b"),
        ("c", "skill c of the root"),
        ("e", "another directory's"),
        ("d", "command d"),
    ];
    assert_eq!(all, expected.map(|(name, body)| (name.to_owned(), body.to_owned())));
    // The model is told of those that it would get.
    let text = told(&skills, 8_000);
    for (name, body) in expected {
        assert_eq!(text.matches(&format!("- {name}: ")).count(), 1, "{name} in {text}");
        assert!(text.contains(&format!("- {name}: {body}")), "{name} in {text}");
    }
}

#[tokio::test]
async fn names_are_told_in_any_case_and_what_is_new_once() {
    let long = format!("---\ndescription: {}\n---\n", "x".repeat(3_000));
    let here = Here::new(&[
        ("user/skills/a/SKILL.md", "---\ndescription: does a\nwhen_to_use: at night\n---\n"),
        ("user/skills/b/SKILL.md", &long),
        ("user/skills/hidden/SKILL.md", "---\ndisable-model-invocation: true\n---\nno"),
    ]);
    let skills = here.skills();
    skills.discover().await;
    let text = told(&skills, 8_000);
    assert!(
        text.contains("- a: does a - at night\n") && text.contains("- b: xxx") && !text.contains("hidden")
    );
    assert_eq!(text.matches('x').count(), 1_536);
    assert_eq!(told(&skills, 8_000), "");

    here.write("user/skills/late/SKILL.md", "came late");
    skills.discover().await;
    let text = told(&skills, 8_000);
    assert!(text.contains("- late: came late") && !text.contains("- a"), "{text}");

    let skills = here.skills();
    skills.discover().await;
    let text = told(&skills, 20);
    assert!(text.contains("- a\n- b\n- late\n"), "{text}");

    let skills = here.skills();
    skills.recall([here.path("user/skills/a/SKILL.md"), here.path("user/skills/b/SKILL.md")], Vec::new());
    skills.discover().await;
    assert!(!told(&skills, 8_000).contains("- a"));
}

#[tokio::test]
async fn skills_below_come_when_a_file_there_is_touched() {
    let here = Here::new(&[
        ("repo/part/.claude/skills/a/SKILL.md", "a"),
        ("repo/part/sub/dir/.claude/skills/a/SKILL.md", "a below"),
        ("repo/part/sub/dir/.claude/skills/n/SKILL.md", "n below"),
    ]);
    let skills = here.skills();
    skills.discover().await;
    assert_eq!(skills.all().len(), 1);
    skills.touched(&[here.path("repo/part/file.rs"), here.path("repo/other/file.rs")]).await;
    assert_eq!(skills.all().len(), 1);
    skills.touched(&[here.path("repo/part/sub/dir/file.rs")]).await;
    assert_eq!(skills.get("a").unwrap().body, "a");
    assert_eq!(skills.get("/sub/dir:a").unwrap().body, "a below");
    assert_eq!(skills.get("n").unwrap().body, "n below");
    skills.touched(&[here.path("repo/part/sub/dir/file.rs")]).await;
    assert_eq!(skills.all().len(), 3);
}

#[test]
fn after_a_compaction_the_newest_text_of_each_skill_is_told_again() {
    let here = Here::new(&[]);
    let skills = here.skills();
    let call = |file: &str, text: &str| {
        skills.call(Called {
            file: file.into(),
            text: text.to_owned(),
            loan: Loan::default(),
            model: None,
            effort: None,
        })
    };
    assert!(call("a", "a for Ada") && call("b", &"b".repeat(30_000)) && call("a", "a for Bob"));
    assert!(!call("a", "a for Bob"), "it is there already");
    let again = skills.told_again();
    let texts: Vec<String> = again.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["b".repeat(20_000), "a for Bob".to_owned()]);
    assert_eq!(skills.told_again().len(), 2, "and again, if that comes to nothing");
    assert_eq!(skills.sees(Vec::new(), |_| false), [], "what was called for is on its way");
    assert_eq!(skills.take_called().len(), 3);
    let gone = skills.sees(Vec::new(), |text| text == "a for Bob");
    let gone: Vec<(PathBuf, usize)> = gone.into_iter().map(|(file, text)| (file, text.len())).collect();
    assert_eq!(gone, [("b".into(), 20_000)], "of the other there is a newer text");
    assert!(!call("a", "a for Bob") && call("a", "a for Ada"), "what was left out has to be told anew");
    for n in 0..10 {
        call(&format!("long{n}"), &n.to_string().repeat(20_000));
    }
    assert_eq!(skills.told_again().len(), 5, "there is room for so much");
}
