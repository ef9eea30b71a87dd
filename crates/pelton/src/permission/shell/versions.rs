//! Programs that are asked for nothing but their version, or how they are called.

use super::arg::Arg;
use super::programs::{self, Operands};

/// Programs that say which version they are without looking at the directory they are run in.
const VERSIONED: &[&str] = &[
    "node",
    "npm",
    "npx",
    "python",
    "python3",
    "pip",
    "pip3",
    "ruby",
    "gem",
    "go",
    "rustc",
    "cargo",
    "rustup",
    "rustfmt",
    "java",
    "javac",
    "gcc",
    "g++",
    "cc",
    "c++",
    "clang",
    "clang++",
    "ld",
    "make",
    "cmake",
    "ninja",
    "docker",
    "podman",
    "kubectl",
    "helm",
    "terraform",
    "deno",
    "bun",
    "php",
    "perl",
    "lua",
    "git",
    "gh",
    "bash",
    "sh",
    "zsh",
    "jq",
    "yq",
    "rg",
    "fd",
    "fdfind",
    "grep",
    "sed",
    "awk",
    "gawk",
    "tar",
    "curl",
    "wget",
    "ssh",
    "openssl",
    "sqlite3",
    "psql",
    "mysql",
    "ffmpeg",
    "uv",
    "poetry",
    "dotnet",
    "swift",
    "zig",
    "ghc",
    "ocaml",
    "elixir",
    "erl",
    "scala",
    "kotlin",
    "julia",
    "R",
    "nvim",
    "vim",
    "emacs",
    "nano",
    "tmux",
    "ls",
    "cat",
    "find",
    "sort",
    "bat",
    "tree",
    "rsync",
    "zip",
    "unzip",
    "strace",
    "gdb",
    "lldb",
    "valgrind",
    "protoc",
    "aws",
    "tsc",
    "eslint",
    "prettier",
    "redis-cli",
    "ctags",
    "delta",
    "hyperfine",
    "ldd",
    "shellcheck",
    "cloc",
    "tokei",
    "nginx",
    "ffprobe",
    "convert",
    "identify",
];

/// Programs that print how they are called and end. Others show it in a pager or a browser.
pub(super) fn is_help(name: &str, args: &[Arg]) -> bool {
    let [arg] = args else { return false };
    let prints = programs::program(name).is_some_and(|program| program.operands != Operands::Anything)
        || matches!(
            name,
            "find" | "sed" | "awk" | "tar" | "git" | "cargo" | "rustc" | "python3" | "node" | "make"
        );
    prints && arg.literal() == Some("--help")
}

pub(super) fn is_version(name: &str, args: &[Arg]) -> bool {
    let [arg] = args else { return false };
    VERSIONED.contains(&name)
        && matches!(
            (name, arg.literal()),
            (_, Some("--version"))
                | ("go" | "openssl" | "terraform", Some("version"))
                | ("make" | "nginx" | "node" | "npm" | "ruby" | "perl" | "php", Some("-v"))
                | ("ssh" | "python" | "python3" | "pip" | "pip3" | "cargo" | "rustc", Some("-V"))
                | (
                    "ffmpeg" | "ffprobe" | "convert" | "identify" | "java" | "javac" | "scala",
                    Some("-version")
                )
                | ("rustc", Some("-vV"))
        )
}
