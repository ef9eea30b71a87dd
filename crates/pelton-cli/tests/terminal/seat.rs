//! Somebody in front of a terminal: types, looks, and resizes the window.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::libc;
use nix::pty::{Winsize, openpty};
use pelton_testkit::ScriptedModel;

use crate::place::{Commanded, Place};

/// What has not happened after this long does not happen.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long the last words may take to be read once their writer has ended. Somebody else may still have the terminal open.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// What somebody takes at least to read a question.
const READING: Duration = Duration::from_millis(250);
/// Rows above the screen that are kept.
const SCROLLBACK: usize = 20_000;

pub struct Seat {
    child: Child,
    master: File,
    shown: Arc<Mutex<Shown>>,
    /// Reads until nobody has the terminal open any more.
    reader: JoinHandle<()>,
}

pub struct Shown {
    pub parser: vt100::Parser,
    /// Everything that was written, as it came.
    pub bytes: Vec<u8>,
}

impl Seat {
    /// `pelton` with these words on a terminal of 24 by 80, asking this model.
    pub fn at<'a>(place: &Place, model: &ScriptedModel, words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut command = place.pelton(words);
        command.asks(model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        Self::with(command, 80, 24)
    }

    pub fn with(mut command: Command, columns: u16, rows: u16) -> Self {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let pair = openpty(Some(&size), None).unwrap();
        let slave = File::from(pair.slave);
        let device = || slave.try_clone().unwrap();
        command.stdin(device()).stdout(device()).stderr(device());
        // SAFETY: between fork and exec only two system calls are made, and nothing is allocated.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        let child = command.spawn().unwrap();
        drop((command, slave));
        let master = File::from(pair.master);
        let parser = vt100::Parser::new(cells(rows), cells(columns), SCROLLBACK);
        let shown = Arc::new(Mutex::new(Shown { parser, bytes: Vec::new() }));
        let (mut from, into) = (master.try_clone().unwrap(), Arc::clone(&shown));
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            // The end of a terminal is an error on Linux.
            while let Ok(count @ 1..) = from.read(&mut buffer) {
                let mut shown = into.lock().unwrap();
                shown.bytes.extend_from_slice(&buffer[..count]);
                shown.parser.process(&buffer[..count]);
            }
        });
        Self { child, master, shown, reader }
    }

    /// The process that sits at the terminal.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The terminal.
    pub fn device(&self) -> &File {
        &self.master
    }

    /// Types. Whoever answers a question has read it before.
    pub fn types(&mut self, keys: &str) {
        if ["❯ 1. ", "Ctrl-D declines"].iter().any(|shown| self.screen().contains(shown)) {
            std::thread::sleep(READING);
        }
        self.types_at_once(keys);
    }

    /// Types without a look.
    pub fn types_at_once(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    pub fn resize(&mut self, columns: u16, rows: u16) {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // A window has its new size before the program hears of it.
        self.shown.lock().unwrap().parser.set_size(cells(rows), cells(columns));
        // SAFETY: the descriptor is open and the kernel only reads `size`.
        assert_eq!(unsafe { libc::ioctl(self.master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }, 0);
    }

    pub fn screen(&self) -> String {
        self.shown.lock().unwrap().parser.screen().contents()
    }

    /// Row and column of the cursor.
    pub fn cursor(&self) -> (u16, u16) {
        self.shown.lock().unwrap().parser.screen().cursor_position()
    }

    /// Whether the cursor is hidden.
    pub fn shows_no_cursor(&self) -> bool {
        self.shown.lock().unwrap().parser.screen().hide_cursor()
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.shown.lock().unwrap().bytes.clone()
    }

    /// All rows, from the oldest above the screen to the last on it.
    pub fn rows(&self) -> Vec<String> {
        let mut shown = self.shown.lock().unwrap();
        let screen = shown.parser.screen_mut();
        let (rows, columns) = screen.size();
        let (height, columns) = (usize::from(rows.get()), columns.get());
        let mut all = Vec::new();
        let mut back = screen.scrollback_len();
        while back > 0 {
            screen.set_scrollback(back);
            let page = height.min(back);
            all.extend(screen.rows(0, columns).take(page));
            back -= page;
        }
        screen.set_scrollback(0);
        all.extend(screen.rows(0, columns));
        all.into_iter().map(|row| row.trim_end().to_owned()).collect()
    }

    /// Waits until the screen has these words.
    #[track_caller]
    pub fn sees(&self, words: &str) {
        self.until(&format!("the screen shows {words:?}"), |seat| seat.screen().contains(words));
    }

    /// Waits until the screen has them no more.
    #[track_caller]
    pub fn sees_no_more(&self, words: &str) {
        self.until(&format!("the screen no longer shows {words:?}"), |seat| !seat.screen().contains(words));
    }

    /// Waits until nothing runs any more.
    #[track_caller]
    pub fn rests(&self) {
        let works =
            |screen: &str| ["Esc interrupts", "Ctrl-C interrupts"].iter().any(|words| screen.contains(words));
        self.until("nothing runs any more", |seat| !works(&seat.screen()));
    }

    #[track_caller]
    pub fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self) {
            assert!(began.elapsed() < PATIENCE, "waited in vain until {what}:\n{}", self.rows().join("\n"));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Waits for the end, and until its last words are read; the exit code.
    #[track_caller]
    pub fn ends(&mut self) -> Option<i32> {
        let began = Instant::now();
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => {
                    let ended = Instant::now();
                    while !self.reader.is_finished() && ended.elapsed() < LAST_WORDS {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    return status.code();
                }
                None if began.elapsed() > PATIENCE => panic!("it does not end:\n{}", self.rows().join("\n")),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}
