//! How a release is linked: the functions that a run of one answer goes through lie side by side, and relocations are packed.
//! The kernel brings in the pages around every one that is touched, so what lies scattered over the whole program weighs
//! several times what it is (docs/decisions/086-what-runs-together-lies-together.md).

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The functions, by their names in object files; `scripts/order` writes it.
const ORDER: &str = "link/order.txt";

fn main() {
    for input in ["build.rs", ORDER] {
        println!("cargo:rerun-if-changed={input}");
    }
    if !is_usual_release() {
        return;
    }
    let (Ok(order), Ok(out)) = (fs::read_to_string(ORDER), env::var("OUT_DIR")) else { return };
    let script = Path::new(&out).join("order.ld");
    // Without it the program is only larger in memory.
    if !order.is_empty() && fs::write(&script, linker_script(&order)).is_ok() {
        println!("cargo:rustc-link-arg-bins=-Wl,-T,{}", script.display());
    }
    if loader_knows_packed_relocations() {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// A release for Linux, with the linker that comes with the compiler or the system: whoever chose another may have one that reads
/// no scripts.
fn is_usual_release() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    is("PROFILE", "release")
        && is("CARGO_CFG_TARGET_OS", "linux")
        && is("CARGO_CFG_TARGET_ENV", "gnu")
        && env::var_os("RUSTC_LINKER").is_none()
        && !flags.contains("linker")
        && !flags.contains("fuse-ld")
}

/// A section in front of the others for each group of functions. The end of a name may differ: the compiler adds to it.
fn linker_script(order: &str) -> String {
    let mut script = String::from("SECTIONS {\n  .text.start : {\n");
    for group in order.split("\n\n") {
        let names = group.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        let pattern = |name: &str| format!("    .text.{name}* .text.unlikely.{name}*\n");
        let patterns: Vec<String> = names.map(pattern).collect();
        if !patterns.is_empty() {
            script += &format!("  *(\n{}  )\n", patterns.concat());
        }
    }
    script + "  }\n}\nINSERT BEFORE .text;\n"
}

/// Loaders of glibc before 2.36 refuse programs whose relocations are packed.
fn loader_knows_packed_relocations() -> bool {
    let is_for_this_machine = env::var("HOST").is_ok() && env::var("HOST") == env::var("TARGET");
    let Ok(asked) = Command::new("getconf").arg("GNU_LIBC_VERSION").output() else { return false };
    let said = String::from_utf8_lossy(&asked.stdout);
    let version = said.trim().strip_prefix("glibc 2.").and_then(|minor| minor.parse::<u32>().ok());
    is_for_this_machine && version.is_some_and(|minor| minor >= 36)
}
