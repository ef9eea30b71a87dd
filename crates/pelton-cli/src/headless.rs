//! One prompt, without a screen.

use std::io::{IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use pelton::tools::ToolServer;
use pelton::{EndReason, Engine, Event, Options, Outcome, Prompt, StartError, Terminal, fresh_id};
use pelton_mcp::{Joining, Scope};
use pelton_model::{ErrorKind, ModelError, RealWorld, TransportErrorKind, World};
use pelton_serve::{Format, PrintOptions, Streams, WriteError, print, start_failure};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::args::{self, OutputFormat, RunArgs};
use crate::debug;
use crate::fail::{Fail, tell};
use crate::interactive;
use crate::piped;
use crate::resolve::{self, Env, Payer};
use crate::shortcut;
use crate::signals::{Ending, Signals};
use crate::stdin;

/// Time that commands in the background have to end by themselves once the answer is there.
pub(crate) const BACKGROUND_PATIENCE: Duration = Duration::from_secs(5);
/// The same for agents, unless the environment says otherwise.
const AGENT_PATIENCE: Duration = Duration::from_secs(600);
/// After a signal the run has this long to record its end; then it is dropped.
pub(crate) const END_WAIT: Duration = Duration::from_secs(2);

/// `pelton -p`, and whatever clients start.
pub(crate) async fn run(args: &RunArgs) -> Result<ExitCode, Fail> {
    if args.client.streams_input() {
        return Box::pin(piped::run(args)).await;
    }
    if args.client.init_only {
        return Box::pin(set_up(args)).await;
    }
    if !args.print {
        if interactive::is_possible() && !args.prompt.as_deref().is_some_and(is_a_slip) {
            return Box::pin(interactive::run(args)).await;
        }
        return Err(not_a_task(args.prompt.as_deref()));
    }
    if args.output_format == OutputFormat::StreamJson && !args.verbose {
        return Err(Fail::new("--output-format stream-json needs --verbose"));
    }
    if args.include_partial_messages && args.output_format != OutputFormat::StreamJson {
        return Err(Fail::new("--include-partial-messages needs --output-format stream-json"));
    }
    if args.replay_user_messages && args.output_format != OutputFormat::StreamJson {
        return Err(Fail::new("--replay-user-messages needs --output-format stream-json"));
    }
    let env = Env::of_process();
    let mut signals = Signals::listen()?;
    let log = debug::log(args, &env, &(Arc::new(RealWorld::new()) as Arc<dyn World>));
    let started = tokio::select! {
        biased;
        started = start(args, &env) => started,
        // A prompt is waited for: the writer may take its time.
        ending = signals.next() => {
            tell_clients(&Fail::at_start("Interrupted by the user before there was a prompt"), args);
            tell(ending.word());
            return Ok(ExitCode::from(ending.exit_code()));
        }
    };
    if let Err(fail) = &started {
        tell_clients(fail, args);
    }
    let (engine, prompt) = started?;
    let mut print_options = shown(args.output_format, args.verbose, args.include_partial_messages, &env);
    print_options.loop_events = args.include_loop_events;
    print_options.replay = args.replay_user_messages;
    print_options.agent_text = args.forward_subagent_text;
    print_options.hook_events = args.client.include_hook_events;
    print_options.agent_patience = agent_patience(&env)?;
    print_options.log = log;
    Box::pin(submit(engine, prompt, &print_options, signals)).await?.exit(Asker::Task)
}

/// `pelton --init-only`: hooks set the project up, and nobody is asked anything.
async fn set_up(args: &RunArgs) -> Result<ExitCode, Fail> {
    let (options, payer, _) = resolve::options(args, &Env::of_process())?;
    let Started { mut engine, .. } = Started::new(options, Some(payer))?;
    let mut signals = Signals::listen()?;
    let told = tokio::select! {
        biased;
        told = engine.begin() => told,
        ending = signals.next() => {
            tell(ending.word());
            return Ok(ExitCode::from(ending.exit_code()));
        }
    };
    for event in told {
        if let Event::Informational { content, .. } = event {
            tell(&content);
        }
    }
    engine.close(EndReason::Other).await;
    Ok(ExitCode::SUCCESS)
}

/// Everything that can go wrong before the model is asked.
async fn start(args: &RunArgs, env: &Env) -> Result<(Started, Prompt), Fail> {
    let (mut options, payer, servers) = resolve::options(args, env)?;
    for name in &servers.of_client {
        tell(&format!(
            "notice: the MCP server '{name}' is not used: it is inside a client, and there is none"
        ));
    }
    let client = &args.client;
    let asked = client.permission_prompt_tool.as_deref().filter(|tool| !matches!(*tool, "" | "stdio"));
    if let Some(tool) = asked.filter(|_| client.permission_prompts.is_none()) {
        options.questions = pelton_serve::decided_by(tool, &servers.outside);
        if options.questions.is_none() {
            tell(&format!(
                "warning: --permission-prompt-tool {tool} is no tool of a server that was named, so nobody is asked"
            ));
        }
    }
    options.servers.extend(servers.outside.iter().map(|server| Arc::clone(server) as Arc<dyn ToolServer>));
    resolve::work_as_said(&mut options, args)?;
    let mut started = Started::new(options, Some(payer))?;
    // Those that were named for this run are there before the model is asked first; the others come when they come.
    let is_named = |server: &&Arc<pelton_mcp::Server>| server.config().scope == Scope::Dynamic;
    let named: Vec<Arc<pelton_mcp::Server>> = servers.outside.iter().filter(is_named).cloned().collect();
    let Joining { first, inside, connecting } = Joining::of(servers.outside);
    started.connecting = connecting;
    if !servers.are_not_waited_for {
        started.engine.wait_for(inside, first.map(move |()| tell_missing(&named)));
    }
    let prompt = stdin::prompt(args).await?;
    let prompt = Prompt::text(prompt).map_err(|error| Fail::new(error.to_string()))?;
    if let Some(name) = &client.name {
        // A name is a courtesy: without one the session is found by its first words.
        let _ = started.engine.title().set(name);
    }
    Ok((started, prompt))
}

/// Whether a prompt is one word that is near a command.
fn is_a_slip(prompt: &str) -> bool {
    !prompt.contains(char::is_whitespace) && args::nearest_command(prompt).is_some()
}

/// A word without `-p` is most often a command with a slip in it.
fn not_a_task(word: Option<&str>) -> Fail {
    match word.and_then(args::nearest_command) {
        Some(command) if Some(command.as_str()) == word => Fail::new(format!(
            "'{command}' goes before the options: pelton {command} ... (or, as a task: pelton -p {command})"
        )),
        Some(command) => {
            let word = word.unwrap_or_default();
            Fail::new(format!(
                "'{word}' is not a command: did you mean 'pelton {command}'? (or, as a task: pelton -p {word})"
            ))
        }
        None => {
            Fail::new("a session needs a terminal: run one task with pelton -p \"...\" (see 'pelton --help')")
        }
    }
}

/// Clients that read JSON learn from a result why there is no run.
pub(crate) fn tell_clients(fail: &Fail, args: &RunArgs) {
    let Some(message) = fail.told_to_clients().filter(|_| args.output_format != OutputFormat::Text) else {
        return;
    };
    let world = RealWorld::new();
    let asked = args.resume.as_deref().and_then(|id| id.parse().ok()).or(args.session_id);
    let session = asked.unwrap_or_else(|| fresh_id(&world));
    let mut result = start_failure(message, session, fresh_id(&world));
    if args.output_format == OutputFormat::Json && args.verbose {
        result.insert(0, b'[');
        result.push(b']');
    }
    result.push(b'\n');
    // The same is told on standard error: a reader that is gone changes nothing.
    let _ = std::io::stdout().write_all(&result);
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
        loop_events: false,
        replay: false,
        agent_text: false,
        hook_events: false,
        out_is_terminal: std::io::stdout().is_terminal(),
        shows_progress: std::io::stderr().is_terminal(),
        colour: env.colour() && std::io::stderr().is_terminal(),
        agent_patience: Some(AGENT_PATIENCE),
        log: None,
    }
}

/// How long agents in the background are waited for once the answer is there; `None`: until they end.
pub(crate) fn agent_patience(env: &Env) -> Result<Option<Duration>, Fail> {
    Ok(match env.number("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS")? {
        Some(0) => None,
        Some(millis) => Some(Duration::from_millis(millis)),
        None => Some(AGENT_PATIENCE),
    })
}

/// An engine that is ready to be asked.
pub(crate) struct Started {
    engine: Engine,
    world: Arc<dyn World>,
    server: Server,
    /// Connects to servers of tools; ends with the run.
    connecting: JoinSet<()>,
}

/// What was asked, for those who want to know why it did not answer.
struct Server {
    base_url: String,
    /// `None`: it takes no money.
    payer: Option<Payer>,
}

/// The way out where two processes want one session.
const FORKS: &str = "--fork-session";

impl Started {
    pub fn new(options: Options, payer: Option<Payer>) -> Result<Self, Fail> {
        let world = Arc::clone(&options.world);
        let server = Server { base_url: options.endpoint.base_url.clone(), payer };
        let engine = Engine::new(options).map_err(|error| {
            Fail::at_start(match error {
                StartError::Directory { .. } => format!("{error} (check that it exists and may be read)"),
                error => error.to_string(),
            })
        })?;
        Ok(Self { engine, world, server, connecting: JoinSet::new() })
    }
}

/// A run that is over.
pub(crate) struct Ran {
    pub outcome: Option<Arc<Outcome>>,
    pub ending: Option<Ending>,
    pub transcript: Option<PathBuf>,
    written: Result<(), WriteError>,
    server: Server,
    session: Uuid,
}

/// Who asked, and so which ways out there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    /// `pelton -p`.
    Task,
    /// `pelton demo`: it has few options, and nothing to go on with, for its folder is gone.
    Demo,
}

/// Runs one submission to its end, or to the end a signal gives it.
pub(crate) async fn submit(
    started: Started,
    prompt: Prompt,
    print_options: &PrintOptions,
    mut signals: Signals,
) -> Result<Ran, Fail> {
    let Started { mut engine, world, server, connecting: _connecting } = started;
    let interrupter = engine.interrupter();
    let (session, transcript) = (engine.session_id(), engine.transcript_file());
    let streams = streams();
    let mut ending = None;
    let mut nobody_reads = false;
    let outcome = {
        let mut printed = std::pin::pin!(print(&mut engine, prompt, print_options, world, &streams));
        let mut reader_gone = std::pin::pin!(reader_gone());
        loop {
            tokio::select! {
                biased;
                outcome = &mut printed => break Some(outcome),
                () = &mut reader_gone, if !nobody_reads => {
                    nobody_reads = true;
                    interrupter.interrupt();
                }
                signal = signals.next() => match ending {
                    None => {
                        ending = Some(signal);
                        interrupter.interrupt();
                    }
                    // The second one does not wait. Dropping the run ends its processes.
                    Some(_) => break None,
                },
                () = tokio::time::sleep(END_WAIT), if ending.is_some() => break None,
            }
        }
    };
    match outcome {
        // Hooks of the session's end have their own limit; another signal does not wait for them.
        Some(_) => tokio::select! {
            biased;
            () = Box::pin(close(engine, ending.is_none())) => {}
            signal = signals.next() => { ending.get_or_insert(signal); }
        },
        None => drop(engine),
    }
    let written = match outcome {
        None => Ok(()),
        Some(_) => tokio::select! {
            biased;
            written = streams.finish() => written,
            // A reader that does not read must not keep a signalled program alive.
            signal = signals.next() => {
                ending.get_or_insert(signal);
                Ok(())
            }
            () = tokio::time::sleep(END_WAIT), if ending.is_some() => Ok(()),
        },
    };
    let outcome = outcome.flatten();
    // Also when there was nothing left to write, so that no write has failed.
    let written =
        written.and_then(|()| if nobody_reads { Err(std::io::ErrorKind::BrokenPipe.into()) } else { Ok(()) });
    Ok(Ran { outcome, ending, transcript, written, server, session })
}

/// Ends the session. What runs in its background has a little time to end by itself, unless a signal came.
async fn close(engine: Engine, unhurried: bool) {
    if unhurried {
        engine.settle_background(BACKGROUND_PATIENCE).await;
    }
    let history = engine.file_history().filter(|_| unhurried);
    engine.close(EndReason::Other).await;
    if let Some(history) = history {
        // Nobody waits for anything any more. What is not swept now is swept another time.
        let _ = tokio::task::spawn_blocking(move || history.sweep()).await;
    }
}

/// On terminals, which are one terminal most often, the order of words and notices matters; elsewhere it matters more
/// that a slow reader of one stream does not hold up the other.
fn streams() -> Streams {
    let (out, err) = (std::io::stdout(), std::io::stderr());
    if out.is_terminal() && err.is_terminal() {
        Streams::together(out, err)
    } else {
        shortcut::taken_by(Streams::apart(out, err))
    }
}

/// Returns when nobody can read standard output any more, also while there is nothing to write: a run that works for
/// ten minutes would not notice otherwise. Files cannot be watched, and need not be.
pub(crate) async fn reader_gone() {
    let watch = |stdout: OwnedFd| {
        // SAFETY: the descriptor is open, nobody else has it, and it stays open for as long as it is owned.
        unsafe { AsyncFd::register_with_interest(stdout, Interest::ERROR) }.map_err(std::io::Error::from)
    };
    if let Ok(watched) = std::io::stdout().as_fd().try_clone_to_owned().and_then(watch)
        && watched.ready(Interest::ERROR).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

impl Ran {
    /// Tells what went wrong, in one line, and gives the exit code. Signals win over everything else.
    pub fn exit(&self, asker: Asker) -> Result<ExitCode, Fail> {
        const OUTPUT_CLOSED: u8 = 141; // 128 + SIGPIPE
        let go_on = self.go_on(asker);
        if let Some(ending) = self.ending {
            tell(&format!("{}{go_on}", ending.word()));
            return Ok(ExitCode::from(ending.exit_code()));
        }
        if let Err(error) = &self.written {
            let completed = self.outcome.as_ref().is_some_and(|outcome| !outcome.is_error);
            return Err(match error.kind {
                std::io::ErrorKind::BrokenPipe if completed => Fail::with_code(
                    format!("standard output was closed before the answer was written{go_on}"),
                    OUTPUT_CLOSED,
                ),
                std::io::ErrorKind::BrokenPipe => Fail::with_code(
                    format!("standard output was closed, so the run was stopped{go_on}"),
                    OUTPUT_CLOSED,
                ),
                _ => Fail::new(format!("cannot write to standard output: {}{go_on}", error.message)),
            });
        }
        match &self.outcome {
            Some(outcome) if !outcome.is_error => Ok(ExitCode::SUCCESS),
            Some(outcome) => Err(Fail::new(format!("{}{go_on}", self.cause(outcome, asker)))),
            None => Err(Fail::new(format!("the run ended without a result{go_on}"))),
        }
    }

    /// How to go on with the session, if it is recorded and that leads anywhere.
    fn go_on(&self, asker: Asker) -> String {
        let dead_end = self.outcome.as_ref().is_some_and(|outcome| {
            let too_large = outcome.error.as_ref().is_some_and(|error| is_too_large(&error.kind));
            outcome.terminal == Terminal::Unrecorded || too_large
        });
        match &self.transcript {
            // A session that was stopped before anything was said left no record.
            Some(file) if !dead_end && asker == Asker::Task && file.exists() => {
                format!(" (go on with --resume {})", self.session)
            }
            _ => String::new(),
        }
    }

    fn cause(&self, outcome: &Outcome, asker: Asker) -> String {
        if let Some(error) = &outcome.error {
            return format!("{error}{}", way_out(error, &self.server));
        }
        if !outcome.errors.is_empty() {
            let more = match (outcome.terminal, asker) {
                (Terminal::MaxTurns, Asker::Task) => ": raise --max-turns to let it go on",
                (Terminal::BudgetExhausted, _) => ": raise --max-budget-usd to let it go on",
                (Terminal::StructuredOutputRetries, _) => {
                    ": check that --json-schema can be met, or try another --model"
                }
                (Terminal::MaxTurns, Asker::Demo) => ": raise CLAUDE_CODE_MAX_TURNS",
                // A session that somebody else has open says itself what can be done.
                (Terminal::Unrecorded, _) if outcome.errors.iter().any(|error| error.contains(FORKS)) => "",
                (Terminal::Unrecorded, Asker::Task) => {
                    ": make room or access for it, or use --no-session-persistence"
                }
                (Terminal::Unrecorded, Asker::Demo) => {
                    ": make room or access for it, or set CLAUDE_CONFIG_DIR to a folder that can be written"
                }
                _ => "",
            };
            return format!("{}{more}", outcome.errors.join("; "));
        }
        match outcome.terminal {
            Terminal::Completed if outcome.asked => "the model declined to answer".to_owned(),
            _ => outcome.text.clone(),
        }
    }
}

/// Whoever names a server for a run, and waits for it, wants to know that the run has to do without.
fn tell_missing(named: &[Arc<pelton_mcp::Server>]) {
    for server in named {
        if let Some(why) = server.error() {
            tell(&format!("warning: the MCP server '{}' is not there: {why}", server.config().name));
        }
    }
}

/// What the user can do about it.
fn way_out(error: &ModelError, server: &Server) -> String {
    let base_url = &server.base_url;
    match &error.kind {
        ErrorKind::Authentication | ErrorKind::Permission => {
            server.payer.as_ref().map(|payer| format!(": {}", payer.way_out())).unwrap_or_default()
        }
        ErrorKind::NotFound if error.message.to_lowercase().contains("model") => {
            format!(": check --model and that {base_url} serves it")
        }
        ErrorKind::NotFound => {
            let version = if base_url.trim_end_matches('/').ends_with("/v1") { ", without /v1" } else { "" };
            format!(
                ": check that {base_url} (ANTHROPIC_BASE_URL) is the address in front of /v1/messages{version}"
            )
        }
        kind if is_too_large(kind) => {
            ": start a new session with less in it (name long files in the prompt instead of piping them in)"
                .to_owned()
        }
        ErrorKind::Billing => ": check the account's balance".to_owned(),
        ErrorKind::RateLimited | ErrorKind::Overloaded | ErrorKind::Server => ": try again later".to_owned(),
        ErrorKind::WebPage => format!(
            ": check that {base_url} (ANTHROPIC_BASE_URL) is right, and that no login or proxy stands in front of it"
        ),
        ErrorKind::Connection(TransportErrorKind::Tls) if !error.message.contains("certificate") => {
            format!(": check that {base_url} (ANTHROPIC_BASE_URL) speaks https, and not http")
        }
        ErrorKind::Connection(TransportErrorKind::Tls) => {
            ": behind a proxy with its own certificate, name it in NODE_EXTRA_CA_CERTS".to_owned()
        }
        ErrorKind::Connection(_) if !error.is_answered() => {
            format!(": check that {base_url} (ANTHROPIC_BASE_URL) is right and reachable")
        }
        _ => String::new(),
    }
}

/// More than the model takes, and asking again for the same would not change that.
fn is_too_large(kind: &ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PromptTooLong { .. } | ErrorKind::OutputOverflow { .. } | ErrorKind::RequestTooLarge
    )
}
