//! Output styles: how the model answers, in the words of whoever chose one. Read once, when a session starts.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::front_matter::Headed;
use crate::limits::{SKILL_BYTES_MAX, SKILLS_MAX};

/// Those that are there anyway.
const BUILT_IN: [&str; 4] = [
    include_str!("styles/proactive.md"),
    include_str!("styles/concise.md"),
    include_str!("styles/explanatory.md"),
    include_str!("styles/learning.md"),
];

/// How the model answers: a text that stands in its system prompt in the place of Pelton's own words about answers.
///
/// ```
/// use pelton::{Options, OutputStyle};
/// use pelton_model::{Auth, Endpoint, Secret};
///
/// let dir = tempfile::tempdir()?;
/// std::fs::write(dir.path().join("pirate.md"), "---\nname: Pirate\ndescription: Like a pirate\n---\nTalk like a pirate.")?;
/// let mut options = Options::new("/srv/project", Endpoint::new("http://127.0.0.1:9", Auth::ApiKey(Secret::new("any"))));
/// options.add_styles(OutputStyle::in_dirs(&[dir.path().to_owned()]));
/// assert!(options.choose_style("pirate"));
/// assert_eq!(options.system_prompt.style.as_ref().map(|style| style.text.as_str()), Some("Talk like a pirate."));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OutputStyle {
    /// What it is chosen by.
    pub name: String,
    /// What it is for, for people.
    pub description: String,
    /// What the model is told.
    pub text: String,
    /// Pelton's own words about work on code stay.
    pub keeps_coding: bool,
    /// It holds as soon as its plugin is used, unless somebody chooses another.
    pub forced: bool,
}

impl OutputStyle {
    /// The name of Pelton's own way to answer.
    pub const DEFAULT: &'static str = "default";

    /// Those that are there anyway, besides Pelton's own way.
    pub fn built_in() -> Vec<Self> {
        BUILT_IN.iter().filter_map(|text| Self::read(text, "")).collect()
    }

    /// Those that Markdown files describe: these, or those in these directories. Of two with one name the first counts.
    /// Blocks.
    pub fn in_dirs(places: &[PathBuf]) -> Vec<Self> {
        let mut names = HashSet::new();
        let files = places.iter().flat_map(|place| markdown_in(place)).take(SKILLS_MAX);
        let styles = files.filter_map(|file| {
            let is_read =
                fs::metadata(&file).is_ok_and(|about| about.is_file() && about.len() <= SKILL_BYTES_MAX);
            let bytes = is_read.then(|| fs::read(&file).ok()).flatten()?;
            let text = String::from_utf8_lossy(&bytes).replace("\r\n", "\n");
            Self::read(&text, &file.file_stem()?.to_string_lossy())
        });
        styles.filter(|style| names.insert(style.name.to_lowercase())).collect()
    }

    /// Whether it is meant by a name.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name.to_lowercase() == name.trim().to_lowercase()
    }

    fn read(text: &str, file_name: &str) -> Option<Self> {
        let headed = Headed::read(text);
        let body = headed.body.trim();
        let name = headed.text("name").unwrap_or_else(|| file_name.to_owned());
        (!body.is_empty() && !name.trim().is_empty()).then(|| Self {
            name,
            description: headed.text("description").unwrap_or_default(),
            text: body.to_owned(),
            keeps_coding: headed.flag("keep-coding-instructions").unwrap_or(false),
            forced: headed.flag("force-for-plugin").unwrap_or(false),
        })
    }
}

fn markdown_in(place: &Path) -> Vec<PathBuf> {
    let is_markdown = |path: &Path| path.extension().is_some_and(|end| end == "md");
    if place.is_file() {
        return Some(place.to_owned()).filter(|place| is_markdown(place)).into_iter().collect();
    }
    let Ok(entries) = fs::read_dir(place) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| is_markdown(path))
        .take(SKILLS_MAX)
        .collect();
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_there_anyway_have_a_name_a_purpose_and_words_and_keep_what_is_said_about_code() {
        let styles = OutputStyle::built_in();
        let names: Vec<&str> = styles.iter().map(|style| style.name.as_str()).collect();
        assert_eq!(names, ["Proactive", "Concise", "Explanatory", "Learning"]);
        assert!(styles.iter().all(|style| !style.description.is_empty() && style.text.len() > 200));
        assert!(styles.iter().all(|style| style.keeps_coding && !style.forced));
    }

    #[test]
    fn files_name_themselves_or_are_called_like_the_file_and_empty_ones_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let (near, far) = (dir.path().join("near"), dir.path().join("far"));
        for (place, text) in [
            (near.join("a.md"), "---\nname: Terse\nkeep-coding-instructions: yes\n---\nFew words."),
            (near.join("plain.md"), "Just words."),
            (near.join("empty.md"), "---\nname: Empty\n---\n \n"),
            (near.join("notes.txt"), "No style."),
            (far.join("b.md"), "---\nname: terse\nforce-for-plugin: true\n---\nOther words."),
        ] {
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        let styles = OutputStyle::in_dirs(&[near, far, dir.path().join("none")]);
        let told: Vec<_> =
            styles.iter().map(|s| (s.name.as_str(), s.text.as_str(), s.keeps_coding)).collect();
        assert_eq!(told, [("Terse", "Few words.", true), ("plain", "Just words.", false)]);
    }
}
