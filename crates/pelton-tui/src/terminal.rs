//! The terminal itself: raw while a session has it, and as it was found whenever it has not, whatever happens.

use std::fs::File;
use std::io::{self, BufRead as _, Read as _, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crossterm::event::EventStream;
use crossterm::terminal::{disable_raw_mode, enable_raw_mode, size};
use ratatui_core::text::Line;
use tokio::sync::{Notify, mpsc};

use crate::paint::{Live, OnNarrowing, Painter};
use crate::row::Row;

/// Pastes come whole, and known as such.
const PASTES_ON: &str = "\u{1b}[?2004h";
const PASTES_OFF: &str = "\u{1b}[?2004l";

/// How long a panic waits for what was painted before it.
const DRAIN_MAX: Duration = Duration::from_secs(1);

/// How long nothing is painted after a change of size, where others change the size first and tell it later: tmux takes up to a quarter of
/// a second.
const TOLD_LATE: Duration = Duration::from_millis(300);

/// A terminal that a session has.
pub struct Terminal {
    shows: Shows,
    /// It may have another size before it tells so.
    tells_late: bool,
    out: File,
    writer: Writer,
    /// What is typed; `None` while somebody else has the terminal.
    input: Option<Input>,
    interrupts: Arc<Notify>,
    stops: Arc<Notify>,
    /// Somebody else has it.
    is_given: Arc<AtomicBool>,
}

/// How it shows what it is told to.
enum Shows {
    /// Finished lines, and a live area below them.
    All(Painter),
    /// Finished lines alone, one after the other. Whether the mark stands there that asks for words.
    Lines { asks: bool },
}

/// What is typed.
pub(crate) enum Input {
    /// Key by key.
    Keys(EventStream),
    /// Line by line.
    Lines(mpsc::Receiver<String>),
}

impl Terminal {
    /// Takes a terminal, which standard input is, too.
    pub fn open(out: File, on_narrowing: OnNarrowing) -> io::Result<Self> {
        let (columns, rows) = size_now();
        let painter = Painter::new(columns, rows, on_narrowing);
        let mut terminal = Self::showing(Shows::All(painter), out)?;
        terminal.tells_late = on_narrowing == OnNarrowing::ReflowsBeforeTelling;
        restore_on_panic(terminal.out.try_clone()?, terminal.writer.clone());
        terminal.take()?;
        Ok(terminal)
    }

    /// The same line by line: nothing is taken, and no cursor moves.
    pub fn plain(out: File) -> io::Result<Self> {
        let mut terminal = Self::showing(Shows::Lines { asks: false }, out)?;
        terminal.input = Some(Input::Lines(lines_typed()));
        Ok(terminal)
    }

    fn showing(shows: Shows, out: File) -> io::Result<Self> {
        let writer = Writer::to(out.try_clone()?);
        let (interrupts, stops) = (Arc::default(), Arc::default());
        Ok(Self {
            shows,
            tells_late: false,
            out,
            writer,
            input: None,
            interrupts,
            stops,
            is_given: Arc::default(),
        })
    }

    /// Takes it, also after it was given away.
    pub fn take(&mut self) -> io::Result<()> {
        self.is_given.store(false, Ordering::SeqCst);
        let Shows::All(painter) = &mut self.shows else { return Ok(()) };
        enable_raw_mode()?;
        self.writer.put(PASTES_ON.to_owned());
        self.input = Some(Input::Keys(EventStream::new()));
        // It may have another size now.
        let (columns, rows) = size_now();
        painter.resize(columns, rows);
        Ok(())
    }

    /// Gives it away as it was found, below everything that was said.
    pub async fn give(&mut self) {
        self.is_given.store(true, Ordering::SeqCst);
        if let Shows::All(painter) = &mut self.shows {
            self.input = None;
            let mut last = painter.leave();
            last.push_str(PASTES_OFF);
            self.writer.put(last);
            self.writer.written().await;
            // Nothing can be done about a terminal that is gone.
            let _ = disable_raw_mode();
        } else {
            if let Shows::Lines { asks } = &mut self.shows
                && std::mem::take(asks)
            {
                // What comes next stands on a line of its own.
                self.writer.put("\n".to_owned());
            }
            self.writer.written().await;
        }
    }

    /// Whether somebody else has it: what is typed there, an interrupt too, is theirs.
    pub fn given(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.is_given)
    }

    pub(crate) fn is_given(&self) -> bool {
        self.is_given.load(Ordering::SeqCst)
    }

    /// What is live is painted anew, whatever stands there.
    pub(crate) fn repaint(&mut self) {
        if let Shows::All(painter) = &mut self.shows {
            painter.forget();
        }
    }

    /// Whether it shows lines alone.
    pub fn is_plain(&self) -> bool {
        matches!(self.shows, Shows::Lines { .. })
    }

    /// Where an interrupt is told that came as a signal: the same as its key.
    pub fn interrupts(&self) -> Arc<Notify> {
        Arc::clone(&self.interrupts)
    }

    /// Where it is told that somebody else wants the program stopped: the same as the key for that.
    pub fn stops(&self) -> Arc<Notify> {
        Arc::clone(&self.stops)
    }

    /// Columns and rows.
    pub fn size(&self) -> (usize, usize) {
        match &self.shows {
            Shows::All(painter) => (painter.columns(), painter.rows()),
            Shows::Lines { .. } => {
                let (columns, rows) = size_now();
                (usize::from(columns), usize::from(rows))
            }
        }
    }

    /// It has this size from now on.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        if let Shows::All(painter) = &mut self.shows {
            painter.resize(columns, rows);
        }
    }

    /// Sees whether it has another size than was told last: what was painted for the old one would stand where nobody expects
    /// it. Columns and rows, if it has.
    pub(crate) fn look_at_size(&mut self) -> Option<(usize, usize)> {
        let Shows::All(painter) = &mut self.shows else { return None };
        let (columns, rows) = size_now();
        let before = (painter.columns(), painter.rows());
        painter.resize(columns, rows);
        let now = (painter.columns(), painter.rows());
        (now != before).then_some(now)
    }

    /// How long it is waited for another change of size before anything is painted for this one.
    pub(crate) fn settles_for(&self) -> Duration {
        if self.tells_late { TOLD_LATE } else { Duration::ZERO }
    }

    /// Whether it takes more to show. A slow terminal is shown less often.
    pub fn is_ready(&self) -> bool {
        self.writer.is_idle()
    }

    /// Waits until it is.
    pub fn ready(&self) -> impl Future<Output = ()> + Send + 'static {
        let writer = self.writer.clone();
        async move { writer.written().await }
    }

    /// Nobody types any more.
    pub fn stop_listening(&mut self) {
        self.input = None;
    }

    /// Shows.
    pub fn paint(&mut self, finished: &[Line<'_>], live: &Live) {
        let bytes = match &mut self.shows {
            Shows::All(painter) => painter.paint(finished, live),
            Shows::Lines { asks } => {
                let mut bytes = String::new();
                for line in finished {
                    if std::mem::take(asks) {
                        bytes.push('\n');
                    }
                    bytes.push_str(&Row::of(line).text);
                    bytes.push('\n');
                }
                if live.caret.is_some() && !*asks {
                    bytes.push_str("> ");
                    *asks = true;
                }
                bytes
            }
        };
        if !bytes.is_empty() {
            self.writer.put(bytes);
        }
    }

    /// Says something that is not shown and does not move the cursor: a title, a notification, a bell. Not where only lines
    /// are written: who reads those may be no terminal.
    pub fn say(&mut self, sequence: &str) {
        if matches!(self.shows, Shows::All(_)) {
            self.writer.put(sequence.to_owned());
        }
    }

    /// A line was typed: what comes next stands below it.
    pub(crate) fn line_ended(&mut self) {
        if let Shows::Lines { asks } = &mut self.shows {
            *asks = false;
        }
    }

    /// What is typed.
    pub(crate) fn input(&mut self) -> Option<&mut Input> {
        self.input.as_mut()
    }

    /// Whether something was typed that nobody has read.
    pub fn has_unread(&self) -> bool {
        if let Some(Input::Lines(lines)) = &self.input
            && !lines.is_empty()
        {
            return true;
        }
        let mut unread: nix::libc::c_int = 0;
        // SAFETY: the kernel writes one int into `unread`, which lives through the call.
        let asked = unsafe { nix::libc::ioctl(0, nix::libc::FIONREAD, &raw mut unread) };
        asked == 0 && unread > 0
    }
}

/// Lines that are typed, read on a thread of their own.
fn lines_typed() -> mpsc::Receiver<String> {
    /// Lines that nobody has taken yet.
    const LINES_WAITING_MAX: usize = 64;
    /// Bytes of one; what is longer goes on as the next.
    const LINE_BYTES_MAX: u64 = 1024 * 1024;
    let (typed, types) = mpsc::channel(LINES_WAITING_MAX);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        loop {
            let mut line = Vec::new();
            // What is no text is shown as such, and no reason to leave.
            match input.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            let line = String::from_utf8_lossy(&line);
            if typed.blocking_send(line.trim_end_matches(['\n', '\r']).to_owned()).is_err() {
                return;
            }
        }
    });
    types
}

fn size_now() -> (u16, u16) {
    size().ok().filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or((80, 24))
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore(&self.out);
    }
}

/// The terminal as shells want it, as far as possible without knowing what is on it.
fn restore(mut out: &File) {
    if crossterm::terminal::is_raw_mode_enabled().unwrap_or(false) {
        let _ = disable_raw_mode();
        let _ = write!(out, "{PASTES_OFF}\u{1b}[?25h\r\n");
    }
}

/// A panic is told on a terminal that shows it.
fn restore_on_panic(out: File, writer: Writer) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            // What was painted before comes before: it would hide the cursor again.
            writer.drain(DRAIN_MAX);
            restore(&out);
            before(panic);
        }));
    });
}

/// Writes on a thread of its own: a terminal that does not read holds up nobody but itself.
#[derive(Clone)]
struct Writer {
    to: Sender<String>,
    /// Pieces that are not written yet.
    unwritten: Arc<AtomicUsize>,
    written: Arc<Notify>,
}

impl Writer {
    fn to(out: impl Write + Send + 'static) -> Self {
        let (to, from) = channel();
        let (unwritten, written) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
        let (left, done) = (Arc::clone(&unwritten), Arc::clone(&written));
        std::thread::spawn(move || write_all(out, &from, &left, &done));
        Self { to, unwritten, written }
    }

    /// To be called only while it is idle, but for a few bytes: what waits is not bounded.
    fn put(&self, bytes: String) {
        self.unwritten.fetch_add(1, Ordering::SeqCst);
        // A thread that is gone has nobody to write to.
        let _ = self.to.send(bytes);
    }

    fn is_idle(&self) -> bool {
        self.unwritten.load(Ordering::SeqCst) == 0
    }

    /// Holds this thread up until everything is written, but no longer than this: a terminal that does not read may never be ready.
    fn drain(&self, at_most: Duration) {
        const LOOK: Duration = Duration::from_millis(1);
        let mut waited = Duration::ZERO;
        while !self.is_idle() && waited < at_most {
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
    }

    async fn written(&self) {
        loop {
            let written = self.written.notified();
            tokio::pin!(written);
            // From here on no notice is missed.
            written.as_mut().enable();
            if self.is_idle() {
                return;
            }
            written.await;
        }
    }
}

fn write_all(mut out: impl Write, from: &Receiver<String>, left: &AtomicUsize, done: &Notify) {
    while let Ok(bytes) = from.recv() {
        // A terminal that is gone is noticed where keys are read.
        let _ = out.write_all(bytes.as_bytes()).and_then(|()| out.flush());
        left.fetch_sub(1, Ordering::SeqCst);
        done.notify_waiters();
    }
}
