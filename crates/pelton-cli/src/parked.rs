//! A process that is started before anybody knows which session it will serve: it answers the client's first words where it
//! stands, and begins when it is claimed, in the directory and with the choices that come with the claim.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::ValueEnum as _;
use pelton_serve::introduction;
use serde_json::{Map, Value, json};

use crate::args::{ModeArg, RunArgs};
use crate::fail::Fail;
use crate::piped::{self, next_line};

/// What a claim makes of the process.
pub(crate) struct Claimed {
    /// The command line, with what the claim says.
    pub args: RunArgs,
    /// The client's first words, under the name of the claim: whoever answers them answers that.
    pub first: Vec<u8>,
    /// How long it was waited for.
    pub parked: Duration,
}

/// Waits for the claim. `None` if the client goes without one.
pub(crate) async fn wait(args: &RunArgs) -> Result<Option<Claimed>, Fail> {
    let since = Instant::now();
    let mut parked = Parked { args: args.clone(), initialize: json!({}), settings: Map::new() };
    loop {
        let line = next_line()
            .await
            .map_err(|error| Fail::new(format!("standard input cannot be read: {error}")))?;
        if line.is_empty() {
            return Ok(None);
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let said: Value = serde_json::from_slice(&line)
            .map_err(|error| Fail::new(format!("a line on standard input is not JSON: {error}")))?;
        let (id, request) = (&said["request_id"], &said["request"]);
        if said["type"] != "control_request" {
            continue;
        }
        let answer = match request["subtype"].as_str() {
            Some("initialize") => parked.introduce(request),
            Some("apply_flag_settings") => parked.keep_settings(&request["settings"]),
            Some("claim_session") => match parked.claim(request) {
                Ok(()) => return Ok(Some(parked.claimed(id, since.elapsed()))),
                Err(why) => {
                    answer_with(id, &Err(why.clone()));
                    return Err(Fail::new(why));
                }
            },
            _ => Err("not_claimed: this process waits for claim_session".to_owned()),
        };
        answer_with(id, &answer);
    }
}

struct Parked {
    args: RunArgs,
    initialize: Value,
    settings: Map<String, Value>,
}

impl Parked {
    /// Tells what there is where the process stands.
    fn introduce(&mut self, request: &Value) -> Result<Value, String> {
        let (options, shown) = piped::ready(&self.args).map_err(|fail| fail.line().to_owned())?;
        self.initialize = request.clone();
        Ok(introduction(&options, shown.pid))
    }

    /// Settings for the session to come. What they mean is found out when it begins.
    fn keep_settings(&mut self, settings: &Value) -> Result<Value, String> {
        let settings = settings.as_object().ok_or("settings is no object")?;
        self.settings.extend(settings.clone());
        Ok(json!({}))
    }

    /// Takes over what the claim says. An error names what cannot be.
    fn claim(&mut self, claim: &Value) -> Result<(), String> {
        let word = |name: &str| claim[name].as_str();
        let cwd = word("cwd").map(PathBuf::from).ok_or("cwd_not_found: the claim names no cwd")?;
        let cwd = cwd.canonicalize().map_err(|error| format!("cwd_not_found: {}: {error}", cwd.display()))?;
        std::env::set_current_dir(&cwd)
            .map_err(|error| format!("cwd_not_found: {}: {error}", cwd.display()))?;
        if claim["env"].as_object().is_some_and(|env| !env.is_empty()) {
            return Err("env_key_not_claimable: variables are those of the start".to_owned());
        }
        if let Some(name) = word("permission_mode") {
            let refused = || format!("permission_mode_not_claimable: {name}");
            let mode = ModeArg::from_str(name, false).map_err(|_| refused())?;
            let may_bypass = self.args.client.allow_dangerously_skip_permissions
                || self.args.dangerously_skip_permissions
                || self.args.permission_mode == Some(ModeArg::BypassPermissions);
            if mode == ModeArg::BypassPermissions && !may_bypass {
                return Err(refused());
            }
            self.args.permission_mode = Some(mode);
        }
        let directories = claim["additional_directories"].as_array().into_iter().flatten();
        self.args.add_dir.extend(directories.filter_map(Value::as_str).map(PathBuf::from));
        for (said, name) in [("append_system_prompt", "appendSystemPrompt"), ("title", "title")] {
            if let Some(text) = word(said) {
                self.initialize[name] = json!(text);
            }
        }
        for (name, agent) in claim["agents"].as_object().into_iter().flatten() {
            self.initialize["agents"][name] = agent.clone();
        }
        self.take_settings()
    }

    /// Puts the settings that came over those of the command line.
    fn take_settings(&mut self) -> Result<(), String> {
        if self.settings.is_empty() {
            return Ok(());
        }
        let mut all = match self.args.settings.as_deref().map(str::trim).filter(|said| !said.is_empty()) {
            None => Map::new(),
            Some(said) => serde_json::from_str(said).map_err(|_| {
                "settings_not_applied: the process was started with a file of settings".to_owned()
            })?,
        };
        all.extend(std::mem::take(&mut self.settings).into_iter().filter(|(_, value)| !value.is_null()));
        self.args.settings = Some(Value::Object(all).to_string());
        Ok(())
    }

    fn claimed(mut self, id: &Value, parked: Duration) -> Claimed {
        self.initialize["subtype"] = json!("initialize");
        let line = json!({"type": "control_request", "request_id": id, "request": self.initialize});
        Claimed { args: self.args, first: format!("{line}\n").into_bytes(), parked }
    }
}

/// Answers a request. That nobody reads it is noticed when there is a session.
fn answer_with(id: &Value, answer: &Result<Value, String>) {
    let response = match answer {
        Ok(response) => json!({"subtype": "success", "request_id": id, "response": response}),
        Err(error) => json!({"subtype": "error", "request_id": id, "error": error}),
    };
    let line = json!({"type": "control_response", "response": response});
    let mut out = std::io::stdout();
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}
