use std::os::unix::fs::symlink;

use super::*;

/// A tree of one's own; paths are told relative to it.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new(dirs: &[&str], files: &[&str], links: &[(&str, &str)]) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for dir in dirs {
            fs::create_dir_all(tree.at(dir)).unwrap();
        }
        for file in files {
            fs::write(tree.at(file), "").unwrap();
        }
        for (link, target) in links {
            symlink(target, tree.at(link)).unwrap();
        }
        tree
    }

    fn at(&self, path: &str) -> PathBuf {
        fs::canonicalize(self.0.path()).unwrap().join(path)
    }

    /// Where a path leads and how much of it is missing, or what is wrong with it.
    fn resolve(&self, path: &str) -> Result<(String, usize), Option<Errno>> {
        match resolve(&self.at(path)) {
            Ok(Resolved { path, missing }) => {
                let below = path.strip_prefix(self.at("")).map_or(path.clone(), Path::to_path_buf);
                Ok((below.display().to_string(), missing))
            }
            Err(error) => Err(error.raw_os_error().map(Errno::from_raw)),
        }
    }
}

#[test]
fn links_are_followed_the_way_the_system_does() {
    let tree = Tree::new(
        &["w/sub", "out/deep"],
        &["w/file", "out/secret"],
        &[
            ("w/sub/up", ".."),
            ("w/out", "../out/deep"),
            ("w/dangling", "../out/new"),
            ("w/twice", "dangling"),
            ("w/circle", "circle"),
            ("w/to_file", "file"),
        ],
    );
    for (path, expected, missing) in [
        ("w", "w", 0),
        ("w/./file", "w/file", 0),
        ("w/sub/../file", "w/file", 0),
        ("w/sub/up/file", "w/file", 0),
        ("w/sub/up/../out/secret", "out/secret", 0),
        ("w/out/../secret", "out/secret", 0),
        ("w/out/..", "out", 0),
        ("w/dangling", "out/new", 1),
        ("w/twice", "out/new", 1),
        ("w/dangling/x/y", "out/new/x/y", 3),
        ("w/none/x", "w/none/x", 2),
        ("w/sub/up/sub/up/none", "w/none", 1),
    ] {
        assert_eq!(tree.resolve(path), Ok((expected.to_owned(), missing)), "{path}");
    }
    assert_eq!(tree.resolve("w/circle"), Err(Some(Errno::ELOOP)));
    assert_eq!(tree.resolve("w/circle/x"), Err(Some(Errno::ELOOP)));
    assert_eq!(tree.resolve("w/file/x"), Err(Some(Errno::ENOTDIR)));
    assert_eq!(tree.resolve("w/file/.."), Err(Some(Errno::ENOTDIR)));
    assert_eq!(tree.resolve("w/to_file/../x"), Err(Some(Errno::ENOTDIR)));
    assert_eq!(tree.resolve("w/none/../x"), Err(None), "where that leads is anybody's guess");
    assert_eq!(tree.resolve("w/dangling/../x"), Err(None));
    assert!(resolve(Path::new("relative")).is_err());
    assert_eq!(resolve(Path::new("/../..")).unwrap().path, Path::new("/"));
}

#[test]
fn chains_of_links_have_an_end() {
    let tree = Tree::new(&[], &["l0"], &[]);
    for n in 1..=LINKS_FOLLOWED_MAX + 1 {
        symlink(format!("l{}", n - 1), tree.at(&format!("l{n}"))).unwrap();
    }
    assert_eq!(tree.resolve(&format!("l{LINKS_FOLLOWED_MAX}")), Ok(("l0".to_owned(), 0)));
    assert_eq!(tree.resolve(&format!("l{}", LINKS_FOLLOWED_MAX + 1)), Err(Some(Errno::ELOOP)));
}

#[cfg(target_os = "linux")]
#[test]
fn what_each_process_sees_differently_is_not_followed() {
    for path in ["/proc/self/cwd", "/dev/fd/0", "/dev/stdin", "/proc/self/root/etc"] {
        assert!(resolve(Path::new(path)).is_err(), "{path}");
    }
}

#[test]
fn what_exists_leads_where_the_system_says() {
    let tree = Tree::new(
        &["a/b/c", "d"],
        &["a/f", "d/g"],
        &[("a/l", "../d"), ("d/m", "../a/b"), ("a/b/n", "/"), ("d/o", "m/../l/g")],
    );
    let names = ["a", "b", "c", "d", "f", "g", "l", "m", "n", "o", ".."];
    let mut compared = 0;
    for first in names {
        for second in names {
            for third in names {
                for fourth in names {
                    let path = tree.at(&format!("{first}/{second}/{third}/{fourth}"));
                    let ours = resolve(&path).ok().filter(|resolved| resolved.missing == 0);
                    let theirs = fs::canonicalize(&path).ok();
                    compared += usize::from(theirs.is_some());
                    assert_eq!(ours.map(|resolved| resolved.path), theirs, "{}", path.display());
                }
            }
        }
    }
    assert!(compared > 30, "{compared}");
}

proptest::proptest! {
    #[test]
    fn what_lies_in_a_directory_is_told_by_letters(path in "/?[ab/.]{0,12}", dir in "/?[ab/.]{0,8}") {
        let (path, dir) = (normalised(Path::new(&path)), normalised(Path::new(&dir)));
        proptest::prop_assert_eq!(lies_in(&path, &dir), path.starts_with(&dir));
        proptest::prop_assert!(lies_in(&dir.join(path.strip_prefix("/").unwrap()), &dir));
    }

    /// Where a path leads is a place: from there it leads nowhere else. And it is where the system itself ends up.
    #[test]
    fn what_was_resolved_is_resolved(
        links in proptest::collection::vec(("[a-c]", "(\\.\\./|[a-d]/|\\./){0,3}[a-d]?"), 0..6),
        path in "(\\.\\./|[a-d]/|\\./){0,5}[a-d]?",
    ) {
        let tree = Tree::new(&["w/a", "w/d", "d/b"], &["w/c"], &[]);
        for (name, target) in &links {
            // Some names are taken, and an empty target is none.
            let _ = symlink(target, tree.at("w/d").join(name));
            let _ = symlink(target, tree.at("d").join(name));
        }
        let start = tree.at("w/d").join(&path);
        if let Ok(first) = resolve(&start) {
            let again = resolve(&first.path).unwrap();
            proptest::prop_assert_eq!(&again.path, &first.path);
            proptest::prop_assert_eq!(again.missing, first.missing);
            if first.missing == 0 && let Ok(real) = fs::canonicalize(&start) {
                proptest::prop_assert_eq!(real, first.path);
            }
        }
    }
}
