//! What is wrong with everything around sessions: who pays, what is configured, what the directory is. No server is asked, and nothing is
//! run.

use std::process::ExitCode;

use pelton::settings::Weight;
use pelton_serve::plain;
use serde_json::json;

use crate::args::RunArgs;
use crate::config;
use crate::fail::Fail;
use crate::resolve::{self, Env, Trust};
use crate::sessions::say;

pub(super) fn run(args: &RunArgs, is_json: bool) -> Result<ExitCode, Fail> {
    let (env, cwd) = (Env::of_process(), resolve::working_directory()?);
    let payer = resolve::payer(args, &env);
    let trust = Trust::in_dir(&env, &cwd);
    let findings = config::findings(args, &env)?;
    let home = resolve::config_dir(&env);
    let missing = if home.is_none() { Some("neither CLAUDE_CONFIG_DIR nor HOME is set") } else { None };
    let is_wrong =
        payer.is_err() || missing.is_some() || findings.iter().any(|found| found.weight > Weight::Note);
    let paid = match &payer {
        Ok(payer) => crate::auth::in_words(payer),
        Err(fail) => fail.line().trim_start_matches("error: ").to_owned(),
    };
    let code = if is_wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    let version = env!("CARGO_PKG_VERSION");
    if is_json {
        let told = json!({"version": version, "config_dir": home, "working_directory": cwd, "trust_root": trust.root(),
            "trusted": trust.is_given(), "logged_in": payer.is_ok(), "paid_by": paid, "findings": config::listed(&findings)});
        say(&format!("{told}\n"))?;
        return Ok(code);
    }
    let mut text = format!("pelton {version}\n");
    text.push_str(&match (&home, missing) {
        (Some(home), _) => format!("  configuration: {}\n", home.display()),
        (None, why) => format!("  configuration: nowhere: {}\n", why.unwrap_or_default()),
    });
    text.push_str(&format!("  who pays: {paid}\n"));
    let trusted = if trust.is_given() { "trusted" } else { "not trusted" };
    text.push_str(&format!("  directory: {} ({trusted})\n", trust.root().display()));
    text.push_str("What is configured:\n");
    text.push_str(&config::told(&findings));
    say(&plain(&text))?;
    Ok(code)
}
