//! The whole program beside a client with no agent in it, in one run: `scripts/bench wire`.
//!
//!     wire PELTON [--peer NAME]... [--quick] [--idle SECONDS] [--only ROWS,...] [--out DIRECTORY]
//!
//! Every program is run in turn, round by round, so that all see the same weather; medians count. Others that are on the path
//! can be added by name. The table is printed and written as Markdown, JSON and a picture.

mod measure; // what a process takes
mod model; // the other end of the wire
mod places; // where tasks are done
mod plot; // the table as a picture
mod programs; // who is measured
mod rows; // what is measured
mod table; // what came of it

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::model::Model;
use crate::places::Place;
use crate::programs::{PEERS, Program, on_path};
use crate::rows::{Bench, crowd, start, stream, turns};
use crate::table::Results;

/// Rows that can be run alone.
const ROWS: [&str; 10] =
    ["start", "turns", "tools", "deltas", "output", "growth", "resume", "sessions", "disk", "idle"];

struct Args {
    pelton: PathBuf,
    peers: Vec<String>,
    quick: bool,
    idle: Option<u64>,
    only: Vec<String>,
    out: PathBuf,
}

fn main() -> ExitCode {
    match args().and_then(|args| run(&args).map_err(|error| error.to_string())) {
        Ok(code) => code,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn args() -> Result<Args, String> {
    let mut args = Args {
        pelton: PathBuf::new(),
        peers: Vec::new(),
        quick: false,
        idle: None,
        only: Vec::new(),
        out: "target/wire".into(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        match word.as_str() {
            "--peer" => {
                let name = value()?;
                if !PEERS.contains(&name.as_str()) {
                    return Err(format!("no peer is called '{name}': {}", PEERS.join(", ")));
                }
                if on_path(&name).is_none() {
                    return Err(format!("'{name}' is not on the path"));
                }
                args.peers.push(name);
            }
            "--quick" => args.quick = true,
            "--idle" => args.idle = Some(value()?.parse().map_err(|_| "--idle needs seconds".to_owned())?),
            "--only" => args.only = value()?.split(',').map(str::to_owned).collect(),
            "--out" => args.out = value()?.into(),
            _ if args.pelton.as_os_str().is_empty() && !word.starts_with('-') => args.pelton = word.into(),
            _ => return Err(format!("unknown: '{word}'")),
        }
    }
    if let Some(unknown) = args.only.iter().find(|row| !ROWS.contains(&row.as_str())) {
        return Err(format!("no rows are called '{unknown}': {}", ROWS.join(", ")));
    }
    if !args.pelton.is_file() {
        return Err("the first word is the program to measure".to_owned());
    }
    Ok(args)
}

fn run(args: &Args) -> io::Result<ExitCode> {
    let beside = std::env::current_exe()?;
    let tool = |name: &str| beside.with_file_name(name);
    let mut programs = vec![Program::Bare(tool("bare")), Program::Pelton(args.pelton.canonicalize()?)];
    programs.extend(args.peers.iter().cloned().map(Program::Peer));
    let dir = tempfile::tempdir()?;
    let bench = Bench {
        programs,
        crowd: tool("crowd"),
        model: Model::start()?,
        tiny: Place::tiny(dir.path())?,
        small: Place::small(dir.path())?,
        repository: Place::repository(dir.path())?,
        rounds: if args.quick { 5 } else { 41 },
        idle: Duration::from_secs(args.idle.unwrap_or(if args.quick { 5 } else { 600 })),
        long_turns: if args.quick { 200 } else { 2_000 },
        crowds: if args.quick { vec![100] } else { vec![1_000, 10_000] },
        long_rounds: if args.quick { 1 } else { 5 },
    };
    for place in [&bench.tiny, &bench.small, &bench.repository] {
        place.name_model(&bench.model.address())?;
    }
    let results = measured(&bench, args)?;
    let table = results.markdown();
    println!("{table}");
    fs::create_dir_all(&args.out)?;
    fs::write(args.out.join("wire.md"), &table)?;
    fs::write(args.out.join("wire.json"), format!("{:#}\n", results.json()))?;
    fs::write(args.out.join("wire.svg"), plot::svg(&results))?;
    println!("written to {}", args.out.display());
    Ok(ExitCode::SUCCESS)
}

fn measured(bench: &Bench, args: &Args) -> io::Result<Results> {
    let wanted = |row: &str| {
        let wanted = args.only.is_empty() || args.only.iter().any(|only| only == row);
        if wanted {
            eprintln!("measuring: {row}");
        }
        wanted
    };
    let (mut rows, mut curves) = (Vec::new(), Vec::new());
    if wanted("start") {
        for (place, name) in
            [(&bench.tiny, "a small repository"), (&bench.repository, "a repository of 2,000 files")]
        {
            rows.extend(start::one(bench, place, name)?);
            rows.push(start::git(bench, place, name)?);
        }
        rows.push(start::first_bytes(bench)?);
    }
    if wanted("turns") {
        rows.extend(turns::small(bench)?);
    }
    if wanted("tools") {
        rows.extend(turns::tool_start(bench)?);
    }
    if wanted("deltas") {
        rows.extend(stream::cpu(bench)?);
        rows.push(stream::latency(bench)?);
    }
    if wanted("output") {
        rows.push(turns::long_output(bench)?);
    }
    if wanted("growth") {
        let (more, drawn) = turns::growth(bench)?;
        rows.extend(more);
        curves.extend(drawn);
    }
    // A gigabyte is written for it, so a quick run leaves it out unless it is asked for.
    if wanted("resume") && (!args.quick || !args.only.is_empty()) {
        rows.extend(start::resume(bench)?);
    }
    if wanted("sessions") {
        rows.extend(crowd::sessions(bench)?);
    }
    if wanted("disk") {
        rows.extend(crowd::disk(bench)?);
    }
    if wanted("idle") {
        rows.extend(start::idle(bench)?);
    }
    Ok(Results { how: how(bench, args), rows, curves })
}

/// What somebody needs to know to believe it, or to do it again.
fn how(bench: &Bench, args: &Args) -> Vec<(String, String)> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .unwrap_or("")
        .trim_start_matches([' ', '\t', ':']);
    let cores = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let version = Command::new(&args.pelton).arg("--version").output();
    let version =
        version.map(|ran| String::from_utf8_lossy(&ran.stdout).trim().to_owned()).unwrap_or_default();
    let load = read("/proc/loadavg").split_whitespace().next().unwrap_or("?").to_owned();
    let mut how = vec![
        ("machine".to_owned(), format!("{cores} cores, {model}, Linux {}", read("/proc/sys/kernel/osrelease").trim())),
        ("load at the end".to_owned(), format!("{load} (figures of a busy machine are worth nothing but their ratios)")),
        ("pelton".to_owned(), version),
        ("model".to_owned(), "on loopback; it reads requests to their end and looks at nothing in them".to_owned()),
        (
            "limit".to_owned(),
            "a client that sends as many bytes, reads the stream, reads the file or runs the command, and sends again: no agent is in it".to_owned(),
        ),
        ("records".to_owned(), "transcripts on, written before anything is told, synced as by default".to_owned()),
        ("git".to_owned(), "its processes are part of the CPU of whoever starts them, and shown apart; Pelton reads the state of a repository itself: that is the CPU of a run less that of one told not to".to_owned()),
        ("rounds".to_owned(), format!("{} short runs, {} long ones, the programs in turn", bench.rounds, bench.long_rounds)),
    ];
    if args.quick {
        how.push(("quick".to_owned(), "few rounds, short sessions: to see that it runs".to_owned()));
    }
    how
}
