//! Which server is asked, and by which road.

use std::path::PathBuf;

use nix::unistd::{AccessFlags, access};
use pelton_model::{Auth, Endpoint, HttpOptions, ProxyRules, Roots};

use super::env::Env;
use crate::args::RunArgs;
use crate::fail::Fail;

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// The server, without who pays.
pub(super) fn endpoint(args: &RunArgs, env: &Env) -> Result<Endpoint, Fail> {
    let base_url = env.get("ANTHROPIC_BASE_URL").unwrap_or(DEFAULT_BASE_URL).trim();
    let host = base_url.strip_prefix("https://").or_else(|| base_url.strip_prefix("http://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with(['/', ':', '?', '#'])) {
        return Err(Fail::at_start(format!(
            "ANTHROPIC_BASE_URL is not an http or https address: '{base_url}' (expected something like {DEFAULT_BASE_URL}, \
             without /v1/messages)"
        )));
    }
    let mut endpoint = Endpoint::new(base_url, Auth::None);
    endpoint.user_agent += &on_behalf_of(env);
    if let Some(headers) = env.get("ANTHROPIC_CUSTOM_HEADERS") {
        for line in headers.lines().filter(|line| !line.trim().is_empty()) {
            let (name, value) = line.split_once(':').ok_or_else(|| {
                Fail::at_start(format!(
                    "ANTHROPIC_CUSTOM_HEADERS has a line that is not 'Name: value': '{line}'"
                ))
            })?;
            endpoint.custom_headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    if let Some(extra) = env.get("CLAUDE_CODE_EXTRA_BODY") {
        endpoint.extra_body = serde_json::from_str(extra).map_err(|error| {
            Fail::at_start(format!(
                "CLAUDE_CODE_EXTRA_BODY is not a JSON object: {error} (correct it, or unset it)"
            ))
        })?;
    }
    let set = env.get("ANTHROPIC_BETAS").unwrap_or_default().split(',');
    for beta in args.betas.iter().map(String::as_str).chain(set).map(str::trim) {
        if !beta.is_empty() && !endpoint.betas.iter().any(|known| known == beta) {
            endpoint.betas.push(beta.to_owned());
        }
    }
    Ok(endpoint)
}

/// Who uses it, if that is a client that says so: servers look at it.
fn on_behalf_of(env: &Env) -> String {
    let Some(entry) = env.get("CLAUDE_CODE_ENTRYPOINT").filter(|entry| entry.starts_with("sdk-")) else {
        return String::new();
    };
    let version = |name: &str, variable: &str| {
        env.get(variable).map(|version| format!(", {name}/{version}")).unwrap_or_default()
    };
    let sdk = version("agent-sdk", "CLAUDE_AGENT_SDK_VERSION");
    let app = version("client-app", "CLAUDE_AGENT_SDK_CLIENT_APP");
    let about = format!(" (external, {entry}{sdk}{app})");
    // A header takes nothing else.
    about.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').collect()
}

pub(super) fn http_options(env: &Env) -> Result<HttpOptions, Fail> {
    let either = |lower: &'static str, upper: &'static str| {
        let set = |name: &'static str| Some((name, env.get(name)?.to_owned()));
        set(lower).or_else(|| set(upper))
    };
    let all = either("all_proxy", "ALL_PROXY");
    let no_proxy = either("no_proxy", "NO_PROXY").map(|(_, hosts)| hosts);
    let address = |set: Option<(&'static str, String)>| {
        set.map(|(name, address)| proxy_address(name, address, no_proxy.is_some())).transpose()
    };
    let proxy = ProxyRules {
        http: address(either("http_proxy", "HTTP_PROXY").or_else(|| all.clone()))?,
        https: address(either("https_proxy", "HTTPS_PROXY").or(all))?,
        no_proxy,
    };
    let proxy = (proxy.http.is_some() || proxy.https.is_some()).then_some(proxy);
    let mut options = HttpOptions::default();
    (options.proxy, options.roots) = (proxy, roots(env));
    if let Some(path) = env.path("NODE_EXTRA_CA_CERTS") {
        options.extra_roots = extra_roots(path)?;
    }
    Ok(options)
}

/// Authorities that somebody named besides those of the machine. That the file can be read is made sure of now; what is in it waits for
/// a server with a certificate, as the others do.
fn extra_roots(file: PathBuf) -> Result<Roots, Fail> {
    access(&file, AccessFlags::R_OK).map_err(|errno| {
        let error = std::io::Error::from(errno);
        Fail::at_start(format!("NODE_EXTRA_CA_CERTS names {}, which cannot be read: {error}", file.display()))
    })?;
    Ok(Roots::read_by(move || {
        let found = rustls_native_certs::load_certs_from_paths(Some(&file), None);
        match found.errors.first() {
            Some(error) => Err(error.to_string()),
            None => Ok(found.certs.into_iter().map(|certificate| certificate.to_vec()).collect()),
        }
    }))
}

/// The address of a proxy, if it is one that can be used: past any other, requests would go their way without it, or not at all.
/// The address itself stays out of the message, for it may carry a password.
fn proxy_address(name: &str, address: String, has_exceptions: bool) -> Result<String, Fail> {
    // Many machines name such a one for all programs, and a server that is an exception can be asked all the same.
    let is_for_others = has_exceptions && address.starts_with("socks");
    if address.is_empty() || is_for_others || ProxyRules::can_use(&address) {
        return Ok(address);
    }
    Err(Fail::at_start(format!(
        "{name} is not the address of an http or https proxy (expected something like http://proxy.example:3128)"
    )))
}

/// The authorities this machine trusts, or those that the environment names instead. Nothing is read here: that waits
/// until a server shows its certificate.
fn roots(env: &Env) -> Roots {
    let file = env.path("SSL_CERT_FILE");
    let dirs: Vec<PathBuf> = env
        .path("SSL_CERT_DIR")
        .iter()
        .flat_map(std::env::split_paths)
        .filter(|dir| !dir.as_os_str().is_empty())
        .collect();
    Roots::read_by(move || {
        let named = file.is_some() || !dirs.is_empty();
        let mut found = rustls_native_certs::CertificateResult::default();
        if named {
            let places = file.iter().map(|file| (Some(file.as_path()), None));
            let places = places.chain(dirs.iter().map(|dir| (None, Some(dir.as_path()))));
            for (file, dir) in places {
                let more = rustls_native_certs::load_certs_from_paths(file, dir);
                found.certs.extend(more.certs);
                found.errors.extend(more.errors);
            }
        } else {
            found = rustls_native_certs::load_native_certs();
        }
        if !found.certs.is_empty() {
            return Ok(found.certs.into_iter().map(|certificate| certificate.to_vec()).collect());
        }
        let why: Vec<String> = found.errors.iter().map(|error| format!(": {error}")).collect();
        let place = if named { "where SSL_CERT_FILE and SSL_CERT_DIR point" } else { "on this machine" };
        Err(format!("no trusted certificates were found {place}{}", why.concat()))
    })
}
