//! Every number that bounds something here.

use std::time::Duration;

/// The longest a server may take to shake hands and tell what it offers, unless somebody says otherwise.
pub(crate) const CONNECT_TIME: Duration = Duration::from_secs(30);
/// The longest a call may be silent at a program.
pub(crate) const SILENCE_PROGRAM: Duration = Duration::from_secs(30 * 60);
/// The longest a call may be silent at an address.
pub(crate) const SILENCE_REMOTE: Duration = Duration::from_secs(5 * 60);
/// The longest a call may take in all.
pub(crate) const CALL_TIME: Duration = Duration::from_secs(28 * 60 * 60);
/// Attempts to reach an address, the first one included.
pub(crate) const REMOTE_TRIES: u32 = 3;
/// The wait before the second attempt; doubled for every further one.
pub(crate) const REMOTE_WAIT: Duration = Duration::from_millis(500);
/// Attempts to reach an address anew whose connection ended, and the wait before the first; doubled for every further one.
pub(crate) const REJOIN_TRIES: u32 = 5;
pub(crate) const REJOIN_WAIT: Duration = Duration::from_secs(1);
/// How long servers are waited for whose tools are sent with every request.
pub(crate) const ALWAYS_LOADED_WAIT: Duration = Duration::from_secs(5);
/// How long what a session has waits to be stated for servers inside the client.
pub(crate) const INSIDE_WAIT: Duration = Duration::from_secs(1);
/// Bytes of a description, or of instructions, that are passed on.
pub(crate) const WORDS_BYTES_MAX: usize = 2048;
/// Pages of a list that are asked for.
pub(crate) const PAGES_MAX: usize = 100;
/// Tools of one server.
pub(crate) const TOOLS_MAX: usize = 1000;
/// Prompts of one server, and things to read.
pub(crate) const PROMPTS_MAX: usize = 1000;
pub(crate) const RESOURCES_MAX: usize = 10_000;
/// Bytes kept of what a program said on standard error.
pub(crate) const LAST_WORDS_BYTES_MAX: usize = 2048;
/// How long a program may take to end once its input is closed, and then once it is asked to.
pub(crate) const END_PATIENCE: Duration = Duration::from_millis(300);
pub(crate) const END_GRACE: Duration = Duration::from_secs(1);
/// Requests to a server that are remembered until they are answered: many times what is asked side by side.
pub(crate) const OPEN_REQUESTS_MAX: usize = 1024;
/// Bytes of an answer of an address that comes in one piece, and of one event of a stream.
pub(crate) const ANSWER_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Bytes of a refusal that are passed on.
pub(crate) const REFUSAL_BYTES_MAX: usize = 4 * 1024;
/// Messages from a server that may wait to be read.
pub(crate) const INBOX_MAX: usize = 256;
/// The longest an old-style server may take to name the address for messages.
pub(crate) const ENDPOINT_TIME: Duration = Duration::from_secs(60);
/// The longest a command that makes headers may take, and the most it may print.
pub(crate) const HELPER_TIME: Duration = Duration::from_secs(10);
pub(crate) const HELPER_BYTES_MAX: usize = 64 * 1024;
/// The longest somebody who gives tokens may take to answer, and the most they may say.
pub(crate) const OAUTH_ANSWER_TIME: Duration = Duration::from_secs(30);
pub(crate) const OAUTH_ANSWER_BYTES_MAX: usize = 1024 * 1024;
/// How long another process is waited for that renews a login, and how often it is looked for.
pub(crate) const LOCK_WAIT: Duration = Duration::from_secs(60);
pub(crate) const LOCK_LOOK: Duration = Duration::from_millis(50);
/// Characters of an answer, in all of its words, that a server may ask to have passed on whole.
pub(crate) const RESULT_CHARS_ASKED_MAX: usize = 500_000;
/// Programs that are connected to at the same time, and addresses, unless somebody says otherwise.
pub(crate) const LOCAL_AT_ONCE_MAX: usize = 3;
pub(crate) const REMOTE_AT_ONCE_MAX: usize = 20;
