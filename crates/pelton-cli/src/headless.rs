//! One prompt, without a screen.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pelton::{Engine, Options, Outcome, Prompt, Terminal};
use pelton_model::{ErrorKind, ModelError, TransportErrorKind};
use pelton_serve::{Format, Out, PrintOptions, WriteError, print};

use crate::args::{OutputFormat, RunArgs};
use crate::fail::Fail;
use crate::resolve::{self, Env};
use crate::signals::{Ending, Signals};
use crate::stdin;

/// After a signal the run has this long to record its end; then it is dropped.
const END_WAIT: Duration = Duration::from_secs(2);

/// `pelton -p`.
pub(crate) async fn run(args: &RunArgs) -> Result<ExitCode, Fail> {
    if !args.print {
        return Err(Fail::new(
            "interactive sessions are not part of this version: run one task with pelton -p \"...\" (see 'pelton --help')",
        ));
    }
    if args.output_format == OutputFormat::StreamJson && !args.verbose {
        return Err(Fail::new("--output-format stream-json needs --verbose"));
    }
    let env = Env::of_process();
    let options = resolve::options(args, &env)?;
    let print_options = shown(args.output_format, args.verbose, args.include_partial_messages, &env);
    let prompt = stdin::prompt(args.prompt.as_deref()).await?;
    let prompt = Prompt::text(prompt).map_err(|error| Fail::new(error.to_string()))?;
    let ran = submit(options, prompt, &print_options).await?;
    ran.exit()
}

/// How output is shown, as far as the streams decide.
pub(crate) fn shown(format: OutputFormat, verbose: bool, partial: bool, env: &Env) -> PrintOptions {
    PrintOptions {
        format: match format {
            OutputFormat::Text => Format::Text,
            OutputFormat::Json => Format::Json,
            OutputFormat::StreamJson => Format::StreamJson,
        },
        verbose,
        partial,
        out_is_terminal: std::io::stdout().is_terminal(),
        err_is_terminal: std::io::stderr().is_terminal(),
        colour: env.colour(),
    }
}

/// A run that is over.
pub(crate) struct Ran {
    pub outcome: Option<Arc<Outcome>>,
    pub written: Result<(), WriteError>,
    pub ending: Option<Ending>,
    pub transcript: Option<PathBuf>,
    base_url: String,
    session: String,
}

/// Runs one submission to its end, or to the end a signal gives it.
pub(crate) async fn submit(options: Options, prompt: Prompt, print_options: &PrintOptions) -> Result<Ran, Fail> {
    let mut signals = Signals::listen()?;
    let world = Arc::clone(&options.world);
    let base_url = options.endpoint.base_url.clone();
    let mut engine = Engine::new(options).map_err(|error| Fail::new(format!("{error} (check that it exists and may be read)")))?;
    let interrupter = engine.interrupter();
    let transcript = engine.transcript_file();
    let session = match &transcript {
        Some(_) => format!(" (session {} is recorded)", engine.session_id()),
        None => String::new(),
    };
    let (out, err) = (Out::start(std::io::stdout()), Out::start(std::io::stderr()));
    let mut ending = None;
    let (outcome, written) = {
        let mut printed = std::pin::pin!(print(&mut engine, prompt, print_options, world, &out, &err));
        loop {
            let deadline = tokio::time::sleep(END_WAIT);
            tokio::select! {
                done = &mut printed => break done,
                signal = signals.next() => match ending {
                    None => {
                        ending = Some(signal);
                        interrupter.interrupt();
                    }
                    // The second one does not wait. Dropping the run ends its processes.
                    Some(_) => break (None, Ok(())),
                },
                () = deadline, if ending.is_some() => break (None, Ok(())),
            }
        }
    };
    drop(engine);
    let _ = err.finish();
    // What is still queued for a reader that does not read must not keep a signalled program alive.
    let written = match (written, ending) {
        (Ok(()), None) => out.finish(),
        (Ok(()), Some(_)) => tokio::time::timeout(END_WAIT, tokio::task::spawn_blocking(|| out.finish()))
            .await
            .map_or(Ok(()), |joined| joined.unwrap_or(Ok(()))),
        (failed, _) => failed,
    };
    Ok(Ran { outcome, written, ending, transcript, base_url, session })
}

impl Ran {
    /// Tells what went wrong, in one line, and gives the exit code. Signals win over everything else.
    pub fn exit(self) -> Result<ExitCode, Fail> {
        const OUTPUT_CLOSED: u8 = 141; // 128 + SIGPIPE
        if let Some(ending) = self.ending {
            return Ok(ExitCode::from(ending.exit_code()));
        }
        if let Err(error) = &self.written {
            return Err(match error.kind {
                std::io::ErrorKind::BrokenPipe => {
                    let text = format!("standard output was closed, so the run was stopped{}", self.session);
                    Fail::with_code(text, OUTPUT_CLOSED)
                }
                _ => Fail::new(format!("cannot write to standard output: {}{}", error.message, self.session)),
            });
        }
        match &self.outcome {
            Some(outcome) if !outcome.is_error => Ok(ExitCode::SUCCESS),
            Some(outcome) => Err(Fail::new(format!("{}{}", self.cause(outcome), self.session))),
            None => Err(Fail::new(format!("the run ended without a result{}", self.session))),
        }
    }

    fn cause(&self, outcome: &Outcome) -> String {
        if let Some(error) = &outcome.error {
            return format!("{error}{}", way_out(error, &self.base_url));
        }
        if !outcome.errors.is_empty() {
            let more = match outcome.terminal {
                Terminal::MaxTurns => ": raise --max-turns to let it go on",
                Terminal::Unrecorded => ": make room or access for it, or use --no-session-persistence",
                _ => "",
            };
            return format!("{}{more}", outcome.errors.join("; "));
        }
        match outcome.terminal {
            Terminal::Completed => "the model declined to answer".to_owned(),
            _ => outcome.text.clone(),
        }
    }
}

/// What the user can do about it.
fn way_out(error: &ModelError, base_url: &str) -> String {
    match &error.kind {
        ErrorKind::Authentication => ": check ANTHROPIC_API_KEY (or ANTHROPIC_AUTH_TOKEN)".to_owned(),
        ErrorKind::NotFound => format!(": check --model and that {base_url} serves it"),
        ErrorKind::Billing => ": check the account's balance".to_owned(),
        ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Server => ": try again later".to_owned(),
        ErrorKind::Connection(TransportErrorKind::Tls) => {
            ": behind a proxy with its own certificate, name it in NODE_EXTRA_CA_CERTS".to_owned()
        }
        ErrorKind::Connection(_) => format!(": check that {base_url} (ANTHROPIC_BASE_URL) is right and reachable"),
        _ => String::new(),
    }
}

