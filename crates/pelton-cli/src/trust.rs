//! `pelton trust`: what a directory would add to a session, and whether it may.

use std::io::{BufRead, IsTerminal, Write};
use std::process::ExitCode;

use pelton::settings::Approval;
use pelton_tui::clean::revealed_line;

use crate::args::TrustArgs;
use crate::fail::Fail;
use crate::resolve::{self, Env, Imports, Trust, told_imports};

pub(crate) fn run(args: &TrustArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let dir = match &args.dir {
        Some(dir) => dir.canonicalize().map_err(|error| Fail::new(format!("{}: {error}", dir.display())))?,
        None => resolve::working_directory()?,
    };
    let trust = Trust::in_dir(&env, &dir);
    let root = revealed_line(&trust.root().to_string_lossy());
    let not_kept = |error: String| Fail::new(format!("the answer cannot be kept: {error}"));
    if args.revoke {
        trust
            .say(&env, false)
            .and_then(|()| trust.say_of_imports(&env, Imports::Forgotten))
            .map_err(not_kept)?;
        return say(&format!("{root} is not trusted any more.\n"));
    }
    let adds = resolve::would_add(&env, &dir);
    let mut told = format!("{root} is {}.\n", if trust.is_given() { "trusted" } else { "not trusted" });
    match adds.is_empty() {
        true => told.push_str("It adds nothing to a session.\n"),
        false => told.push_str("What it adds to a session once it is trusted:\n"),
    }
    told.extend(adds.iter().map(|line| format!("  {}\n", revealed_line(line))));
    let new = trust.new_settings(&env);
    if trust.is_given() && !new.is_empty() {
        told.push_str("Of that, nobody has seen this yet:\n");
        told.extend(new.iter().map(|power| format!("  {}\n", revealed_line(&power.told()))));
    }
    let imports = trust.imports(&env);
    if !imports.is_empty() {
        told.push_str("What its instruction files import from outside of it, once that is approved:\n");
        told.push_str(&told_imports(&imports));
    }
    let all_approved = trust.servers(&env).iter().all(|(_, approval)| *approval == Approval::Given);
    if trust.is_given() && all_approved && new.is_empty() && imports.is_empty() {
        return say(&told);
    }
    let is_wanted = args.yes || {
        say(&told)?;
        told.clear();
        std::io::stdin().is_terminal() && asked(&format!("Trust {root}, and all that is in it? [y/N] "))?
    };
    if !is_wanted {
        return say("Nothing was changed. With --yes it is trusted.\n");
    }
    trust.say(&env, true).map_err(not_kept)?;
    if !imports.is_empty() {
        trust.say_of_imports(&env, Imports::Approved).map_err(not_kept)?;
    }
    say(&format!("{told}{root} is trusted from now on.\n"))
}

pub(crate) fn asked(question: &str) -> Result<bool, Fail> {
    say(question)?;
    let mut line = String::new();
    let read = std::io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Fail::new(format!("cannot read the answer: {error}")))?;
    Ok(matches!(line.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
}

pub(crate) fn say(text: &str) -> Result<ExitCode, Fail> {
    let mut out = std::io::stdout();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    written.map_err(|error| Fail::new(format!("cannot write to standard output: {error}")))?;
    Ok(ExitCode::SUCCESS)
}
