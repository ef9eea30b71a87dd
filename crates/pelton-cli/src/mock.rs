//! The scripted model as a server.

use std::io::Write;
use std::process::ExitCode;

use pelton_testkit::{Script, ServeOptions, serve as start};

use crate::args::MockArgs;
use crate::fail::{Fail, tell};
use crate::signals::Signals;

/// A script larger than this is a mistake.
const SCRIPT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// `pelton mock`: serves until a signal comes. Ends with 1 if a request was refused or met no step, so that a test
/// run that starts it can see.
pub(crate) async fn serve(args: &MockArgs) -> Result<ExitCode, Fail> {
    let mut signals = Signals::listen()?;
    let text = read(args)?;
    let mut script = Script::from_yaml_or_json(&text)
        .map_err(|error| Fail::new(format!("{}: {error}", args.script.display())))?;
    for var in &args.vars {
        let (name, value) =
            var.split_once('=').ok_or_else(|| Fail::new(format!("--var '{var}' is not NAME=VALUE")))?;
        script = script.var(name, value);
    }
    let options = ServeOptions { port: args.port, record: args.record.clone() };
    let mut serving = start(script, options).await.map_err(|error| Fail::new(error.to_string()))?;
    say(&format!("listening on {}", serving.base_url()))?;
    loop {
        tokio::select! {
            notice = serving.next() => tell(&notice.to_string()),
            _ = signals.next() => break,
        }
    }
    let summary = serving.summary();
    tell(&summary.to_string());
    Ok(if summary.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn read(args: &MockArgs) -> Result<String, Fail> {
    use std::io::Read;
    let fail = |error: std::io::Error| {
        Fail::new(format!("cannot read the script {}: {error}", args.script.display()))
    };
    let mut text = String::new();
    let mut source: Box<dyn Read> = if args.script.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(&args.script).map_err(fail)?)
    };
    source.by_ref().take(SCRIPT_BYTES_MAX).read_to_string(&mut text).map_err(fail)?;
    Ok(text)
}

fn say(line: &str) -> Result<(), Fail> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| Fail::new(format!("cannot write to standard output: {error}")))
}
