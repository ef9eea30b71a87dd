//! Many calls from a file, judged one by one and compared with what is expected.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::process::ExitCode;

use serde_json::{Map, Value};

use super::case::{Case, Defaults};
use super::show;
use crate::args::CheckArgs;
use crate::fail::{Fail, tell};
use crate::resolve::{Env, config_dir, working_directory};

/// The most bytes of one case.
const CASE_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Default)]
struct Count {
    cases: usize,
    allow: usize,
    ask: usize,
    deny: usize,
    unreadable: usize,
    expected: usize,
    different: usize,
}

pub(super) fn check(args: &CheckArgs) -> Result<ExitCode, Fail> {
    let env = Env::of_process();
    let defaults =
        Defaults { cwd: working_directory()?, home: env.path("HOME"), config_dir: config_dir(&env) };
    let Some(file) = args.corpus.as_ref().or(args.file.as_ref()) else {
        return Err(Fail::new(
            "name a file of cases: pelton permissions check --corpus FILE (or - for standard input)",
        ));
    };
    let reader: Box<dyn BufRead> = if file.as_os_str() == "-" {
        Box::new(BufReader::new(io::stdin()))
    } else {
        let open = File::open(file).map_err(|error| Fail::new(format!("{}: {error}", file.display())))?;
        Box::new(BufReader::new(open))
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut count = Count::default();
    for (at, line) in reader.lines().enumerate() {
        let line =
            line.map_err(|error| Fail::new(format!("{}, line {}: {error}", file.display(), at + 1)))?;
        let line = line.trim();
        // A comment is borne.
        if line.is_empty() || line.starts_with("//") || line.starts_with('#') {
            continue;
        }
        let written = judge_line(line, at + 1, &defaults, args, &mut count, &mut out);
        if let Err(error) = written {
            return if error.kind() == io::ErrorKind::BrokenPipe {
                Ok(ExitCode::from(141))
            } else {
                Err(Fail::new(format!("cannot write: {error}")))
            };
        }
    }
    let _ = out.flush();
    drop(out);
    let Count { cases, allow, ask, deny, unreadable, expected, different } = count;
    let summary = format!(
        "{cases} cases: {allow} allowed, {ask} asked, {deny} denied, {unreadable} not understood; {} of {expected} as expected, {different} different",
        expected - different
    );
    if args.json {
        tell(&summary);
    } else {
        let _ = writeln!(io::stdout(), "{summary}");
    }
    Ok(if different > 0 || unreadable > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn judge_line(
    line: &str,
    number: usize,
    defaults: &Defaults,
    args: &CheckArgs,
    count: &mut Count,
    out: &mut impl Write,
) -> io::Result<()> {
    count.cases += 1;
    let judged = if line.len() > CASE_BYTES_MAX {
        Err((number.to_string(), "is larger than 4 MiB".to_owned()))
    } else {
        let case = Case::read(line, number, defaults).map_err(|error| (number.to_string(), error));
        case.and_then(|case| match case.judge() {
            Ok(decision) => Ok((case, decision)),
            Err(error) => Err((case.id, error)),
        })
    };
    let (case, decision) = match judged {
        Ok(judged) => judged,
        Err((id, error)) => {
            count.unreadable += 1;
            let object = Map::from_iter([
                ("id".to_owned(), id.clone().into()),
                ("error".to_owned(), error.clone().into()),
            ]);
            return if args.json {
                writeln!(out, "{}", Value::Object(object))
            } else {
                writeln!(out, "{id}\terror\t{error}")
            };
        }
    };
    let verdict = decision.verdict.name();
    match verdict {
        "allow" => count.allow += 1,
        "ask" => count.ask += 1,
        _ => count.deny += 1,
    }
    let is_expected = case.expect.is_empty() || case.expect.iter().any(|expected| expected == verdict);
    count.expected += usize::from(!case.expect.is_empty());
    count.different += usize::from(!is_expected);
    if args.only_different && is_expected {
        return Ok(());
    }
    if args.json {
        let mut object = Map::new();
        object.insert("id".to_owned(), case.id.into());
        object.extend(show::json(&decision));
        if !case.expect.is_empty() {
            object.insert("expect".to_owned(), case.expect.into());
            object.insert("as_expected".to_owned(), is_expected.into());
        }
        if !case.warnings.is_empty() {
            object.insert("warnings".to_owned(), case.warnings.into());
        }
        return writeln!(out, "{}", Value::Object(object));
    }
    let expected =
        if is_expected { String::new() } else { format!("\texpected {}", case.expect.join(" or ")) };
    let line = pelton_serve::plain(&show::line(&decision)).replace('\n', " ");
    writeln!(out, "{}\t{line}{expected}", case.id)
}
