//! A whole session, driven by another program through standard input and standard output.

use std::io::{BufRead as _, Read as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use pelton::{Options, StartError, Terminal};
use pelton_model::{RealWorld, World};
use pelton_serve::{ConverseOptions, Ended, StateFrames, Streams, WhoDecides, converse};
use serde_json::{Value, json};

use crate::args::{OutputFormat, RunArgs};
use crate::debug;
use crate::fail::{Fail, tell};
use crate::headless::{BACKGROUND_PATIENCE, END_WAIT, agent_patience, reader_gone, tell_clients};
use crate::parked;
use crate::resolve::{self, Env, Home};
use crate::shortcut;
use crate::signals::{Ending, Signals};

/// 128 + SIGPIPE, as elsewhere.
const OUTPUT_CLOSED: u8 = 141;

/// How long a client that is told why nothing begins has to say its first words: writing to a program that is gone is a
/// failure of its own, and hides the reason.
const FIRST_WORDS_WAIT: Duration = Duration::from_secs(1);

/// The most bytes of the first line that is waited for: a little more than a line may have.
const FIRST_LINE_BYTES_MAX: u64 = 65 * 1024 * 1024;

/// `pelton --input-format stream-json`.
pub(crate) async fn run(args: &RunArgs) -> Result<ExitCode, Fail> {
    let mut signals = Signals::listen()?;
    let mut args = args.clone();
    let mut first = Vec::new();
    if args.client.await_initialize {
        // It may name plugins and servers, and those belong to what is set up.
        first = match tokio::select! {
            biased;
            first = next_line() => first,
            ending = signals.next() => {
                tell(ending.word());
                return Ok(ExitCode::from(ending.exit_code()));
            }
        } {
            Ok(first) => first,
            Err(error) => return Err(Fail::new(format!("standard input cannot be read: {error}"))),
        };
        take_over(&mut args, &first);
    }
    let mut parked = None;
    if args.client.await_claim {
        let claimed = tokio::select! {
            biased;
            claimed = parked::wait(&args) => claimed?,
            ending = signals.next() => {
                tell(ending.word());
                return Ok(ExitCode::from(ending.exit_code()));
            }
        };
        let Some(claimed) = claimed else { return Ok(ExitCode::SUCCESS) };
        (args, first, parked) = (claimed.args, claimed.first, Some(claimed.parked));
    }
    let args = &args;
    let set_up = ready(args);
    if let Err(fail) = &set_up {
        tell_clients(fail, args);
        let_client_speak();
    }
    let (options, mut shown) = set_up?;
    shown.parked = parked;
    let streams = shortcut::taken_by(Streams::apart(std::io::stdout(), std::io::stderr()));
    // A prompt on the command line is asked before what comes on standard input, behind the client's first words if it had some.
    if let Some(prompt) = &args.prompt {
        let message = json!({"role": "user", "content": prompt});
        first.extend(format!("{}\n", json!({"type": "user", "message": message})).into_bytes());
    }
    let input = std::io::Cursor::new(first).chain(std::io::stdin());
    let talked = Box::pin(talk(options, &shown, input, &streams, &mut signals)).await;
    let written = match talked.ending {
        // A reader that does not read must not keep a signalled program alive.
        Some(_) => tokio::time::timeout(END_WAIT, streams.finish()).await.unwrap_or(Ok(())),
        None => tokio::select! {
            biased;
            written = streams.finish() => written,
            _ = signals.next() => Ok(()),
        },
    };
    if let Some(ending) = talked.ending {
        tell(ending.word());
        return Ok(ExitCode::from(ending.exit_code()));
    }
    let ended = match talked.ended {
        None => return Ok(ExitCode::FAILURE),
        Some(Ok(ended)) => ended,
        Some(Err(error)) => {
            let fail = Fail::at_start(error.to_string());
            tell_clients(&fail, args);
            return Err(fail);
        }
    };
    if let Some(fault) = ended.fault {
        return Err(Fail::new(fault));
    }
    if talked.nobody_reads || written.is_err() {
        return Ok(ExitCode::from(OUTPUT_CLOSED));
    }
    match ended.is_error {
        // Whoever started this knows more than an exit code where it reads nothing but that.
        true => {
            cause(&ended).iter().for_each(|cause| tell(&format!("error: {cause}")));
            Ok(ExitCode::FAILURE)
        }
        false => Ok(ExitCode::SUCCESS),
    }
}

/// Why the last result was an error, in a line. What was interrupted was wanted so.
fn cause(ended: &Ended) -> Option<String> {
    let Some(outcome) = ended.outcome.as_ref().filter(|outcome| outcome.is_error) else {
        return Some("the last message had nothing in it, so nothing was asked".to_owned());
    };
    if matches!(outcome.terminal, Terminal::AbortedStreaming | Terminal::AbortedToolExecution) {
        return None;
    }
    let told = outcome.error.as_ref().map(ToString::to_string);
    let told = told.or_else(|| outcome.errors.first().cloned()).unwrap_or_else(|| outcome.text.clone());
    told.lines().next().map(str::to_owned)
}

/// The next line of a client, with its end. One that is longer than lines may be is cut, and then refused like any other.
pub(crate) async fn next_line() -> std::io::Result<Vec<u8>> {
    let read = || {
        let mut line = Vec::new();
        std::io::stdin().lock().take(FIRST_LINE_BYTES_MAX).read_until(b'\n', &mut line).map(|_| line)
    };
    // A thread of its own: nobody waits for it when a signal comes first.
    let (heard, hears) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = heard.send(read());
    });
    hears.await.unwrap_or_else(|_| Ok(Vec::new()))
}

/// Takes the plugins and servers of an `initialize` for ones of the command line, where others could read them.
fn take_over(args: &mut RunArgs, line: &[u8]) {
    let Ok(said) = serde_json::from_slice::<Value>(line) else { return };
    let request = &said["request"];
    if said["type"] != "control_request" || request["subtype"] != "initialize" {
        return;
    }
    if request["mcpServers"].is_object() {
        args.client.mcp_config.push(json!({"mcpServers": request["mcpServers"]}).to_string());
    }
    for plugin in request["plugins"].as_array().into_iter().flatten() {
        let Some(path) = plugin["path"].as_str().filter(|_| plugin["type"] == "local") else {
            tell("warning: a plugin of initialize is not used: only local ones with a path are known");
            continue;
        };
        match plugin["skipMcpDiscovery"] == true {
            true => args.client.plugin_dir_no_mcp.push(path.into()),
            false => args.client.plugin_dir.push(path.into()),
        }
    }
}

/// Waits until the client has written something, or will write no more.
pub(crate) fn let_client_speak() {
    let (heard, hears) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read(&mut [0]);
        let _ = heard.send(());
    });
    let _ = hears.recv_timeout(FIRST_WORDS_WAIT);
}

/// What came of a conversation.
struct Talked {
    /// `None`: it was not waited for.
    ended: Option<Result<Ended, StartError>>,
    ending: Option<Ending>,
    nobody_reads: bool,
}

/// Talks until the client is done, or a signal comes: then what runs has a little time to record its end.
async fn talk(
    options: Options,
    shown: &ConverseOptions,
    input: impl std::io::Read + Send + 'static,
    streams: &Streams,
    signals: &mut Signals,
) -> Talked {
    let cancel = options.cancel.clone();
    let (mut ending, mut nobody_reads) = (None, false);
    let conversation = converse(options, shown, input, streams);
    let mut conversation = std::pin::pin!(conversation);
    let mut reader_gone = std::pin::pin!(reader_gone());
    let ended = loop {
        tokio::select! {
            biased;
            ended = &mut conversation => break Some(ended),
            () = &mut reader_gone, if !nobody_reads => {
                nobody_reads = true;
                cancel.cancel();
            }
            signal = signals.next() => match ending {
                None => {
                    ending = Some(signal);
                    cancel.cancel();
                }
                // The second one does not wait. Dropping the conversation ends its processes.
                Some(_) => break None,
            },
            () = tokio::time::sleep(END_WAIT), if ending.is_some() => break None,
        }
    };
    Talked { ended, ending, nobody_reads }
}

pub(crate) fn ready(args: &RunArgs) -> Result<(Options, ConverseOptions), Fail> {
    if args.output_format != OutputFormat::StreamJson {
        return Err(Fail::new("--input-format stream-json needs --output-format stream-json"));
    }
    if args.print && !args.verbose {
        return Err(Fail::new("--output-format stream-json needs --verbose"));
    }
    set_up(args, &Env::of_process())
}

fn set_up(args: &RunArgs, env: &Env) -> Result<(Options, ConverseOptions), Fail> {
    let log = debug::log(args, env, &(Arc::new(RealWorld::new()) as Arc<dyn World>));
    let (options, _payer, servers) = resolve::options(args, env)?;
    let client = &args.client;
    let mut shown = ConverseOptions::default();
    shown.partial = args.include_partial_messages;
    shown.loop_events = args.include_loop_events;
    shown.replay = args.replay_user_messages;
    shown.agent_text = args.forward_subagent_text;
    shown.hook_events = client.include_hook_events;
    shown.state_frames = if env.is_on("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS") {
        StateFrames::ForEveryone
    } else if env.is_on("CLAUDE_CODE_SDK_READS_SESSION_STATE") {
        StateFrames::ForTheHost
    } else {
        StateFrames::None
    };
    shown.who_decides = match client.permission_prompt_tool.as_deref() {
        _ if client.permission_prompts.is_some() => WhoDecides::Nobody,
        None | Some("") => WhoDecides::Nobody,
        Some("stdio") => WhoDecides::Client,
        Some(tool) => WhoDecides::Tool(tool.to_owned()),
    };
    shown.servers = servers.outside;
    shown.servers_named = Some(servers.named_later);
    shown.asks_without_servers = servers.are_not_waited_for;
    shown.client_servers = servers.of_client;
    shown.may_bypass = resolve::may_bypass(args, env, &options);
    shown.may_rewind = env.is_on("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING");
    shown.agent.clone_from(&client.agent);
    shown.title.clone_from(&client.name);
    let minimal = env.is_on("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC");
    shown.suggestions_off = minimal || env.is_off("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION");
    shown.agent_summaries_off = minimal || env.is_on("CLAUDE_CODE_DISABLE_AGENT_PROGRESS_SUMMARIES");
    shown.mirror = client.session_mirror;
    let patience = env.number("CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS")?.map(Duration::from_millis);
    shown.background_patience = patience.unwrap_or(BACKGROUND_PATIENCE);
    shown.agent_patience = agent_patience(env)?;
    shown.idle_max = env.number("CLAUDE_CODE_EXIT_AFTER_STOP_DELAY")?.map(Duration::from_millis);
    shown.pid = std::process::id();
    shown.log = log;
    shown.home = Some(Arc::new(Home {
        args: args.clone(),
        env: env.clone(),
        cwd: options.cwd.clone(),
        styles: options.style_names().into_iter().map(str::to_owned).collect(),
    }));
    Ok((options, shown))
}
