//! `pelton doctor`: what is wrong with this installation, or with the record of a session, and a new one without that. The record itself
//! is never changed.

mod here; // everything around sessions

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use pelton::fresh_id;
use pelton::transcript::{self, Examined, FaultKind, Loaded, Mended, Mending, examine, holder, mend};
use pelton_model::RealWorld;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::args::{DoctorArgs, RunArgs};
use crate::fail::Fail;
use crate::sessions::{Shelf, say};

pub(crate) fn run(args: &DoctorArgs, run_args: &RunArgs) -> Result<ExitCode, Fail> {
    let Some(session) = args.session else { return here::run(run_args, args.json) };
    let shelf = Shelf::of_process()?;
    let file = shelf.find(session)?;
    let examined = examine(&file).map_err(|error| Fail::new(error.to_string()))?;
    if args.shrink {
        return made_anew(&file, Mending::Shrink, args.json);
    }
    if args.repair && examined.is_sound() {
        return say(&match args.json {
            true => format!("{}\n", json!({"session_id": null, "is_sound": true})),
            false => "Nothing is wrong with it, so no new session was written.\n".to_owned(),
        });
    }
    if args.repair {
        return made_anew(&file, Mending::Repair, args.json);
    }
    let loaded = transcript::read(&file).map_err(|error| Fail::new(error.to_string()))?;
    let told = match args.json {
        true => format!("{}\n", as_json(&file, &examined, &loaded)),
        false => in_words(&file, &examined, &loaded, args.explain),
    };
    say(&told)?;
    Ok(if examined.is_sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn made_anew(file: &Path, how: Mending, is_json: bool) -> Result<ExitCode, Fail> {
    let session = fresh_id(&RealWorld::new());
    let new = file.with_file_name(format!("{session}.jsonl"));
    let mended = mend(file, &new, session, how)
        .map_err(|error| Fail::new(format!("cannot write {}: {error}", new.display())))?;
    let Mended {
        lines_kept,
        lines_left_out,
        lines_joined,
        lines_changed,
        lines_summed_up,
        accounts_left_out,
        bytes_before,
        bytes_after,
        ..
    } = mended;
    if is_json {
        let told = json!({"session_id": session, "file": new, "lines_kept": lines_kept, "lines_left_out": lines_left_out,
            "lines_joined": lines_joined, "lines_changed": lines_changed, "lines_summed_up": lines_summed_up, "accounts_left_out": accounts_left_out, "bytes_before": bytes_before, "bytes_after": bytes_after});
        return say(&format!("{told}\n"));
    }
    let accounts = match how {
        Mending::Repair => String::new(),
        Mending::Shrink => format!(
            ", {lines_summed_up} that a summary stands for and {accounts_left_out} large accounts of results left out"
        ),
    };
    say(&format!(
        "A new session was written: {session}\n  {lines_kept} lines kept, {lines_left_out} left out, {lines_joined} joined to \
         another line{accounts}; {bytes_before} bytes before, {bytes_after} now\n  The old one is as it was. Go on with: \
         pelton --resume {session}\n"
    ))
}

fn in_words(file: &Path, examined: &Examined, loaded: &Loaded, explains: bool) -> String {
    let Examined { bytes, lines, boundaries, calls, calls_open, line_bytes_max, withdrawn, .. } = examined;
    let mut text = format!(
        "{}\n  {bytes} bytes, {lines} lines, the longest {line_bytes_max} bytes\n  {} messages go on, {boundaries} summaries, \
         {calls} calls\n",
        file.display(),
        loaded.entries.len()
    );
    // Writing to a text cannot fail.
    if *calls_open > 0 {
        let _ = writeln!(
            text,
            "  {calls_open} calls have no result: they are answered by a note, and never run again"
        );
    }
    if *withdrawn > 0 {
        let _ = writeln!(text, "  {withdrawn} messages were taken back and do not count");
    }
    if !loaded.queued.is_empty() {
        let _ = writeln!(text, "  {} prompts wait to be read", loaded.queued.len());
    }
    if let Some(holder) = holder(file) {
        let _ = writeln!(text, "  It is open ({holder}).");
    }
    if examined.is_sound() {
        text.push_str("Nothing is wrong with it.\n");
        return text;
    }
    if examined.is_torn {
        text.push_str("  Its last line is not ended: a write was cut. What is written next begins on a line of its own.\n");
    }
    for (kind, count) in &examined.faults {
        let _ = writeln!(text, "  {count} × {}", kind.name());
        if explains {
            let _ = writeln!(text, "      {}", meaning(*kind));
        }
    }
    for fault in examined.first_faults.iter().filter(|_| explains) {
        let _ = writeln!(text, "  line {}, byte {}: {}", fault.line, fault.place, fault.kind.name());
    }
    text.push_str("The session can be gone on with as it is. --repair writes a new one without these lines");
    text.push_str(if explains { ".\n" } else { "; --explain says more.\n" });
    text
}

/// What a fault means for whoever goes on.
fn meaning(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::NotJson => "The line was cut or overwritten. It is passed over; what follows is read.",
        FaultKind::Zeros => "The machine stopped before these bytes were on the disk. They are passed over.",
        FaultKind::TooLong => "No session writes such a line. It is passed over without being read.",
        FaultKind::NotUtf8 => "Bytes that are no text were replaced by a sign that says so.",
        FaultKind::Repeated => "The same message was written twice, say by a copy. It counts once.",
        FaultKind::ParentMissing => "A line is lost. What follows it is joined to the line before it.",
        FaultKind::ParentCycle => {
            "Lines name each other as what they follow. What stands first is joined to the line before it."
        }
        FaultKind::NotAMessage => {
            "The line lacks what a message has. It is passed over; what follows is read."
        }
        FaultKind::Changed => {
            "Somebody or something wrote in it since. It is sent as it is now, as far as servers take it, and thinking is left out."
        }
        FaultKind::TextMissing => {
            "A long text is kept in a file beside this one, and that file is gone or damaged."
        }
        FaultKind::ResultWithoutCall => {
            "The call is lost. The model is not sent its result, which it would refuse."
        }
        FaultKind::ResultRepeated => "The first result counts. The model is not sent the other.",
        _ => "It is passed over.",
    }
}

fn as_json(file: &Path, examined: &Examined, loaded: &Loaded) -> Value {
    let faults: serde_json::Map<String, Value> =
        examined.faults.iter().map(|(kind, count)| (kind.name().to_owned(), json!(count))).collect();
    let first: Vec<Value> = examined
        .first_faults
        .iter()
        .map(|fault| json!({"line": fault.line, "byte": fault.place, "fault": fault.kind.name(), "meaning": meaning(fault.kind)}))
        .collect();
    let id: Option<Uuid> = loaded.session_id;
    json!({
        "session_id": id,
        "file": file,
        "is_sound": examined.is_sound(),
        "bytes": examined.bytes,
        "lines": examined.lines,
        "line_types": examined.types,
        "messages": loaded.entries.len(),
        "summaries": examined.boundaries,
        "calls": examined.calls,
        "calls_open": examined.calls_open,
        "messages_withdrawn": examined.withdrawn,
        "prompts_waiting": loaded.queued.len(),
        "holder_pid": holder(file).map(|holder| holder.pid),
        "is_torn": examined.is_torn,
        "faults": faults,
        "first_faults": first,
    })
}
