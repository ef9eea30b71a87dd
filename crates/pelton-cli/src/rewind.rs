//! `pelton rewind`: files as they were when a message was sent, and how the conversation goes on from there.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use pelton::file_history::{Conflicts, FileHistory, FileHistoryLimits, HistoryError, Rewound, RewoundKind};
use pelton::transcript::{find_session, read_window};
use pelton_model::RealWorld;
use pelton_serve::plain;
use uuid::Uuid;

use crate::args::{RewindArgs, RunArgs};
use crate::fail::Fail;
use crate::resolve::{Env, sessions, working_directory};

/// `--resume SESSION --rewind-files MESSAGE` means the same.
pub(crate) fn asked_for(args: &RunArgs) -> Result<Option<RewindArgs>, Fail> {
    let (Some(to), Some(session)) = (args.rewind_files, &args.resume) else { return Ok(None) };
    let session = session.parse().map_err(|_| Fail::no_conversation(session))?;
    Ok(Some(RewindArgs { session, to: Some(to), dry_run: false, undo: false, force: false }))
}

pub(crate) fn run(args: &RewindArgs) -> Result<ExitCode, Fail> {
    let config_dir = sessions::config_dir(&Env::of_process())
        .ok_or_else(|| Fail::new("cannot look for sessions: set CLAUDE_CONFIG_DIR or HOME"))?;
    let limits = FileHistoryLimits::default();
    let history = FileHistory::of_session(&config_dir, args.session, limits, Arc::new(RealWorld::new()));
    let conflicts = if args.force { Conflicts::Overwrite } else { Conflicts::Leave };
    let rewound = match (args.undo, args.dry_run) {
        (true, true) => history.preview_undo(),
        (true, false) => history.undo(conflicts),
        (false, true) => message(args, &history).and_then(|to| history.preview(to)),
        (false, false) => message(args, &history).and_then(|to| history.rewind(to, conflicts)),
    };
    let rewound = rewound.map_err(|error| Fail::new(error.to_string()))?;
    let mut told = words(&rewound, args.dry_run);
    if let (false, Ok(to)) = (args.undo, message(args, &history)) {
        told.push_str(&conversation(&config_dir, args.session, to).unwrap_or_default());
    }
    let written = std::io::stdout().write_all(plain(&told).as_bytes());
    written.map_err(|error| Fail::new(format!("cannot write to standard output: {error}")))?;
    let all_done = args.dry_run || rewound.files.iter().all(|file| file.left.is_none());
    Ok(if all_done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn message(args: &RewindArgs, history: &FileHistory) -> Result<Uuid, HistoryError> {
    match args.to {
        Some(to) => Ok(to),
        None => history.messages()?.last().copied().ok_or(HistoryError::NoSuchMessage),
    }
}

/// What was said since, and how to go on without it: the record itself is never taken back.
fn conversation(config_dir: &Path, session: Uuid, to: Uuid) -> Option<String> {
    let file = find_session(config_dir, &working_directory().ok()?, session)?;
    let said = read_window(&file).ok()?.entries;
    let since = said.len() - said.iter().position(|entry| entry.id == to)?;
    Some(format!(
        "The conversation has {since} messages from there on. To go on without them: pelton -p \"...\" --resume {session} \
         --resume-drops-turn {to}\n"
    ))
}

fn words(rewound: &Rewound, dry_run: bool) -> String {
    let mut told = String::new();
    for file in &rewound.files {
        let verb = match (file.kind, dry_run) {
            _ if file.left.is_some() => "left",
            (RewoundKind::Restored, true) => "would restore",
            (RewoundKind::Recreated, true) => "would bring back",
            (RewoundKind::Removed, true) => "would remove",
            (RewoundKind::Restored, false) => "restored",
            (RewoundKind::Recreated, false) => "brought back",
            (RewoundKind::Removed, false) => "removed",
        };
        let why = file.left.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        // Writing to a text cannot fail.
        let _ =
            writeln!(told, "{verb} {} +{} -{}{why}", file.path.display(), file.insertions, file.deletions);
    }
    if rewound.files.is_empty() {
        told.push_str("Nothing to do: the files are as they were.\n");
    }
    for (path, why) in &rewound.uncovered {
        let _ = writeln!(told, "not covered: {} ({why})", path.display());
    }
    if rewound.uncovered_more > 0 {
        let _ = writeln!(told, "not covered: {} more", rewound.uncovered_more);
    }
    told
}
