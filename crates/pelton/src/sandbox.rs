//! Commands in a box: what a session's options mean for each of them. The box itself is `pelton-sandbox`.

mod door; // who decides about hosts that no list names
mod hosts; // which hosts may be reached: pure
mod proxy; // the way to them
mod violations; // what a command tried and could not do, as far as that can be known

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use pelton_sandbox::Helper;
use pelton_sandbox::limits::BRIDGE_PORT;
use pelton_sandbox::{Ability, Form, Network, Policy, Prepared, probe};
use tempfile::TempDir;

pub(crate) use door::{Answered, Door};
use hosts::Hosts;
pub(crate) use proxy::Proxy;
use proxy::UsersProxy;
pub(crate) use violations::Seen;

/// Under what terms commands run in a box.
///
/// ```
/// use pelton::sandbox::{Helper, SandboxOptions};
///
/// // A program whose `main` hands the words behind `__sandbox` to `pelton_sandbox::helper` first of all.
/// let helper = Helper { program: "/usr/bin/pelton".into(), args: vec!["__sandbox".into()] };
/// let mut sandbox = SandboxOptions::new(helper);
/// sandbox.required = true;
/// sandbox.deny_read.push("/home/me/.ssh".into());
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SandboxOptions {
    /// The program that builds the box.
    pub helper: Helper,
    /// Without a box the engine does not start. Otherwise commands then run as if no box had been wanted.
    pub required: bool,
    /// Commands in the box need no approval. Rules that deny or ask, critical removals and plan mode stay above that.
    pub auto_allow: bool,
    /// The model may ask to run a command outside, which is then judged like any other.
    pub allow_unsandboxed: bool,
    /// Commands that run outside, judged like any other: a whole command, or its first words with ` *` behind them.
    pub excluded: Vec<String>,
    /// A box that shows the processes outside is better than none with namespaces: inside containers there may be no other.
    pub weaker_nested: bool,
    /// bubblewrap, if it should be used. It must not be somewhere that commands can write.
    pub bubblewrap: Option<PathBuf>,
    /// Files are not held, only what can be reached: whatever is said about paths does not count, and commands need approval.
    pub open_disk: bool,
    /// Further paths that may be written; absolute.
    pub allow_write: Vec<PathBuf>,
    /// Paths that may not be written all the same.
    pub deny_write: Vec<PathBuf>,
    /// Paths that may not be read.
    pub deny_read: Vec<PathBuf>,
    /// Paths inside of those that may be read after all.
    pub allow_read: Vec<PathBuf>,
    /// Variables that commands do not see; those with a text are seen as that.
    pub withheld: Vec<(OsString, Option<String>)>,
    /// What can be reached.
    pub network: NetworkOptions,
    /// By the beginning of a command (`*` is every command): paths and hosts about which nothing is said when it could not
    /// have them.
    pub ignored: BTreeMap<String, Vec<String>>,
}

/// What commands can reach. Nothing, unless said.
///
/// ```
/// use pelton::sandbox::NetworkOptions;
///
/// let mut network = NetworkOptions::default(); // nothing can be reached
/// network.allowed_domains.push("*.example.com".to_owned());
/// network.strict = true; // and nobody is asked about other hosts
/// assert!(!network.local_binding);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct NetworkOptions {
    /// Hosts they may reach, by a proxy: `x.org`, or `*.x.org` for all below it. Nobody, if empty.
    pub allowed_domains: Vec<String>,
    /// Hosts they may not reach all the same.
    pub denied_domains: Vec<String>,
    /// They may serve each other on the loopback device, within one command.
    pub local_binding: bool,
    /// They may use sockets on the file system, those of other programs too.
    pub unix_sockets: bool,
    /// Nobody is asked about a host that is not listed: it is refused.
    pub strict: bool,
    /// A proxy of the user's on this machine takes the place of ours, and decides: its ports for HTTP and for SOCKS.
    pub http_proxy_port: Option<u16>,
    /// See [`http_proxy_port`](Self::http_proxy_port).
    pub socks_proxy_port: Option<u16>,
}

impl SandboxOptions {
    /// A box with which nothing but the working directories can be written and nobody can be reached.
    pub fn new(helper: Helper) -> Self {
        Self {
            helper,
            required: false,
            auto_allow: true,
            allow_unsandboxed: true,
            excluded: Vec::new(),
            weaker_nested: false,
            bubblewrap: None,
            open_disk: false,
            allow_write: Vec::new(),
            deny_write: Vec::new(),
            deny_read: Vec::new(),
            allow_read: Vec::new(),
            withheld: Vec::new(),
            network: NetworkOptions::default(),
            ignored: BTreeMap::new(),
        }
    }
}

/// The boxes of one session.
#[derive(Debug)]
pub(crate) struct Sandbox {
    options: SandboxOptions,
    form: Form,
    home: Option<PathBuf>,
    /// Where commands may put what they need for a while. It goes with the session.
    temp: TempDir,
    /// The hosts that somebody was asked about.
    answered: Answered,
    /// Proxies so far.
    proxies: AtomicU64,
}

/// What a machine answered.
pub(crate) enum Start {
    /// Commands run in a box; something may have to be said about it.
    Ready(Arc<Sandbox>, Option<String>),
    /// They do not, and this is why.
    Unavailable(String),
}

impl Sandbox {
    /// Finds out, once in a process, what the machine can do. Starts a few short processes the first time.
    pub fn start(options: SandboxOptions, home: Option<PathBuf>, temp_dir: &Path) -> Start {
        let Ability { form, complaints } = ability(&options);
        let Some(form) = form else {
            return Start::Unavailable(complaints.join("; "));
        };
        let notice = match &form {
            Form::LandlockOnly => Some(format!(
                "Sandbox: the weaker form is used, Landlock and seccomp without namespaces. Protected names are checked after each \
                 command instead of being held, and the network is off whatever is set. ({})",
                complaints.join("; ")
            )),
            Form::Namespaces { old_proc: true } => Some(
                "Sandbox: commands can see the processes outside, because no new /proc may be mounted."
                    .to_owned(),
            ),
            _ => None,
        };
        let temp = tempfile::Builder::new().prefix("pelton-sandbox-").tempdir_in(temp_dir);
        match temp {
            Ok(temp) => Start::Ready(
                Arc::new(Self {
                    options,
                    form,
                    home,
                    temp,
                    answered: Answered::default(),
                    proxies: AtomicU64::new(0),
                }),
                notice,
            ),
            Err(error) => Start::Unavailable(format!("no directory in {}: {error}", temp_dir.display())),
        }
    }

    /// Whether a command runs in the box. `outside` is what the model wants.
    pub fn holds(&self, command: &str, outside: bool) -> bool {
        let is_excluded = self.options.excluded.iter().any(|known| is_named(known, command));
        let goes_outside = is_excluded || outside && self.options.allow_unsandboxed;
        !goes_outside
    }

    /// Whether it is the form without namespaces.
    pub fn is_weak(&self) -> bool {
        self.form.is_weak()
    }

    /// Whether commands in the box need no approval.
    pub fn vouches(&self) -> bool {
        self.options.auto_allow && !self.options.open_disk
    }

    /// A box for one command. Looks at the disk.
    pub fn prepare(&self, roots: &[PathBuf], cwd: &Path, bridge: Option<PathBuf>) -> io::Result<Prepared> {
        let options = &self.options;
        let writable =
            roots.iter().chain(&options.allow_write).cloned().chain([self.temp.path().to_path_buf()]);
        let network = match bridge {
            Some(socket) => Network::Bridge(socket),
            None if options.network.local_binding => Network::Loopback,
            None => Network::Off,
        };
        let policy = Policy {
            writable: writable.collect(),
            deny_write: options.deny_write.clone(),
            deny_read: options.deny_read.clone(),
            allow_read: options.allow_read.clone(),
            worked_in: roots.to_vec(),
            home: self.home.clone(),
            open_disk: options.open_disk,
            network,
            unix_sockets: options.network.unix_sockets,
        };
        Prepared::new(&self.form, &policy, cwd)
    }

    /// The way out for one command, if it may reach anybody. Without a network of its own nothing is between one host and
    /// another, so then there is none.
    pub fn proxy(&self, door: Option<Door>) -> io::Result<Option<Proxy>> {
        let NetworkOptions { allowed_domains, denied_domains, http_proxy_port, socks_proxy_port, .. } =
            &self.options.network;
        let users = UsersProxy { http: *http_proxy_port, socks: *socks_proxy_port };
        let door = door.filter(|door| !self.options.network.strict && door.may_open());
        let is_closed = allowed_domains.is_empty() && users == UsersProxy::default() && door.is_none();
        if is_closed || self.form.is_weak() {
            return Ok(None);
        }
        let hosts = Hosts { allowed: allowed_domains.clone(), denied: denied_domains.clone() };
        let number = self.proxies.fetch_add(1, Ordering::Relaxed);
        let door = door.map(|door| (door, Arc::clone(&self.answered)));
        Proxy::bind(self.temp.path().join(format!("proxy-{number}")), hosts, users, door).map(Some)
    }

    /// The program that builds the box.
    pub fn helper(&self) -> &Helper {
        &self.options.helper
    }

    /// Changes the environment of a command to that of one in the box.
    pub fn dress(&self, env: &mut Vec<(OsString, OsString)>, is_bridged: bool) {
        let withheld = &self.options.withheld;
        env.retain(|(name, _)| !withheld.iter().any(|(known, _)| known == name));
        let masked = withheld.iter().filter_map(|(name, mask)| Some((name.clone(), mask.clone()?.into())));
        env.extend(masked);
        env.push(("TMPDIR".into(), self.temp.path().into()));
        let is_proxy = |name: &OsString| name.to_string_lossy().to_ascii_lowercase().ends_with("_proxy");
        // A proxy outside cannot be reached.
        env.retain(|(name, _)| !is_proxy(name));
        if is_bridged {
            let http = format!("http://127.0.0.1:{BRIDGE_PORT}");
            let socks = format!("socks5h://127.0.0.1:{BRIDGE_PORT}");
            for (name, value) in [
                ("http_proxy", &http),
                ("https_proxy", &http),
                ("all_proxy", &socks),
                ("no_proxy", &"localhost".to_owned()),
            ] {
                env.push((name.into(), value.into()));
                env.push((name.to_ascii_uppercase().into(), value.into()));
            }
        }
    }

    /// What somebody said about the command's failures does not have to be told.
    fn ignores(&self, command: &str, what: &str) -> bool {
        self.options.ignored.iter().any(|(known, ignored)| {
            (known == "*" || command.trim_start().starts_with(known.as_str()))
                && ignored.iter().any(|ignored| {
                    what == ignored || what.starts_with(&format!("{}/", ignored.trim_end_matches('/')))
                })
        })
    }
}

/// What the machine can do with these options: asked of it once.
fn ability(options: &SandboxOptions) -> Ability {
    type Asked = (Helper, Option<PathBuf>, bool);
    static KNOWN: Mutex<Vec<(Asked, Ability)>> = Mutex::new(Vec::new());
    let asked = (options.helper.clone(), options.bubblewrap.clone(), options.weaker_nested);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, ability)) = known.iter().find(|(same, _)| *same == asked) {
        return ability.clone();
    }
    let ability = probe(&options.helper, options.bubblewrap.clone(), options.weaker_nested);
    known.push((asked, ability.clone()));
    ability
}

/// Whether a command is the one that was named: word for word, or by its first words. A command with anything in it that
/// could start another is never one.
fn is_named(known: &str, command: &str) -> bool {
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    if command.contains(|c| ";&|<>$`\n(){}\\".contains(c)) {
        return false;
    }
    let open = known.strip_suffix(":*").or_else(|| known.strip_suffix(" *"));
    let (known, command) = (words(open.unwrap_or(known)), words(command));
    !known.is_empty() && if open.is_some() { command.starts_with(&known) } else { command == known }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn excluded_commands_are_whole_or_named_by_their_first_words() {
        for (known, command) in [
            ("docker *", "docker ps -a"),
            ("docker:*", "docker"),
            ("make  x", "make x"),
            ("git push *", "git  push"),
        ] {
            assert!(is_named(known, command), "{known} {command}");
        }
        for (known, command) in [
            ("docker", "docker ps"),
            ("docker *", "dockerx ps"),
            ("docker *", "docker ps; rm -rf x"),
            ("docker *", "docker run $(cat x)"),
            ("docker *", "docker ps > x"),
            ("", "ls"),
            (" *", "ls"),
        ] {
            assert!(!is_named(known, command), "{known} {command}");
        }
    }
}
