//! Directories that a path could go on with. One directory is looked at, and not much of that.

use std::fs;
use std::path::Path;

use super::Found;
use crate::limits::DIRECTORY_NAMES_MAX;

/// The directories whose paths begin as it was typed, each with a `/` behind it, by their names; hidden ones where a dot was typed.
pub fn directories(cwd: &Path, home: Option<&Path>, typed: &str, most: usize) -> Vec<Found> {
    let (parent, begins) =
        typed.rsplit_once('/').map_or(("", typed), |(parent, name)| (&typed[..=parent.len()], name));
    let dir = match (Path::new(parent).strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => cwd.join(parent),
    };
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let entries = entries.take(DIRECTORY_NAMES_MAX).flatten();
    // A link to a directory is one, too.
    let found = entries
        .filter(|entry| entry.path().is_dir())
        .filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = found
        .filter(|name| name.starts_with(begins) && (begins.starts_with('.') || !name.starts_with('.')))
        .collect();
    names.sort();
    let path = |name: String| Found { path: format!("{parent}{name}/"), fits: Vec::new() };
    names.into_iter().take(most).map(path).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_goes_on_with_the_directories_there_are() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work/one/inner", "work/on my way", "work/.hidden", "home/docs", "other"] {
            fs::create_dir_all(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("work/on-a-file"), "").unwrap();
        std::os::unix::fs::symlink(dir.path().join("other"), dir.path().join("work/onward")).unwrap();
        let (work, home) = (dir.path().join("work"), dir.path().join("home"));
        for (typed, expected) in [
            ("", &["on my way/", "one/", "onward/"][..]),
            ("on", &["on my way/", "one/", "onward/"]),
            ("one", &["one/"]),
            ("one/", &["one/inner/"]),
            (".", &[".hidden/"]),
            ("../o", &["../other/"]),
            ("~/d", &["~/docs/"]),
            ("nowhere/x", &[]),
        ] {
            let found: Vec<String> =
                directories(&work, Some(&home), typed, 9).into_iter().map(|found| found.path).collect();
            assert_eq!(found, expected, "{typed:?}");
        }
        assert_eq!(directories(&work, None, "o", 2).len(), 2);
        let absolute = format!("{}/oth", dir.path().display());
        assert_eq!(
            directories(&work, None, &absolute, 9)[0].path,
            format!("{}/other/", dir.path().display())
        );
    }
}
