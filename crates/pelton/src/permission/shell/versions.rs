//! Programs that are asked for nothing but their version, or how they are called.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::arg::Arg;
use super::look::Look;
use super::programs::{self, Operands};

/// Programs that say which version they are, and how they are called, without running anything that the directory they are
/// run in chooses. Left out on purpose: those that ask a project first which of them is meant (`yarn`, `pnpm`, `bazel`,
/// `gradlew`), load what it configures (`pytest`, `jest`, `vite`), or do not know the question and start (`erl`).
const VERSIONED: &str = "
    7z actionlint addr2line age ar autoconf automake awk aws base64 bash bat biome bison black brew buf
    buildah bun bzip2 c++ cargo cat cc ccache chmod chown clang clang++ clang-format clang-tidy clangd
    clickhouse clippy-driver cloc cmake cmp code comm conda consul containerd convert cp crictl crystal
    ctags curl cut dart date delta deno df diff docker dot dotnet dprint du duckdb duf dust elixir emacs env
    esbuild eslint etcd etcdctl expr eza fd fdfind ffmpeg ffprobe file find flex free fzf g++ gawk gcc
    gcloud gdb gem gfortran gh ghc git go gofmt golangci-lint gpg gpg2 grep groovy grpcurl gs guile gzip
    hadolint haproxy head helm hexdump hostname htop httpd hostnamectl hyperfine iconv id identify ip isort java javac
    join journalctl jq julia just k9s kind kotlin kotlinc kubectl latex ld ldconfig ldd less libtool lldb ln
    locale localectl loginctl ls lsblk lscpu lsd lspci lsusb lua llvm-config lua5.4 luajit m4 magick make mamba man
    mariadb markdownlint md5sum mdbook mediainfo meson minikube mkcert mkdir mongod mongosh mv mypy mysql
    mysqld nano nasm netstat nginx nim ninja nix nm nmap node nomad npm npx nvcc nvim objdump ocaml ocamlc
    octave od opam openssl oxlint packer pandoc parallel patch pdflatex pdftotext perl pgrep php pip pip3 pipx
    pkg-config podman poetry postgres prettier procs protoc protoc-gen-go ps psql pulumi pwsh pyright python
    python3 qpdf R racket ranlib readelf redis-cli redis-server rg rm rsync ruby ruff runc rust-analyzer
    rustc rustfmt rustup rustup-init sbcl scala screen sed sh sha256sum shellcheck shfmt size skopeo sort
    sox split sqlite3 ss ssh stat strace strings strip swift systemctl tail taplo tar tee terraform
    timedatectl tmux tokei top touch tr traefik tree tsc typst uname unzip uptime uv valgrind vault vim
    wasm-pack wasmtime watch wc websocat wget whoami xcodebuild xcrun xelatex xmllint xxd xz yamllint yq zig zip zoxide
    zsh zstd
";

/// Files that choose which of several programs of the same name is run, in the directory or above it. One that lies in the
/// repository can be chosen, too.
fn steered_by(name: &str) -> &'static [&'static str] {
    match name {
        "cargo" | "rustc" | "rustfmt" | "rustup" | "clippy-driver" | "rust-analyzer" => {
            &["rust-toolchain", "rust-toolchain.toml"]
        }
        "dotnet" => &["global.json"],
        // It loads extensions of a project before it does anything.
        "poetry" => &["pyproject.toml"],
        _ => &[],
    }
}

/// What is looked at to say a version or how a program is called, if nothing else is asked.
pub(super) fn look(name: &str, args: &[Arg]) -> Option<Look> {
    let is_asked = is_version(name, args) || is_help(name, args) || is_toolchain(name, args);
    is_asked.then(|| Look { steered_by: steered_by(name).to_vec(), ..Look::nothing() })
}

/// Programs that print how they are called and end. Others show it in a pager or a browser.
fn is_help(name: &str, args: &[Arg]) -> bool {
    let [arg] = args else { return false };
    let prints = || {
        programs::program(name).is_some_and(|program| program.operands != Operands::Anything)
            || is_versioned(name)
    };
    match arg.literal() {
        Some("--help") => !matches!(name, "man" | "aws" | "gcloud") && prints(),
        // To others this names a host, or sizes that people can read.
        Some("-h") => matches!(
            name,
            "python"
                | "python3"
                | "node"
                | "ruby"
                | "perl"
                | "php"
                | "cargo"
                | "rustc"
                | "deno"
                | "go"
                | "npm"
        ),
        Some("help") => matches!(name, "go" | "npm" | "rustup" | "terraform" | "helm" | "kubectl" | "docker"),
        _ => false,
    }
}

fn is_version(name: &str, args: &[Arg]) -> bool {
    let words: Option<Vec<&str>> = args.iter().map(Arg::literal).collect();
    let Some(words) = words.filter(|words| (1..=2).contains(&words.len())) else { return false };
    is_versioned(name)
        && matches!(
            (name, words.as_slice()),
            (_, ["--version"])
                | (
                    "go" | "openssl" | "terraform" | "helm" | "pulumi" | "minikube" | "kind" | "zig",
                    ["version"]
                )
                | ("terraform", ["version", "-json"])
                | ("openssl", ["version", "-a"])
                | ("kubectl", ["version", "--client"])
                | ("helm", ["version", "--short"] | ["version", "--client"])
                | ("nginx", ["-V"])
                | ("php", ["-m"] | ["-i"])
                | (
                    "make" | "nginx" | "node" | "npm" | "ruby" | "perl" | "php" | "bun" | "java" | "lua",
                    ["-v"]
                )
                | (
                    "ssh"
                        | "python"
                        | "python3"
                        | "pip"
                        | "pip3"
                        | "cargo"
                        | "rustc"
                        | "uv"
                        | "ruff"
                        | "rg"
                        | "fd"
                        | "tmux"
                        | "dot"
                        | "bat",
                    ["-V"]
                )
                | (
                    "ffmpeg"
                        | "ffprobe"
                        | "convert"
                        | "identify"
                        | "magick"
                        | "java"
                        | "javac"
                        | "scala"
                        | "ocaml"
                        | "ocamlc"
                        | "xcodebuild"
                        | "kotlinc",
                    ["-version"]
                )
                | ("rustc" | "cargo", ["-vV"] | ["--version", "--verbose"] | ["-V", "-v"])
        )
}

/// Which toolchain there is.
fn is_toolchain(name: &str, args: &[Arg]) -> bool {
    let words: Vec<Option<&str>> = args.iter().map(Arg::literal).collect();
    match (name, words.as_slice()) {
        ("rustup", [Some("show")]) => true,
        ("rustup", [Some("show"), Some("active-toolchain" | "home" | "profile")]) => true,
        ("rustup", [Some("which"), Some(_)]) => true,
        ("rustc", [Some("--explain"), Some(code)]) => !code.starts_with('-'),
        ("rustc", [Some("--print"), Some(what)]) => {
            matches!(
                *what,
                "sysroot" | "target-list" | "host-tuple" | "cfg" | "target-cpus" | "target-features"
            )
        }
        _ => false,
    }
}

fn is_versioned(name: &str) -> bool {
    VERSIONED_NAMES.contains(name)
}

static VERSIONED_NAMES: LazyLock<HashSet<&str>> = LazyLock::new(|| VERSIONED.split_whitespace().collect());
