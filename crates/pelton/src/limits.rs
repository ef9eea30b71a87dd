//! Every number that bounds something, in one place. What is a setting is a field with a default; what is a law
//! of the house is a constant.

use std::time::Duration;

/// Connections of one command through the proxy of its box at one time.
pub(crate) const PROXY_CONNECTIONS_MAX: usize = 64;
/// Bytes of the head of a request to that proxy.
pub(crate) const PROXY_HEAD_BYTES_MAX: usize = 16 * 1024;
/// How long it may take to reach a host.
pub(crate) const PROXY_CONNECT_TIME_MAX: Duration = Duration::from_secs(30);
/// Refused hosts that are remembered for the result.
pub(crate) const PROXY_REFUSALS_MAX: usize = 20;

/// Events waiting for a slow reader before the run itself waits.
pub const EVENTS_QUEUED_MAX: usize = 256;
/// The most bytes of a file that says what a plugin brings.
pub const PLUGIN_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Progress reports of tools waiting to be told; more are lost.
pub const REPORTS_QUEUED_MAX: usize = 64;
/// News of questions beside the conversation waiting to be told. All that can be asked at once cannot fail as often between two looks.
pub const BESIDE_QUEUED_MAX: usize = 1_024;
/// Concurrency-safe calls running at once, unless the options say otherwise.
pub const TOOL_CALLS_RUNNING_MAX: usize = 10;
/// Tokens an answer may have when nothing is known of the model.
pub const OUTPUT_TOKENS_UNKNOWN_MODEL: u32 = 32_000;
/// The context window assumed when nothing is known of the model, in tokens.
pub const WINDOW_TOKENS_UNKNOWN_MODEL: u64 = 200_000;
/// Models asked in place of one that does not answer.
pub const FALLBACK_MODELS_MAX: usize = 3;
/// Tokens that must be left of the window for an answer before the model is asked.
pub const ANSWER_TOKENS_MIN: u64 = 3_000;
/// Tokens of the window that are reserved for an answer, however long answers may be.
pub const OUTPUT_TOKENS_RESERVED_MAX: u64 = 20_000;
/// Tokens a summary of a conversation may have.
pub const CONVERSATION_SUMMARY_TOKENS_MAX: u32 = 16_000;
/// How often a summary is asked for again because the conversation was too long to be summed up.
pub const CONVERSATION_SUMMARY_CUTS_MAX: u8 = 4;
/// Tokens a fold of a finished stretch may have.
pub const FOLD_TOKENS_MAX: u32 = 2_000;
/// Files that are copied into an agent's worktree besides those in the repository.
pub const WORKTREE_FILES_COPIED_MAX: usize = 1_000;
/// How often hooks that nobody waited for may wake a session before somebody says something again.
pub const HOOK_WAKES_MAX: u32 = 8;
/// How often an agent that looks around for a hook may ask the model.
pub const HOOK_AGENT_TURNS_MAX: u32 = 50;
/// Characters of a stretch that the model that folds it is shown, and of each thing said in it.
pub const FOLD_SHOWN_CHARS_MAX: usize = 200_000;
pub const FOLD_PIECE_CHARS_MAX: usize = 4_000;
/// Folds that are ready and not used yet.
pub const FOLDS_STAGED_MAX: usize = 16;
/// Files shown again after a compaction, and what they may take of the room in percent.
pub const FILES_REATTACHED_MAX: usize = 5;
pub const FILES_REATTACHED_PERCENT_MAX: u8 = 10;
/// Characters of one of them.
pub const FILE_REATTACHED_CHARS_MAX: usize = 20_000;
/// Characters of an approved plan, and of a request, that are shown again.
pub const PLAN_REATTACHED_CHARS_MAX: usize = 20_000;
pub const REQUEST_REATTACHED_CHARS_MAX: usize = 20_000;
/// Files, and texts of skills, that a session knows of from its earlier processes.
pub const FILES_KEPT_MAX: usize = 20;
pub const SKILLS_KEPT_MAX: usize = 50;
/// Skills that one prompt may call, one behind the other.
pub const SKILLS_STACKED_MAX: usize = 6;
/// Characters that are left of a result that has to be cut because nothing else can go.
pub const RESULT_CUT_CHARS: usize = 1_000;
/// Bytes of a request beyond which images and documents go, and down to which.
pub const REQUEST_BYTES_MAX: usize = 30_000_000;
pub const REQUEST_BYTES_KEPT: usize = 24_000_000;
/// Images beyond which the API wants each to be small.
pub const IMAGES_LARGE_MAX: usize = 20;
/// Tokens an answer must be able to have before a call is worth its prompt, where money bounds them.
pub const OUTPUT_TOKENS_AFFORDED_MIN: u32 = 1_024;
/// Tokens a server may add to a prompt by itself: what it tells the model about tools, and what frames messages.
pub const PROMPT_TOKENS_UNSEEN_MAX: u64 = 1_024;
/// Servers of tools in one session.
pub const SERVERS_MAX: usize = 256;
/// Things to read that are listed by one call.
pub const RESOURCES_LISTED_MAX: usize = 1_000;
/// Tools of one server that are offered.
pub const SERVED_TOOLS_MAX: usize = 1_024;
/// Characters of a tool's name that the API takes.
pub const SERVED_NAME_CHARS_MAX: usize = 128;
/// Prompts that wait while the engine is busy, and their bytes: no request may have more.
pub const QUEUED_PROMPTS_MAX: usize = 64;
pub const QUEUED_BYTES_MAX: usize = 32_000_000;
/// Files and directories that one prompt can mention.
pub const MENTIONS_MAX: usize = 32;
/// Names listed of a directory that a prompt mentions.
pub const DIRECTORY_NAMES_LISTED_MAX: usize = 1_000;
/// One line of the transcript. A longer one is written by reference, never read whole.
pub const TRANSCRIPT_LINE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// A text of a transcript line that is at least so long is kept beside it, in bytes.
pub const BLOB_BYTES_MIN: usize = 64 * 1024;
/// Bytes read at either end of a session's file to say what it is about. The SDKs look as far.
pub const SESSION_FACTS_BYTES_MAX: usize = 64 * 1024;
/// Characters of a prompt that a list of sessions shows.
pub const SESSION_WORDS_CHARS_MAX: usize = 200;
/// Times a session's file is opened anew because it was taken away in the same moment.
pub const SESSION_OPENED_TIMES_MAX: usize = 3;
/// Looks at the lock of a session's file that nobody who lives says to hold.
pub const ORPHANED_LOCK_LOOKS_MAX: usize = 100;
/// Time between two of them.
pub const ORPHANED_LOCK_LOOK_EVERY: Duration = Duration::from_millis(10);
/// Session files read at the same time to list them.
pub const SESSIONS_READ_AT_ONCE_MAX: usize = 4;
/// Faults of a transcript that are told one by one; all are counted.
pub const TRANSCRIPT_FAULTS_LISTED_MAX: usize = 1_000;

/// Permission rules added during a session.
pub const RULES_ADDED_MAX: usize = 1_000;
/// How long the pattern of a rule over paths may be: as long as a path.
pub const PATH_RULE_BYTES_MAX: usize = 4096;
/// Working directories of a session besides the one it started in.
pub const DIRECTORIES_ADDED_MAX: usize = 1_000;

/// Calls of a submission remembered to notice one that repeats itself.
pub const REPETITION_CALLS_REMEMBERED_MAX: usize = 256;
/// L12: so often the same call with the same result, and it is told.
pub const REPETITION_TOLD_AT: u32 = 3;
/// L12: so often, and a person is asked, or the run ends if the options say so.
pub const REPETITION_STUCK_AT: u32 = 5;

/// Z1: summaries of calls being made at once; the oldest is given up for a new one.
pub const SUMMARIES_PENDING_MAX: usize = 4;
/// Z1: calls of one turn that a summary tells of.
pub const SUMMARY_CALLS_MAX: usize = 20;
/// Z1: characters of a call's input, and of its result, that a summary is made from.
pub const SUMMARY_SHOWN_CHARS_MAX: usize = 300;
/// Z1: tokens a summary may have.
pub const SUMMARY_TOKENS_MAX: u32 = 100;
/// Characters of a description that a session is named after.
pub const NAMED_CHARS_MAX: usize = 4_000;
/// The most an answer takes that is given beside the conversation.
pub const SIDE_ANSWER_TOKENS_MAX: u32 = 16_000;
/// Z1: characters of a summary that are told.
pub const SUMMARY_CHARS_MAX: usize = 200;
/// Prompts that a guess of the next one goes by, and how much of each and of the answer is shown.
pub const SUGGESTION_PROMPTS_MAX: usize = 3;
pub const SUGGESTION_SHOWN_CHARS_MAX: usize = 2_000;
/// How often it is told what an agent is doing, and by how many of its calls.
pub const AGENT_PROGRESS_EVERY: Duration = Duration::from_secs(30);
pub const AGENT_PROGRESS_CALLS_SHOWN_MAX: usize = 5;
/// Agents that may stand one below the other, the main thread not counted.
pub const AGENT_DEPTH_MAX: u8 = 3;
/// Agents that run at once, in the whole tree.
pub const AGENTS_RUNNING_MAX: usize = 20;
/// Agents started for one submission, in the whole tree.
pub const AGENTS_STARTED_MAX: u32 = 200;
/// Things that agents in the background have told and nobody has heard yet; with more, they wait.
pub const AGENT_EVENTS_WAITING_MAX: usize = 1_024;
/// Records of agents that are looked at to find one by its name.
pub const AGENT_RECORDS_LOOKED_AT_MAX: usize = 10_000;
/// How often an agent may ask the model when nobody says otherwise.
pub const AGENT_TURNS_MAX: u32 = 200;
/// An agent that says nothing for this long is given up: ten minutes, and a moment more than the longest command.
pub const AGENT_SILENT_MAX: Duration = Duration::from_secs(660);

/// Bytes of a file that is read where it is asked for, and not on a thread of its own.
pub const QUICK_BYTES_MAX: u64 = 64 * 1024;

/// Files a session remembers having read; the one not used for longest is forgotten first.
pub const FILES_REMEMBERED_MAX: usize = 4_096;
/// Separate pages of one file that are remembered as read.
pub const FILE_PAGES_REMEMBERED_MAX: usize = 64;
/// Bytes of a PDF document that is shown, and its pages.
pub const PDF_BYTES_MAX: u64 = 10_000_000;
pub const PDF_PAGES_MAX: usize = 10;
/// Pages of a longer one that are shown at once, and bytes of it that are read for that.
pub const PDF_PAGES_ASKED_MAX: usize = 20;
pub const PDF_SOURCE_BYTES_MAX: u64 = 100_000_000;
/// Objects of a document that are looked at.
pub const PDF_OBJECTS_MAX: usize = 500_000;
/// Bytes unpacked to count the pages of a document.
pub const PDF_UNPACKED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of text that a Read with `allow_large` returns.
pub const READ_LARGE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a notebook that is read by its cells.
pub const NOTEBOOK_BYTES_MAX: u64 = 100_000_000;
/// Characters shown of what running one cell brought.
pub const NOTEBOOK_OUTPUT_CHARS_MAX: usize = 10_000;
/// Pictures shown of a notebook at once.
pub const NOTEBOOK_IMAGES_MAX: usize = 20;
/// Bytes of a file a Read looks through to count its lines and to recognise it later.
pub const READ_SCAN_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Beyond that, bytes it looks through from the first wanted line on for the lines to come: some have no end.
pub const READ_PAGE_SCAN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of a file that is kept because a command might change it, and bytes kept in all, unless settings say otherwise.
pub const FILE_HISTORY_FILE_BYTES_MAX: u64 = 1024 * 1024;
pub const FILE_HISTORY_TOTAL_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Bytes of a file that is kept because a file tool changes it.
pub const FILE_HISTORY_EDITED_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Bytes of what is written down about kept files.
pub const FILE_HISTORY_JOURNAL_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Files and directories of a tree that commands are watched in; a larger one is not watched.
pub const FILE_HISTORY_FILES_MAX: usize = 300_000;
/// Directories in which the kernel is asked to say what happens between commands; in more, everything is looked at.
pub const FILE_HISTORY_DIRS_HEARD_MAX: usize = 16_384;
/// The longest time for finding them.
pub const FILE_HISTORY_FIRST_LOOK_MAX: Duration = Duration::from_secs(20);
/// Files named that the history does not cover.
pub const FILE_HISTORY_UNCOVERED_NAMED_MAX: usize = 50;
/// Bytes of a file whose lines are counted to tell what going back means.
pub const DIFF_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Symbolic links followed to find the file a path means.
pub const LINKS_FOLLOWED_MAX: usize = 40;
/// Bytes of a path that is followed from where the directory above it leads; a longer one is followed from its beginning.
pub const PATH_STEPPED_BYTES_MAX: usize = 1_024;
/// Names tried for a temporary file.
pub const TEMPORARY_NAMES_TRIED_MAX: usize = 64;
/// Names of one directory looked at to guess what a wrong path meant.
pub const NEIGHBOURS_READ_MAX: usize = 2_000;
/// Bytes of an earlier version that go into the structured answer of Write and Edit.
pub const ORIGINAL_BYTES_MAX: usize = 256 * 1024;
/// Time for comparing two versions of a file; a coarser comparison is shown after that.
pub const DIFF_TIME_MAX: Duration = Duration::from_millis(300);
/// Changed lines an Edit shows.
pub const EDIT_SHOWN_LINES_MAX: usize = 80;
/// Characters of one line in what Edit shows and compares.
pub const EDIT_SHOWN_LINE_CHARS_MAX: usize = 500;
/// Lines of a file compared with a text that Edit did not find.
pub const EDIT_COMPARED_LINES_MAX: usize = 200_000;
/// Places of an ambiguous text that Edit names.
pub const EDIT_PLACES_NAMED_MAX: usize = 8;
/// Replacements of one Edit with `replace_all`.
pub const EDIT_REPLACEMENTS_MAX: usize = 100_000;
/// Bytes of a shell command: the kernel takes no longer argument.
pub const SHELL_COMMAND_BYTES_MAX: usize = 128 * 1024 - 512;
/// Bytes of a file that a command has shown, to recognise it later.
pub const SHELL_SEEN_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Time between TERM and KILL when the user interrupts or a command leaves processes behind.
pub const SHELL_KILL_GRACE_SHORT: Duration = Duration::from_millis(40);
/// After a shell has ended, silence on its output that means nothing more is coming.
pub const SHELL_DRAIN_QUIET: Duration = Duration::from_millis(100);
/// After a shell has ended, the longest time its output is still read.
pub const SHELL_DRAIN_TIME_MAX: Duration = Duration::from_millis(500);
/// Time between two reports of a running command.
pub const PROGRESS_EVERY: Duration = Duration::from_millis(100);
/// Lines of one report: the newest, and those right before it.
pub const PROGRESS_LINES_MAX: usize = 5;
/// Characters of a progress line.
pub const PROGRESS_LINE_CHARS_MAX: usize = 500;
/// Commands that run in the background at once.
pub const BACKGROUND_RUNNING_MAX: usize = 32;
/// Background commands remembered; the oldest that has ended is forgotten first.
pub const BACKGROUND_KEPT_MAX: usize = 256;
/// Time between two looks at how much a background command has printed.
pub const BACKGROUND_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Entries of a list of things to do.
pub const TODOS_MAX: usize = 200;
/// Tasks of a session, and keys of what else is known about one.
pub const TASKS_MAX: usize = 200;
pub const TASK_METADATA_KEYS_MAX: usize = 50;
/// Tokens of servers' tools that are sent, about; with more they are told of by name.
pub const SERVED_TOKENS_SENT_MAX: u64 = 3_000;
/// Tools that one search shows, unless the model says otherwise, and at most.
pub const TOOL_SEARCH_RESULTS_DEFAULT: usize = 5;
pub const TOOL_SEARCH_RESULTS_MAX: usize = 20;
/// Words of a search that count.
pub const TOOL_SEARCH_WORDS_MAX: usize = 20;
/// Bytes of a page of the web that are read.
pub const WEB_BODY_BYTES_MAX: usize = 10 * 1024 * 1024;
/// The longest time a page may take, with all its redirects.
pub const WEB_TIME_MAX: Duration = Duration::from_secs(60);
/// Redirects of one page that are followed.
pub const WEB_REDIRECTS_MAX: usize = 10;
/// Characters of an address that is asked.
pub const WEB_URL_CHARS_MAX: usize = 8_192;
/// Bytes of a page as Markdown.
pub const WEB_MARKDOWN_BYTES_MAX: usize = 10 * 1024 * 1024;
/// Elements of a page that are open at once; what is deeper is read as if it were not.
pub const WEB_TAGS_OPEN_MAX: usize = 128;
/// Lists and quotes in each other that a page is indented for.
pub const WEB_DEPTH_SHOWN_MAX: usize = 16;
/// Characters of a link, a title or the words of a picture.
pub const WEB_LINK_CHARS_MAX: usize = 2_000;
/// Characters of a page that the small model reads at once, and those shown where there is none.
pub const WEB_ASKED_CHARS_MAX: usize = 100_000;
pub const WEB_SHOWN_CHARS_MAX: usize = 50_000;
/// Tokens of what it says about a page.
pub const WEB_ANSWER_TOKENS_MAX: u32 = 4_096;
/// Pages that are kept for a while, and their bytes.
pub const WEB_PAGES_KEPT_MAX: usize = 64;
pub const WEB_KEPT_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How often the server may look for one WebSearch, and the tokens of what is said about what it found.
pub const SEARCH_USES_MAX: u32 = 8;
pub const SEARCH_ANSWER_TOKENS_MAX: u32 = 4_096;
/// Domains that a search is bound to, or kept from.
pub const SEARCH_DOMAINS_MAX: usize = 100;
/// Pages told that one look of the server found.
pub const SEARCH_HITS_TOLD_MAX: usize = 50;
/// Tokens that one search of the web may add to a prompt.
pub const SEARCH_TOKENS_MAX: u64 = 20_000;
/// Characters shown of a page that is an error.
pub const WEB_ERROR_CHARS_MAX: usize = 2_000;
/// Rounds of looking for and killing what a command started, until nothing is found.
pub const KILL_ROUNDS_MAX: u32 = 8;
/// Threads of one Glob or Grep, on a machine with as many cores.
pub const SEARCH_THREADS_MAX: usize = 8;
/// Lines or paths a Grep returns when the model asks for all, and the most it can skip.
pub const GREP_ROWS_MAX: usize = 10_000;
/// Of each file that is searched, so much is read at first; a shorter one is searched where it lies. As much as the engine
/// looks through for signs that a file is not text.
pub(crate) const GREP_HEAD_BYTES: usize = 64 * 1024;
/// Bytes of one line, or of one file in a multiline search, that a Grep holds.
pub const GREP_BUFFER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a compiled search expression.
pub const GREP_REGEX_BYTES_MAX: usize = 10 * 1024 * 1024;

/// Pixels a side of an image that enters a conversation: more are refused once a request holds many images.
pub const IMAGE_EDGE_PX_MAX: u32 = 2_000;
/// Bytes of an image that enters a conversation: 5 MB once they are base64 text.
pub const IMAGE_BYTES_MAX: usize = 3_750_000;
/// Bytes above which an image that is written anyway is written as a photograph.
pub const IMAGE_REWRITTEN_BYTES: usize = 500_000;
/// Bytes of an image that are read to bring it down.
pub const IMAGE_SOURCE_BYTES_MAX: usize = 64_000_000;
/// Pixels of an image that is opened to bring it down.
pub const IMAGE_PIXELS_MAX: u64 = 64_000_000;
/// Bytes an opened image may take.
pub const IMAGE_DECODED_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// Sizes tried, each three quarters of the last, until an image is small enough.
pub const IMAGE_SHRINKS_MAX: usize = 8;
/// Images opened at once, whoever they are for: each may take [`IMAGE_DECODED_BYTES_MAX`] a few times over.
pub const IMAGES_OPENED_MAX: usize = 2;
/// Images of one result that enter a conversation.
pub const IMAGES_OF_RESULT_MAX: usize = 50;

/// Bounds on what tools read, print and wait for.
///
/// ```
/// use std::time::Duration;
///
/// let mut limits = pelton::ToolLimits::default();
/// limits.shell_time_default = Duration::from_secs(30);
/// assert!(limits.shell_time_default < limits.shell_time_max);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolLimits {
    /// A command's time when the model names none.
    pub shell_time_default: Duration,
    /// The longest time the model may ask for.
    pub shell_time_max: Duration,
    /// The same two for a command in the background.
    pub background_time_default: Duration,
    pub background_time_max: Duration,
    /// Whether a command whose time is up goes on in the background. Otherwise it is killed, as is one in a box.
    pub shell_goes_on_beside: bool,
    /// Memory that each process of a command may have for its data, in bytes; without a bound if nobody says one.
    pub shell_memory_bytes_max: Option<u64>,
    /// Whether no command may run in the background.
    pub background_off: bool,
    /// Whether every command starts where the session did, whatever the one before changed to.
    pub shell_stays: bool,
    /// Characters of a command's output that go to the model.
    pub shell_output_chars_max: usize,
    /// Characters of what a task in the background printed that the model is shown.
    pub task_output_chars_max: usize,
    /// The same for a command that failed.
    pub shell_failure_chars_max: usize,
    /// Bytes of a command's output kept on disk before the command is cut.
    pub shell_spill_bytes_max: u64,
    /// Time between TERM and KILL. A little under two seconds, so that a command with a limit of two seconds is
    /// gone four seconds after its start.
    pub kill_grace: Duration,
    /// Bytes of text a Read without a range returns.
    pub read_bytes_max: usize,
    /// Lines a Read without a limit returns.
    pub read_lines_max: usize,
    /// Characters of one line that a Read returns.
    pub read_line_chars_max: usize,
    /// Bytes of a file that may be edited.
    pub edit_bytes_max: u64,
    /// Paths a Glob returns.
    pub glob_paths_max: usize,
    /// Whether a Glob passes over what ignore files name, and what begins with a dot.
    pub glob_skips_ignored: bool,
    pub glob_skips_hidden: bool,
    /// Time a Glob or Grep may take.
    pub search_time_max: Duration,
    /// Lines or paths a Grep returns when the model names no limit.
    pub grep_lines_default: usize,
    /// Characters of one line of search output.
    pub grep_line_chars_max: usize,
    /// Characters of any result that go to the model, unless its tool says otherwise; of a longer one the beginning and
    /// the end are shown, and all of it stays on disk.
    pub result_chars_max: usize,
    /// The same for all results in one message together: the largest are shown in part first.
    pub message_result_chars_max: usize,
    /// Characters shown of a result that is too long.
    pub result_preview_chars: usize,
    /// Characters of an agent's report that go to the model; the rest stays on disk.
    pub agent_report_chars_max: usize,
    /// How long a page of the web is kept.
    pub web_page_kept: Duration,
    /// How often a session may search the web, its agents included. With 0 there is no tool for it.
    pub web_searches_max: u32,
}

/// Bounds on sub-agents.
///
/// ```
/// let mut limits = pelton::AgentLimits::default();
/// limits.depth_max = 1; // agents start no agents
/// assert!(limits.running_max > 1);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentLimits {
    /// How many may stand one below the other, the main thread not counted.
    pub depth_max: u8,
    /// How many run at once, in the whole tree.
    pub running_max: usize,
    /// How many are started for one submission, in the whole tree.
    pub started_max: u32,
    /// How often one may ask the model when its definition does not say.
    pub turns_max: u32,
    /// How long one may say nothing.
    pub silent_max: Duration,
    /// How often it is told what one is doing, where that is wanted.
    pub progress_every: Duration,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            depth_max: AGENT_DEPTH_MAX,
            running_max: AGENTS_RUNNING_MAX,
            started_max: AGENTS_STARTED_MAX,
            turns_max: AGENT_TURNS_MAX,
            silent_max: AGENT_SILENT_MAX,
            progress_every: AGENT_PROGRESS_EVERY,
        }
    }
}

impl Default for ToolLimits {
    fn default() -> Self {
        Self {
            shell_time_default: Duration::from_secs(120),
            shell_time_max: Duration::from_secs(600),
            background_time_default: Duration::from_secs(1_800),
            background_time_max: Duration::from_secs(7_200),
            shell_goes_on_beside: false,
            shell_memory_bytes_max: None,
            background_off: false,
            shell_stays: false,
            shell_output_chars_max: 30_000,
            shell_failure_chars_max: 10_000,
            task_output_chars_max: 32_000,
            shell_spill_bytes_max: 5 * 1024 * 1024 * 1024,
            kill_grace: Duration::from_millis(1_800),
            read_bytes_max: 256 * 1024,
            read_lines_max: 2_000,
            read_line_chars_max: 2_000,
            edit_bytes_max: 1024 * 1024 * 1024,
            glob_paths_max: 100,
            glob_skips_ignored: false,
            glob_skips_hidden: false,
            search_time_max: Duration::from_secs(20),
            grep_lines_default: 250,
            grep_line_chars_max: 2_000,
            result_chars_max: 100_000,
            message_result_chars_max: 200_000,
            result_preview_chars: 4_000,
            agent_report_chars_max: 32_000,
            web_page_kept: Duration::from_secs(900),
            web_searches_max: 200,
        }
    }
}

/// Words a loop goes through that are judged one by one; with more it is taken for one that goes through anything.
pub const LOOP_WORDS_JUDGED_MAX: usize = 64;
/// A word that is longer than this once values stand in the place of its variables may be anything: variables made of each other
/// double with every line.
pub const FILLED_WORD_BYTES_MAX: usize = 1024;
/// Rounds of loops in each other that a command is judged for.
pub const LOOP_ROUNDS_JUDGED_MAX: usize = 64;
/// Files that the patterns of one word may match and still be judged one by one.
pub const PATTERN_FILES_MAX: usize = 2_000;
/// Names of directories that are looked through for them.
pub const PATTERN_NAMES_SEEN_MAX: usize = 50_000;
/// Histories of files that are taken away at one time.
pub const FILE_HISTORIES_SWEPT_MAX: usize = 200;
/// How often all histories of files are looked at, at most, to take old ones away.
pub const FILE_HISTORY_SWEEP_INTERVAL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the history of a session's files is kept, in days.
pub const FILE_HISTORY_KEPT_DAYS: u64 = 30;
/// Names in texts of other languages that are followed to files, for rules that guard some.
pub const NAMES_IN_TEXTS_MAX: usize = 500;
/// A patch that is larger is not looked into: whatever is there may be changed by it.
pub const PATCH_JUDGED_BYTES_MAX: u64 = 1 << 20;
/// A repository's settings that are larger are not read: nobody knows where its files begin.
pub const REPOSITORY_CONFIG_BYTES_MAX: u64 = 1 << 16;
/// What names the branch that is checked out is short.
pub const REPOSITORY_HEAD_BYTES_MAX: u64 = 1 << 12;
/// Ways to which the links that a line makes may lead, that later commands of it are judged by; with more they are asked about.
pub const OWN_LINKS_MAX: usize = 500;
/// Longer pieces of such texts are no names.
pub const NAME_IN_TEXT_BYTES_MAX: usize = 500;
/// Hosts that somebody is asked about in a session and whose answers are remembered.
pub const HOSTS_ANSWERED_MAX: usize = 1_000;
/// Names below directories that are looked at to judge what goes through them.
pub const ENTRIES_JUDGED_MAX: usize = 100_000;
/// Directories a command may be in when it changes them on the way; with more nobody knows where it is.
pub const DIRECTORIES_JUDGED_MAX: usize = 8;
/// Commands of one line that are judged; with more the line is not understood.
pub const COMMANDS_JUDGED_MAX: usize = 500;
/// Texts of one line that shells get, and that are judged as lines of their own; with more it hides what it runs.
pub const TEXTS_JUDGED_MAX: usize = 100;
/// How long all of them together may be.
pub const TEXTS_JUDGED_BYTES_MAX: usize = 40_000;
/// How often a text may hold another that a shell gets.
pub const TEXTS_IN_TEXTS_MAX: usize = 4;
/// Rules that are suggested for one line.
pub const RULES_SUGGESTED_MAX: usize = 5;

/// Bytes of a memory file; a larger one is left out.
pub const MEMORY_FILE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Bytes of all memory files of a session together: no request may have much more.
pub const MEMORY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes of memory files for each token of the context window: with more, words of rules leave no room for the work.
pub const MEMORY_BYTES_PER_WINDOW_TOKEN: u64 = 1;
/// Memory files of a session.
pub const MEMORY_FILES_MAX: usize = 1_000;
/// Imports that may follow one from another.
pub const MEMORY_IMPORT_HOPS_MAX: usize = 4;
/// The bytes of a file that says what git leaves out.
pub const IGNORE_FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Imports of one file that are looked at.
pub const MEMORY_IMPORTS_MAX: usize = 200;
/// Directories of rules that may stand one in the other.
pub const RULE_DIRECTORIES_DEEP_MAX: usize = 16;
/// What the braces of one rule's patterns may come to: patterns, and bytes.
pub const PATTERN_EXPANSIONS_MAX: usize = 1_000;
pub const PATTERN_EXPANDED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Lines and bytes of the index of the model's own notes that it reads at the start.
pub const NOTES_INDEX_LINES_MAX: usize = 200;
pub const NOTES_INDEX_BYTES_MAX: usize = 25_000;

/// Bytes of the index of a repository that is compared with its files, and of the end of its log.
pub const GIT_INDEX_BYTES_MAX: u64 = 64 * 1024 * 1024;
pub const GIT_LOG_BYTES_MAX: u64 = 64 * 1024;
/// Bytes of a file of a repository's settings, files that they include, and repositories inside of one that are looked into for what
/// they have git run.
pub const GIT_CONFIG_BYTES_MAX: u64 = 1 << 20;
pub const GIT_INCLUDES_MAX: usize = 16;
pub const GIT_REPOSITORIES_INSIDE_MAX: usize = 200;
/// Files of a repository that are looked at to tell its state.
pub const GIT_FILES_LOOKED_AT_MAX: usize = 50_000;
/// Bytes of files that were touched and are compared by their content.
pub const GIT_HASHED_BYTES_MAX: u64 = 16 * 1024 * 1024;
/// Files that differ, and commits, that are told.
pub const GIT_STATUS_LINES_MAX: usize = 50;
pub const GIT_COMMITS_TOLD_MAX: usize = 5;

/// Files that were read and are watched for changes, the newest.
pub const CHANGED_FILES_WATCHED_MAX: usize = 200;
/// How many of them, the newest, are looked at before every request.
pub const CHANGED_FILES_NEWEST: usize = 32;
/// How many of the others are, in turn.
pub const CHANGED_FILES_IN_TURN: usize = 16;
/// How many of the newest and of the others are, after calls that only read.
pub const CHANGED_FILES_IN_PASSING: usize = 8;
/// After such calls nobody looks again before so much time has passed: a model that answers at once reads hundreds of files a
/// second, and each look would cost more than the call.
pub const CHANGED_FILES_LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The same for files of settings.
pub const SETTINGS_LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Bytes of a file that is watched, and of the texts that are kept to tell what changed.
pub const CHANGED_FILE_BYTES_MAX: u64 = 1024 * 1024;
pub const CHANGED_TEXT_BYTES_KEPT_MAX: usize = 8 * 1024 * 1024;
/// Lines of a change that are told.
pub const CHANGED_LINES_SHOWN_MAX: usize = 60;
/// Turns without a word about the list of things to do, until the model is reminded of it.
pub const TODO_REMINDER_TURNS: u32 = 10;

/// Bytes of a skill, how many there can be, and how deep directories of commands may stand in each other.
pub const SKILL_BYTES_MAX: u64 = 1024 * 1024;
pub const SKILLS_MAX: usize = 1_000;
pub const SKILL_DIRECTORIES_DEEP_MAX: usize = 8;

/// How long a server keeps what it has cached, unless it is read again.
pub const CACHE_KEPT: Duration = Duration::from_secs(300);
/// Places of earlier cache marks that are remembered, the newest.
pub const CACHE_MARKS_KNOWN_MAX: usize = 256;
/// Requests whose use of the cache is remembered, the newest.
pub const CACHE_REPORTS_KEPT_MAX: usize = 100;

/// Characters of a skill, and of all of them, that are told again after a compaction: 5,000 and 25,000 tokens, about.
pub const SKILL_TOLD_AGAIN_CHARS_MAX: usize = 20_000;
pub const SKILLS_TOLD_AGAIN_CHARS_MAX: usize = 100_000;

/// The fewest characters of a secret that is looked for in what is written down.
pub const SECRET_CHARS_MIN: usize = 16;
/// The most secrets that are known at a time: the oldest, long renewed, is forgotten first.
pub const SECRETS_MAX: usize = 64;
/// Characters of the value of a variable below which it is no key, whatever its name says.
pub const KEY_CHARS_MIN: usize = 20;
/// Keys of others, by their variables, that are kept out of records.
pub const KEYS_OF_OTHERS_MAX: usize = 32;
/// Bytes of a file that are searched for secrets at once.
pub const SCRUBBED_AT_ONCE_BYTES: usize = 256 * 1024;

/// How long what there is waits to be stated for servers of tools that may be about to be there.
pub const SERVERS_STATED_WAIT: Duration = Duration::from_millis(50);
