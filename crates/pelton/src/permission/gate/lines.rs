//! What the commands of a line touch: their words, followed to files.

use std::io;
use std::path::{Path, PathBuf};

use super::super::judge::Touched;
use super::super::place::{Here, Kind, Place, is_below_protected};
use super::super::rule;
use super::super::shell::{
    Deed, Files, Move, Patch, PatchText, Reach, Step, Survey, Widening, is_harmless, names_in_patch,
};
use super::below::{Unwanted, holds_links_out, holds_protected};
use super::dirs::{Dirs, REPOSITORY_MARK, is_current, links_to, may_be_entered};
use super::patterns::{matching, protected_matches};
use super::repository::{is_same_repository, top_of_repository};
use super::{Gate, place};
use crate::limits::{NAME_IN_TEXT_BYTES_MAX, NAMES_IN_TEXTS_MAX, OWN_LINKS_MAX, PATCH_JUDGED_BYTES_MAX};
use crate::places::{Follower, normalised};

impl Gate {
    /// What each of the commands touches.
    pub(super) fn touched(&self, survey: &Survey, cwd: &Path, here: &Here) -> Vec<Touched> {
        let start = cwd.to_path_buf();
        let all = vec![start.clone()];
        let been = all.clone();
        let mut dirs = Dirs {
            start,
            all,
            been,
            sure: None,
            is_lost: false,
            relinked: Vec::new(),
            led: Vec::new(),
            leads_anywhere: false,
            all_look: survey.steps.iter().all(Step::writes_nothing),
            goes_deep: survey.steps.iter().any(|step| step.widening == Widening::Deep),
            may_make_repository: false,
            outside: Vec::new(),
            follower: Follower::default(),
        };
        let all_look = dirs.all_look;
        let makes_no_names = survey.steps.iter().all(Step::makes_no_names);
        let restricts = self.rules.restricting().any(rule::Rule::is_about_files);
        survey
            .steps
            .iter()
            .map(|step| {
                dirs.enter(step);
                let known = dirs.known_to(step).map(|known| std::mem::replace(&mut dirs.all, known));
                let mut touched = self.touched_by(step, &dirs, here);
                // For rules that restrict it may be wherever the line has been: `cd x || cat y`.
                if restricts && known.is_none() && dirs.all != dirs.been {
                    let certain = std::mem::replace(&mut dirs.all, dirs.been.clone());
                    touched.may_read(self.touched_by(step, &dirs, here));
                    dirs.all = certain;
                }
                if let Some(look) = step.look.as_ref().filter(|_| touched.looks_at.is_some()) {
                    let does_more = !(look.dashless.is_empty()
                        || all_look && dirs.hold_no_options(&look.dashless))
                        || !all_look && (look.minds_names || !look.steered_by.is_empty())
                        || dirs.hold(&look.steered_by, &self.base.home)
                        || step.runs_git && dirs.may_be_repositories();
                    if does_more {
                        touched.does_more_than_look();
                    } else if step.runs_git
                        && let Some(named) = dirs.run_by_git()
                    {
                        touched.run_by_git = Some(named);
                        touched.does_more_than_look();
                    }
                }
                let are_files = || makes_no_names && dirs.hold_no_options(&step.dashless);
                touched.all_edits_known &= step.dashless.is_empty() || are_files();
                let makes_head = |place: &Place| {
                    place.given.file_name().is_some_and(|name| name.eq_ignore_ascii_case(REPOSITORY_MARK))
                };
                dirs.may_make_repository |= touched.edits.iter().chain(&touched.output).any(makes_head)
                    || !self.carried(step, &dirs).is_empty();
                if dirs.lead_elsewhere(step, &touched) {
                    touched.does_more_than_look();
                    touched.elsewhere = Some("a link that the line puts there may lead elsewhere");
                }
                let read_behind = dirs.follow_own_links(&mut touched);
                if restricts {
                    let enters = step.look.as_ref().is_none_or(|look| look.reach != Reach::Named);
                    touched.is_evasive |= touched.may_change_anything
                        || enters && self.reach_guarded(&read_behind, rule::Deed::Read, here);
                }
                if survey.steps.len() > 1 {
                    let relinked = self.relinked(step, &dirs);
                    if step.makes_links() {
                        self.lead(step, &mut dirs);
                    }
                    dirs.relinked.extend(relinked);
                }
                let gone_to = self.goes(step, &dirs);
                if let Some(all) = known {
                    dirs.all = all;
                }
                // Nothing in the line keeps it from going there.
                let certainly =
                    all_look && step.certainly_runs && gone_to.iter().all(|dir| may_be_entered(dir));
                dirs.go(step, gone_to, certainly);
                touched
            })
            .collect()
    }

    fn touched_by(&self, step: &Step, dirs: &Dirs, here: &Here) -> Touched {
        let mut touched = Touched { all_edits_known: true, ..Touched::default() };
        // Who takes something away may put it in the place of a device, or take the device away.
        let replaces = step.deeds.iter().any(|deed| matches!(deed, Deed::Remove(_)));
        for deed in &step.deeds {
            let (places, is_read) = match deed {
                Deed::Read(files) => (self.places(files, dirs), true),
                Deed::Write(files) | Deed::Remove(files) if replaces => {
                    let paths = self.paths(files, dirs);
                    (paths.and_then(|paths| paths.iter().map(|path| dirs.place(path)).collect()), false)
                }
                Deed::Write(files) | Deed::Remove(files) => (self.places(files, dirs), false),
                Deed::WriteInto(target, source) => (self.places_in(target, source, dirs), false),
                Deed::Patch(patch) => {
                    if patch.below != Files::Named(".".to_owned()) {
                        touched.may_write.extend(self.meant(&patch.below, dirs));
                    }
                    match self.patched(patch, dirs) {
                        Some(places) => touched.may_write.extend(places),
                        // Whatever is there may be changed.
                        None => touched.edits.extend(self.places(&patch.below, dirs).into_iter().flatten()),
                    }
                    continue;
                }
            };
            if let Deed::Write(Files::Matching(pattern)) | Deed::Remove(Files::Matching(pattern)) = deed {
                let named = protected_matches(pattern).into_iter().map(|name| dirs.start.join(name));
                touched.edits.extend(named.filter_map(|path| dirs.place(&path)));
            }
            let places = places.unwrap_or_else(|| {
                touched.all_edits_known = false;
                self.by_letters(deed.files(), dirs)
            });
            match is_read {
                true => touched.reads.extend(places),
                false => touched.edits.extend(places),
            }
        }
        for deed in &step.redirected {
            let (files, into) = match deed {
                _ if is_harmless(deed) && matches!(deed, Deed::Write(_)) => continue,
                Deed::Read(files) => (files, &mut touched.input),
                Deed::Write(files) | Deed::Remove(files) | Deed::WriteInto(files, _) => {
                    (files, &mut touched.output)
                }
                // No redirection is one.
                Deed::Patch(_) => continue,
            };
            match self.places(files, dirs) {
                Some(places) => into.extend(places),
                None => {
                    touched.elsewhere = Some("nobody can say where its redirection leads");
                    into.extend(self.by_letters(files, dirs));
                    let paths = self.paths(files, dirs).unwrap_or_default();
                    let hides =
                        |path: &PathBuf| place(path, &dirs.follower).is_err_and(|error| is_evasive(&error));
                    touched.is_evasive |=
                        self.rules.restricting().any(rule::Rule::is_about_files) && paths.iter().any(hides);
                }
            }
            let is_relative = matches!(files, Files::Named(path) if !path.starts_with('/'));
            if is_relative && dirs.changed(here) {
                touched.elsewhere =
                    Some("it changes the directory and redirects to a path that depends on it");
            }
        }
        if step.runs_git && dirs.changed(here) && !dirs.are_in_same_repository(here) {
            touched.elsewhere = Some("it changes the directory before it runs git");
        }
        if step.runs_git && dirs.name_repositories(&step.repositories, here) {
            touched.elsewhere = Some("files that anybody may have put there say what git runs");
        }
        let is_here = |files: &Files| {
            self.places(files, dirs).is_some_and(|places| places.iter().all(|place| here.contains(place)))
        };
        if !step.sent_to.iter().all(is_here) {
            touched.elsewhere = Some("a directory outside of the working directories says what it runs");
        }
        if let Some(look) = &step.look {
            let places: Option<Vec<Vec<Place>>> =
                look.files.iter().map(|files| self.places(files, dirs)).collect();
            let places: Option<Vec<Place>> = places.map(|places| places.into_iter().flatten().collect());
            let works_here = look.works_in.iter().all(|dir| {
                let is_same = |place: &Place| {
                    is_current(&place.real, here) || dirs.all_look && is_same_repository(&place.real, here)
                };
                self.places(dir, dirs).is_some_and(|places| places.iter().all(is_same))
            });
            let guarded = self.rules.guards_reading();
            let holds = |follows| {
                let is_entered = |place: &&Place| place.kind == Kind::Directory;
                let entered: Vec<Place> = places.iter().flatten().filter(is_entered).cloned().collect();
                let deed = rule::Deed::Read;
                let splits = look.splits;
                let only_ending = look.only_ending.as_deref();
                let unwanted =
                    Unwanted { rules: &self.rules, here, guarded, deed, follows, only_ending, splits };
                unwanted.is_below(&entered)
            };
            touched.shows_unnamed = match look.reach {
                Reach::Named => false,
                Reach::Below => guarded && holds(false),
                Reach::BelowAndLinked => holds(true),
                Reach::Unnamed => guarded,
            };
            touched.shows_guarded = guarded && touched.shows_unnamed && look.reach != Reach::Unnamed;
            // What is run outside of the working directories looks at other things than it seems.
            let inside = dirs.all.iter().all(|dir| dirs.place(dir).is_some_and(|dir| here.contains(&dir)));
            touched.looks_at = places.filter(|_| works_here && inside && !dirs.is_lost);
        }
        // Of what certainly only looks, or does nothing but change files, it is known which words are files; git has names
        // of its own for them.
        let only_looks = touched.looks_at.is_some() && !step.runs_git && !step.names_for_others;
        let is_understood = only_looks || step.is_plain_edit && touched.all_edits_known;
        let has_guards = self.rules.restricting().any(rule::Rule::is_about_files);
        if has_guards {
            touched.is_evasive |= self.reach_guarded(&touched.reads, rule::Deed::Read, here)
                || self.reach_guarded(&touched.edits, rule::Deed::Edit, here);
            let is_wider = |files: &Files| match (step.widening, files) {
                (Widening::Anything, Files::Matching(_)) => true,
                (Widening::Deep, Files::Matching(_)) => self.paths(files, dirs).is_none(),
                _ => false,
            };
            let looked_at = step.look.iter().flat_map(|look| &look.files);
            touched.is_evasive |= step.may_name.iter().chain(looked_at).any(is_wider);
            // Behind `popd` nobody knows which file a relative name means.
            let is_relative =
                |files: &Files| matches!(files, Files::Named(path) if !path.starts_with(['/', '-']));
            touched.is_evasive |=
                dirs.is_lost && step.moves.is_none() && step.may_name.iter().any(is_relative);
        }
        if !is_understood {
            // The name of a protected directory alone is none: programs that leave it out name it, too.
            touched.may_steer =
                self.held_in(&step.may_hold, |name| is_below_protected(Path::new(name)), dirs);
            let written = step.may_write.iter().flat_map(|files| self.meant(files, dirs));
            touched.may_write.extend(written);
        }
        if has_guards {
            touched.may_hold = self.held_in(&step.may_evaluate, |_| true, dirs);
        }
        if !is_understood && has_guards {
            touched.may_hold.extend(self.held_in(&step.may_hold, |_| true, dirs));
            for path in step.may_name.iter().flat_map(|files| self.paths_by_letters(files, dirs)) {
                match place(&path, &dirs.follower) {
                    Ok(place) => touched.may_name.push(place),
                    Err(error) => {
                        touched.is_evasive |= is_evasive(&error);
                        touched.may_name.extend(dirs.place(&normalised(&path)));
                    }
                }
            }
        }
        touched.goes_to = match &step.moves {
            Some(Move::To(files)) => {
                let followed = self.places(files, dirs).and_then(|places| places.into_iter().next());
                // Behind a directory that is not there `..` leads nowhere, but the shell takes both away by letters.
                followed.or_else(|| dirs.place(&normalised(self.paths(files, dirs)?.first()?)))
            }
            _ => None,
        };
        if matches!(step.moves, Some(Move::To(_))) && touched.goes_to.is_none() {
            touched.looks_at = None;
        }
        touched.carries_protected = step.is_plain_edit && holds_protected(&self.carried(step, dirs));
        touched.critical = step.removals.iter().find_map(|removal| self.critical(removal, dirs));
        touched
    }

    /// The directories whose contents a command puts elsewhere.
    fn carried(&self, step: &Step, dirs: &Dirs) -> Vec<Place> {
        let puts = |deed: &Deed| matches!(deed, Deed::Write(_) | Deed::WriteInto(..));
        if !step.deeds.iter().any(puts) {
            return Vec::new();
        }
        let sources = step.deeds.iter().filter_map(|deed| match deed {
            Deed::Read(files) | Deed::Remove(files) => self.places(files, dirs),
            _ => None,
        });
        sources.flatten().filter(|place| place.kind == Kind::Directory).collect()
    }

    /// Names behind which links are that a command makes, or carries along so that they may lead elsewhere.
    fn relinked(&self, step: &Step, dirs: &Dirs) -> Vec<PathBuf> {
        if !step.makes_links() && !holds_links_out(&self.carried(step, dirs)) {
            return Vec::new();
        }
        let made = step.deeds.iter().filter_map(|deed| match deed {
            Deed::Write(files) => self.places(files, dirs),
            Deed::WriteInto(target, source) => self.places_in(target, source, dirs),
            _ => None,
        });
        made.flatten().flat_map(|place| [place.given, place.real]).collect()
    }

    /// Notes the links that a command makes with the names they may lead to: seen from where it is run, and from where they are. In a
    /// directory each has the name of its source; the target itself may be a link to any of those that stand before it.
    fn lead(&self, step: &Step, dirs: &mut Dirs) {
        let mut led = Vec::new();
        let mut sources: Vec<&Files> = Vec::new();
        for deed in &step.deeds {
            match deed {
                Deed::Read(files) => sources.push(files),
                Deed::WriteInto(target, source) => {
                    for path in self.paths(source, dirs).unwrap_or_default() {
                        let named = Files::Named(path.to_string_lossy().into_owned());
                        let links = self.places_in(target, &named, dirs).unwrap_or_default();
                        led.extend(links_to(source, &[path], &links));
                        if dirs.led.len() + led.len() > OWN_LINKS_MAX {
                            dirs.leads_anywhere = true;
                            return;
                        }
                    }
                }
                Deed::Write(target) => {
                    let links = self.places(target, dirs).unwrap_or_default();
                    for source in sources.drain(..) {
                        let paths = self.paths(source, dirs).unwrap_or_default();
                        if dirs.led.len() + led.len() + paths.len() * links.len() > OWN_LINKS_MAX {
                            dirs.leads_anywhere = true;
                            return;
                        }
                        led.extend(links_to(source, &paths, &links));
                    }
                }
                Deed::Remove(_) | Deed::Patch(_) => {}
            }
        }
        dirs.led.extend(led);
    }

    /// Whether below one of these directories is something that a rule guards.
    fn reach_guarded(&self, places: &[Place], deed: rule::Deed, here: &Here) -> bool {
        let is_entered = |place: &&Place| place.kind == Kind::Directory;
        let entered: Vec<Place> = places.iter().filter(is_entered).cloned().collect();
        let unwanted = Unwanted {
            rules: &self.rules,
            here,
            guarded: true,
            deed,
            follows: false,
            only_ending: None,
            splits: false,
        };
        !entered.is_empty() && unwanted.is_below(&entered)
    }

    /// The files that a patch names, if it can be read.
    fn patched(&self, patch: &Patch, dirs: &Dirs) -> Option<Vec<Place>> {
        let mut names = Vec::new();
        match &patch.text {
            PatchText::Written(text) => names.extend(names_in_patch(text, patch.strip)),
            PatchText::In(files) => {
                for path in
                    files.iter().map(|files| self.paths(files, dirs)).collect::<Option<Vec<_>>>()?.concat()
                {
                    match patch_in(&path) {
                        Some(text) => names.extend(names_in_patch(&text, patch.strip)),
                        None if self.rules.restricting().any(rule::Rule::is_about_files) => return None,
                        None => {}
                    }
                }
            }
            // Without rules about files nothing depends on it but what it says itself.
            PatchText::Unknown => {
                return (!self.rules.restricting().any(rule::Rule::is_about_files)).then(Vec::new);
            }
        }
        if names.len() > NAMES_IN_TEXTS_MAX {
            return None;
        }
        let below = self.paths(&patch.below, dirs)?;
        let named = below.iter().flat_map(|dir| names.iter().map(|name| dir.join(name)));
        Some(named.filter_map(|path| self.followed(&path, dirs)).collect())
    }

    /// The files that may be named in texts in other languages, of those names that count.
    fn held_in(&self, texts: &[String], counts: impl Fn(&str) -> bool, dirs: &Dirs) -> Vec<Place> {
        let mut names: Vec<&str> = Vec::new();
        let divides = |c: char| c.is_whitespace() || "'\"`()[]{};,=<>|&\\\0".contains(c);
        for name in texts.iter().flat_map(|text| text.split(divides)) {
            let is_name =
                name.len() <= NAME_IN_TEXT_BYTES_MAX && name.contains(|c: char| c.is_alphanumeric());
            if is_name && counts(name) && !names.contains(&name) && names.len() < NAMES_IN_TEXTS_MAX {
                names.push(name);
            }
        }
        let files = names.into_iter().map(|name| match name.strip_prefix("~/") {
            Some(rest) => Files::InHome(rest.to_owned()),
            None => Files::Named(name.to_owned()),
        });
        files.flat_map(|files| self.meant(&files, dirs)).collect()
    }

    /// Where these files are, or would be by the letters of their paths.
    fn meant(&self, files: &Files, dirs: &Dirs) -> Vec<Place> {
        self.places(files, dirs).unwrap_or_else(|| self.by_letters(files, dirs))
    }

    /// Where paths lead that the system cannot follow yet: behind a directory that is not there `..` leads nowhere, but the line
    /// may make that directory. For what restricts, never for what allows.
    fn by_letters(&self, files: &Files, dirs: &Dirs) -> Vec<Place> {
        let paths = self.paths_by_letters(files, dirs);
        paths.iter().filter_map(|path| dirs.place(&normalised(path))).collect()
    }

    /// The paths of these files. Where a repository begins, what lies there decides, whatever git says of it.
    fn paths_by_letters(&self, files: &Files, dirs: &Dirs) -> Vec<PathBuf> {
        match (self.paths(files, dirs), files) {
            (Some(paths), _) => paths,
            (None, Files::InRepository { rest, .. }) => {
                let begins = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
                let top = |dir: &PathBuf| dir.ancestors().find(begins).map(|top| top.join(rest));
                let tops = dirs.all.iter().filter_map(top);
                tops.chain([dirs.start.join(rest)]).collect()
            }
            (None, _) => Vec::new(),
        }
    }

    /// Where these files are, from every directory it may be. `None` if one cannot be followed.
    fn places(&self, files: &Files, dirs: &Dirs) -> Option<Vec<Place>> {
        let paths = self.paths(files, dirs)?;
        paths.iter().map(|path| self.followed(path, dirs)).collect()
    }

    /// Where a copy of these files would be in that directory.
    fn places_in(&self, target: &Files, source: &Files, dirs: &Dirs) -> Option<Vec<Place>> {
        let mut places = Vec::new();
        for target in self.paths(target, dirs)? {
            for source in self.paths(source, dirs)? {
                let copy = match normalised(&source).file_name() {
                    Some(name) => target.join(name),
                    None => target.clone(),
                };
                // If the target is a file, there is nothing below it.
                places.extend(self.followed(&copy, dirs));
            }
        }
        Some(places)
    }

    fn followed(&self, path: &Path, dirs: &Dirs) -> Option<Place> {
        // Who reads the standard streams by name reads nothing new.
        let is_stream = matches!(path.to_str(), Some("/dev/null" | "/dev/stdin" | "/dev/fd/0"));
        match self.base.roots.first() {
            Some(root) if is_stream => {
                Some(Place { given: root.clone(), real: root.clone(), kind: Kind::Plain })
            }
            _ => dirs.place(path),
        }
    }

    pub(super) fn paths(&self, files: &Files, dirs: &Dirs) -> Option<Vec<PathBuf>> {
        match files {
            Files::Named(path) => Some(dirs.joined(path)),
            Files::InHome(path) => Some(vec![self.base.home.first()?.join(path)]),
            Files::InRepository { rest, may_split } => {
                dirs.all.iter().map(|dir| in_repository(dir, rest, *may_split)).collect()
            }
            Files::Matching(pattern) => {
                let found: Option<Vec<Vec<PathBuf>>> =
                    dirs.all.iter().map(|dir| matching(pattern, dir, dirs.goes_deep)).collect();
                found.map(|found| found.into_iter().flatten().collect())
            }
        }
    }

    /// The directories a command may have gone to when it has succeeded.
    fn goes(&self, step: &Step, dirs: &Dirs) -> Vec<PathBuf> {
        let Some(Move::To(files)) = &step.moves else { return Vec::new() };
        let mut gone_to = Vec::new();
        for path in self.paths(files, dirs).unwrap_or_default() {
            // The shell takes `..` away by letters before it goes.
            for dir in [normalised(&path)].into_iter().chain(dirs.place(&path).map(|place| place.real)) {
                if !gone_to.contains(&dir) {
                    gone_to.push(dir);
                }
            }
        }
        gone_to
    }
}

/// A path from where the repository begins. Had git nothing to say, it would begin at the root: there must be no such file.
fn in_repository(dir: &Path, rest: &str, may_split: bool) -> Option<PathBuf> {
    let path = top_of_repository(dir)?.join(rest);
    let is_one_word = path.to_str()?.chars().all(|c| !c.is_whitespace() && !"*?[\\".contains(c));
    let is_meant = rest.is_empty() || Path::new("/").join(rest).symlink_metadata().is_err();
    ((is_one_word || !may_split) && is_meant).then_some(path)
}

/// What is in a patch, if it is an ordinary file of an ordinary size.
fn patch_in(path: &Path) -> Option<String> {
    let about = std::fs::metadata(path).ok()?;
    (about.is_file() && about.len() <= PATCH_JUDGED_BYTES_MAX).then_some(())?;
    Some(String::from_utf8_lossy(&std::fs::read(path).ok()?).into_owned())
}

/// Whether a path is written so that nobody can follow it, though the system will.
fn is_evasive(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
        || error.raw_os_error() == Some(nix::errno::Errno::ELOOP as i32)
}
