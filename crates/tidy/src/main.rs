//! `cargo run -p tidy` reports what breaks a house rule; with `--write` it writes the conformance page first.

use std::fs;
use std::io;
use std::process::ExitCode;

use tidy::{RULES, Tree, conformance, root};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("tidy: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> io::Result<ExitCode> {
    let mut tree = Tree::read(root())?;
    match arguments {
        [] => {}
        [flag] if flag == "--write" => {
            fs::write(root().join(conformance::PAGE), conformance::page(&tree))?;
            tree = Tree::read(root())?;
        }
        _ => {
            eprintln!("usage: tidy [--write]");
            return Ok(ExitCode::from(2));
        }
    }
    let mut broken = 0;
    for (name, rule) in RULES {
        for finding in rule(&tree) {
            println!("{name}: {finding}");
            broken += 1;
        }
    }
    println!("tidy: {} rules, {broken} findings", RULES.len());
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
