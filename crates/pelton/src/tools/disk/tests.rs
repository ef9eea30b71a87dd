use std::os::unix::fs::symlink;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;

fn replace(path: &Path, content: &[u8]) -> Result<(), DiskError> {
    let place = Place::find_or_make(&path.into())?;
    let found = match place.open() {
        Ok((_, found)) => Some(found),
        Err(DiskError::Missing) => None,
        Err(error) => return Err(error),
    };
    place.replace(content, found.as_ref(), &CancellationToken::new())
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn replacing_keeps_mode_and_links_and_leaves_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let (file, link, relative) =
        (dir.path().join("real/file"), dir.path().join("link"), dir.path().join("relative"));
    fs::create_dir(dir.path().join("real")).unwrap();
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    symlink(&file, &link).unwrap();
    symlink("real/../link", &relative).unwrap();
    for path in [&link, &relative, &file] {
        replace(path, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o751);
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(names(&dir.path().join("real")), ["file"]);
}

#[test]
fn a_dangling_link_is_written_through_and_a_loop_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (target, link, circle) =
        (dir.path().join("target"), dir.path().join("link"), dir.path().join("circle"));
    symlink(&target, &link).unwrap();
    replace(&link, b"x").unwrap();
    assert_eq!(fs::read(&target).unwrap(), b"x");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    symlink(&circle, &circle).unwrap();
    assert!(matches!(replace(&circle, b"x"), Err(DiskError::Io(_))));
}

#[test]
fn directories_are_made_but_not_through_guesses() {
    let dir = tempfile::tempdir().unwrap();
    replace(&dir.path().join("a/b/c"), b"x").unwrap();
    assert_eq!(fs::read(dir.path().join("a/b/c")).unwrap(), b"x");
    assert!(matches!(replace(&dir.path().join("no/../c"), b"x"), Err(DiskError::Missing)));
    assert_eq!(names(dir.path()), ["a"]);
    assert!(matches!(replace(dir.path(), b"x"), Err(DiskError::Directory)));
    assert!(replace(&dir.path().join("a/b/c/d"), b"x").is_err(), "below a file");
}

#[test]
fn a_file_that_changed_meanwhile_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "old").unwrap();
    let place = Place::find(&file.as_path().into()).unwrap();
    let (_, found) = place.open().unwrap();
    let cancel = CancellationToken::new();

    fs::write(&file, "theirs").unwrap();
    assert!(matches!(place.replace(b"ours", Some(&found), &cancel), Err(DiskError::Moved)));
    assert!(matches!(place.replace(b"ours", None, &cancel), Err(DiskError::Moved)), "appeared");
    assert_eq!(fs::read(&file).unwrap(), b"theirs");

    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, "secret").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(matches!(place.open(), Err(DiskError::Moved)), "a link appeared after the path was resolved");
    assert!(matches!(place.replace(b"ours", Some(&found), &cancel), Err(DiskError::Moved)));
    assert_eq!(fs::read(&elsewhere).unwrap(), b"secret");
    assert_eq!(names(dir.path()), ["elsewhere", "file"]);
}

#[test]
fn an_interrupted_replacement_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "old").unwrap();
    let place = Place::find(&file.as_path().into()).unwrap();
    let (_, found) = place.open().unwrap();
    let cancel = CancellationToken::new();
    cancel.cancel();
    assert!(matches!(place.replace(b"new", Some(&found), &cancel), Err(DiskError::Interrupted)));
    assert_eq!(fs::read(&file).unwrap(), b"old");
    assert_eq!(names(dir.path()), ["file"]);
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (fifo, socket) = (dir.path().join("fifo"), dir.path().join("socket"));
    nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let started = std::time::Instant::now();
    for (path, word) in [(fifo.as_path(), "FIFO"), (&socket, "socket"), (Path::new("/dev/zero"), "device")] {
        let error = Place::find(&path.into()).unwrap().open().unwrap_err();
        assert!(error.to_string().contains(word), "{error}");
    }
    assert!(matches!(Place::find(&dir.path().into()).unwrap().open(), Err(DiskError::Directory)));
    assert!(started.elapsed() < Duration::from_secs(1));
    if cfg!(target_os = "linux") {
        for path in ["/proc/self/environ".to_owned(), format!("/proc/{}/environ", std::process::id())] {
            assert!(Place::find(&Path::new(&path).into()).and_then(|place| place.open()).is_err(), "{path}");
        }
    }
}

#[test]
fn neighbours_are_named_best_first() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["config.toml", "config.yaml", "readme", "confg.tom"] {
        fs::write(dir.path().join(name), "").unwrap();
    }
    let near = neighbours(&dir.path().join("confi.toml"));
    assert_eq!(near.first(), Some(&dir.path().join("config.toml")));
    assert!(!near.contains(&dir.path().join("readme")));
    assert!(neighbours(&dir.path().join("no/such")).is_empty());
}

#[test]
fn a_link_that_appears_after_the_judgement_is_refused_anywhere_on_the_way() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let (inside, outside) = (dir.join("work/a/b"), dir.join("outside"));
    fs::create_dir_all(&inside).unwrap();
    fs::create_dir_all(outside.join("b")).unwrap();
    let target = Target { path: inside.join("f"), judged: Some(inside.join("f")) };
    for (moved, to) in [("work/a", "outside"), ("work", "outside"), ("work/a/b", "outside")] {
        let (moved, aside) = (dir.join(moved), dir.join("aside"));
        fs::rename(&moved, &aside).unwrap();
        symlink(dir.join(to), &moved).unwrap();
        for place in [Place::find(&target), Place::find_or_make(&target)] {
            assert!(matches!(place, Err(DiskError::Moved)), "{moved:?}: {place:?}");
        }
        fs::remove_file(&moved).unwrap();
        fs::rename(&aside, &moved).unwrap();
    }
    symlink(outside.join("secret"), inside.join("f")).unwrap();
    let place = Place::find(&target).unwrap();
    assert!(matches!(place.open(), Err(DiskError::Moved)));
    assert!(matches!(place.replace(b"x", None, &CancellationToken::new()), Err(DiskError::Moved)));
    assert_eq!(names(&outside), ["b"]);
}

/// Somebody swaps a directory on the way for a link, as fast as they can, while the same file is written again and again.
#[cfg(target_os = "linux")]
#[test]
fn pit_T5_races_never_lead_a_write_elsewhere() {
    const WRITES: usize = 4_000;
    // Where one of the two gets no processor for long, it takes more of them until both have had their turn.
    const WRITES_MAX: usize = 400_000;
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let (work, outside) = (dir.join("work"), dir.join("outside"));
    fs::create_dir_all(work.join("a/b")).unwrap();
    fs::create_dir_all(outside.join("b")).unwrap();
    fs::write(outside.join("b/f"), "theirs").unwrap();
    let stop = AtomicBool::new(false);
    let (mut written, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
            let (real, link) = (work.join("a"), work.join("link"));
            symlink(&outside, &link).unwrap();
            while !stop.load(Ordering::Relaxed) {
                renameat2(AT_FDCWD, &real, AT_FDCWD, &link, RenameFlags::RENAME_EXCHANGE).unwrap();
            }
        });
        let target = Target { path: work.join("a/b/f"), judged: Some(work.join("a/b/f")) };
        for n in 0..WRITES_MAX {
            if n >= WRITES && written > 0 && refused > 0 {
                break;
            }
            let done = Place::find_or_make(&target).and_then(|place| {
                let found = match place.open() {
                    Ok((_, found)) => Some(found),
                    Err(DiskError::Missing) => None,
                    Err(error) => return Err(error),
                };
                place.replace(n.to_string().as_bytes(), found.as_ref(), &CancellationToken::new())
            });
            *(if done.is_ok() { &mut written } else { &mut refused }) += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read(outside.join("b/f")).unwrap(), b"theirs");
    assert_eq!((names(&outside), names(&outside.join("b"))), (vec!["b".to_owned()], vec!["f".to_owned()]));
    assert!(written > 0 && refused > 0, "{written} written, {refused} refused: there was no race");
}
