//! `pelton auth`: who pays. No server is asked.

use std::io::Write;
use std::process::ExitCode;

use serde_json::json;

use crate::args::{AuthCommand, RunArgs};
use crate::fail::Fail;
use crate::resolve::{self, Env, Payer};

pub(crate) fn run(command: &AuthCommand, args: &RunArgs) -> Result<ExitCode, Fail> {
    let AuthCommand::Status { text } = command;
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
