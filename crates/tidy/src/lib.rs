//! The house rules, as code that reads the tree.
//!
//! Everything starts from a [`Tree`]: the repository's files as text. A rule is a function from a tree to a
//! list of [`Finding`]s; `tests/house.rs` runs each of them over the real repository, and the unit tests run
//! each over small made-up trees that break it. Adding a rule is adding a function here and a line there.
//!
//! - [`crates`]: which crate may depend on which, read from the manifests.
//! - [`rooms`]: which module of the engine may use which, read from the paths its code names.
//! - [`doors`]: libraries do not print and do not ask the process for time, chance or surroundings.
//! - [`hygiene`]: markers of unfinished work, file names and sizes, tool pages, places of one machine.
//! - [`examples`]: what embedders use shows how it is used.
//! - [`links`]: links between documents lead somewhere.
//! - [`conformance`]: every row of the specification has a test that names it, or is listed as open.

pub mod conformance;
pub mod crates;
pub mod doors;
pub mod examples;
pub mod hygiene;
pub mod links;
pub mod rooms;
pub mod rust;
pub mod tree;

pub use tree::{Finding, Tree};

/// A rule's name and the function that looks for what breaks it.
pub type Rule = (&'static str, fn(&Tree) -> Vec<Finding>);

/// Every rule, in the order the program reports them.
pub const RULES: &[Rule] = &[
    ("crate directions", crates::directions),
    ("module directions", rooms::directions),
    ("libraries are closed", doors::closed),
    ("nothing unfinished", hygiene::unfinished),
    ("tools have pages", hygiene::tool_pages),
    ("names say something", hygiene::names),
    ("files stay readable", hygiene::lengths),
    ("no place of one machine", hygiene::places),
    ("public items are shown", examples::shown),
    ("links resolve", links::resolve),
    ("rows are well formed", conformance::well_formed),
    ("row ids are known", conformance::unknown_ids),
    ("conformance page is fresh", conformance::stale),
];

/// The root of the repository this crate was built in.
pub fn root() -> &'static std::path::Path {
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    // `crates/tidy` is two folders below the root.
    here.ancestors().nth(2).unwrap_or(here)
}
