//! The scripted model as a server.

use std::io::Write;
use std::process::ExitCode;
use std::sync::mpsc::{self, SyncSender};
use std::time::Duration;

use pelton_testkit::script::SCRIPT_BYTES_MAX;
use pelton_testkit::{Script, ServeOptions, serve as start};

use tokio::sync::oneshot;

use crate::args::MockArgs;
use crate::fail::{Fail, tell};
use crate::signals::Signals;

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
    let lines = Lines::start()?;
    loop {
        tokio::select! {
            notice = serving.next() => lines.tell(notice.to_string()),
            _ = signals.next() => break,
        }
    }
    let summary = serving.summary();
    lines.tell(summary.to_string());
    lines.finish().await;
    Ok(if summary.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Most lines waiting for a reader of standard error; later ones are left out.
const LINES_QUEUED_MAX: usize = 1024;
/// How long the last lines may take at the end, in milliseconds.
const LAST_LINES_MS_MAX: u64 = 1000;

/// Lines for standard error, written beside the server: whoever started it may never read them, and a full pipe must
/// not keep the model from answering or the program from ending.
struct Lines {
    queue: SyncSender<String>,
    written: oneshot::Receiver<()>,
}

impl Lines {
    fn start() -> Result<Self, Fail> {
        let (queue, waiting) = mpsc::sync_channel::<String>(LINES_QUEUED_MAX);
        let (done, written) = oneshot::channel();
        let write = move || {
            waiting.iter().for_each(|line| tell(&line));
            // Nobody may be waiting any more.
            let _ = done.send(());
        };
        std::thread::Builder::new()
            .name("notices".to_owned())
            .spawn(write)
            .map_err(|error| Fail::new(format!("cannot start a thread for notices: {error}")))?;
        Ok(Self { queue, written })
    }

    fn tell(&self, line: String) {
        // A full queue means that nobody reads.
        let _ = self.queue.try_send(line);
    }

    async fn finish(self) {
        let Self { queue, written } = self;
        drop(queue);
        // In time or not, the program ends next.
        let _ = tokio::time::timeout(Duration::from_millis(LAST_LINES_MS_MAX), written).await;
    }
}

fn read(args: &MockArgs) -> Result<String, Fail> {
    use std::io::Read;
    let fail = |error: std::io::Error| {
        Fail::new(format!("cannot read the script {}: {error}", args.script.display()))
    };
    let mut bytes = Vec::new();
    let mut source: Box<dyn Read> = if args.script.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(&args.script).map_err(fail)?)
    };
    // One byte more than a script may have, so that a script too large is seen to be that.
    source.by_ref().take(SCRIPT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes).map_err(fail)?;
    let name = args.script.display();
    if bytes.len() > SCRIPT_BYTES_MAX {
        return Err(Fail::new(format!(
            "the script {name} is larger than {SCRIPT_BYTES_MAX} bytes; split it into several scripts"
        )));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = valid.iter().filter(|byte| **byte == b'\n').count() + 1;
        Fail::new(format!("line {line} of the script {name} is not UTF-8; save it as UTF-8"))
    })
}

fn say(line: &str) -> Result<(), Fail> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .map_err(|error| Fail::new(format!("cannot write to standard output: {error}")))
}
