//! A session at a terminal.

use std::fs::File;
use std::io::{BufRead, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::sys::termios::{FlushArg, tcflush};
use pelton::permission::Mode;
use pelton::settings::{Approval, Patience, ScreenSettings};
use pelton::transcript::{find_session, move_to, session_file};
use pelton_model::{RealWorld, World};
use pelton_tui::clean::revealed_line;
use pelton_tui::input::Submission;
use pelton_tui::theme::{Depth, Surroundings, Theme, Wanted};
use pelton_tui::{Left, OnNarrowing, Opening, Standing, StatusCommand, Terminal, sessions_of, stop_here};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::args::{ModeArg, RunArgs};
use crate::debug;
use crate::fail::{Fail, kept_back, tell};
use crate::resolve::{self, Env, Home, Imports, Trust, config_dir, told_imports};
use crate::signals::{self, Ending, Signals, Stops};

/// Whether somebody is there to talk to.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// `pelton` and `pelton "task"`.
pub(crate) async fn run(args: &RunArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    ask_for_trust(&env)?;
    if !resolve::alone(args, &env) {
        ask_about_imports(&env)?;
    }
    let mut signals = Signals::listen()?;
    let wanted = Wanting::of(args);
    let is_plain = args.plain || surroundings(&env).depth() == Depth::Bare;
    let chooses = args.resume.as_deref() == Some("");
    // Whatever cannot be is told on a terminal that nobody has taken yet.
    let opening = if chooses { None } else { Some(opening(&wanted, &env)?) };
    let on_narrowing = on_narrowing(&env);
    let unusable = |error: std::io::Error| Fail::new(format!("this terminal cannot be used: {error}"));
    let out = File::from(std::io::stdout().as_fd().try_clone_to_owned().map_err(unusable)?);
    let opened = if is_plain { Terminal::plain(out) } else { Terminal::open(out, on_narrowing) };
    let mut terminal = opened.map_err(unusable)?;
    let mut after = After::default();
    let sat = Box::pin(sit(&mut terminal, wanted, opening, env, &mut signals, &mut after)).await;
    // Whatever is told from here on is told on a terminal that is as it was.
    terminal.give().await;
    after.untold.iter().for_each(|line| tell(line));
    let code = match sat {
        Err(fail) if after.session.is_none() => return Err(fail),
        Err(fail) => Err(fail.report()),
        Ok(ending) => Ok(ending),
    };
    if let Some(session) = after.session {
        tell(&format!("go on with: pelton --resume {session}"));
    }
    Ok(match code {
        Err(code) => code,
        Ok(None) => ExitCode::SUCCESS,
        Ok(Some(ending)) => {
            tell(ending.word());
            ExitCode::from(ending.exit_code())
        }
    })
}

/// What is told once the terminal is given back, however it came to that.
#[derive(Default)]
struct After {
    /// The session that was left last, if anything of it is recorded.
    session: Option<Uuid>,
    /// What nobody was there to show.
    untold: Vec<String>,
}

/// One session after the other in a terminal, until one is left for good, or a signal ends it.
async fn sit(
    terminal: &mut Terminal,
    mut wanted: Wanting,
    mut opening: Option<Opening>,
    mut env: Env,
    signals: &mut Signals,
    after: &mut After,
) -> Result<Option<Ending>, Fail> {
    if opening.is_none() {
        let chosen = tokio::select! {
            biased;
            ending = signals.next() => return Ok(Some(ending)),
            chosen = choose(terminal, &env) => chosen?,
        };
        match chosen {
            Some(id) => wanted.for_session(id),
            None => return Ok(None),
        }
    }
    let stop = CancellationToken::new();
    let mut stops = Stops::listen();
    loop {
        let next = match opening.take() {
            Some(opening) => opening,
            None => opening_in(&wanted, &env, after)?,
        };
        let here = next.options.cwd.clone();
        let interrupts = Interrupts {
            keys: terminal.is_plain().then(|| terminal.interrupts()),
            stops: terminal.stops(),
            given: terminal.given(),
        };
        let session = Box::pin(pelton_tui::run(next, terminal, &stop));
        let (left, ending) = until_left(session, &stop, interrupts, signals, &mut stops).await;
        let left = left.map_err(|error| Fail::at_start(error.to_string()))?;
        after.session = recorded(&left);
        if ending.is_some() || !wanted.goes_on(&left) {
            return Ok(ending);
        }
        if let Left::Moved { session, to, .. } = &left {
            let moved = moved(*session, &here, to, &mut wanted, &mut env);
            if moved.is_ok() {
                let is_alone = resolve::alone(&wanted.args, &env);
                tokio::select! {
                    biased;
                    ending = signals.next() => return Ok(Some(ending)),
                    asked = ask_there(terminal, &env, is_alone) => asked?,
                }
            }
            wanted.origin = Origin::Moved(moved);
        }
    }
}

/// A session for a terminal that is taken: what there is to say before it is said in it.
fn opening_in(wanted: &Wanting, env: &Env, after: &mut After) -> Result<Opening, Fail> {
    let (made, told) = kept_back(|| opening(wanted, env));
    match made {
        Ok(mut opening) => {
            opening.notices.extend(told);
            Ok(opening)
        }
        Err(fail) => {
            after.untold = told;
            Err(fail)
        }
    }
}

/// The session that was left, if it can be gone on with.
fn recorded(left: &Left) -> Option<Uuid> {
    match left {
        Left::Ended { session, transcript: Some(file) } => file.exists().then_some(*session),
        Left::Branch { session, .. } | Left::Before { session, .. } => Some(*session),
        Left::Moved { session, .. } => *session,
        Left::For { before, .. } => *before,
        _ => None,
    }
}

/// What an interrupt means.
struct Interrupts {
    /// The same as its key, where there are no keys.
    keys: Option<Arc<Notify>>,
    /// Who gives the terminal back before the program stops.
    stops: Arc<Notify>,
    /// Nothing, while another program has the terminal: it was typed there.
    given: Arc<AtomicBool>,
}

/// Stays in a session until it is left, or a signal ends it.
async fn until_left<T>(
    session: impl Future<Output = T>,
    stop: &CancellationToken,
    interrupts: Interrupts,
    signals: &mut Signals,
    stops: &mut Stops,
) -> (T, Option<Ending>) {
    let mut session = std::pin::pin!(session);
    let mut ending = None;
    loop {
        tokio::select! {
            // An interrupt that ends another program, too, is heard before its end: it was typed there.
            biased;
            signal = signals.next() => match &interrupts.keys {
                _ if signal == Ending::Interrupt && interrupts.given.load(Ordering::SeqCst) => {}
                Some(interrupts) if signal == Ending::Interrupt => interrupts.notify_one(),
                _ => {
                    ending.get_or_insert(signal);
                    stop.cancel();
                }
            },
            () = stops.next() => match interrupts.given.load(Ordering::SeqCst) {
                // The program that has the terminal has left it as it should be, and stops, too.
                true => stop_here(),
                false => interrupts.stops.notify_one(),
            },
            left = &mut session => return (left, ending),
        }
    }
}

/// What is wanted of the next session.
struct Wanting {
    /// As it was called.
    given: RunArgs,
    args: RunArgs,
    first: Option<String>,
    draft: Option<Submission>,
    origin: Origin,
    /// What stands from the one before.
    stands: Option<Standing>,
    /// What was spent since the program began, in whichever session.
    counted_usd: f64,
}

/// Where a session comes from.
enum Origin {
    /// It begins here, or is gone on with.
    Opened,
    /// It is a branch of this one.
    Branch(Uuid),
    /// It is gone on with from before this prompt.
    Back(String),
    /// It is gone on with in another directory, or why it could not go there.
    Moved(Result<(), String>),
}

/// Characters of a prompt that is gone back to, where it is named.
const PROMPT_CHARS_TOLD_MAX: usize = 60;

impl Wanting {
    fn of(args: &RunArgs) -> Self {
        let (given, first) = (args.clone(), args.prompt.clone());
        Self {
            given,
            args: args.clone(),
            first,
            draft: None,
            origin: Origin::Opened,
            stands: None,
            counted_usd: 0.0,
        }
    }

    /// Another session than the one before.
    fn for_session(&mut self, id: Uuid) {
        let args = &mut self.args;
        args.resume = Some(id.to_string());
        args.continue_newest = false;
        args.session_id = None;
        args.client.fork_session = false;
        args.client.resume_drops_turn = None;
        args.client.resume_session_at = None;
        (self.first, self.draft, self.stands) = (None, None, None);
        self.origin = Origin::Opened;
    }

    /// What was chosen in the session before holds for the one that takes its place.
    fn take_over(&mut self, stands: &Standing) {
        let args = &mut self.args;
        if let Some(model) = &stands.model {
            args.model = Some(model.clone());
        }
        if let Some(mode) = stands.mode {
            args.permission_mode = Some(said(mode));
            // What was said so may be switched on again, and is not what stands.
            args.client.allow_dangerously_skip_permissions |= args.dangerously_skip_permissions;
            args.dangerously_skip_permissions = false;
        }
        self.stands = Some(stands.clone());
    }

    /// Whether another session follows the one that was left.
    fn goes_on(&mut self, left: &Left) -> bool {
        match left {
            Left::For { wanted, .. } => {
                self.args = self.given.clone();
                self.for_session(*wanted);
                // The name that was given is the first session's.
                self.args.client.name = None;
            }
            Left::Branch { session, name, written, stands } => {
                self.for_session(*session);
                self.take_over(stands);
                self.draft = Some(written.clone());
                self.args.client.fork_session = true;
                self.args.client.name.clone_from(name);
                self.origin = Origin::Branch(*session);
            }
            Left::Before { session, prompt, said, stands } => {
                self.for_session(*session);
                self.take_over(stands);
                self.args.client.name.clone_from(&stands.name);
                self.args.client.resume_drops_turn = Some(*prompt);
                self.draft = Some(said.clone());
                self.origin = Origin::Back(said.shown.clone());
            }
            Left::Moved { session, written, stands, .. } => {
                match session {
                    Some(session) => self.for_session(*session),
                    // Nothing was said yet: another one begins there.
                    None => {
                        (self.args.resume, self.args.continue_newest, self.first) = (None, false, None);
                    }
                }
                self.take_over(stands);
                self.args.client.name.clone_from(&stands.name);
                self.draft = Some(written.clone());
            }
            _ => return false,
        }
        self.counted_usd = left.counted_usd();
        true
    }
}

/// How a mode is said on the command line.
fn said(mode: Mode) -> ModeArg {
    match mode {
        Mode::Default => ModeArg::Default,
        Mode::AcceptEdits => ModeArg::AcceptEdits,
        Mode::Plan => ModeArg::Plan,
        Mode::DontAsk => ModeArg::DontAsk,
        Mode::BypassPermissions => ModeArg::BypassPermissions,
    }
}

/// Asks which session is gone on with.
async fn choose(terminal: &mut Terminal, env: &Env) -> Result<Option<Uuid>, Fail> {
    let cwd = resolve::working_directory()?;
    let sessions = config_dir(env).map(|dir| sessions_of(&dir, &cwd)).unwrap_or_default();
    if sessions.is_empty() {
        return Err(Fail::at_start("there is no session in this directory yet: start one without --resume"));
    }
    let theme = if terminal.is_plain() { Theme::BARE } else { theme(env, &ScreenSettings::default()) };
    Ok(pelton_tui::choose(terminal, theme, sessions).await)
}

fn opening(wanted: &Wanting, env: &Env) -> Result<Opening, Fail> {
    let args = &wanted.args;
    let log = debug::log(args, env, &(Arc::new(RealWorld::new()) as Arc<dyn World>));
    let (mut options, servers, screen) = resolve::options_for_person(args, env)?;
    resolve::work_as_said(&mut options, args)?;
    let may_bypass = resolve::may_bypass(args, env, &options);
    options.heeds_initial_message = false;
    options.budget_spent_usd = Some(wanted.counted_usd);
    options.displays_by_line = true;
    let child_env = options.env.clone();
    let home = Home {
        args: args.clone(),
        env: env.clone(),
        cwd: options.cwd.clone(),
        styles: options.style_names().into_iter().map(str::to_owned).collect(),
    };
    let theme = if args.plain { Theme::BARE } else { theme(env, &screen) };
    let mut opening = Opening::new(options, theme, servers.named_later);
    opening.servers = servers.outside;
    opening.asks_without_servers = servers.are_not_waited_for;
    opening.may_bypass = may_bypass;
    opening.first.clone_from(&wanted.first);
    opening.draft.clone_from(&wanted.draft);
    if args.resume.is_none() && !args.continue_newest {
        opening.greeting =
            Some(format!("Pelton {} · /help tells keys and commands", env!("CARGO_PKG_VERSION")));
    }
    // The terminal has the past already.
    opening.tells_past = matches!(wanted.origin, Origin::Opened);
    match &wanted.origin {
        Origin::Opened => {}
        Origin::Branch(before) => {
            opening.greeting = Some(format!("this is a branch now; back: /resume {before}"));
        }
        Origin::Back(words) => {
            let words = revealed_line(words.lines().next().unwrap_or_default());
            let words: String = words.chars().take(PROMPT_CHARS_TOLD_MAX).collect();
            opening.greeting =
                Some(format!("back to before “{words}”: what was said since does not count any more"));
        }
        Origin::Moved(Ok(())) => {
            opening.greeting = Some(format!("works in {} now", home.cwd.display()));
        }
        Origin::Moved(Err(why)) => {
            opening.greeting = None;
            opening.notices.push(format!("the session stays where it is: {why}"));
        }
    }
    opening.title.clone_from(&args.client.name);
    opening.log = log;
    opening.logs = Some(Arc::new(debug::Wanted { args: args.clone(), env: env.clone() }));
    opening.stands.clone_from(&wanted.stands);
    opening.outside.editor = env.get("VISUAL").or_else(|| env.get("EDITOR")).map(str::to_owned);
    opening.outside.program = std::env::current_exe().ok();
    opening.outside.here = Some(|| std::env::current_dir().ok());
    opening.outside.temp_dir = env.path("TMPDIR").unwrap_or_else(std::env::temp_dir);
    opening.outside.model_answers = screen.answers_shell.unwrap_or(true);
    opening.vim = screen.vim.unwrap_or_default();
    opening.home = Some(Arc::new(home));
    opening.question_time = question_time(env, &screen)?;
    if let Some(ms) = env.number("PELTON_IDLE_NOTICE_MS")? {
        opening.idle_after = Duration::from_millis(ms);
    }
    opening.status = screen.status_command.map(|command| {
        let mut status = StatusCommand::new(command, child_env);
        status.padding = screen.status_padding.unwrap_or_default();
        status.refresh = screen.status_refresh_s.map(Duration::from_secs);
        status
    });
    Ok(opening)
}

/// Moves a session to another directory, and this program with it, from where it was when it began. If that cannot be done, everything is as
/// it was.
fn moved(
    session: Option<Uuid>,
    here: &Path,
    to: &Path,
    wanted: &mut Wanting,
    env: &mut Env,
) -> Result<(), String> {
    // That directory may be gone, or be called something else now.
    let from = resolve::working_directory().unwrap_or_else(|_| here.to_owned());
    let config_dir = config_dir(env).filter(|dir| dir.is_absolute() || session.is_none());
    if config_dir.is_none() && session.is_some() {
        return Err("its record is named from here: set CLAUDE_CONFIG_DIR to a whole path".to_owned());
    }
    let record = config_dir.zip(session).and_then(|(dir, session)| {
        Some((find_session(&dir, here, session)?, session_file(&dir, to, session)))
    });
    let record = record.filter(|(record, there)| record != there);
    if let Some((record, there)) = &record {
        move_to(record, there).map_err(|error| format!("its record cannot be moved: {error}"))?;
    }
    if let Err(error) = std::env::set_current_dir(to) {
        // It is found by its name wherever it is, if it cannot go back.
        let _ = record.map(|(record, there)| move_to(&there, &record));
        return Err(format!("{}: {error}", to.display()));
    }
    wanted.args.whole_paths(&from);
    wanted.given.whole_paths(&from);
    env.goes_to(to);
    Ok(())
}

/// Asks what is asked about a directory at the start of a session, in the terminal that a session has. What there is to say about its
/// files is said when the session opens there.
async fn ask_there(terminal: &mut Terminal, env: &Env, is_alone: bool) -> Result<(), Fail> {
    let theme = if terminal.is_plain() { Theme::BARE } else { theme(env, &ScreenSettings::default()) };
    if let Some(Unasked { trust, told }) = kept_back(|| unasked(env)).0?
        && pelton_tui::confirm(
            terminal,
            theme,
            &told,
            "Trust it, and all that is in it",
            "Go on without these",
        )
        .await
        && !trust.hold_for_now()
    {
        trust.say(env, true).map_err(|error| not_kept(&error))?;
    }
    if !is_alone && let Some((trust, told)) = kept_back(|| unasked_imports(env)).0? {
        let wanted =
            pelton_tui::confirm(terminal, theme, &told, "The model reads them", "They are left out").await;
        let said = if wanted { Imports::Approved } else { Imports::Refused };
        trust.say_of_imports(env, said).map_err(|error| not_kept(&error))?;
    }
    Ok(())
}

/// A directory that nobody was asked about.
struct Unasked {
    trust: Trust,
    /// What it would add to a session.
    told: String,
}

/// Asks about a directory that would add something to a session, before anything of it is used. What was typed before the
/// question is no answer to it.
fn ask_for_trust(env: &Env) -> Result<(), Fail> {
    // What there is to say about its files is said when the session opens.
    let Some(Unasked { trust, mut told }) = kept_back(|| unasked(env)).0? else { return Ok(()) };
    told.push_str("\nTrust it, and all that is in it? If not, a session goes on without. [y/N] ");
    if is_yes(&told)? && !trust.hold_for_now() {
        trust.say(env, true).map_err(|error| not_kept(&error))?;
    }
    Ok(())
}

fn unasked(env: &Env) -> Result<Option<Unasked>, Fail> {
    let dir = resolve::working_directory()?;
    let trust = Trust::in_dir(env, &dir);
    let new = trust.new_settings(env);
    let mut new_servers = trust.told_servers(env);
    new_servers.retain(|(_, approval)| *approval != Approval::Given);
    let adds = resolve::would_add(env, &dir);
    if adds.is_empty() || (trust.is_given() && new.is_empty() && new_servers.is_empty()) {
        return Ok(None);
    }
    // What a repository brings is shown as it is, each on a line of its own, and cannot move the cursor.
    let root = revealed_line(&trust.root().to_string_lossy());
    let mut told = format!("{root} is not trusted as it is now. What it would add to a session:\n\n");
    let mut tell = |line: &str| told.push_str(&format!("  {}\n", revealed_line(line)));
    match trust.is_given() {
        true => {
            new.iter().for_each(|power| tell(&power.told()));
            new_servers.iter().for_each(|(told, _)| tell(told));
        }
        false => adds.iter().for_each(|line| tell(line)),
    }
    Ok(Some(Unasked { trust, told }))
}

/// Asks once whether instruction files of the directory may import others from outside of it.
fn ask_about_imports(env: &Env) -> Result<(), Fail> {
    let Some((trust, mut told)) = unasked_imports(env)? else { return Ok(()) };
    told.push_str("\nIs the model to read them? Without that they are left out. [y/N] ");
    let said = if is_yes(&told)? { Imports::Approved } else { Imports::Refused };
    trust.say_of_imports(env, said).map_err(|error| not_kept(&error))
}

/// The imports that nobody was asked about, in words.
fn unasked_imports(env: &Env) -> Result<Option<(Trust, String)>, Fail> {
    let trust = Trust::in_dir(env, &resolve::working_directory()?);
    let imports = trust.new_imports(env);
    let told = format!(
        "Instruction files here import others from outside of this directory:\n\n{}",
        told_imports(&imports)
    );
    Ok((!imports.is_empty()).then_some((trust, told)))
}

fn not_kept(error: &str) -> Fail {
    Fail::new(format!("the answer cannot be kept: {error}"))
}

/// Asks before there is a screen. What of the question others wrote must not be able to move the cursor.
fn is_yes(question: &str) -> Result<bool, Fail> {
    let mut out = std::io::stdout();
    let failed = |error: std::io::Error| Fail::new(format!("cannot ask about this directory: {error}"));
    // What was typed before there was a question answers none; what is typed once it can be seen does. A terminal that cannot forget
    // is asked all the same.
    let _ = tcflush(std::io::stdin(), FlushArg::TCIFLUSH);
    out.write_all(question.as_bytes()).and_then(|()| out.flush()).map_err(failed)?;
    // Nobody listens for signals yet: until there is an answer they end the program, as anybody expects of a question.
    signals::release();
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    signals::hold();
    read.map_err(failed)?;
    Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

fn theme(env: &Env, screen: &ScreenSettings) -> Theme {
    let wanted = screen.theme.as_deref().map(|name| {
        Wanted::named(name).unwrap_or_else(|| {
            tell(&format!("warning: there is no theme '{name}' (one of {})", Wanted::NAMES.join(", ")));
            Wanted::default()
        })
    });
    Theme::new(surroundings(env), wanted.unwrap_or_default())
}

/// How long questions of the model's wait for somebody who does nothing. The variable says how long, not whether.
fn question_time(env: &Env, screen: &ScreenSettings) -> Result<Option<Duration>, Fail> {
    let set = screen.question_time.and_then(Patience::time);
    let said = env.number("CLAUDE_AFK_TIMEOUT_MS")?.map(Duration::from_millis);
    Ok(set.map(|set| said.unwrap_or(set)))
}

fn surroundings(env: &Env) -> Surroundings<'_> {
    Surroundings {
        term: env.get("TERM"),
        colorterm: env.get("COLORTERM"),
        no_color: env.get("NO_COLOR"),
        colorfgbg: env.get("COLORFGBG"),
    }
}

/// What the terminal does with long lines when it gets narrower. Of those nobody knows it is better not to assume it:
/// taking too many rows for its own would cost words that were said.
fn on_narrowing(env: &Env) -> OnNarrowing {
    const SIGNS: [&str; 7] = [
        "VTE_VERSION",
        "KITTY_WINDOW_ID",
        "ALACRITTY_WINDOW_ID",
        "KONSOLE_VERSION",
        "WT_SESSION",
        "WEZTERM_PANE",
        "GHOSTTY_RESOURCES_DIR",
    ];
    const PROGRAMS: [&str; 5] = ["iTerm.app", "Apple_Terminal", "vscode", "WezTerm", "ghostty"];
    let is_of = |name: &str| env.get("TERM").is_some_and(|term| term.starts_with(name));
    let program = env.get("TERM_PROGRAM");
    if env.get("TMUX").is_some() || program == Some("tmux") || is_of("tmux") {
        return OnNarrowing::ReflowsBeforeTelling;
    }
    let reflows = SIGNS.iter().any(|sign| env.get(sign).is_some())
        || program.is_some_and(|program| PROGRAMS.contains(&program))
        || is_of("foot");
    if reflows { OnNarrowing::Reflows } else { OnNarrowing::Cuts }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Args;

    fn wanting(words: &[&str]) -> Wanting {
        Wanting::of(&Args::parse_from(["pelton"].iter().chain(words)).run)
    }

    fn went_back(name: Option<&str>, mode: Option<Mode>, counted_usd: f64) -> Left {
        let mut stands = Standing::default();
        (stands.name, stands.model) = (name.map(str::to_owned), Some("chosen".to_owned()));
        (stands.mode, stands.counted_usd) = (mode, counted_usd);
        let said = Submission { text: String::new(), shown: String::new(), images: Vec::new() };
        Left::Before { session: Uuid::nil(), prompt: Uuid::nil(), said, stands }
    }

    #[test]
    fn what_was_chosen_and_spent_holds_where_one_goes_back_to() {
        let mut wanted = wanting(&["--name", "Old", "--model", "given", "--max-budget-usd", "2"]);
        assert!(wanted.goes_on(&went_back(Some("New"), Some(Mode::Plan), 0.5)));
        let args = &wanted.args;
        assert_eq!((args.client.name.as_deref(), args.model.as_deref()), (Some("New"), Some("chosen")));
        assert_eq!((args.permission_mode, args.max_budget_usd), (Some(ModeArg::Plan), Some(2.0)));
        assert_eq!(wanted.counted_usd, 0.5);
        wanted.goes_on(&went_back(None, None, 9.0));
        assert_eq!(wanted.args.permission_mode, Some(ModeArg::Plan), "what was taken over before stays");
        // Another session has none of it, and not the name of this one.
        wanted.goes_on(&Left::For { wanted: Uuid::nil(), before: None, counted_usd: 9.5 });
        let args = &wanted.args;
        assert_eq!((args.client.name.as_deref(), args.model.as_deref()), (None, Some("given")));
        assert_eq!((args.permission_mode, args.max_budget_usd), (None, Some(2.0)));
        assert_eq!(wanted.counted_usd, 9.5, "what was spent is spent, wherever one goes");
    }

    #[test]
    fn asking_again_after_bypassing_is_taken_over_and_can_be_left_again() {
        let mut wanted = wanting(&["--dangerously-skip-permissions"]);
        wanted.goes_on(&went_back(None, Some(Mode::Default), 0.0));
        let args = &wanted.args;
        assert_eq!(args.permission_mode, Some(ModeArg::Default));
        assert!(!args.dangerously_skip_permissions && args.client.allow_dangerously_skip_permissions);
    }
}
