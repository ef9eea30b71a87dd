//! Files that a program may write, going by what its options are called: `--output x`, `--out-dir=x`, `-o x`. Nobody can list every
//! program that has such options. What is found here is only asked about, and only where a rule guards the file, or its name is protected.

use super::arg::{Arg, Files};
use super::deeds::may_be_option;
use super::launch::base_name;

/// The files that the options of a command may name for it to write.
pub(super) fn may_write(args: &[Arg]) -> Vec<Files> {
    let Some((name, rest)) = args.split_first() else { return Vec::new() };
    let Some(name) = name.literal().map(base_name) else { return Vec::new() };
    let mut files = Vec::new();
    for (at, arg) in rest.iter().enumerate() {
        let text = arg.prefix();
        let Some(option) = text.strip_prefix('-') else { continue };
        let next = || rest.get(at + 1).and_then(Arg::probable_files);
        let is_long = option.starts_with('-');
        let is_own = |option: &str| {
            let begins = |known: &str| is_long && option.len() > 2 && may_be_option(option, known);
            OUTPUTS_OF.iter().any(|(of, known)| *of == name && (*known == option || begins(known)))
        };
        let is_known = |option: &str| is_output(option) || is_own(option);
        match option.trim_start_matches('-').split_once('=') {
            Some((option, value)) if is_known(option) || is_mount(name, option) => {
                files.extend(arg.literal().and_then(|_| named(value)));
            }
            None if is_known(option.trim_start_matches('-')) => files.extend(next()),
            None if is_mount(name, option.trim_start_matches('-')) => {
                files.extend(rest.get(at + 1).and_then(Arg::literal).and_then(named));
            }
            // `-ofile`
            _ if option.starts_with('o') && option.len() > 1 => files.extend(named(&option[1..])),
            _ => {}
        }
    }
    match name {
        // A database is opened to be written.
        "sqlite3" | "duckdb" => {
            let is_readonly =
                rest.iter().any(|arg| matches!(arg.literal(), Some("-readonly" | "--readonly")));
            let operand = rest.iter().find(|arg| !arg.prefix().starts_with('-'));
            files.extend(operand.filter(|_| !is_readonly).and_then(Arg::probable_files));
        }
        "ssh-keygen" => {
            let at = rest.iter().position(|arg| arg.literal() == Some("-f"));
            files.extend(at.and_then(|at| rest.get(at + 1)).and_then(Arg::probable_files));
        }
        // Its variables may say where it prints to.
        "awk" | "gawk" | "mawk" if rest.iter().any(|arg| arg.prefix().contains('>')) => {
            let values = rest.iter().filter_map(Arg::literal).filter_map(|word| word.split_once('='));
            files.extend(values.filter_map(|(_, value)| named(value)));
        }
        // `%output{file}` in what it says at the end.
        "curl" => {
            let formats =
                rest.iter().filter_map(Arg::literal).flat_map(|text| text.split("%output{").skip(1));
            let targets = formats.filter_map(|behind| behind.split_once('}'));
            files.extend(targets.filter_map(|(target, _)| named(target.trim_start_matches('>'))));
        }
        "mount" => files.extend(rest.last().and_then(Arg::probable_files)),
        _ => {}
    }
    files
}

/// Options of single programs that say where something is put.
const OUTPUTS_OF: &[(&str, &str)] = &[
    ("aria2c", "d"),
    ("aria2c", "dir"),
    ("babel", "d"),
    ("cargo", "root"),
    ("cmake", "B"),
    ("cmake", "install-prefix"),
    ("curl", "alt-svc"),
    ("curl", "etag-save"),
    ("curl", "hsts"),
    ("curl", "libcurl"),
    ("curl", "stderr"),
    ("curl", "trace"),
    ("curl", "trace-ascii"),
    ("git", "export-marks"),
    ("git", "file"),
    ("git", "separate-git-dir"),
    ("gh", "D"),
    ("gh", "dir"),
    ("logrotate", "s"),
    ("logrotate", "state"),
    ("mysqldump", "r"),
    ("mysqldump", "result-file"),
    ("nmap", "oA"),
    ("nmap", "oG"),
    ("nmap", "oN"),
    ("nmap", "oS"),
    ("nmap", "oX"),
    ("pg_dump", "f"),
    ("pg_dump", "file"),
    ("pip", "d"),
    ("pip", "root"),
    ("pip", "t"),
    ("pip", "target"),
    ("pip", "w"),
    ("pip", "wheel-dir"),
    ("pip3", "d"),
    ("pip3", "root"),
    ("pip3", "t"),
    ("pip3", "target"),
    ("pip3", "w"),
    ("pip3", "wheel-dir"),
    ("rsync", "T"),
    ("rsync", "backup-dir"),
    ("rsync", "partial-dir"),
    ("rsync", "temp-dir"),
    ("rsync", "write-batch"),
    ("sort", "T"),
    ("sort", "temporary-directory"),
    ("uv", "t"),
    ("uv", "target"),
    ("wget", "hsts-file"),
    ("wget", "rejected-log"),
    ("wget", "save-cookies"),
    ("wget", "warc-file"),
];

/// Where a directory of the machine is shown to a container, which may write there.
fn is_mount(program: &str, option: &str) -> bool {
    matches!(program, "docker" | "podman" | "nerdctl") && matches!(option, "v" | "volume" | "mount")
}

/// Whether an option of this name says where something is put.
fn is_output(option: &str) -> bool {
    let parts = option.split(['-', '_']).map(str::to_ascii_lowercase);
    let says_so = |part: String| {
        matches!(part.as_str(), "o" | "out" | "dest" | "destination" | "logfile")
            || part.starts_with("output")
            // The beginning of a name is as good as all of it.
            || matches!(part.as_str(), "outp" | "outpu")
            || part.starts_with("outdir")
            || part.starts_with("outfile")
    };
    matches!(option, "log-file" | "prefix" | "target-dir") || parts.into_iter().any(says_so)
}

/// The file of `file`, `file:/inside` or `type=bind,src=file,dst=x`, unless it is only for reading.
fn named(value: &str) -> Option<Files> {
    let source = value.split(',').find_map(|part| {
        let (name, value) = part.split_once('=')?;
        matches!(name, "src" | "source").then_some(value)
    });
    let is_read_only = value.ends_with(":ro") || value.contains(",readonly") || value.contains(",ro");
    let path = source.or_else(|| value.split(':').next()).unwrap_or(value);
    (!is_read_only && !path.is_empty()).then(|| Files::Named(path.to_owned()))
}
