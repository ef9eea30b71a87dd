//! A long session, shorter than `scripts/bench soak` plays it: long enough to see whether anything is kept that is not needed.

use std::process::Command;

/// Some hundred results are cleared in these, most stretches are folded or summed up, and a dozen agents come and go.
const TURNS: &str = "600";

#[test]
fn pit_M1_a_long_session_stays_small_and_flat() {
    let ran = Command::new(env!("CARGO_BIN_EXE_soak")).arg(TURNS).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{told}{}", String::from_utf8_lossy(&ran.stderr));
    let last = told.lines().last().unwrap_or_default();
    assert!(last.contains("12 agents") && !last.contains(" 0 summaries"), "{told}");
}
