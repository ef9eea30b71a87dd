//! Every number that bounds the reading of a command.

/// A longer command is not read at all.
pub const COMMAND_MAX_CHARS: usize = 10_000;

/// How deep groups, substitutions, quotes and expansions may stand in each other.
pub const NESTING_MAX: usize = 40;

/// How many words the braces of one word may become. Beyond that the word is doubted instead.
pub const BRACE_WORDS_MAX: usize = 256;

/// How long all the words together may be that the braces of one word become.
pub const BRACE_CHARS_MAX: usize = 20_000;

/// How many launchers behind each other are seen through.
pub const LAUNCHERS_NESTED_MAX: usize = 12;

/// How many further commands are told for one command.
pub const FURTHER_COMMANDS_MAX: usize = 1_000;

/// How many statements of a program in another language are looked through, and how many texts of each.
pub const CODE_TEXTS_MAX: usize = 64;
