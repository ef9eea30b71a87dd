//! One line of cause, and a way out.

use std::cell::RefCell;
use std::io::Write;
use std::process::ExitCode;

/// Why the program stops, in one line, and its exit code.
#[derive(Debug)]
pub(crate) struct Fail {
    line: String,
    code: u8,
    told_to_clients: Option<String>,
}

impl Fail {
    /// The common failure: exit code 1.
    pub fn new(message: impl AsRef<str>) -> Self {
        Self::with_code(message, 1)
    }

    /// A failure with a code of its own.
    pub fn with_code(message: impl AsRef<str>, code: u8) -> Self {
        Self { line: format!("error: {}", message.as_ref()), code, told_to_clients: None }
    }

    /// The command line is fine, but the run cannot start: clients that read JSON get a result that says so.
    pub fn at_start(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { told_to_clients: Some(message.clone()), ..Self::new(message) }
    }

    /// The conversation is not there. Clients know these very words, on both streams.
    pub fn no_conversation(id: &str) -> Self {
        let message = format!("No conversation found with session ID: {id}");
        Self { line: message.clone(), ..Self::at_start(message) }
    }

    /// The cause, in one line.
    pub fn line(&self) -> &str {
        &self.line
    }

    /// What a result for clients says.
    pub fn told_to_clients(&self) -> Option<&str> {
        self.told_to_clients.as_deref()
    }

    /// Tells it on standard error.
    pub fn report(self) -> ExitCode {
        tell(&self.line);
        ExitCode::from(self.code)
    }
}

thread_local! {
    /// Lines that somebody else will show, while there is somebody.
    static KEPT_BACK: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

/// One line on standard error. That nobody reads it is no reason to fail.
pub(crate) fn tell(line: &str) {
    let line = pelton_serve::plain(line).replace('\n', " ");
    let is_kept = KEPT_BACK.with_borrow_mut(|kept| kept.as_mut().map(|kept| kept.push(line.clone())));
    if is_kept.is_none() {
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// Does something, and gives what it would have told on standard error: where a session is shown, a line written past it would
/// stand in the middle of that.
pub(crate) fn kept_back<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let outer = KEPT_BACK.replace(Some(Vec::new()));
    let done = work();
    (done, KEPT_BACK.replace(outer).unwrap_or_default())
}
