//! Which crate may depend on which. The manifests say what is, `ALLOWED` says what may be.

use std::collections::BTreeMap;

use crate::{Finding, Tree};

/// What one crate may use.
struct Allowed {
    name: &'static str,
    /// Crates of this repository it may depend on.
    ours: &'static [&'static str],
    /// Crates of others it must stay free of.
    never: &'static [&'static str],
}

/// A screen and its arguments belong to the binary and the terminal UI alone.
const SCREENS: &[&str] = &["clap", "crossterm", "ratatui", "ratatui-core", "ratatui-crossterm"];

/// Reads the process's environment by itself, which only the binary may.
const READS_ENVIRONMENT: &[&str] = &["rustls-native-certs"];
const READER_OF_ENVIRONMENT: &str = "pelton-cli";

/// wire ← model ← pelton ← serve ← tui ← cli; shell ← pelton. The scripted model shares no code with what it proves: it takes from `model`
/// only the doors it stands behind, transport and world, and a wall in `rooms` keeps them at its edge.
const ALLOWED: &[Allowed] = &[
    Allowed {
        name: "pelton-wire",
        ours: &[],
        never: &[
            "tokio",
            "reqwest",
            "futures",
            "clap",
            "crossterm",
            "ratatui",
            "ratatui-core",
            "ratatui-crossterm",
        ],
    },
    Allowed {
        name: "pelton-shell",
        ours: &[],
        never: &[
            "tokio",
            "reqwest",
            "futures",
            "clap",
            "crossterm",
            "ratatui",
            "ratatui-core",
            "ratatui-crossterm",
        ],
    },
    Allowed { name: "pelton-model", ours: &["pelton-wire"], never: SCREENS },
    // Small enough to be read whole: what holds commands leans on the kernel and on little else.
    Allowed {
        name: "pelton-sandbox",
        ours: &[],
        never: &[
            "tokio",
            "reqwest",
            "futures",
            "serde_json",
            "clap",
            "crossterm",
            "ratatui",
            "ratatui-core",
            "ratatui-crossterm",
        ],
    },
    Allowed {
        name: "pelton",
        ours: &["pelton-wire", "pelton-shell", "pelton-model", "pelton-sandbox"],
        never: SCREENS,
    },
    Allowed { name: "pelton-mcp", ours: &["pelton-model", "pelton"], never: SCREENS },
    Allowed {
        name: "pelton-serve",
        ours: &["pelton-wire", "pelton-model", "pelton", "pelton-mcp"],
        never: SCREENS,
    },
    Allowed {
        name: "pelton-tui",
        ours: &["pelton-wire", "pelton-shell", "pelton-model", "pelton", "pelton-mcp", "pelton-serve"],
        never: &["clap"],
    },
    Allowed {
        name: "pelton-cli",
        ours: &[
            "pelton-wire",
            "pelton-model",
            "pelton-sandbox",
            "pelton",
            "pelton-mcp",
            "pelton-serve",
            "pelton-tui",
            "pelton-testkit",
        ],
        never: &[],
    },
    Allowed { name: "pelton-testkit", ours: &["pelton-model"], never: SCREENS },
    // Measures from outside, and holds many sessions as a server would.
    Allowed { name: "pelton-bench", ours: &["pelton-model", "pelton"], never: SCREENS },
    Allowed { name: "tidy", ours: &[], never: &["tokio"] },
];

/// Tests of any crate may use the scripted model; the scripted model's tests may use any crate.
const TESTKIT: &str = "pelton-testkit";

/// Dependencies between crates go one way.
pub fn directions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        let Some(folder) = path.strip_prefix("crates/").and_then(|rest| rest.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let manifest = Manifest::read(text);
        if manifest.name.as_deref() != Some(folder) {
            findings.push(Finding::about(
                path,
                format!("the folder `{folder}` and the crate have different names"),
            ));
        }
        let Some(allowed) = ALLOWED.iter().find(|allowed| allowed.name == folder) else {
            findings.push(Finding::about(path, "a crate nobody gave a place: add it to the table in tidy"));
            continue;
        };
        for dependency in manifest.dependencies {
            let Dependency { name, line, for_tests } = dependency;
            let ours = ALLOWED.iter().any(|known| known.name == name);
            let in_tests = for_tests && (name == TESTKIT || folder == TESTKIT);
            if ours && !in_tests && !allowed.ours.contains(&name.as_str()) {
                findings.push(Finding::at(path, line, format!("`{folder}` must not depend on `{name}`")));
            }
            if !for_tests && allowed.never.contains(&name.as_str()) {
                findings.push(Finding::at(path, line, format!("`{folder}` stays free of `{name}`")));
            }
            if folder != READER_OF_ENVIRONMENT && READS_ENVIRONMENT.contains(&name.as_str()) {
                let why = format!(
                    "`{name}` reads the environment by itself: only `{READER_OF_ENVIRONMENT}` may use it"
                );
                findings.push(Finding::at(path, line, why));
            }
        }
    }
    findings
}

struct Dependency {
    name: String,
    line: usize,
    for_tests: bool,
}

/// The little of a manifest that matters here.
#[derive(Default)]
struct Manifest {
    name: Option<String>,
    dependencies: Vec<Dependency>,
}

impl Manifest {
    fn read(text: &str) -> Self {
        let mut manifest = Self::default();
        let mut section = String::new();
        let mut renamed: BTreeMap<usize, String> = BTreeMap::new();
        for (line, row) in text.lines().enumerate().map(|(at, row)| (at + 1, row.trim())) {
            if let Some(header) = row.strip_prefix('[').and_then(|row| row.strip_suffix(']')) {
                section = header.trim().to_owned();
                // `[dependencies.name]`, also under a target.
                if let Some((before, name)) =
                    section.rsplit_once('.').filter(|(before, _)| is_dependencies(before))
                {
                    manifest.dependencies.push(Dependency {
                        name: unquoted(name),
                        line,
                        for_tests: before.ends_with("dev-dependencies"),
                    });
                }
                continue;
            }
            let Some((key, value)) = row.split_once('=').filter(|_| !row.starts_with('#')) else { continue };
            let (key, value) = (key.trim(), value.trim());
            if section == "package" && key == "name" {
                manifest.name = Some(unquoted(value));
            } else if is_dependencies(&section) {
                let name = unquoted(key.split('.').next().unwrap_or(key));
                let for_tests = section.ends_with("dev-dependencies");
                manifest.dependencies.push(Dependency { name, line, for_tests });
                if let Some(real) = real_name(value) {
                    renamed.insert(manifest.dependencies.len() - 1, real);
                }
            } else if key == "package"
                && section.rsplit_once('.').is_some_and(|(before, _)| is_dependencies(before))
                && !manifest.dependencies.is_empty()
            {
                renamed.insert(manifest.dependencies.len() - 1, unquoted(value));
            }
        }
        for (at, name) in renamed {
            manifest.dependencies[at].name = name;
        }
        manifest
    }
}

fn is_dependencies(section: &str) -> bool {
    let last = section.rsplit('.').next().unwrap_or(section);
    matches!(last, "dependencies" | "dev-dependencies" | "build-dependencies")
}

/// The crate behind `alias = { package = "name" }`.
fn real_name(value: &str) -> Option<String> {
    let (_, after) = value.split_once("package")?;
    Some(unquoted(after.trim_start().strip_prefix('=')?.split([',', '}']).next()?))
}

fn unquoted(text: &str) -> String {
    text.trim().trim_matches(['"', '\'']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &str, dependencies: &str) -> Vec<String> {
        let path = format!("crates/{folder}/Cargo.toml");
        let text = format!("[package]\nname = \"{folder}\"\n{dependencies}");
        let tree = Tree::of([(path.as_str(), text.as_str())]);
        directions(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn the_allowed_direction_passes() {
        assert!(check("pelton", "[dependencies]\npelton-model.workspace = true\n").is_empty());
        assert!(check("pelton-cli", "[dependencies]\npelton-testkit = { path = \"x\" }\n").is_empty());
        assert!(check("pelton", "[dev-dependencies]\npelton-testkit.workspace = true\n").is_empty());
        assert!(check("pelton-testkit", "[dev-dependencies]\npelton.workspace = true\n").is_empty());
    }

    #[test]
    fn upward_dependencies_are_found_however_they_are_written() {
        let wrong = ["`pelton-model` must not depend on `pelton`"];
        assert_eq!(check("pelton-model", "[dependencies]\npelton.workspace = true\n"), wrong);
        assert_eq!(check("pelton-model", "[dependencies.pelton]\npath = \"x\"\n"), wrong);
        assert_eq!(check("pelton-model", "[target.'cfg(unix)'.dependencies]\npelton = \"1\"\n"), wrong);
        assert_eq!(check("pelton-model", "[build-dependencies]\npelton = \"1\"\n"), wrong);
        assert_eq!(check("pelton-model", "[dev-dependencies]\npelton = \"1\"\n"), wrong);
        assert_eq!(
            check("pelton-model", "[dependencies]\nx = { path = \"y\", package = \"pelton\" }\n"),
            wrong
        );
        assert_eq!(check("pelton-model", "[dependencies.x]\npackage = \"pelton\"\n"), wrong);
    }

    #[test]
    fn the_scripted_model_leans_on_nothing_it_proves() {
        assert_eq!(
            check("pelton-testkit", "[dependencies]\npelton-wire.workspace = true\n"),
            ["`pelton-testkit` must not depend on `pelton-wire`"]
        );
        assert_eq!(
            check("pelton", "[dependencies]\npelton-testkit.workspace = true\n"),
            ["`pelton` must not depend on `pelton-testkit`"]
        );
    }

    #[test]
    fn screens_stay_out_of_libraries_and_io_out_of_words() {
        assert_eq!(check("pelton", "[dependencies]\nclap = \"4\"\n"), ["`pelton` stays free of `clap`"]);
        assert_eq!(
            check("pelton-wire", "[dependencies]\ntokio = \"1\"\n"),
            ["`pelton-wire` stays free of `tokio`"]
        );
    }

    #[test]
    fn only_the_binary_may_use_what_reads_the_environment() {
        let dependency = "[dependencies]\nrustls-native-certs.workspace = true\n";
        assert!(check("pelton-cli", dependency).is_empty());
        let why = "`rustls-native-certs` reads the environment by itself: only `pelton-cli` may use it";
        assert_eq!(check("pelton-model", dependency), [why]);
        assert_eq!(check("pelton", "[dev-dependencies]\nrustls-native-certs = \"0.8\"\n"), [why]);
    }

    #[test]
    fn unknown_crates_and_other_names_are_found() {
        assert_eq!(check("pelton-new", ""), ["a crate nobody gave a place: add it to the table in tidy"]);
        let tree = Tree::of([("crates/pelton/Cargo.toml", "[package]\nname = \"other\"\n")]);
        assert_eq!(directions(&tree)[0].message, "the folder `pelton` and the crate have different names");
    }
}
