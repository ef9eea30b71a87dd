//! How long it takes to read a command: `cargo bench -p pelton-shell`.

use std::hint::black_box;
use std::time::Instant;

/// Each command is read in batches, and the quickest batch counts: the others were disturbed by something else.
const BATCHES: u32 = 60;
const ROUNDS: u32 = 60;

fn main() {
    let longest = "echo 'a b' \"$(date)\" | grep -n x; ".repeat(290);
    let commands = [
        ("short", "ls -la src"),
        ("typical", "cd crates && cargo test -p pelton-shell 2>&1 | tail -n 20"),
        ("quoted", r#"git commit -m "It's \"done\"" --author='A B <a@b.c>' -- 'a file' b\ file"#),
        (
            "message",
            "git add -A && git commit -m \"$(cat <<'EOF'\nFix the thing\n\nBecause it was broken.\nEOF\n)\"",
        ),
        (
            "script",
            "set -e\nfor f in a b c; do\n  if [ -f \"$f\" ]; then cat \"$f\" | sed -n '1,5p' > \"$f.out\"; fi\ndone",
        ),
        ("launchers", "sudo env A=1 timeout 5 bash -c 'find . -name x -exec rm {} +'"),
        ("longest", longest.as_str()),
    ];
    for (name, command) in commands {
        let rounds = if command.len() > 1_000 { 2 } else { ROUNDS };
        let batch = || {
            let started = Instant::now();
            for _ in 0..rounds {
                let script = pelton_shell::read(black_box(command)).expect("these can be read");
                for command in &script.commands {
                    black_box(pelton_shell::further_commands(command));
                }
            }
            started.elapsed() / rounds
        };
        let each = (0..BATCHES).map(|_| batch()).min().unwrap_or_default();
        println!("{name:>10}  {:>5} characters  {:>9.1} µs", command.len(), each.as_secs_f64() * 1e6);
    }
}
