//! A folder, copied whole or not at all. What lies in it may come from anybody: links that lead out of it are left out, and a copy that
//! grows too large is given up.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The most bytes, files and depth of a plugin that is copied.
const COPY_BYTES_MAX: u64 = 512 * 1024 * 1024;
const COPY_FILES_MAX: usize = 50_000;
const COPY_DEPTH_MAX: usize = 64;
/// What belongs to the folder's own history, not to the plugin.
const LEFT_OUT: &str = ".git";

/// Copies a folder to a place, which is replaced once the copy is whole.
pub(super) fn folder(from: &Path, to: &Path) -> Result<(), String> {
    let parent = to.parent().ok_or("the copy would have no folder to be in")?;
    let about = |error: std::io::Error| format!("{}: {error}", to.display());
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(about)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let beside = parent.join(format!(".{name}.{}.new", std::process::id()));
    let _ = fs::remove_dir_all(&beside);
    let mut copying = Copying { root: from.to_owned(), into: parent.to_owned(), bytes: 0, files: 0 };
    let copied = copying.folder(from, &beside, 0);
    let replaced = copied.and_then(|()| {
        let old = parent.join(format!(".{name}.{}.old", std::process::id()));
        let there_was = fs::rename(to, &old).is_ok();
        fs::rename(&beside, to).map_err(about)?;
        if there_was {
            fs::remove_dir_all(&old).map_err(about)?;
        }
        Ok(())
    });
    if replaced.is_err() {
        let _ = fs::remove_dir_all(&beside);
    }
    replaced
}

struct Copying {
    root: PathBuf,
    /// Where the copy goes: never copied into itself.
    into: PathBuf,
    bytes: u64,
    files: usize,
}

impl Copying {
    fn folder(&mut self, from: &Path, to: &Path, depth: usize) -> Result<(), String> {
        let about = |error: std::io::Error| format!("{}: {error}", from.display());
        if depth > COPY_DEPTH_MAX {
            return Err(format!("{} is more than {COPY_DEPTH_MAX} folders deep", from.display()));
        }
        fs::DirBuilder::new().mode(0o700).create(to).map_err(about)?;
        for entry in fs::read_dir(from).map_err(about)? {
            let entry = entry.map_err(about)?;
            let (path, copy) = (entry.path(), to.join(entry.file_name()));
            if entry.file_name() == LEFT_OUT || path == self.into {
                continue;
            }
            // A link is followed as far as it stays inside; others, pipes and devices are no part of a plugin.
            let Some(real) = path.canonicalize().ok().filter(|real| real.starts_with(&self.root)) else {
                continue;
            };
            let is_link = entry.file_type().map_err(about)?.is_symlink();
            let kind = fs::metadata(&real).map_err(about)?;
            if kind.is_dir() && !(is_link && path.starts_with(&real)) {
                self.folder(&path, &copy, depth + 1)?;
            } else if kind.is_file() {
                self.files += 1;
                self.bytes += kind.len();
                if self.files > COPY_FILES_MAX || self.bytes > COPY_BYTES_MAX {
                    return Err(format!(
                        "it is larger than a plugin may be: {COPY_FILES_MAX} files, {COPY_BYTES_MAX} bytes"
                    ));
                }
                fs::copy(&real, &copy).map_err(about)?;
                // Whoever else could write to the original must not be able to change the copy.
                let mode = kind.permissions().mode() & 0o755;
                fs::set_permissions(&copy, fs::Permissions::from_mode(mode)).map_err(about)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_copy_is_whole_takes_no_way_out_and_replaces_an_older_one() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (from, to) = (dir.join("from"), dir.join("cache/kit/1"));
        fs::create_dir_all(from.join("bin")).unwrap();
        fs::create_dir_all(from.join(".git")).unwrap();
        fs::write(from.join(".git/config"), "x").unwrap();
        fs::write(from.join("bin/run"), "one").unwrap();
        fs::set_permissions(from.join("bin/run"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::write(dir.join("secret"), "x").unwrap();
        symlink(dir.join("secret"), from.join("out")).unwrap();
        symlink("bin/run", from.join("in")).unwrap();
        symlink(&from, from.join("loop")).unwrap();
        folder(&from, &to).unwrap();
        let names = |dir: &Path| {
            let mut names: Vec<String> = fs::read_dir(dir)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        };
        assert_eq!(names(&to), ["bin", "in"]);
        assert_eq!(fs::metadata(to.join("bin/run")).unwrap().permissions().mode() & 0o777, 0o755);
        fs::remove_file(from.join("in")).unwrap();
        fs::write(from.join("bin/run"), "two").unwrap();
        folder(&from, &to).unwrap();
        assert_eq!((names(&to), names(to.parent().unwrap())), (vec!["bin".to_owned()], vec!["1".to_owned()]));
        assert_eq!(fs::read_to_string(to.join("bin/run")).unwrap(), "two");
        // What lies around the copy is not copied into it.
        folder(&dir, &dir.join("cache/all/1")).unwrap();
        assert!(!dir.join("cache/all/1/cache/all").exists());
    }
}
