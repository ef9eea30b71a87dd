//! One line of cause, and a way out.

use std::fmt;
use std::process::ExitCode;

/// Why the program stops, in one line, and its exit code.
#[derive(Debug)]
pub(crate) struct Fail {
    message: String,
    code: u8,
}

impl Fail {
    /// The common failure: exit code 1.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// A failure with a code of its own.
    pub fn with_code(message: impl Into<String>, code: u8) -> Self {
        Self { message: message.into(), code }
    }

    /// Tells it on standard error.
    pub fn report(self) -> ExitCode {
        tell(&format!("error: {}", self.message));
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Fail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// One line on standard error. That nobody reads it is no reason to fail.
pub(crate) fn tell(line: &str) {
    use std::io::Write;
    let line = pelton_serve::plain(line).replace('\n', " ");
    let _ = writeln!(std::io::stderr(), "{line}");
}
