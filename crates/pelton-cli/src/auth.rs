//! `pelton auth`: who pays. No server is asked.

use std::io::Write;
use std::process::ExitCode;

use pelton::settings::value_of;
use serde_json::json;

use crate::args::{AuthCommand, RunArgs};
use crate::fail::Fail;
use crate::resolve::{self, Env, LOGIN_FILE, LOGIN_KEY, Payer, STATE_BYTES_MAX, config_dir};
use crate::trust::say;
use crate::written::{Seen, change};

pub(crate) fn run(command: &AuthCommand, args: &RunArgs) -> Result<ExitCode, Fail> {
    match command {
        AuthCommand::Status { text } => status(*text, args),
        AuthCommand::Login => Err(Fail::new(HOW_TO_LOG_IN)),
        AuthCommand::Logout => logout(args, &Env::of_process()),
    }
}

/// There is no account to log in at: whoever pays has a key, or a login of a program that has accounts.
const HOW_TO_LOG_IN: &str = "there is no login of Pelton's own: set ANTHROPIC_API_KEY, or apiKeyHelper in the settings, or log in with the program \
     whose .credentials.json this configuration has, which is used and renewed here (see 'pelton auth status')";

fn logout(args: &RunArgs, env: &Env) -> Result<ExitCode, Fail> {
    let dir =
        config_dir(env).ok_or_else(|| Fail::new("cannot look for a login: set CLAUDE_CONFIG_DIR or HOME"))?;
    let file = dir.join(LOGIN_FILE);
    let mut was_there = false;
    if file.exists() {
        change(&file, STATE_BYTES_MAX, Seen::ByOwner, |text| {
            let mut kept = value_of(text).map_err(|error| error.to_string())?;
            was_there = kept.as_object_mut().is_some_and(|kept| kept.remove(LOGIN_KEY).is_some());
            Ok(was_there.then(|| format!("{kept:#}\n")))
        })
        .map_err(Fail::new)?;
    }
    let told = match was_there {
        true => format!("The login in {} is forgotten.\n", file.display()),
        false => "Nobody is logged in.\n".to_owned(),
    };
    let told = match resolve::payer(args, env) {
        Ok(payer) => format!("{told}What pays from here on: {}\n", in_words(&payer)),
        Err(_) => told,
    };
    say(&told)
}

fn status(text: bool, args: &RunArgs) -> Result<ExitCode, Fail> {
    let payer = resolve::payer(args, &Env::of_process());
    let (told, code) = match (&payer, text) {
        (Ok(payer), true) => (format!("Logged in: {}", in_words(payer)), ExitCode::SUCCESS),
        (Err(fail), true) => {
            let why = fail.line();
            (format!("Not logged in: {}", why.strip_prefix("error: ").unwrap_or(why)), ExitCode::FAILURE)
        }
        (Ok(payer), false) => {
            let (method, source) = in_a_word(payer);
            let told = json!({"loggedIn": true, "authMethod": method, "apiProvider": "firstParty", "source": source});
            (told.to_string(), ExitCode::SUCCESS)
        }
        (Err(_), false) => {
            let told = json!({"loggedIn": false, "authMethod": "none", "apiProvider": "firstParty"});
            (told.to_string(), ExitCode::FAILURE)
        }
    };
    writeln!(std::io::stdout(), "{}", pelton_serve::plain(&told))
        .map_err(|error| Fail::new(format!("cannot write to standard output: {error}")))?;
    Ok(code)
}

/// How it is paid, and where that stands, for programs.
fn in_a_word(payer: &Payer) -> (&'static str, String) {
    match payer {
        Payer::Key(_) => ("api_key", "ANTHROPIC_API_KEY".to_owned()),
        Payer::Token(_) => ("auth_token", "ANTHROPIC_AUTH_TOKEN".to_owned()),
        Payer::Helper { .. } => ("api_key_helper", "apiKeyHelper".to_owned()),
        Payer::LoginToken(_) => ("oauth_token", "CLAUDE_CODE_OAUTH_TOKEN".to_owned()),
        Payer::Login(file) => ("oauth", file.display().to_string()),
    }
}

/// For people.
pub(crate) fn in_words(payer: &Payer) -> String {
    match payer {
        Payer::Key(_) => "a key in ANTHROPIC_API_KEY".to_owned(),
        Payer::Token(_) => "a token in ANTHROPIC_AUTH_TOKEN".to_owned(),
        Payer::Helper { command, .. } => format!("whatever key apiKeyHelper prints: {command}"),
        Payer::LoginToken(_) => "a token in CLAUDE_CODE_OAUTH_TOKEN".to_owned(),
        Payer::Login(file) => format!("a login in {}", file.display()),
    }
}
