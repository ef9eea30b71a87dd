//! The terminal is as it was found, however a session ends, and stops and goes on with the shell.

use std::fs::File;
use std::os::fd::AsFd;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::sys::termios::{LocalFlags, tcgetattr};
use nix::unistd::Pid;
use pelton_testkit::{Script, Step, gate, text};
use pelton_tui::{OnNarrowing, Terminal};

use crate::place::{Commanded, Place, model};
use crate::seat::Seat;

/// Whether lines are edited and shown by the terminal itself.
fn is_as_found(seat: &Seat) -> bool {
    let flags = tcgetattr(seat.device()).unwrap().local_flags;
    flags.contains(LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG)
}

/// The newest of two sequences that was written.
fn is_last(seat: &Seat, wanted: &str, other: &str) -> bool {
    let shown = String::from_utf8_lossy(&seat.bytes()).into_owned();
    shown.rfind(wanted) > shown.rfind(other)
}

#[track_caller]
fn leaves_no_trace(seat: &Seat) {
    seat.until("the terminal is as it was", |seat| {
        is_as_found(seat)
            && is_last(seat, "\u{1b}[?25h", "\u{1b}[?25l")
            && is_last(seat, "\u{1b}[?2004l", "\u{1b}[?2004h")
    });
    assert!(!seat.screen().contains("asks before changes"), "what was live is gone:\n{}", seat.screen());
}

#[test]
fn however_it_ends_the_terminal_is_as_it_was() {
    for (signal, code) in [(None, 0), (Some(Signal::SIGTERM), 143), (Some(Signal::SIGHUP), 129)] {
        let place = Place::new();
        let model = model(Script::new().reply([text("Slowly"), gate("never")]));
        let mut seat = Seat::at(&place, &model, ["go"]);
        seat.sees("Slowly");
        assert!(!is_as_found(&seat), "a session reads keys");
        match signal {
            None => seat.types("\u{3}\u{3}"),
            Some(signal) => kill(Pid::from_raw(i32::try_from(seat.id()).unwrap()), signal).unwrap(),
        }
        assert_eq!(seat.ends(), Some(code), "{signal:?}");
        leaves_no_trace(&seat);
    }
}

#[test]
fn a_command_line_of_ones_own_holds_nobody_back_from_leaving() {
    for (signal, keys, code) in [
        (Some(Signal::SIGTERM), "", 143),
        (Some(Signal::SIGHUP), "", 129),
        (None, "/exit\r", 0),
        (None, "\u{4}\u{4}", 0),
    ] {
        let (place, model) = (Place::new(), model(Script::new()));
        let mut seat = Seat::at(&place, &model, []);
        seat.sees("> ");
        seat.types("!touch runs; sleep 600\r");
        seat.until("it runs", |_| place.work().join("runs").exists());
        match signal {
            None => seat.types(keys),
            Some(signal) => kill(Pid::from_raw(i32::try_from(seat.id()).unwrap()), signal).unwrap(),
        }
        assert_eq!(seat.ends(), Some(code), "{signal:?} {keys:?}");
        leaves_no_trace(&seat);
    }
}

const PANICS: &str = "PELTON_TEST_PANICS";

/// What the next test starts on a terminal of its own; by itself it does nothing.
#[test]
fn on_a_terminal_it_panics() {
    if std::env::var_os(PANICS).is_some() {
        let out = File::from(std::io::stdout().as_fd().try_clone_to_owned().unwrap());
        let mut terminal = Terminal::open(out, OnNarrowing::Cuts).unwrap();
        // It has the terminal, which looks as in a session, and much of that is still on its way.
        for number in 0..1_000 {
            terminal.paint(&[format!("line {number}").into()], &Default::default());
        }
        std::thread::spawn(|| panic!("nobody thought of this")).join().unwrap_err();
        // Whatever is still on its way has time to arrive, behind what the panic left.
        std::thread::sleep(std::time::Duration::from_millis(500));
        // What comes now is told by an end that runs no destructor.
        std::process::abort();
    }
}

#[test]
fn a_panic_is_told_on_a_terminal_that_is_as_it_was() {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "leaving::on_a_terminal_it_panics", "--nocapture"]).env(PANICS, "1");
    command.env("TERM", "xterm-256color");
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("nobody thought of this");
    assert_eq!(seat.ends(), None, "a signal ended it");
    leaves_no_trace(&seat);
    // In a raw terminal each line would begin where the last one ended.
    let rows = seat.rows();
    assert!(rows.iter().any(|row| row.starts_with("nobody thought of this")), "{rows:#?}");
}

#[test]
fn ctrl_z_gives_the_terminal_to_the_shell_and_fg_goes_on() {
    let place = Place::new();
    let model = model(Script::new().step(Step::reply([text("Well.")]).always()));
    place.put("bashrc", "PS1='shell$ '\n");
    let mut command = place.shell("exec bash --rcfile bashrc -i");
    command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
    let mut seat = Seat::with(command, 80, 24);
    seat.sees("shell$");
    seat.types("\"$PELTON\"\r");
    seat.sees("asks before changes");
    seat.types("half a tho");
    seat.sees("> half a tho");
    seat.types("\u{1a}");
    seat.sees("Stopped");
    // A shell of this kind reads keys itself; what was live is gone, and the cursor is back.
    assert!(is_last(&seat, "\u{1b}[?25h", "\u{1b}[?25l"));
    seat.sees_no_more("half a tho");
    seat.types("echo $((40 + 2))\r");
    seat.sees("42");
    seat.types("fg\r");
    seat.sees("> half a tho");
    seat.types("ught\r");
    seat.sees("Well.");
    seat.rests();
    seat.types("\u{4}");
    seat.sees("go on with: pelton --resume");
    seat.types("exit\r");
    seat.ends();
}

#[test]
fn whoever_stops_it_from_outside_finds_the_terminal_as_it_was() {
    for (words, ready) in [("", "asks before changes"), (" --plain", "> ")] {
        let place = Place::new();
        let model = model(Script::new().step(Step::reply([text("Well.")]).always()));
        place.put("bashrc", "PS1='shell$ '\n");
        let mut command = place.shell("exec bash --rcfile bashrc -i");
        command.asks(&model).env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        let mut seat = Seat::with(command, 80, 24);
        seat.sees("shell$");
        seat.types(&format!("sh -c 'echo $$ > id; exec \"$PELTON\"{words}'\r"));
        seat.sees("/help tells keys");
        seat.sees(ready);
        let id = place.read("id").trim().parse().unwrap();
        kill(Pid::from_raw(id), Signal::SIGTSTP).unwrap();
        seat.sees("Stopped");
        // What was live is gone, and the shell does not write into the middle of it.
        seat.sees_no_more("% context");
        seat.types("fg\r");
        let waits = |row: &str| row.trim_end() == ">" || row.contains("asks before changes");
        seat.until("it is back", |seat| {
            seat.screen().rsplit_once("$ fg\n").is_some_and(|(_, behind)| behind.lines().any(waits))
        });
        seat.types("go on\r");
        seat.sees("Well.");
        seat.types("/exit\r");
        seat.sees("go on with: pelton --resume");
        seat.types("exit\r");
        seat.ends();
    }
}
