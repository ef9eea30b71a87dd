//! What was said, by flags, environment and settings files, becomes what is meant: complete `Options`. The only place
//! that reads the environment.

mod agents; // which agents there are, and which one works
pub(crate) mod compact; // from where on the context is made smaller
mod configured; // everything that is configured, for whoever looks through it
mod credentials; // who pays
mod env; // what the process was given
mod key_program; // the program that prints a key
mod keeper; // changes of what may run, written to settings files
mod layers; // which settings files count, and what of them
mod logins; // logins at servers of tools
mod home; // settings files, for the client that drives a session
mod limits; // how often, how long, how much
mod memory; // what the model is told of the project and its user
mod mcp; // who serves tools
mod models; // which models, and how hard they try
mod manner; // how it answers, and as whom it works
mod network; // which server, by which road
mod permission; // what may run
mod plans; // where plans are kept
mod plugins; // which plugins count
mod repository; // the git repository around a directory
mod sandbox; // the box commands run in
mod trust; // whether a directory is trusted
mod watch; // settings files that change while a session runs
mod skills; // what users and the model call by name
pub(crate) mod sessions; // where sessions are kept, and which one goes on

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use pelton::Options;
use pelton::permission::{Mode, Permissions};
use pelton::settings::{Patience, PluginSettings, ScreenSettings, Settings, Watched};
use pelton::tools::{AgentDefinition, asking_with_html};
use pelton::transcript::find_session;
use pelton_mcp::Server;
use pelton_model::{Auth, Endpoint, HttpTransport};

pub(crate) use self::configured::{configured, layers_here};
pub(crate) use self::credentials::{LOGIN_FILE, LOGIN_KEY, Payer};
pub(crate) use self::env::Env;
pub(crate) use self::home::Home;
pub(crate) use self::layers::{Layer, text_of};
use self::limits::{calls, limits};
pub(crate) use self::manner::work_as_said;
pub(crate) use self::mcp::Servers;
use self::network::{endpoint, http_options};
use self::permission::{keep_tools, permissions};
pub(crate) use self::plugins::{INSTALLED, KNOWN, LIST, LIST_BYTES_MAX, Lists, Place, folder_at, json_in};
use self::repository::Repository;
pub(crate) use self::sessions::config_dir;
use self::sessions::{resumed, sessions};
pub(crate) use self::trust::{Imports, STATE_BYTES_MAX, Trust, back_up, state_file, told_imports};
use self::watch::{AgentTerms, SettingsOnDisk};
use crate::args::RunArgs;
use crate::fail::{Fail, tell};

/// The tools of a bare run.
const BARE_TOOLS: [&str; 3] = ["Bash", "Read", "Edit"];

/// Whether everything is left out that a directory or a user has set up around the model.
pub(crate) fn bare(args: &RunArgs, env: &Env) -> bool {
    args.bare || env.is_on("CLAUDE_CODE_SIMPLE")
}

/// Whether nothing counts of what files set up around the model, but for rules and the administrator's word.
pub(crate) fn safe(args: &RunArgs, env: &Env) -> bool {
    args.safe_mode || env.is_on("CLAUDE_CODE_SAFE_MODE")
}

/// Whether nothing that files bring is added to the model and its tools, for either reason.
pub(crate) fn alone(args: &RunArgs, env: &Env) -> bool {
    bare(args, env) || safe(args, env)
}

/// Everything the engine needs to know, who pays for it, and who serves tools. The servers are not among the options yet:
/// whoever runs the session says when they are connected to.
pub(crate) fn options(args: &RunArgs, env: &Env) -> Result<(Options, Payer, Servers), Fail> {
    let (options, payer, servers, _) = options_for_whom(args, env, Watched::Unattended)?;
    Ok((options, payer, servers))
}

/// The same for somebody in front of a terminal, and how that looks.
pub(crate) fn options_for_person(
    args: &RunArgs,
    env: &Env,
) -> Result<(Options, Servers, ScreenSettings), Fail> {
    let (mut options, _, servers, screen) = options_for_whom(args, env, Watched::Interactive)?;
    // Whoever could answer is here.
    options.may_defer = false;
    Ok((options, servers, screen))
}

fn options_for_whom(
    args: &RunArgs,
    env: &Env,
    watched: Watched,
) -> Result<(Options, Payer, Servers, ScreenSettings), Fail> {
    let ignored = args.elsewhere.ignored();
    if !ignored.is_empty() {
        tell(&format!("warning: {} means nothing here, and is ignored", ignored.join(", ")));
    }
    let cwd = working_directory()?;
    let project = config_root(args, &cwd)?;
    let files = layers::Files::around(env, &project);
    let settings = layers::settings(args, env, &cwd, watched)?;
    let screen = settings.screen.clone();
    let before_settings = env.clone();
    let env = env.clone().with(&settings.env);
    keep_environment_from_others(&env);
    let payer = Payer::found(&env, &settings)?;
    let memory = memory::memory(args, &env, &settings.memory, &cwd)?;
    let skills = skills::skills(args, &env, &settings, &cwd, watched)?;
    let (mut plugins, plugin_errors) = plugins::plugins(args, &env, (&cwd, &project), &settings.plugins);
    plugins::tell_of(&plugin_errors);
    plugins::keep_what_was_seen(&mut plugins, &env, &project, watched);
    let named = mcp::servers(args, &env, &cwd, &settings, &plugins, watched)?;
    let brought_hooks_off = settings.brought_hooks_off;
    let plugins_only = settings.policy.plugins_only.unwrap_or_default();
    let manner = settings.manner.clone();
    let restrictions_unknown = settings.restrictions_unknown;
    let git_state = settings.memory.git.unwrap_or(true) && !bare(args, &env);
    let mut options = resolved(args, &env, settings, &cwd, endpoint(args, &env)?)?;
    options.memory = memory;
    options.project_dir = Some(project.clone()).filter(|project| *project != cwd);
    options.git_state = git_state;
    let terms = AgentTerms { managed_only: plugins_only.agents, without_hooks: brought_hooks_off };
    let watch =
        Arc::new(SettingsOnDisk::of(args, &before_settings, &cwd, watched, terms, restrictions_unknown));
    options.keeper = Some(Arc::new(keeper::SettingsFiles { files, watch: Arc::clone(&watch) }));
    options.skills = skills;
    let described = skills::agents(args, &env, &project, watched, plugins_only.agents)?;
    described.tell();
    let mut described = described.agents;
    if brought_hooks_off {
        let all = described.iter_mut().chain(&mut options.agents);
        all.for_each(|agent| agent.hooks = None);
    }
    watch.take_agents_for_seen(&described);
    options.settings_watch = Some(watch);
    add_agents(&mut options, described);
    plugins::add(&mut options, plugins);
    options.plugin_errors = plugin_errors;
    manner::choose_style(&mut options, args, &env, &project, manner.output_style.as_deref())?;
    if !alone(args, &env) {
        manner::work_as(&mut options, args, manner.agent);
    }
    if watched == Watched::Unattended {
        let said = env.number("CLAUDE_CODE_USER_DIALOG_TIMEOUT_MS")?.map(Duration::from_millis);
        options.questions_time = said.or(screen.dialog_time.and_then(Patience::time));
    }
    options.api_key_source = payer.source();
    options.setting_sources = layers::Sources::said(args.setting_sources.as_deref())?.names();
    payer.pay_at(&mut options.endpoint, &env, &cwd, &options.transport, &options.world)?;
    let servers = named.in_place(&options, &env)?;
    options.server_maker = Some(Arc::new(servers.of_agents.clone()));
    Ok((options, payer, servers, screen))
}

/// Agents that files describe come behind those that are always there, and take the place of one with their name. What the
/// command line says of an agent counts before them.
fn add_agents(options: &mut Options, described: Vec<AgentDefinition>) {
    options.agents.retain(|agent| !described.iter().any(|described| described.name == agent.name));
    options.agents.extend(described);
}

/// The same, for a server that is known already, and whatever settings there are.
pub(crate) fn options_for(args: &RunArgs, env: &Env, endpoint: Endpoint) -> Result<Options, Fail> {
    resolved(args, env, Settings::default(), &working_directory()?, endpoint)
}

/// A session that asks no model.
pub(crate) fn without_model(args: &RunArgs, env: &Env) -> Result<Options, Fail> {
    let cwd = working_directory()?;
    let settings = layers::settings(args, env, &cwd, Watched::Unattended)?;
    let env = env.clone().with(&settings.env);
    resolved(args, &env, settings, &cwd, Endpoint::new("http://127.0.0.1", Auth::None))
}

/// The servers of tools that a session started here would have.
pub(crate) fn servers(args: &RunArgs, env: &Env) -> Result<Vec<Arc<Server>>, Fail> {
    let cwd = working_directory()?;
    let settings = layers::settings(args, env, &cwd, Watched::Unattended)?;
    let env = env.clone().with(&settings.env);
    let project = config_root(args, &cwd)?;
    let (plugins, errors) = plugins::plugins(args, &env, (&cwd, &project), &settings.plugins);
    plugins::tell_of(&errors);
    let named = mcp::servers(args, &env, &cwd, &settings, &plugins, Watched::Unattended)?;
    let options = Options::new(&cwd, Endpoint::new("http://127.0.0.1", Auth::None));
    named.in_place(&options, &env).map(|servers| servers.outside)
}

/// What settings say about plugins here, and the file of the user, the project, and the user's for the project that says it.
pub(crate) fn plugin_settings(
    args: &RunArgs,
    env: &Env,
    cwd: &Path,
) -> Result<(PluginSettings, SettingsFileNames), Fail> {
    let settings = layers::settings(args, env, cwd, Watched::Unattended)?;
    let layers::Files { user, project, local, .. } = layers::Files::around(env, cwd);
    Ok((settings.plugins, SettingsFileNames { user, project, local }))
}

/// Where settings are written.
pub(crate) struct SettingsFileNames {
    pub user: Option<PathBuf>,
    pub project: PathBuf,
    pub local: PathBuf,
}

/// Who pays for a session that is started here, as far as anybody can say without asking a server.
pub(crate) fn payer(args: &RunArgs, env: &Env) -> Result<Payer, Fail> {
    let settings = layers::settings(args, env, &working_directory()?, Watched::Unattended)?;
    Payer::found(&env.clone().with(&settings.env), &settings)
}

/// Where the project's own configuration is: where the run is, unless somebody names the checkout that they trust.
pub(super) fn config_root(args: &RunArgs, cwd: &Path) -> Result<PathBuf, Fail> {
    let Some(root) = &args.client.project_config_root else { return Ok(cwd.to_owned()) };
    let usable = root.is_absolute() && root.is_dir();
    if !usable {
        let root = root.display();
        return Err(Fail::at_start(format!(
            "--project-config-root {root} is no directory by its whole path"
        )));
    }
    root.canonicalize().map_err(|error| {
        Fail::at_start(format!("--project-config-root {} cannot be read: {error}", root.display()))
    })
}

/// The directory that a project begins in.
pub(crate) fn project_root(cwd: &Path) -> PathBuf {
    Repository::around(cwd).map_or_else(|| cwd.to_path_buf(), |repository| repository.root)
}

/// What may run in a session that was started here, and where that is.
pub(crate) fn rights(args: &RunArgs, env: &Env) -> Result<(Permissions, PathBuf), Fail> {
    let cwd = working_directory()?;
    let settings = layers::settings(args, env, &cwd, Watched::Unattended)?;
    let env = env.clone().with(&settings.env);
    let mut options = Options::new(&cwd, Endpoint::new("http://127.0.0.1", Auth::None));
    options.home = env.path("HOME");
    permissions(&mut options, args, &env, &settings)?;
    let Options { rules, mode, additional_dirs, home, .. } = options;
    Ok((Permissions::new(rules, mode, cwd.clone(), additional_dirs, home), cwd))
}

/// What a directory would add to a session once it is trusted, in words.
pub(crate) fn would_add(env: &Env, dir: &Path) -> Vec<String> {
    trust::would_add(&layers::Files::around(env, dir).brought(), env, dir)
}

/// Whether a client may switch all permissions off while the session runs.
pub(crate) fn may_bypass(args: &RunArgs, env: &Env, options: &Options) -> bool {
    let said = args.client.allow_dangerously_skip_permissions || options.mode == Mode::BypassPermissions;
    said && !options.rules.never_bypass && permission::may_bypass_here(env)
}

/// Where programs get no keys from the environment, they do not read them from that of this process, either. Whoever may read everything
/// still does.
fn keep_environment_from_others(env: &Env) {
    #[cfg(target_os = "linux")]
    if env.is_on("CLAUDE_CODE_SUBPROCESS_ENV_SCRUB") {
        // Where the kernel refuses, nothing is worse than before.
        let _ = nix::sys::prctl::set_dumpable(false);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = env;
}

pub(crate) fn working_directory() -> Result<PathBuf, Fail> {
    std::env::current_dir().map_err(|error| {
        Fail::at_start(format!("cannot read the working directory: {error} (change to one that exists)"))
    })
}

fn resolved(
    args: &RunArgs,
    env: &Env,
    settings: Settings,
    cwd: &Path,
    endpoint: Endpoint,
) -> Result<Options, Fail> {
    let mut options = Options::new(cwd, endpoint);
    options.transport = Arc::new(HttpTransport::new(http_options(env)?));
    options.home = env.path("HOME");
    options.model_choice = models::choice(&settings);
    (options.model, options.planner) = models::first_models(args, env, &settings, &options.model_choice)?;
    options.model_is_named = models::is_named(args, &settings);
    options.fallback_models = models::fallbacks(args, env, &settings);
    options.endpoint.model_ids.clone_from(&settings.models.ids);
    (options.cache, options.agents_cache) = models::cache(env, &settings);
    options.uncached_models = models::uncached(env);
    options.agent_model = env.get("CLAUDE_CODE_SUBAGENT_MODEL").map(str::to_owned);
    options.small_model = models::small(env);
    options.tool_use_summaries =
        args.tool_use_summaries && !env.is_on("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC");
    options.effort = models::effort(args, env, &settings)?;
    options.effort_max = settings.models.effort_max;
    options.thinking = models::thinking(args, env, &settings)?;
    options.thinking_display = models::thinking_display(args, &settings);
    options.fast_mode = settings.fast_mode.unwrap_or(false) && settings.fast_mode_for_this_run != Some(true);
    options.system_prompt.language.clone_from(&settings.manner.language);
    options.system_prompt.attribution = settings.manner.attribution.clone();
    options.http_hooks = settings.http_hooks.clone();
    options.setup = args.client.setup();
    options.bundled_skills = settings.skills.bundled_off != Some(true);
    options.worktrees.base = settings.worktrees.base.unwrap_or_default();
    options.worktrees.linked_directories.clone_from(&settings.worktrees.linked_directories);
    options.worktrees.sparse_paths.clone_from(&settings.worktrees.sparse_paths);
    options.task_budget = args.task_budget;
    options.max_output_tokens =
        env.number::<NonZeroU32>("CLAUDE_CODE_MAX_OUTPUT_TOKENS")?.map(NonZeroU32::get);
    options.window_tokens = env.number("CLAUDE_CODE_MAX_CONTEXT_TOKENS")?;
    options.compact = compact::compact(args, env, &settings.compact)?;
    options.system_prompt.custom =
        said_or_in(&args.system_prompt, args.client.system_prompt_file.as_deref(), cwd)?;
    options.system_prompt.appended =
        said_or_in(&args.append_system_prompt, args.client.append_system_prompt_file.as_deref(), cwd)?;
    options.system_prompt.shared = args.exclude_dynamic_system_prompt_sections;
    options.agents_appended.clone_from(&args.append_subagent_system_prompt);
    options.agents = agents::with_said(options.agents, args, cwd)?;
    if let Some(names) = &args.tools {
        keep_tools(&mut options, args, names)?;
    }
    if env.get("CLAUDE_CODE_QUESTION_PREVIEW_FORMAT") == Some("html") {
        let html = asking_with_html();
        if let Some(tool) = options.tools.iter_mut().find(|tool| tool.spec().name == html.spec().name) {
            *tool = html;
        }
    }
    options.todo_tools = permission::todo_tools(args, env);
    options.tool_search = permission::tool_search(env)?;
    permissions(&mut options, args, env, &settings)?;
    let roots: Vec<PathBuf> =
        std::iter::once(cwd.to_path_buf()).chain(options.additional_dirs.clone()).collect();
    options.sandbox = sandbox::sandbox(&settings.sandbox, env, cwd, options.home.as_deref(), &roots)?;
    options.max_budget_usd = budget(args)?;
    options.strict_budget = args.strict_budget;
    let file_history_limits = sessions::file_history_limits(&settings);
    options.prices = settings.prices.into_iter().collect();
    options.json_schema = schema(args)?;
    options.limits.turns_max = match args.max_turns {
        Some(turns) => Some(turns),
        None => env.number("CLAUDE_CODE_MAX_TURNS")?,
    };
    options.limits.output_tokens_wanted = args.token_budget;
    limits(&mut options, env, &settings.retry, settings.output)?;
    options.file_suggestion.clone_from(&settings.tools.file_suggestion);
    options.suggest_ignored = settings.tools.respect_gitignore == Some(false);
    options.plans_dir = match (&settings.tools.plans_dir, args.no_session_persistence) {
        // Whoever wants nothing to be written gets only what is asked for by name.
        (None, true) => None,
        _ => plans::plans_dir(&settings.tools, env, cwd),
    };
    calls(&mut options, args, settings.turns);
    let may_go_on_in_its_mode =
        args.is_attended() && settings.policy.mode.is_none() && !settings.restrictions_unknown;
    options.hooks = settings.hooks;
    if bare(args, env) {
        // Nothing but the model and what works on files.
        options.agents.clear();
        if args.tools.is_none() {
            options.tools.retain(|tool| BARE_TOOLS.contains(&tool.spec().name));
        }
    }
    // Every run here is one of a single prompt: whoever puts a call off resumes it with another.
    options.may_defer = true;
    options.attaches_mentioned = !env.is_on("CLAUDE_CODE_DISABLE_ATTACHMENTS");
    options.env = env.all();
    options.env.push(("CLAUDE_PID".into(), std::process::id().to_string().into()));
    options.temp_dir = env.path("TMPDIR").unwrap_or(options.temp_dir);
    options.session_id = args.session_id;
    let entrypoint = if args.is_attended() { "cli" } else { "sdk-cli" };
    options.entrypoint = env.get("CLAUDE_CODE_ENTRYPOINT").unwrap_or(entrypoint).to_owned();
    let is_kept = !args.no_session_persistence && !env.is_on("CLAUDE_CODE_SKIP_PROMPT_HISTORY");
    options.sessions = if is_kept { sessions(args, env, settings.durability) } else { None };
    let checkpointing = settings.file_checkpointing.unwrap_or(true);
    if checkpointing && !env.is_on("CLAUDE_CODE_DISABLE_FILE_CHECKPOINTING") {
        options.file_history = Some(file_history_limits);
    }
    if args.session_id.is_some()
        && !args.client.fork_session
        && (args.resume.is_some() || args.continue_newest)
    {
        return Err(Fail::new(
            "--session-id cannot be used together with --resume or --continue unless --fork-session is given, too",
        ));
    }
    options.resume = resumed(args, env, &options)?;
    options.is_fork = args.client.fork_session;
    models::go_on(&mut options, args, env);
    if may_go_on_in_its_mode {
        permission::go_on(&mut options, args);
    }
    if let (Some(id), Some(sessions), None) = (args.session_id, &options.sessions, &options.resume)
        && find_session(&sessions.config_dir, cwd, id).is_some()
    {
        return Err(Fail::at_start(format!("session {id} exists already: go on with it by --resume {id}")));
    }
    Ok(options)
}

/// A text that was said, or that is in a file.
fn said_or_in(said: &Option<String>, file: Option<&Path>, cwd: &Path) -> Result<Option<String>, Fail> {
    let Some(file) = file else { return Ok(said.clone()) };
    let file = cwd.join(file);
    std::fs::read_to_string(&file).map(Some).map_err(|error| {
        Fail::at_start(format!("cannot read the system prompt in {}: {error}", file.display()))
    })
}

fn budget(args: &RunArgs) -> Result<Option<f64>, Fail> {
    match args.max_budget_usd {
        Some(usd) if !(usd.is_finite() && usd > 0.0) => Err(Fail::new(format!(
            "--max-budget-usd {usd} is not an amount: write one above 0, such as 2.50"
        ))),
        budget => Ok(budget),
    }
}

fn schema(args: &RunArgs) -> Result<Option<serde_json::Value>, Fail> {
    let Some(text) = args.json_schema.as_deref().filter(|text| !text.trim().is_empty()) else {
        return Ok(None);
    };
    let schema = serde_json::from_str(text)
        .map_err(|error| Fail::new(format!("--json-schema is not JSON: {error}")))?;
    Ok(Some(schema))
}
