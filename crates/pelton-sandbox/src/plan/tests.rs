//! Policies and disks in, plans out.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::*;

/// A disk of a few names. Links lead to whole paths.
struct Paper(BTreeMap<PathBuf, Option<PathBuf>>);

impl Paper {
    /// `dir/`, `file`, `link>target`.
    fn new(names: &[&str]) -> Self {
        let mut all = BTreeMap::new();
        for name in names {
            let (path, target) = match name.split_once('>') {
                Some((path, target)) => (path, Some(PathBuf::from(target))),
                None => (*name, None),
            };
            // A directory is told by the slash, which stays in what is remembered.
            let key = PathBuf::from(path.trim_end_matches('/'));
            for above in key.ancestors().skip(1) {
                all.entry(above.to_path_buf()).or_insert(Some(PathBuf::from("/dir")));
            }
            let kind = target.or(path.ends_with('/').then(|| PathBuf::from("/dir")));
            all.insert(key, kind);
        }
        Self(all)
    }
}

impl Look for Paper {
    fn at(&self, path: &Path) -> Option<Found> {
        Some(match self.0.get(path)? {
            Some(target) if target == Path::new("/dir") => Found::Directory,
            Some(_) => Found::Link,
            None => Found::File,
        })
    }

    fn names(&self, dir: &Path) -> Vec<OsString> {
        let inside = self.0.keys().filter(|path| path.parent() == Some(dir));
        inside.filter_map(|path| path.file_name()).map(ToOwned::to_owned).collect()
    }

    fn names_and_kinds(&self, dir: &Path) -> Vec<(OsString, bool)> {
        let is_dir = |name: &OsString| self.at(&dir.join(name)) == Some(Found::Directory);
        self.names(dir).into_iter().map(|name| (name.clone(), is_dir(&name))).collect()
    }

    fn real(&self, path: &Path) -> Option<PathBuf> {
        let path = PathBuf::from(path.to_str()?.trim_end_matches('/'));
        match self.0.get(&path)? {
            Some(target) if target != Path::new("/dir") => self.real(target),
            _ => Some(path),
        }
    }
}

fn plan(names: &[&str], change: impl FnOnce(&mut Policy)) -> Plan {
    let mut policy = Policy { writable: vec!["/w".into()], home: Some("/home".into()), ..Policy::default() };
    change(&mut policy);
    let names: Vec<&str> = names.iter().copied().chain(["/w/", "/home/"]).collect();
    Plan::new(&policy, Path::new("/w"), &Paper::new(&names)).unwrap()
}

fn how(plan: &Plan, path: &str) -> Option<How> {
    plan.mounts.iter().find(|mount| mount.path == Path::new(path)).map(|mount| mount.how)
}

fn ghost(plan: &Plan, path: &str) -> Option<bool> {
    plan.ghosts.iter().find(|ghost| ghost.path == Path::new(path)).map(|ghost| ghost.is_directory)
}

#[test]
fn what_steers_programs_is_read_only_there_or_not() {
    let plan = plan(&["/w/.npmrc", "/w/.IDEA/x", "/w/src/a.c"], |_| {});
    assert_eq!(how(&plan, "/w"), Some(How::Writable));
    assert_eq!((how(&plan, "/w/.npmrc"), how(&plan, "/w/.IDEA")), (Some(How::ReadOnly), Some(How::ReadOnly)));
    assert_eq!((ghost(&plan, "/w/.claude"), ghost(&plan, "/w/.mcp.json")), (Some(true), Some(false)));
    assert_eq!(how(&plan, "/w/.claude"), Some(How::ReadOnly), "a ghost is covered");
    assert_eq!(ghost(&plan, "/w/.envrc"), None, "what programs read in passing is watched");
    assert_eq!(ghost(&plan, "/w/.bashrc"), None, "nobody starts up in a project");
    assert!(plan.places.iter().any(|place| place.dir == Path::new("/w")));
}

#[test]
fn at_home_start_up_files_are_masked() {
    let plan = plan(&[], |policy| policy.writable = vec!["/home".into()]);
    assert_eq!(ghost(&plan, "/home/.bashrc"), Some(false));
}

#[test]
fn a_repository_may_be_committed_to_but_not_steered() {
    let names =
        ["/w/.git/HEAD", "/w/.git/config", "/w/.git/modules/a/config", "/w/.git/worktrees/b/commondir"];
    let plan = plan(&names, |_| {});
    assert_eq!(how(&plan, "/w/.git"), Some(How::Writable), "mounted on itself, so that it cannot be moved");
    assert_eq!(how(&plan, "/w/.git/config"), Some(How::ReadOnly));
    assert_eq!(how(&plan, "/w/.git/HEAD"), None);
    assert_eq!(ghost(&plan, "/w/.git/hooks"), Some(true));
    assert_eq!(ghost(&plan, "/w/.git/commondir"), None, "git dies of an empty one");
    assert_eq!(how(&plan, "/w/.git/modules/a/config"), Some(How::ReadOnly));
    assert_eq!(how(&plan, "/w/.git/worktrees/b/commondir"), Some(How::ReadOnly));
    assert_eq!(ghost(&plan, "/w/.git/modules/a/hooks"), None);
}

#[test]
fn what_is_worked_in_is_looked_through() {
    let plan = plan(&["/w/a/.npmrc", "/w/a/.git/config", "/t/a/.npmrc"], |policy| {
        policy.writable.push("/t".into());
        policy.worked_in = vec!["/w".into(), "/elsewhere".into()];
    });
    assert_eq!(how(&plan, "/w/a/.npmrc"), Some(How::ReadOnly));
    assert_eq!(how(&plan, "/w/a/.git/config"), Some(How::ReadOnly));
    assert_eq!(how(&plan, "/t/a/.npmrc"), None, "what is thrown away is not worked in");
    assert_eq!((plan.deep, plan.looked_through), (vec!["/w".into()], vec!["/w".into()]));
}

#[test]
fn links_are_followed_to_what_they_protect() {
    let plan = plan(&["/w/.vscode>/w/conf", "/w/conf/x", "/w/.idea>/elsewhere", "/elsewhere/"], |_| {});
    assert_eq!(how(&plan, "/w/conf"), Some(How::ReadOnly));
    assert_eq!((how(&plan, "/w/.vscode"), how(&plan, "/elsewhere")), (None, None));
    assert!(plan.kept.contains(&PathBuf::from("/w/.vscode")), "the link itself is looked at afterwards");
}

#[test]
fn the_configuration_but_not_its_worktrees() {
    let plan = plan(&["/w/.claude/worktrees/x", "/w/.claude/settings.json"], |_| {});
    assert_eq!(how(&plan, "/w/.claude"), Some(How::ReadOnly));
    assert_eq!(how(&plan, "/w/.claude/worktrees"), Some(How::Writable));
}

#[test]
fn of_two_the_more_particular_counts_and_then_the_stricter() {
    let names = ["/w/a/b/c", "/s/t/u", "/w/x"];
    let plan = plan(&names, |policy| {
        policy.writable.push("/w/a/b".into());
        policy.deny_write = vec!["/w/a".into(), "/w/x".into(), "/w/new/er".into(), "/w/none".into()];
        policy.deny_read = vec!["/s/".into(), "/w/x".into(), "/gone".into()];
        policy.allow_read = vec!["/s/t".into(), "/w".into()];
    });
    assert_eq!((how(&plan, "/w/a"), how(&plan, "/w/a/b")), (Some(How::ReadOnly), Some(How::Writable)));
    assert_eq!(how(&plan, "/w/x"), Some(How::Hidden(Hides::File)));
    assert_eq!(
        (how(&plan, "/s"), how(&plan, "/s/t")),
        (Some(How::Hidden(Hides::Directory)), Some(How::ReadOnly))
    );
    assert_eq!(how(&plan, "/w"), Some(How::Writable));
    assert_eq!((ghost(&plan, "/w/new"), ghost(&plan, "/w/none")), (Some(true), Some(false)));
    let depths: Vec<usize> = plan.mounts.iter().map(|mount| mount.path.components().count()).collect();
    assert!(depths.is_sorted(), "what is inside comes later");
}

#[test]
fn the_whole_disk_is_no_place_to_work_in() {
    let plan = plan(&[], |policy| policy.writable = vec!["/".into(), "/not/there".into()]);
    assert_eq!(plan.mounts, []);
}
