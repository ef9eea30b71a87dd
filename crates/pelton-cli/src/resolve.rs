//! What was said, by flags and environment, becomes what is meant: complete `Options`. The only place that reads
//! the environment.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use pelton::permission::{Mode, Rule, RuleSet};
use pelton::tools::builtin;
use pelton::transcript::{self, Durability, find_session, newest_session};
use pelton::{Options, Resumed, Sessions};
use pelton_model::{Auth, Effort, Endpoint, HttpOptions, HttpTransport, ProxyRules, Secret, Thinking};

use crate::args::{DurabilityArg, ModeArg, RunArgs};
use crate::fail::{Fail, tell};

const DEFAULT_BASE_URL: &str = "https://api.anthropic.com";

/// The process's environment, read once.
pub(crate) struct Env(HashMap<OsString, OsString>);

impl Env {
    pub fn of_process() -> Self {
        Self(std::env::vars_os().collect())
    }

    /// A variable's text; unset, empty and unreadable are the same.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(&OsString::from(name)).and_then(|value| value.to_str()).filter(|value| !value.is_empty())
    }

    fn number<T: FromStr>(&self, name: &str) -> Result<Option<T>, Fail> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Fail::at_start(format!(
                "{name} is not a number in range: '{text}' (correct it, or unset it)"
            ))),
        }
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
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

    pub fn colour(&self) -> bool {
        self.get("NO_COLOR").is_none() && self.get("TERM") != Some("dumb")
    }
}

/// Everything the engine needs to know.
pub(crate) fn options(args: &RunArgs, env: &Env) -> Result<Options, Fail> {
    let (auth, api_key_source) = credentials(env)?;
    let mut options = options_for(args, env, endpoint(env, auth)?)?;
    options.api_key_source = api_key_source;
    Ok(options)
}

/// The same, for a server that is known already.
pub(crate) fn options_for(args: &RunArgs, env: &Env, endpoint: Endpoint) -> Result<Options, Fail> {
    let cwd = std::env::current_dir().map_err(|error| {
        Fail::at_start(format!("cannot read the working directory: {error} (change to one that exists)"))
    })?;
    let mut options = Options::new(cwd.clone(), endpoint);
    options.transport = Arc::new(HttpTransport::new(http_options(env)?));
    options.additional_dirs = args.add_dir.iter().map(|dir| cwd.join(dir)).collect();
    if let Some(model) =
        args.model.as_deref().filter(|model| !model.is_empty()).or(env.get("ANTHROPIC_MODEL"))
    {
        options.model = model.to_owned();
    }
    options.max_output_tokens = env.number("CLAUDE_CODE_MAX_OUTPUT_TOKENS")?;
    options.effort = effort(args, env)?;
    options.thinking = match env.number::<u32>("MAX_THINKING_TOKENS")? {
        None => Thinking::ModelDefault,
        Some(0) => Thinking::Disabled,
        Some(budget) => Thinking::Enabled { budget },
    };
    options.system_prompt.custom.clone_from(&args.system_prompt);
    options.system_prompt.appended.clone_from(&args.append_system_prompt);
    if let Some(names) = &args.tools {
        keep_tools(&mut options, names)?;
    }
    options.mode = mode(args, env)?;
    options.rules =
        RuleSet { allow: rules(&args.allowed_tools)?, ask: Vec::new(), deny: rules(&args.disallowed_tools)? };
    options.fallback_models = args
        .fallback_model
        .iter()
        .map(|model| model.trim().to_owned())
        .filter(|model| !model.is_empty())
        .collect();
    options.max_budget_usd = budget(args)?;
    options.window_tokens = env.number("CLAUDE_CODE_MAX_CONTEXT_TOKENS")?;
    options.json_schema = schema(args)?;
    options.limits.turns_max = match args.max_turns {
        Some(turns) => Some(turns),
        None => env.number("CLAUDE_CODE_MAX_TURNS")?,
    };
    limits(&mut options, env)?;
    options.env = env.0.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    options.home = env.path("HOME");
    options.temp_dir = env.path("TMPDIR").unwrap_or(options.temp_dir);
    options.session_id = args.session_id;
    options.entrypoint = env.get("CLAUDE_CODE_ENTRYPOINT").unwrap_or("cli").to_owned();
    options.sessions = if args.no_session_persistence { None } else { sessions(args, env) };
    options.resume = resumed(args, env, &options)?;
    if let (Some(id), Some(sessions)) = (args.session_id, &options.sessions)
        && find_session(&sessions.config_dir, &cwd, id).is_some()
    {
        return Err(Fail::at_start(format!("session {id} exists already: go on with it by --resume {id}")));
    }
    Ok(options)
}

fn credentials(env: &Env) -> Result<(Auth, &'static str), Fail> {
    if let Some(key) = env.get("ANTHROPIC_API_KEY") {
        return Ok((Auth::ApiKey(Secret::new(key.trim())), "ANTHROPIC_API_KEY"));
    }
    if let Some(token) = env.get("ANTHROPIC_AUTH_TOKEN") {
        return Ok((Auth::Bearer(Secret::new(token.trim())), "none"));
    }
    Err(Fail::at_start(
        "no API key: set ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN (a local server that wants none takes any value), or \
         try 'pelton demo', which needs no key",
    ))
}

fn endpoint(env: &Env, auth: Auth) -> Result<Endpoint, Fail> {
    let base_url = env.get("ANTHROPIC_BASE_URL").unwrap_or(DEFAULT_BASE_URL).trim();
    let host = base_url.strip_prefix("https://").or_else(|| base_url.strip_prefix("http://"));
    if host.is_none_or(|host| host.is_empty() || host.starts_with(['/', ':', '?', '#'])) {
        return Err(Fail::at_start(format!(
            "ANTHROPIC_BASE_URL is not an http or https address: '{base_url}' (expected something like {DEFAULT_BASE_URL}, \
             without /v1/messages)"
        )));
    }
    let mut endpoint = Endpoint::new(base_url, auth);
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
    if let Some(betas) = env.get("ANTHROPIC_BETAS") {
        endpoint.betas =
            betas.split(',').map(str::trim).filter(|beta| !beta.is_empty()).map(str::to_owned).collect();
    }
    Ok(endpoint)
}

fn http_options(env: &Env) -> Result<HttpOptions, Fail> {
    let either = |lower: &str, upper: &str| env.get(lower).or(env.get(upper)).map(str::to_owned);
    let all = either("all_proxy", "ALL_PROXY");
    let proxy = ProxyRules {
        http: either("http_proxy", "HTTP_PROXY").or_else(|| all.clone()),
        https: either("https_proxy", "HTTPS_PROXY").or(all),
        no_proxy: either("no_proxy", "NO_PROXY"),
    };
    let proxy = (proxy.http.is_some() || proxy.https.is_some()).then_some(proxy);
    let mut options = HttpOptions { proxy, ..HttpOptions::default() };
    if let Some((name, path)) = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"]
        .iter()
        .find_map(|name| env.path(name).map(|path| (name, path)))
    {
        let pem = std::fs::read(&path).map_err(|error| {
            Fail::at_start(format!("{name} names {}, which cannot be read: {error}", path.display()))
        })?;
        options.extra_ca_pem = Some(pem);
    }
    Ok(options)
}

fn effort(args: &RunArgs, env: &Env) -> Result<Option<Effort>, Fail> {
    let said = args.effort.as_deref().filter(|level| !level.is_empty());
    let Some(level) = env.get("CLAUDE_CODE_EFFORT_LEVEL").or(said) else { return Ok(None) };
    level.parse().map(Some).map_err(|error| Fail::new(format!("{error}")))
}

fn mode(args: &RunArgs, env: &Env) -> Result<Mode, Fail> {
    let mode = match args.permission_mode {
        _ if args.dangerously_skip_permissions => Mode::BypassPermissions,
        None | Some(ModeArg::Default) => Mode::Default,
        Some(ModeArg::AcceptEdits) => Mode::AcceptEdits,
        Some(ModeArg::Plan) => Mode::Plan,
        Some(ModeArg::DontAsk) => Mode::DontAsk,
        Some(ModeArg::BypassPermissions) => Mode::BypassPermissions,
    };
    if mode == Mode::BypassPermissions
        && nix::unistd::geteuid().is_root()
        && env.get("IS_SANDBOX") != Some("1")
    {
        return Err(Fail::new(
            "bypassing permissions as root is refused outside a sandbox: run as another user, choose \
             --permission-mode acceptEdits with --allowedTools, or set IS_SANDBOX=1 if this is one",
        ));
    }
    Ok(mode)
}

fn budget(args: &RunArgs) -> Result<Option<f64>, Fail> {
    match args.max_budget_usd {
        Some(usd) if !(usd.is_finite() && usd > 0.0) => Err(Fail::new(format!(
            "--max-budget-usd {usd} is not an amount: write one above 0, such as 2.50"
        ))),
        budget => Ok(budget),
    }
}

fn schema(args: &RunArgs) -> Result<Option<serde_json::Value>, Fail> {
    let Some(text) = args.json_schema.as_deref().filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let schema = serde_json::from_str(text)
        .map_err(|error| Fail::new(format!("--json-schema is not JSON: {error}")))?;
    Ok(Some(schema))
}

fn limits(options: &mut Options, env: &Env) -> Result<(), Fail> {
    if let Some(retries) = env.number::<u32>("CLAUDE_CODE_MAX_RETRIES")? {
        options.retry.retries_max = retries.min(RETRIES_MAX);
    }
    if let Some(idle) = env.number("CLAUDE_STREAM_IDLE_TIMEOUT_MS")? {
        options.retry.idle = Duration::from_millis(idle);
    }
    if let Some(calls) = env.number("CLAUDE_CODE_MAX_TOOL_USE_CONCURRENCY")? {
        options.tool_calls_running_max = calls;
    }
    let tools = &mut options.tool_limits;
    if let Some(time) = env.number("BASH_MAX_TIMEOUT_MS")? {
        tools.shell_time_max = Duration::from_millis(time);
    }
    if let Some(time) = env.number("BASH_DEFAULT_TIMEOUT_MS")? {
        tools.shell_time_default = Duration::from_millis(time);
    }
    if let Some(chars) = env.number::<usize>("BASH_MAX_OUTPUT_LENGTH")? {
        tools.shell_output_chars_max = chars.min(SHELL_OUTPUT_CHARS_MAX);
    }
    Ok(())
}

/// More retries than this are not waited for, whatever is asked.
const RETRIES_MAX: u32 = 15;
/// More of a command's output than this never goes to the model.
const SHELL_OUTPUT_CHARS_MAX: usize = 150_000;

fn config_dir(env: &Env) -> Option<PathBuf> {
    env.path("CLAUDE_CONFIG_DIR").or_else(|| env.path("HOME").map(|home| home.join(".claude")))
}

fn sessions(args: &RunArgs, env: &Env) -> Option<Sessions> {
    let config_dir = config_dir(env);
    if config_dir.is_none() {
        tell("warning: neither CLAUDE_CONFIG_DIR nor HOME is set, so this session is not recorded");
    }
    let durability = match args.durability {
        DurabilityArg::Synced => Durability::Synced,
        DurabilityArg::Fast => Durability::Fast,
    };
    Some(Sessions { config_dir: config_dir?, durability })
}

fn resumed(args: &RunArgs, env: &Env, options: &Options) -> Result<Option<Resumed>, Fail> {
    if args.resume.is_none() && !args.continue_newest {
        return Ok(None);
    }
    let cwd = options.cwd.canonicalize().unwrap_or_else(|_| options.cwd.clone());
    let config_dir = config_dir(env)
        .ok_or_else(|| Fail::at_start("cannot look for sessions: set CLAUDE_CONFIG_DIR or HOME"))?;
    let file = match &args.resume {
        Some(text) => {
            let unknown = || Fail::no_conversation(text);
            let id = text.parse().map_err(|_| unknown())?;
            find_session(&config_dir, &cwd, id).ok_or_else(unknown)?
        }
        None => newest_session(&config_dir, &cwd).ok_or_else(|| {
            Fail::at_start("no session to continue in this directory: start one without --continue")
        })?,
    };
    let conversation = transcript::read(&file).map_err(|error| Fail::at_start(error.to_string()))?;
    let path = file.display();
    match conversation.lines_skipped {
        0 => {}
        1 => tell(&format!("warning: a damaged line of {path} was left out; the file is unchanged")),
        lines => {
            tell(&format!("warning: {lines} damaged lines of {path} were left out; the file is unchanged"));
        }
    }
    Ok(Some(Resumed { file, conversation }))
}

fn keep_tools(options: &mut Options, names: &[String]) -> Result<(), Fail> {
    let names: Vec<String> = names.iter().flat_map(|text| split(text)).collect();
    if names.iter().any(|name| name == "default") {
        return Ok(());
    }
    let built_in = builtin::all();
    let known: Vec<&str> = built_in.iter().map(|tool| tool.spec().name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(Fail::new(format!(
            "--tools names a tool there is not: '{unknown}' (there are {})",
            known.join(", ")
        )));
    }
    options.tools.retain(|tool| names.iter().any(|name| name == tool.spec().name));
    Ok(())
}

fn rules(texts: &[String]) -> Result<Vec<Rule>, Fail> {
    let rules = texts.iter().flat_map(|text| split(text));
    rules.map(|rule| rule.parse().map_err(|error| Fail::new(format!("{error}")))).collect()
}

/// Splits on commas and blanks outside parentheses.
fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut depth = 0usize;
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(word) if depth > 0 || !(c == ',' || c.is_whitespace()) => word.push(c),
            _ => words.push(String::new()),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn rules_split_outside_parentheses_only() {
        assert_eq!(split("Read,Bash(git diff, x) Edit"), ["Read", "Bash(git diff, x)", "Edit"]);
        assert_eq!(split(""), [""; 0]);
        assert_eq!(split(" , "), [""; 0]);
    }
}
