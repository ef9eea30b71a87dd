//! The box commands run in: what settings say about it, as paths of this machine.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use pelton::sandbox::{Helper, SandboxOptions};
use pelton::settings::SandboxSettings;

use super::env::Env;
use crate::HELPER_WORD;
use crate::fail::{Fail, tell};

/// What a variable is shown as whose value is not to be seen.
const MASK: &str = "********";

/// The box, if one is wanted. `roots` is where commands may write.
pub(super) fn sandbox(
    said: &SandboxSettings,
    env: &Env,
    cwd: &Path,
    home: Option<&Path>,
    roots: &[PathBuf],
) -> Result<Option<SandboxOptions>, Fail> {
    if said.enabled != Some(true) {
        return Ok(None);
    }
    for name in &said.not_honoured {
        let instead = match *name {
            "sandbox.network.allowUnixSockets" => {
                "sockets cannot be told apart by their paths here: none may be used, or with allowAllUnixSockets all of them"
            }
            _ => "connections are passed on as they are",
        };
        tell(&format!("warning: `{name}` is not honoured here: {instead}"));
    }
    let program = std::env::current_exe()
        .map_err(|error| Fail::at_start(format!("the sandbox cannot start this program again: {error}")))?;
    let path = |text: &String| match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ if text == "~" => home.unwrap_or(cwd).to_path_buf(),
        _ => cwd.join(text.trim_start_matches("./")),
    };
    let paths = |texts: &[String]| texts.iter().map(path).collect::<Vec<_>>();
    let mut options = SandboxOptions::new(Helper { program, args: vec![HELPER_WORD.into()] });
    options.required = said.required.unwrap_or(false);
    options.auto_allow = said.auto_allow.unwrap_or(true);
    options.allow_unsandboxed = said.allow_unsandboxed.unwrap_or(true);
    options.weaker_nested = said.weaker_nested.unwrap_or(false);
    options.excluded.clone_from(&said.excluded);
    options.ignored.clone_from(&said.ignored);
    options.open_disk = said.open_disk.unwrap_or(false);
    options.allow_write = paths(&said.allow_write);
    options.deny_write = paths(&said.deny_write);
    options.deny_read = paths(&said.deny_read);
    options.allow_read = paths(&said.allow_read);
    options.network.allowed_domains.clone_from(&said.allowed_domains);
    options.network.denied_domains.clone_from(&said.denied_domains);
    options.network.unix_sockets = said.unix_sockets.unwrap_or(false);
    options.network.local_binding = said.local_binding.unwrap_or(false);
    options.network.strict = said.strict_hosts.unwrap_or(false);
    options.network.http_proxy_port = said.http_proxy_port;
    options.network.socks_proxy_port = said.socks_proxy_port;
    let withheld = said.withheld.iter().map(|one| {
        let mask = one.masked.then(|| MASK.to_owned());
        (one.name.clone().into(), mask)
    });
    options.withheld = withheld.collect();
    let writable: Vec<PathBuf> = roots.iter().chain(&options.allow_write).cloned().collect();
    options.bubblewrap =
        env.get("PATH").and_then(|path| pelton_sandbox::find_bubblewrap(OsStr::new(path), &writable));
    Ok(Some(options))
}
