//! Every number that bounds something in the terminal's rooms.

/// Cells of one line of a tool's output that are kept; the rest is counted.
pub const LINE_CELLS_MAX: usize = 2_000;
/// Marks that one character may carry above and below itself: what writing needs, and no towers.
pub const MARKS_MAX: u8 = 8;
/// Spaces in a row, and empty lines in a row, that a question shows as they are: what stands behind more could be missed.
pub const QUESTION_SPACES_MAX: usize = 24;
pub const QUESTION_EMPTY_LINES_MAX: usize = 3;
/// How far apart the places are to which tabs lead, in cells.
pub const TAB_CELLS: usize = 8;
/// Bytes of a line of code beyond which it is shown without colours: grammars look at some lines many times.
pub const CODE_LINE_BYTES_MAX: usize = 1_000;
/// Lines of one piece of code that are coloured.
pub const CODE_LINES_COLOURED_MAX: usize = 5_000;
/// How far apart tabs lead in code, in cells.
pub const CODE_TAB_CELLS: usize = 4;
/// Bytes and lines of one block of Markdown before it counts as finished: its end may be far away.
pub const BLOCK_BYTES_MAX: usize = 64 * 1024;
pub const BLOCK_LINES_MAX: usize = 500;
/// Bytes of one line of Markdown; a longer one goes on as the next.
pub const MARKDOWN_LINE_BYTES_MAX: usize = 16 * 1024;
/// How deep lists and quotes are shown inside each other; deeper ones stand where these do.
pub const NESTING_MAX: usize = 12;
/// Link addresses that were given names, kept for the links that use them.
pub const LINK_NAMES_MAX: usize = 100;
/// Lines, and bytes, of a paste beyond which it is folded.
pub const PASTE_LINES_SHOWN_MAX: usize = 8;
pub const PASTE_CHARS_SHOWN_MAX: usize = 1_000;
/// Folded pastes and pictures of one prompt.
pub const PARTS_MAX: usize = 1_000;
/// Edits of a prompt that can be undone.
pub const UNDO_EDITS_MAX: usize = 1_000;
/// Texts that were cut out and can be put back.
pub const KILLS_MAX: usize = 32;
/// Bytes that one command puts back, however often it is told to.
pub const YANKED_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a paste that can be paths of pictures: nobody drops more of them at once.
pub const DROPPED_BYTES_MAX: usize = 16 * 1024;
/// Prompts that a session knows of from before.
pub const HISTORY_PROMPTS_MAX: usize = 1_000;
/// Messages of a past conversation that are told when it is gone on with: those before are in its record.
pub const PAST_ENTRIES_MAX: usize = 500;
/// Lines on either side beyond which two texts are not compared: one is shown in the place of the other.
pub const DIFF_LINES_MAX: usize = 4_000;
/// Characters of a line beyond which its words are not compared.
pub const DIFF_WORDS_CHARS_MAX: usize = 500;
/// Unchanged lines around a change.
pub const DIFF_CONTEXT_LINES: usize = 3;
/// Paths of a project that are known for completion.
pub const PATHS_MAX: usize = 1_000_000;
/// Bytes of one of them; a longer one is left out.
pub const PATH_BYTES_MAX: usize = 1_024;
/// Paths that are handed over at once while a project is walked: few at first, so that something is soon found.
pub const PATHS_HANDED_MIN: usize = 64;
pub const PATHS_HANDED_MAX: usize = 8_192;
/// Threads that walk a project, and that look through its paths.
pub const COMPLETION_THREADS_MAX: usize = 4;
/// Of this many best paths it is looked at once more which are the best.
pub const PATHS_RANKED_MAX: usize = 512;
/// Characters of a name that a model gives to a session.
pub const NAME_CHARS_MAX: usize = 80;
/// Names of a directory that are looked through for those that a path could go on with.
pub const DIRECTORY_NAMES_MAX: usize = 20_000;
/// Questions beside the conversation that wait for their answers.
pub const ASKED_BESIDE_MAX: usize = 4;
/// Files or commands to choose from.
pub const COMPLETIONS_MAX: usize = 50;
