//! Every house rule over the real repository, one test each, and the specification's rows counted.

use std::collections::{BTreeMap, BTreeSet};

use tidy::conformance::{SPECIFICATIONS, Specification};
use tidy::{Finding, Tree, conformance, crates, doors, examples, hygiene, links, rooms, root};

fn repository() -> Tree {
    Tree::read(root()).expect("the repository can be read")
}

fn holds(rule: fn(&Tree) -> Vec<Finding>) {
    let findings: Vec<String> = rule(&repository()).iter().map(Finding::to_string).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn crates_depend_one_way() {
    holds(crates::directions);
}

#[test]
fn modules_use_each_other_one_way() {
    holds(rooms::directions);
}

#[test]
fn libraries_never_print_and_never_ask_the_process() {
    holds(doors::closed);
}

#[test]
fn nothing_is_left_unfinished() {
    holds(hygiene::unfinished);
}

#[test]
fn every_built_in_tool_has_its_page() {
    holds(hygiene::tool_pages);
}

#[test]
fn names_say_something() {
    holds(hygiene::names);
}

#[test]
fn source_files_stay_readable() {
    holds(hygiene::lengths);
}

#[test]
fn no_file_names_a_place_of_one_machine() {
    holds(hygiene::places);
}

#[test]
fn what_embedders_use_shows_how_it_is_used() {
    holds(examples::shown);
}

#[test]
fn links_between_documents_resolve() {
    holds(links::resolve);
}

#[test]
fn rows_are_well_formed() {
    holds(conformance::well_formed);
}

#[test]
fn tests_name_only_rows_that_exist() {
    holds(conformance::unknown_ids);
}

#[test]
fn the_conformance_page_is_fresh() {
    holds(conformance::stale);
}

/// A rule that reads nothing finds nothing: the tree must really be there.
#[test]
fn the_repository_is_really_read() {
    let tree = repository();
    assert!(tree.text("Cargo.toml").is_some_and(|text| text.contains("[workspace]")));
    assert!(tree.rust().count() > 20);
    assert!(!tree.has("target"));
}

/// Rows may be reworded; none may be lost, added or renumbered without changing this table as well.
#[test]
fn the_specification_is_whole() {
    const LOOP: &str = "A1-7 B1-5 C0-11 E1-27 F1-6 H1-6 I1-13 M1-6 P1-11 R1-12 S1-10 T1-11 W1-3 X1-10 Z1-7";
    const PIT: &str = "A1-2 B1-4 C1-5 H1-3 K1-8 L1-17 M1-5 O1-2 P1-8 S1-7 T1-7 U1-2 V1-2 X1-6";
    let tree = repository();
    let paths: BTreeMap<_, _> = SPECIFICATIONS.iter().copied().collect();
    for (prefix, ranges) in [("loop", LOOP), ("pit", PIT)] {
        let text = tree.text(paths[prefix]).expect("the specification is there");
        let found: BTreeSet<String> =
            Specification::read(prefix, text).rows().map(|row| row.id.clone()).collect();
        let expected: BTreeSet<String> = ranges.split(' ').flat_map(|range| ids(prefix, range)).collect();
        assert_eq!(found, expected);
    }
}

/// `A1-3` is `A1`, `A2` and `A3`.
fn ids(prefix: &str, range: &str) -> Vec<String> {
    let (letter, numbers) = range.split_at(1);
    let (from, to) = numbers.split_once('-').expect("a range has two ends");
    let number = |text: &str| text.parse::<u32>().expect("the ends are numbers");
    (number(from)..=number(to)).map(|number| format!("{prefix}_{letter}{number}")).collect()
}
