//! The environment: read once from the process, with what settings add to it.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::fail::Fail;

/// The process's environment, read once.
#[derive(Clone)]
pub(crate) struct Env(HashMap<OsString, OsString>);

impl Env {
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// A variable's text; unset, empty and unreadable are the same.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&OsString::from(name)).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    }

    pub(crate) fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Fail> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Fail::at_start(format!(
                "{name} is not a number in range: '{text}' (correct it, or unset it)"
            ))),
        }
    }

    /// Whether a switch is on: set, and to none of the words for off.
    pub(crate) fn is_on(&self, name: &str) -> bool {
        let off =
            |value: &str| matches!(value.trim().to_ascii_lowercase().as_str(), "0" | "false" | "no" | "off");
        self.get(name).is_some_and(|value| !off(value))
    }

    /// Whether a switch is set to a word for off.
    pub(crate) fn is_off(&self, name: &str) -> bool {
        self.get(name).is_some() && !self.is_on(name)
    }

    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.0.get(&OsString::from(name)).filter(|value| !value.is_empty()).map(PathBuf::from)
    }

    /// The same without those of these names and beginnings of names.
    pub fn without(&self, beginnings: &[&str]) -> Self {
        let meant = |name: &OsString| {
            let name = name.to_string_lossy();
            beginnings.iter().any(|beginning| name.starts_with(beginning))
        };
        let left = self.0.iter().filter(|(name, _)| !meant(name));
        Self(left.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    /// The same with these set.
    pub(super) fn with(mut self, more: &BTreeMap<String, String>) -> Self {
        self.0.extend(more.iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// The process works in another directory now, which programs are told by this name, too.
    pub fn goes_to(&mut self, dir: &Path) {
        if let Some(before) = self.0.insert("PWD".into(), dir.into()) {
            self.0.insert("OLDPWD".into(), before);
        }
    }

    /// All of it, for child processes.
    pub(super) fn all(&self) -> Vec<(OsString, OsString)> {
        self.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    pub fn colour(&self) -> bool {
        self.get("NO_COLOR").is_none() && self.get("TERM") != Some("dumb")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_told_where_they_are_and_where_that_was_before() {
        let mut env = Env(HashMap::from([("PWD".into(), "/one".into())]));
        env.goes_to(Path::new("/two"));
        assert_eq!((env.get("PWD"), env.get("OLDPWD")), (Some("/two"), Some("/one")));
        let mut without = Env(HashMap::new());
        without.goes_to(Path::new("/two"));
        assert_eq!((without.get("PWD"), without.get("OLDPWD")), (Some("/two"), None));
    }
}
