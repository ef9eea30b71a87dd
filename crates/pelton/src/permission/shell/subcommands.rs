//! Programs with sub-commands of which some only look: containers, services, packages. Options that name another
//! server, another configuration or a file to write are left out, and so is what never ends (`-f`).
//!
//! Left out on purpose are programs that let the directory they are run in choose what they load (`yarn`, `pnpm`, `mvn`,
//! `terraform`, `docker compose`), those that ask the network (`gh`, `npm view`, `kubectl get`), and those that write a file if it is not
//! there (`cargo tree` without `--frozen`).

use super::arg::Arg;
use super::look::{Look, understand};
use super::programs::{DIGITS, Operands, PLAIN, Program};

/// What it looks at, if this is such a program and looking is all that it does.
pub(super) fn look(name: &str, args: &[Arg]) -> Option<Look> {
    if !GROUPS.contains(&name) {
        return None;
    }
    // These may stand before the command, too, and change nothing about it.
    let before = match name {
        "systemctl" => {
            args.iter().take_while(|arg| matches!(arg.literal(), Some("--user" | "--no-pager"))).count()
        }
        _ => 0,
    };
    let args = &args[before..];
    let words: Vec<&str> = args.iter().map_while(Arg::literal).take(2).collect();
    let known = |count: usize| {
        let called =
            std::iter::once(name).chain(words.get(..count)?.iter().copied()).collect::<Vec<_>>().join(" ");
        let program = SUBCOMMANDS.iter().find(|program| program.names.contains(&called.as_str()))?;
        Some((program, &args[count..]))
    };
    let (program, args) = known(2).or_else(|| known(1)).or_else(|| known(0))?;
    // What is secret is not looked at unasked.
    let is_secret = |arg: &Arg| {
        let text = arg.prefix().to_ascii_lowercase();
        ["secret", "auth", "token", "password"].iter().any(|word| text.contains(word))
    };
    (!args.iter().any(is_secret)).then_some(())?;
    // Templates in files, which it would show.
    let is_in_file = |arg: &Arg| name == "kubectl" && arg.prefix().contains("-file");
    (!args.iter().any(is_in_file)).then_some(())?;
    (name != "cargo" || stays_here(program, args)).then_some(())?;
    Some(Look { steered_by: steered_by(name).to_vec(), ..understand(program, args)? })
}

/// Files of a directory that would choose what such a program runs, or whom it asks.
fn steered_by(name: &str) -> &'static [&'static str] {
    match name {
        "cargo" => &["rust-toolchain", "rust-toolchain.toml", ".cargo/config", ".cargo/config.toml"],
        "npm" => &[".npmrc"],
        "dotnet" => &["global.json"],
        _ => &[],
    }
}

/// Whether cargo is told to ask nobody and to write nothing, where it otherwise would.
fn stays_here(program: &Program, args: &[Arg]) -> bool {
    let has = |option: &str| args.iter().any(|arg| arg.literal() == Some(option));
    let is_frozen = || has("--frozen") || has("--offline") && has("--locked");
    match program.names {
        ["cargo tree"] => is_frozen(),
        ["cargo metadata"] => has("--no-deps") || is_frozen(),
        _ => true,
    }
}

const GROUPS: &[&str] = &[
    "docker",
    "podman",
    "systemctl",
    "journalctl",
    "pip",
    "pip3",
    "apt",
    "apt-cache",
    "dpkg",
    "rpm",
    "brew",
    "gem",
    "go",
    "rustup",
    "hostnamectl",
    "timedatectl",
    "localectl",
    "loginctl",
    "terraform",
    "kubectl",
    "cargo",
    "npm",
    "dotnet",
    "snap",
    "flatpak",
    "gcc",
    "clang",
    "pyenv",
    "conda",
    "pipx",
    "tmux",
    "direnv",
];

const WORDS: Program = Program { operands: Operands::Words, ..PLAIN };
const ALONE: Program = Program { operands: Operands::None, ..PLAIN };

const SUBCOMMANDS: &[Program] = &[
    Program {
        names: &[
            "tmux ls",
            "tmux list-sessions",
            "tmux list-windows",
            "tmux list-panes",
            "tmux list-clients",
        ],
        // A format of its own may run commands: `-F "#(x)"`.
        short: &["as t:"],
        ..ALONE
    },
    Program { names: &["direnv status"], ..ALONE },
    Program {
        names: &[
            "docker ps",
            "podman ps",
            "docker container ls",
            "docker container list",
            "podman container ls",
        ],
        short: &["alqs n# f:"],
        long: &["all latest quiet size no-trunc last# filter: format:"],
        ..ALONE
    },
    Program {
        names: &["docker images", "podman images", "docker image ls", "docker image list", "podman image ls"],
        short: &["aq f:"],
        long: &["all quiet digests no-trunc tree filter: format:"],
        ..WORDS
    },
    Program {
        names: &["docker logs", "podman logs", "docker container logs"],
        short: &["t n#"],
        long: &["timestamps details since: until: tail:"],
        ..WORDS
    },
    Program {
        names: &[
            "docker inspect",
            "podman inspect",
            "docker container inspect",
            "docker image inspect",
            "docker network inspect",
            "docker volume inspect",
        ],
        short: &["s f:"],
        long: &["size type: format:"],
        ..WORDS
    },
    Program {
        names: &[
            "docker network ls",
            "docker volume ls",
            "podman network ls",
            "podman volume ls",
            "docker context ls",
        ],
        short: &["q f:"],
        long: &["quiet no-trunc filter: format:"],
        ..ALONE
    },
    Program {
        names: &[
            "docker port",
            "docker diff",
            "docker top",
            "docker container diff",
            "podman port",
            "podman diff",
            "podman top",
        ],
        ..WORDS
    },
    Program {
        names: &["docker history", "docker image history", "podman history"],
        short: &["Hq"],
        long: &["human no-trunc quiet format:"],
        ..WORDS
    },
    Program {
        names: &[
            "docker version",
            "docker info",
            "docker system info",
            "docker system df",
            "podman version",
            "podman info",
        ],
        short: &["v f:"],
        long: &["verbose format:"],
        ..ALONE
    },
    // Otherwise it never ends.
    Program {
        names: &["docker stats --no-stream", "podman stats --no-stream"],
        short: &["a"],
        long: &["all no-trunc format:"],
        ..WORDS
    },
    Program {
        names: &["docker compose version", "docker compose ls", "docker context show"],
        short: &["a"],
        long: &["all short format:"],
        ..ALONE
    },
    Program {
        names: &[
            "systemctl status",
            "systemctl show",
            "systemctl cat",
            "systemctl is-active",
            "systemctl is-enabled",
            "systemctl is-failed",
            "systemctl list-dependencies",
        ],
        short: &["alq n# po:"],
        long: &["all full no-pager lines# output: property: value user quiet plain"],
        ..WORDS
    },
    Program {
        names: &[
            "systemctl list-units",
            "systemctl list-unit-files",
            "systemctl list-timers",
            "systemctl list-sockets",
            "systemctl list-jobs",
            "systemctl get-default",
            "systemctl is-system-running",
        ],
        short: &["alq t:"],
        long: &["all full no-pager no-legend type: state: failed user plain"],
        ..WORDS
    },
    Program {
        names: &["journalctl"],
        // The number of a start begins with a dash: `-b -1`.
        short: &["aekqrx nb? upgtoSU:", DIGITS],
        long: &[
            "no-pager lines? unit: user-unit: since: until: priority: grep: identifier: output: boot? dmesg reverse list-boots disk-usage catalog utc quiet no-hostname fields user system",
        ],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &[
            "hostnamectl",
            "hostnamectl status",
            "timedatectl",
            "timedatectl status",
            "timedatectl list-timezones",
            "localectl",
            "localectl status",
            "localectl list-locales",
            "loginctl",
            "loginctl list-sessions",
        ],
        long: &["no-pager static"],
        ..ALONE
    },
    Program {
        names: &["pip list", "pip3 list", "pip freeze", "pip3 freeze", "pip check", "pip3 check"],
        short: &["l"],
        long: &["user local not-required editable format: exclude: exclude-editable include-editable all"],
        ..ALONE
    },
    Program {
        names: &[
            "pyenv versions",
            "pyenv version",
            "conda env list",
            "conda list",
            "conda info",
            "pipx list",
        ],
        ..ALONE
    },
    Program { names: &["pip show", "pip3 show"], short: &["f"], long: &["files verbose"], ..WORDS },
    Program {
        names: &["apt list"],
        short: &["a"],
        long: &["installed upgradable all-versions manual-installed verbose"],
        ..WORDS
    },
    Program {
        names: &[
            "apt show",
            "apt search",
            "apt policy",
            "apt depends",
            "apt rdepends",
            "apt-cache policy",
            "apt-cache search",
            "apt-cache show",
            "apt-cache depends",
            "apt-cache rdepends",
            "apt-cache madison",
            "apt-cache pkgnames",
            "apt-cache stats",
        ],
        short: &["an"],
        long: &["all-versions names-only full"],
        ..WORDS
    },
    Program {
        names: &["dpkg"],
        short: &["lLsSpW"],
        long: &[
            "list listfiles status search print-avail print-architecture print-foreign-architectures get-selections",
        ],
        operands: Operands::Words,
        ..PLAIN
    },
    Program {
        names: &["rpm"],
        // Behind `-f` every operand is a file.
        short: &["qailcdRs"],
        long: &["query all info list configfiles docfiles requires provides changelog scripts last"],
        operands: Operands::PatternsWith(&["-q", "--query"]),
        ..PLAIN
    },
    Program {
        names: &["brew list", "brew ls", "brew --prefix", "brew --version"],
        short: &["1"],
        long: &["versions formula cask full-name"],
        ..WORDS
    },
    // Both only read what is configured; whoever asks a cluster asks the network.
    Program { names: &["kubectl config current-context", "kubectl config get-contexts"], ..ALONE },
    // Keys are left out of what it shows, unless it is told otherwise.
    Program { names: &["kubectl config view"], short: &["o:"], long: &["minify output:"], ..ALONE },
    Program {
        names: &["cargo tree"],
        short: &["idqv peF:"],
        long: &[
            "frozen offline locked invert? depth: prefix: no-dedupe duplicates edges: package: workspace exclude: charset: format: features: all-features no-default-features target: quiet verbose",
        ],
        ..WORDS
    },
    Program {
        names: &["cargo metadata"],
        short: &["qv F:"],
        long: &[
            "frozen offline locked no-deps format-version: features: all-features no-default-features filter-platform: quiet verbose",
        ],
        ..ALONE
    },
    Program {
        names: &[
            "cargo locate-project",
            "cargo read-manifest",
            "cargo verify-project",
            "cargo --list",
            "cargo fmt --version",
            "cargo clippy --version",
            "cargo version",
        ],
        short: &["qv"],
        long: &["workspace message-format: quiet verbose"],
        ..ALONE
    },
    Program {
        names: &["npm ls", "npm list", "npm ll", "npm la", "npm explain", "npm why"],
        short: &["alg"],
        long: &[
            "all long json parseable global depth: omit: include: workspaces workspace: link package-lock-only silent prod dev",
        ],
        ..WORDS
    },
    Program { names: &["npm root", "npm prefix", "npm bin"], short: &["g"], long: &["global"], ..ALONE },
    // Alone it tells which scripts there are.
    Program { names: &["npm run", "npm run-script"], long: &["json"], ..ALONE },
    Program { names: &["npm pkg get", "npm config get"], long: &["json"], ..WORDS },
    Program { names: &["npm config list", "npm config ls"], long: &["json long"], short: &["l"], ..ALONE },
    Program {
        names: &[
            "dotnet --info",
            "dotnet --list-sdks",
            "dotnet --list-runtimes",
            "snap list",
            "flatpak list",
        ],
        long: &["all app runtime"],
        ..ALONE
    },
    Program { names: &["gem list"], short: &["ld"], long: &["local details no-versions"], ..WORDS },
    Program { names: &["go env -json", "go env", "go help"], ..WORDS },
    Program { names: &["go version -m"], operands: Operands::Paths, ..PLAIN },
    Program {
        names: &[
            "pip cache dir",
            "pip3 cache dir",
            "gcc -v",
            "clang -v",
            "gcc -dumpversion",
            "gcc -dumpmachine",
            "clang -dumpversion",
            "clang -dumpmachine",
        ],
        ..ALONE
    },
    Program {
        names: &["rustup toolchain list", "rustup target list", "rustup component list"],
        short: &["v"],
        long: &["installed verbose"],
        ..ALONE
    },
];

/// Programs that say how the machine is.
pub(super) const MACHINE: &[Program] = &[
    Program { names: &["iconv"], short: &["lcs ft:"], long: &["list silent from-code: to-code:"], ..PLAIN },
    Program { names: &["yamllint"], short: &["s f:"], long: &["strict no-warnings format:"], ..PLAIN },
    Program { names: &["top"], short: &["bcHiS n# uUpo: w?"], ..ALONE },
    Program {
        names: &["iostat", "mpstat", "pidstat"],
        short: &["cdhkmtxyzN"],
        operands: Operands::Numbers,
        ..PLAIN
    },
    Program {
        names: &["mount", "blkid", "ipcs", "times", "dirs", "nvidia-smi", "sw_vers", "fc-list"],
        ..ALONE
    },
    Program {
        names: &["findmnt"],
        short: &["lnrDJAk toS:"],
        long: &["list noheadings raw df json all output: types: target: source:"],
        operands: Operands::Words,
        ..PLAIN
    },
    Program { names: &["ifconfig"], short: &["as"], operands: Operands::OneWord, ..PLAIN },
    Program { names: &["arp", "route"], short: &["aenv"], ..ALONE },
    Program { names: &["last"], short: &["aFiRwxd n# st:", DIGITS], operands: Operands::Words, ..PLAIN },
    Program {
        names: &["dmesg"],
        short: &["Tktxurd lf:"],
        long: &["ctime kernel notime decode userspace reltime level: facility: nopager since: until:"],
        ..ALONE
    },
    Program { names: &["pstree"], short: &["aAclnpsStTuUV H:"], operands: Operands::Words, ..PLAIN },
    Program { names: &["stty"], short: &["ag"], long: &["all save"], ..ALONE },
    Program {
        names: &["objdump"],
        short: &["dDhtTxspfrRCaw jMm:"],
        long: &[
            "disassemble disassemble-all syms all-headers section-headers private-headers full-contents section: no-show-raw-insn demangle?",
        ],
        ..PLAIN
    },
    Program {
        names: &["shellcheck"],
        short: &["sfSeoW:"],
        long: &["shell: format: severity: exclude: norc"],
        ..PLAIN
    },
];
