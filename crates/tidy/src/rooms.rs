//! Which module may use which, inside a crate. The rules are rows of data; a room that is not built yet is
//! simply not checked.

use crate::rust::{Named, Scope, Source, test_files};
use crate::{Finding, Tree};

/// What the modules under `rooms` may not name, whatever way they name it.
struct Wall {
    krate: &'static str,
    /// Modules this holds for, from the crate's root, with all that is inside them.
    rooms: &'static [&'static str],
    /// Modules inside those that it does not hold for.
    except: &'static [&'static str],
    /// What must not be named: own modules start with `crate::`.
    never: &'static [&'static str],
    /// What may be named all the same.
    unless: &'static [&'static str],
    why: &'static str,
}

/// Rooms of pure data and pure choices. Each may look at its siblings in the same room, less those that wait.
const PURE: &[(&str, &str)] = &[
    ("pelton", "turn::decide"),
    ("pelton", "turn::memory"),
    ("pelton", "turn::reasons"),
    ("pelton", "turn::budget"),
    ("pelton", "history"),
    ("pelton", "tools::schedule"),
    ("pelton", "tools::repetition"),
    ("pelton", "tools::predict"),
    ("pelton", "compact::result_budget"),
    ("pelton", "permission::update"),
    ("pelton", "compact::plan"),
    ("pelton", "permission::rules"),
    ("pelton", "file_history::plan"),
    ("pelton", "limits"),
    ("pelton", "media::look"),
    ("pelton", "media::pages"),
    ("pelton-sandbox", "protected"),
];

/// Siblings of pure rooms that do the waiting.
const WAITING: &[&str] = &[
    "crate::turn::live",
    "crate::turn::run",
    "crate::turn::hands",
    "crate::tools::executor",
    "crate::tools::builtin",
    "crate::tools::mcp",
    "crate::tools::agent",
    "crate::compact::auto",
    "crate::permission::ask",
];

/// Crates a pure room must not name: everything that waits, and everything of ours but the words.
const NOT_PURE: &[&str] =
    &["crate", "tokio", "tokio_util", "futures", "reqwest", "pelton_model", "std::fs", "std::net"];

/// Numbers are no dependency, nor is what an image or a document says of itself: pure rooms themselves.
const ALWAYS_PURE: &[&str] = &["crate::limits", "crate::media::look", "crate::media::pages"];

const WORKSHOPS: &[&str] = &["context", "compact", "tools", "permission", "hooks"];

const WALLS: &[Wall] = &[
    Wall {
        krate: "pelton",
        rooms: &[
            "context",
            "compact",
            "tools",
            "permission",
            "hooks",
            "history",
            "transcript",
            "settings",
            "shared",
        ],
        except: &[],
        never: &["crate::turn", "crate::engine"],
        unless: &[],
        why: "workshops do not know the turn: `turn::live` joins them",
    },
    Wall {
        krate: "pelton",
        rooms: &[""],
        except: &["turn", "engine"],
        never: &["crate::turn"],
        // Options set its limits, events and sums tell why it went on or ended: plain values, not its hands.
        unless: &[
            "crate::turn::decide",
            "crate::turn::Limits",
            "crate::turn::Terminal",
            "crate::turn::Transition",
        ],
        why: "only the engine uses the turn; others may carry its plain values",
    },
    Wall {
        krate: "pelton",
        rooms: &["turn"],
        except: &["turn::live"],
        never: &["crate::context", "crate::compact", "crate::tools", "crate::permission", "crate::hooks"],
        unless: &[],
        why: "only `turn::live` joins the workshops",
    },
    Wall {
        krate: "pelton",
        rooms: &["turn"],
        except: &[],
        never: &["crate::engine"],
        unless: &[],
        why: "the engine uses the turn, not the other way round",
    },
    Wall {
        krate: "pelton",
        rooms: &["compact", "permission"],
        except: &[],
        never: &["crate::context", "crate::compact", "crate::tools", "crate::permission", "crate::hooks"],
        unless: &[],
        why: "workshops do not visit each other; only `tools` may use `permission` and `hooks`",
    },
    Wall {
        krate: "pelton",
        rooms: &["hooks"],
        except: &[],
        never: &["crate::context", "crate::compact", "crate::tools", "crate::permission"],
        // Commands of hooks are started and ended as those of tools are: one way to leave no child behind.
        unless: &["crate::tools::process"],
        why: "of the other workshops `hooks` may use only the tools' way to run processes",
    },
    Wall {
        krate: "pelton",
        rooms: &["context"],
        except: &[],
        never: &["crate::compact", "crate::tools", "crate::permission", "crate::hooks"],
        // The prompt describes the tools: it needs the word, not the workshop.
        unless: &["crate::tools::Tool", "crate::tools::Spec"],
        why: "of the other workshops `context` may name only what a tool is",
    },
    Wall {
        krate: "pelton",
        rooms: &["tools"],
        except: &[],
        never: &["crate::context", "crate::compact"],
        unless: &[],
        why: "of the other workshops `tools` may use only `permission` and `hooks`",
    },
    Wall {
        krate: "pelton-model",
        rooms: &["sse", "assemble", "dialect", "retry", "catalogue"],
        except: &[],
        never: &["tokio", "tokio_util", "reqwest", "crate::client", "crate::call", "crate::world"],
        unless: &[],
        why: "what bytes mean and when to try again is pure: no IO, no clock",
    },
    Wall {
        krate: "pelton-tui",
        rooms: &["theme", "clean", "cells", "highlight", "markdown", "diff", "input", "complete"],
        // The one that looks at files, in the background.
        except: &["complete::walk"],
        never: &[
            "tokio",
            "tokio_util",
            "futures",
            "crossterm",
            "pelton",
            "pelton_model",
            "pelton_mcp",
            "pelton_serve",
            "std::fs",
            "std::io",
            "std::net",
            "std::process",
            "crate::app",
            "crate::feed",
            "crate::session",
            "crate::terminal",
        ],
        // A key is a word like any other, and what a terminal must not be sent is known in one place.
        unless: &["crossterm::event", "pelton_serve::plain"],
        why: "what is seen is pure: text and keys in, lines out; sessions and terminals are elsewhere",
    },
    Wall {
        krate: "pelton-testkit",
        rooms: &[""],
        except: &["memory", "world"],
        never: &["pelton_model", "pelton_wire", "pelton"],
        unless: &[],
        why: "the scripted model shares no code with what it proves; only its doors may be seen",
    },
];

/// Modules inside a crate use each other one way only.
pub fn directions(tree: &Tree) -> Vec<Finding> {
    let tests = test_files(tree);
    let mut findings = Vec::new();
    for (path, text) in tree.rust().filter(|(path, _)| !tests.contains(*path)) {
        let mut parts = path.strip_prefix("crates/").unwrap_or_default().splitn(3, '/');
        let (Some(krate), Some("src"), Some(file)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        // The root file is the tour: it declares every room and hands on their names.
        if file == "lib.rs" || file == "main.rs" {
            continue;
        }
        let root = Source::read(tree.text(&format!("crates/{krate}/src/lib.rs")).unwrap_or_default());
        let scope = Scope::of(file).with_root(&root);
        let module = scope.module.join("::");
        for named in Source::read(text).without_tests().named(&scope) {
            let broken = WALLS
                .iter()
                .filter(|wall| wall.krate == krate && wall.holds_for(&module))
                .find(|wall| wall.refuses(&named, &module))
                .map(|wall| wall.why)
                .or_else(|| impure(krate, &module, &named));
            if let Some(why) = broken {
                findings.push(Finding::at(
                    path,
                    named.line,
                    format!("`{module}` names `{}`: {why}", named.text()),
                ));
            }
        }
    }
    findings
}

impl Wall {
    fn holds_for(&self, module: &str) -> bool {
        self.rooms.iter().any(|room| is_inside(module, room))
            && !self.except.iter().any(|room| is_inside(module, room))
    }

    fn refuses(&self, named: &Named, module: &str) -> bool {
        let own_room = own_room(module);
        let at_home = WORKSHOPS.contains(&own_room) && named.is_in(&format!("crate::{own_room}"));
        !at_home
            && self.never.iter().any(|what| named.is_in(what))
            && !self.unless.iter().any(|what| named.is_in(what))
    }
}

fn impure(krate: &str, module: &str, named: &Named) -> Option<&'static str> {
    PURE.iter().find(|(pure, room)| *pure == krate && is_inside(module, room))?;
    let waits = WAITING.iter().any(|what| named.is_in(what));
    let sibling = named.is_in(&format!("crate::{}", own_room(module))) && !waits;
    let allowed = sibling || ALWAYS_PURE.iter().any(|what| named.is_in(what));
    let refused = !allowed && NOT_PURE.iter().any(|what| named.is_in(what));
    refused.then_some(
        "this room is pure: it may name `pelton_wire`, `limits` and its pure siblings, and never waits",
    )
}

fn own_room(module: &str) -> &str {
    module.split("::").next().unwrap_or(module)
}

fn is_inside(module: &str, room: &str) -> bool {
    room.is_empty() || module == room || module.strip_prefix(room).is_some_and(|rest| rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(file: &str, text: &str) -> Vec<String> {
        check_in("pelton", file, text)
    }

    fn check_in(krate: &str, file: &str, text: &str) -> Vec<String> {
        let path = format!("crates/{krate}/src/{file}");
        let root = "mod turn; pub use turn::decide::Terminal;";
        let tree = Tree::of([("crates/pelton/src/lib.rs", root), (path.as_str(), text)]);
        directions(&tree).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_is_seen_on_a_terminal_is_pure() {
        for room in ["theme.rs", "markdown/layout.rs", "input.rs", "complete/index.rs"] {
            for text in ["use tokio::time;", "use pelton::Event;", "use std::fs;", "use crossterm::terminal;"]
            {
                assert_eq!(check_in("pelton-tui", room, text).len(), 1, "{room}: {text}");
            }
        }
        let fine = "use crossterm::event::KeyEvent; use pelton_serve::plain::shown; use crate::theme::Theme;";
        assert_eq!(check_in("pelton-tui", "input/keys.rs", fine), Vec::<String>::new());
        assert_eq!(check_in("pelton-tui", "complete/walk.rs", "use std::fs;"), Vec::<String>::new());
        assert_eq!(check_in("pelton-tui", "session.rs", "use pelton::Event;"), Vec::<String>::new());
    }

    fn passes(file: &str, text: &str) {
        assert_eq!(check(file, text), Vec::<String>::new(), "{file}: {text}");
    }

    fn fails(file: &str, text: &str, why: &str) {
        let found = check(file, text);
        assert!(found.iter().any(|message| message.contains(why)), "{file}: {text}: {found:?}");
    }

    #[test]
    fn pure_rooms_name_only_words_numbers_and_themselves() {
        for room in [
            "turn/decide.rs",
            "turn/memory.rs",
            "turn/reasons.rs",
            "history/view.rs",
            "tools/schedule.rs",
            "compact/plan.rs",
            "permission/rules.rs",
        ] {
            passes(room, "use pelton_wire::Usage; use crate::limits::X; use std::sync::Arc;");
            fails(room, "use tokio::time::sleep;", "this room is pure");
            fails(room, "fn f() { tokio::spawn(x); }", "this room is pure");
            fails(room, "use pelton_model::ModelError;", "this room is pure");
            fails(room, "use crate::shared::Shared;", "this room is pure");
            passes(room, "#[cfg(test)] mod tests { use crate::shared::Shared; }");
        }
        passes("history/view.rs", "use super::entry::Entry; use crate::history::log::Log;");
        passes("turn/decide.rs", "use super::budget::Gauges;");
        passes("tools/schedule.rs", "use super::tool::Safety;");
        fails("turn/decide.rs", "use super::live::Live;", "this room is pure");
        fails("tools/schedule.rs", "use super::executor::Executor;", "this room is pure");
        fails("limits.rs", "use crate::history::Log;", "this room is pure");
    }

    #[test]
    fn workshops_do_not_know_the_turn() {
        fails("tools/executor.rs", "use crate::turn::decide::Seen;", "workshops do not know the turn");
        fails("hooks/stop.rs", "use crate::engine::Engine;", "workshops do not know the turn");
        fails("compact/auto.rs", "use super::super::turn;", "workshops do not know the turn");
        fails("context/prompt.rs", "use crate::Terminal;", "workshops do not know the turn");
    }

    #[test]
    fn workshops_do_not_visit_each_other_but_tools_may_ask() {
        passes(
            "tools/executor.rs",
            "use crate::permission::Rules; use crate::hooks::run; use super::tool::Tool;",
        );
        passes("compact/auto.rs", "use crate::history::Log; use super::plan::Plan;");
        fails("tools/executor.rs", "use crate::compact::plan;", "`tools` may use only");
        fails("permission/ask.rs", "use crate::tools::Tool;", "workshops do not visit each other");
        passes("context/prompt.rs", "use crate::tools::{Spec, Tool};");
        fails("context/prompt.rs", "use crate::tools::executor::Executor;", "only what a tool is");
    }

    #[test]
    fn only_live_joins_and_only_the_engine_uses_the_turn() {
        passes("turn/live.rs", "use crate::tools::Tool; use crate::compact::plan; use crate::hooks::stop;");
        passes("engine.rs", "use crate::turn::run;");
        passes("engine/input.rs", "use crate::turn::run;");
        fails("turn/hands.rs", "use crate::tools::Tool;", "only `turn::live` joins the workshops");
        fails("shared.rs", "use crate::turn::decide::Transition;", "the turn");
        fails("account.rs", "use crate::turn::run;", "only the engine uses the turn");
        passes("event.rs", "use crate::turn::{Terminal, Transition};");
        fails("event.rs", "use crate::turn::live::Live;", "only the engine uses the turn");
        passes("options.rs", "use crate::turn::Limits;");
        fails("options.rs", "use crate::turn::run;", "only the engine uses the turn");
        fails("turn/live.rs", "use crate::engine::Engine;", "the engine uses the turn");
    }

    #[test]
    fn the_scripted_model_shares_only_doors_with_what_it_proves() {
        let text = "use pelton_model::Transport;";
        assert!(check_in("pelton-testkit", "memory.rs", text).is_empty());
        assert_eq!(check_in("pelton-testkit", "play.rs", text).len(), 1);
        assert_eq!(
            check_in("pelton-testkit", "strict/tools.rs", "fn f() { pelton_model::sse::x() }").len(),
            1
        );
    }

    #[test]
    fn reading_a_model_s_answer_needs_no_io() {
        assert!(
            check_in("pelton-model", "sse.rs", "use bytes::Bytes; use super::error::ModelError;").is_empty()
        );
        assert!(check_in("pelton-model", "call.rs", "use tokio::time::sleep;").is_empty());
        assert_eq!(check_in("pelton-model", "sse/frame.rs", "use tokio::io::AsyncRead;").len(), 1);
        assert_eq!(check_in("pelton-model", "retry.rs", "use crate::client::Client;").len(), 1);
    }
}
