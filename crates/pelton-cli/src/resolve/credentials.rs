//! Who pays: a key or a token of the environment, a program that prints a key, or a login in a file. The first of them
//! that is there counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pelton::settings::Settings;
use pelton_model::credentials::{HELPER_TTL, HelperCommand, Keeper, OauthFile, OauthOptions, TokenForm};
use pelton_model::{Auth, Credentials, Endpoint, Secret, Transport, World};

use super::env::Env;
use super::key_program::Helper;
use super::sessions::config_dir;
use crate::fail::Fail;

/// Whether there is a login in a file. One that cannot be read is looked at when it is used, and told of then.
fn has_login(file: &Path) -> bool {
    match std::fs::read(file) {
        Ok(text) => text.windows(LOGIN_KEY.len()).any(|word| word == LOGIN_KEY.as_bytes()),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    }
}

/// What servers want to see beside the token of a login.
const LOGIN_BETA: &str = "oauth-2025-04-20";

/// The file of a login, in the directory of the configuration.
pub(crate) const LOGIN_FILE: &str = ".credentials.json";
/// Where in it the login is. Other programs keep other things beside it.
pub(crate) const LOGIN_KEY: &str = "claudeAiOauth";

/// Who pays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Payer {
    /// A key of the environment.
    Key(Secret),
    /// A token of the environment.
    Token(Secret),
    /// Whoever a program prints the key of.
    Helper { command: String, ttl: Duration },
    /// A login, as a token of the environment.
    LoginToken(Secret),
    /// A login, in a file.
    Login(PathBuf),
}

impl Payer {
    /// The first that is there.
    pub(super) fn found(env: &Env, settings: &Settings) -> Result<Self, Fail> {
        let secret = |name: &str| env.get(name).map(|text| Secret::new(text.trim()));
        if let Some(key) = secret("ANTHROPIC_API_KEY") {
            return Ok(Self::Key(key));
        }
        if let Some(token) = secret("ANTHROPIC_AUTH_TOKEN") {
            return Ok(Self::Token(token));
        }
        if let Some(command) = settings.api_key_helper.clone() {
            let ttl = env.number("CLAUDE_CODE_API_KEY_HELPER_TTL_MS")?.map(Duration::from_millis);
            return Ok(Self::Helper { command, ttl: ttl.unwrap_or(HELPER_TTL) });
        }
        if let Some(token) = secret("CLAUDE_CODE_OAUTH_TOKEN") {
            return Ok(Self::LoginToken(token));
        }
        let file = config_dir(env).map(|dir| dir.join(LOGIN_FILE));
        if let Some(file) = file.filter(|file| has_login(file)) {
            return Ok(Self::Login(file));
        }
        Err(Fail::at_start(
            "no API key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN (a local server that wants none takes any value), or \
             apiKeyHelper in the settings, or try 'pelton demo', which needs no key",
        ))
    }

    /// What clients are told of it, in their words.
    pub(super) fn source(&self) -> &'static str {
        match self {
            Self::Key(_) => "ANTHROPIC_API_KEY",
            Self::Helper { .. } => "apiKeyHelper",
            Self::Token(_) | Self::LoginToken(_) | Self::Login(_) => "none",
        }
    }

    /// What to look at when it is not accepted.
    pub(crate) fn way_out(&self) -> String {
        match self {
            Self::Key(_) => "check ANTHROPIC_API_KEY".to_owned(),
            Self::Token(_) => "check ANTHROPIC_AUTH_TOKEN".to_owned(),
            Self::Helper { command, .. } => {
                format!("check what apiKeyHelper prints: {command}")
            }
            Self::LoginToken(_) => "check CLAUDE_CODE_OAUTH_TOKEN, or get a new one".to_owned(),
            Self::Login(file) => {
                format!("log in again (the login is kept in {}), or set ANTHROPIC_API_KEY", file.display())
            }
        }
    }

    /// Lets it pay for what a server is asked. Nothing is run or read before the first request.
    pub(super) fn pay_at(
        &self,
        endpoint: &mut Endpoint,
        env: &Env,
        cwd: &Path,
        transport: &Arc<dyn Transport>,
        world: &Arc<dyn World>,
    ) -> Result<(), Fail> {
        match self {
            Self::Key(key) => endpoint.auth = Auth::ApiKey(key.clone()),
            Self::Token(token) => endpoint.auth = Auth::Bearer(token.clone()),
            Self::LoginToken(token) => endpoint.auth = Auth::Bearer(token.clone()),
            Self::Helper { command, ttl } => {
                let helper = Helper::new(command, cwd, env.all());
                let issuer = HelperCommand::new(helper, Auth::ApiKey, *ttl, Arc::clone(world));
                endpoint.credentials = Some(kept(issuer, world));
            }
            Self::Login(path) => {
                let options = login_options(path, endpoint, env)?;
                let issuer = OauthFile::new(options, Arc::clone(transport), Arc::clone(world));
                endpoint.credentials = Some(kept(issuer, world));
            }
        }
        let login = matches!(self, Self::LoginToken(_) | Self::Login(_));
        if login && !endpoint.betas.iter().any(|beta| beta == LOGIN_BETA) {
            endpoint.betas.push(LOGIN_BETA.to_owned());
        }
        Ok(())
    }
}

fn kept(issuer: impl pelton_model::credentials::Issuer, world: &Arc<dyn World>) -> Arc<dyn Credentials> {
    Arc::new(Keeper::new(issuer, Arc::clone(world)))
}

/// Where a login is renewed: at the server that is asked, unless another is named.
fn login_options(path: &Path, endpoint: &Endpoint, env: &Env) -> Result<OauthOptions, Fail> {
    let token_url = match env.get("PELTON_OAUTH_TOKEN_URL") {
        Some(url) => url.to_owned(),
        None => format!("{}/v1/oauth/token", endpoint.base_url.trim_end_matches('/')),
    };
    let form = match env.get("PELTON_OAUTH_FORM") {
        None | Some("form") => TokenForm::Form,
        Some("json") => TokenForm::Json,
        Some(other) => {
            return Err(Fail::at_start(format!(
                "PELTON_OAUTH_FORM is '{other}' (expected form or json, or nothing at all)"
            )));
        }
    };
    Ok(OauthOptions {
        path: path.to_owned(),
        token_url,
        client_id: env.get("PELTON_OAUTH_CLIENT_ID").map(str::to_owned),
        form,
        user_agent: endpoint.user_agent.clone(),
    })
}
