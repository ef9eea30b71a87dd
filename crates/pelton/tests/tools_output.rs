//! Large output of a command, in a process of its own so that its memory can be measured.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use pelton::tools::builtin;
use pelton::tools::{Output, ResultBlock, Tool, ToolCx};
use serde_json::{Value, json};

const PRINTED_BYTES: usize = 200_000_000;
const EXTRA_RSS_KB_MAX: u64 = 16 * 1024;

fn session(dir: &Path) -> ToolCx {
    let mut cx = ToolCx::outside(dir);
    cx.env = [(OsString::from("PATH"), OsString::from("/usr/local/bin:/usr/bin:/bin"))].into();
    cx
}

async fn run(name: &str, input: Value, cx: &ToolCx) -> Output {
    let tool: Arc<dyn Tool> = builtin::all().into_iter().find(|tool| tool.spec().name == name).unwrap();
    tool.run(input, cx).await
}

fn text(output: &Output) -> &str {
    let [ResultBlock::Text(text)] = &output.content[..] else { panic!("{:?}", output.content) };
    text
}

/// A line of `/proc/self/status`, in kilobytes.
fn memory_kb(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn pit_T2_two_hundred_megabytes_are_head_tail_and_a_file_in_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(dir.path()).unwrap();
    let cx = session(&dir);
    // Whatever is set up on first use is not what is measured.
    run("Bash", json!({"command": "echo warm"}), &cx).await;
    let before = memory_kb("VmRSS");

    for line_bytes in [PRINTED_BYTES, 100] {
        for exit in [0, 1] {
            let lines = if line_bytes == PRINTED_BYTES {
                "tr '\\0' y".to_owned()
            } else {
                format!("tr '\\0' y | fold -b -w {}", line_bytes - 1)
            };
            // The same number of bytes as one line, or with a line end after every so many.
            let input_bytes = if line_bytes == PRINTED_BYTES {
                PRINTED_BYTES
            } else {
                PRINTED_BYTES / line_bytes * (line_bytes - 1)
            };
            let command = format!(
                "printf 'first€'; head -c {input_bytes} /dev/zero | {lines}; printf '€last'; exit {exit}"
            );
            let output = run("Bash", json!({"command": command}), &cx).await;
            let text = text(&output);
            assert_eq!(output.is_error, exit == 1);
            let text = if exit == 1 { text.strip_prefix("Exit code 1\n").unwrap() } else { text };
            assert!(text.starts_with("first€y") && text.ends_with("€last"));
            assert!(text.chars().count() < 31_000);

            let detail = output.detail.as_ref().unwrap();
            let kept = Path::new(detail["persistedOutputPath"].as_str().unwrap());
            let size = fs::metadata(kept).unwrap().len();
            assert_eq!(detail["persistedOutputSize"], size);
            assert!(size >= PRINTED_BYTES as u64, "{size}");
            let shown: usize =
                text.lines().filter(|line| !line.starts_with("[…")).map(|line| line.len() + 1).sum();
            let omitted: usize =
                text.split("[… ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
            assert!((omitted + shown).abs_diff(size as usize) <= 2, "{omitted} + {shown} of {size}");
            assert!(text.contains(kept.to_str().unwrap()));

            let peak = memory_kb("VmHWM");
            assert!(peak - before <= EXTRA_RSS_KB_MAX, "{} KB more", peak - before);

            // The file can be read with the tools, in as little memory.
            let offset = if line_bytes == PRINTED_BYTES { 1 } else { 1_000_000 };
            let page = run("Read", json!({"file_path": kept, "offset": offset, "limit": 3}), &cx).await;
            assert!(!page.is_error && self::text(&page).contains('y'));
            let peak = memory_kb("VmHWM");
            assert!(peak - before <= EXTRA_RSS_KB_MAX, "{} KB more", peak - before);
            fs::remove_file(kept).unwrap();
        }
    }
}
