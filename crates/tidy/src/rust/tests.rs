use super::*;

fn words(text: &str) -> Vec<&str> {
    Source::read(text).tokens.iter().filter(|token| token.is_word()).map(|token| token.text).collect()
}

fn named(file: &str, text: &str) -> Vec<String> {
    Source::read(text).without_tests().named(&Scope::of(file)).iter().map(Named::text).collect()
}

fn tests(text: &str) -> Vec<&str> {
    Source::read(text).tests().iter().map(|token| token.text).collect()
}

#[test]
fn strings_and_comments_are_not_code() {
    assert_eq!(words(r##"a("x y", r#"z " q"#, b"w", 'v', '\'', '\u{41}') // b"##), ["a"]);
    assert_eq!(words("/* one /* two */ three */ four"), ["four"]);
    assert_eq!(words("fn f<'a>(x: &'a str) {}"), ["fn", "f", "x", "str"]);
    assert_eq!(words("\"un\\\"closed\nstill"), Vec::<&str>::new());
}

#[test]
fn lines_are_counted_through_strings_and_comments() {
    let source = Source::read("/* \n */ \"\n\" here");
    assert_eq!(source.tokens.last().map(|token| (token.text, token.line)), Some(("here", 3)));
}

#[test]
fn test_only_items_are_left_out() {
    let kept = |text| {
        let source = Source::read(text).without_tests();
        source.tokens.iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(kept("a; #[cfg(test)] mod t { fn x() { y } } b;"), "a ; b ;");
    assert_eq!(kept("#[cfg(test)] use x::{a, b}; c"), "c");
    assert_eq!(kept("#[cfg(test)] #[allow(x)] pub fn f<A, B>(a: [u8; 2]) -> A { a } c"), "c");
    assert_eq!(kept("#[cfg(all(test, unix))] const A: B = B { x: 1 }; c"), "c");
    assert_eq!(kept("S { #[cfg(test)] a: 1, b: 2 }"), "S { b : 2 }");
    assert_eq!(kept("S { b: 2, #[cfg(test)] a: 1 }"), "S { b : 2 , }");
    assert_eq!(kept("#![cfg(test)] a"), "");
    assert_eq!(kept("#[cfg(not(test))] a"), "# [ cfg ( not ( test ) ) ] a");
    assert_eq!(kept("#[cfg(any(test, unix))] a"), "# [ cfg ( any ( test , unix ) ) ] a");
}

#[test]
fn modules_declared_for_tests_make_their_files_tests() {
    let tree = Tree::of([
        ("crates/a/src/lib.rs", "#[cfg(test)] mod fixture;\nmod real;"),
        ("crates/a/src/fixture.rs", ""),
        ("crates/a/src/fixture/deep.rs", ""),
        ("crates/a/src/real.rs", "#[cfg(test)]\nmod check;"),
        ("crates/a/src/real/check.rs", ""),
        ("crates/a/src/other.rs", "#[cfg(test)]\n#[path = \"other_tests.rs\"]\nmod tests;"),
        ("crates/a/src/other_tests.rs", ""),
        ("crates/a/src/real/tests.rs", ""),
        ("crates/a/tests/x.rs", ""),
    ]);
    let found = test_files(&tree);
    assert_eq!(
        found.iter().map(String::as_str).collect::<Vec<_>>(),
        [
            "crates/a/src/fixture.rs",
            "crates/a/src/fixture/deep.rs",
            "crates/a/src/other_tests.rs",
            "crates/a/src/real/check.rs",
            "crates/a/src/real/tests.rs",
            "crates/a/tests/x.rs"
        ]
    );
}

#[test]
fn use_trees_are_spread_out() {
    let text = "use std::{env, io::{self, Write as W}, time::*};";
    assert_eq!(named("a.rs", text), ["std::env", "std::io", "std::io::Write", "std::time"]);
}

#[test]
fn short_names_lead_back_to_their_imports() {
    let has = |text: &str, path: &str| named("a.rs", text).iter().any(|found| found == path);
    assert!(has("use std::io; fn f() { io::stdout(); }", "std::io::stdout"));
    assert!(has("use std::time::Instant as I; fn f() { I::now(); }", "std::time::Instant::now"));
    assert!(has("use std::time; use time::Instant; fn f() { Instant::now(); }", "std::time::Instant::now"));
    assert!(has("use std::time::*; fn f() { Instant::now(); }", "std::time::Instant::now"));
    assert!(has("fn f() { std::env::var(\"A\"); }", "std::env::var"));
    assert!(!has("use tokio::time::Instant; fn f() { Instant::now(); }", "std::time::Instant::now"));
    assert!(!has("#[cfg(test)] mod tests { use std::env; }", "std::env"));
}

#[test]
fn relative_paths_become_paths_from_the_root() {
    assert_eq!(named("turn/decide.rs", "use super::budget::Gauge;"), ["crate::turn::budget::Gauge"]);
    assert_eq!(named("turn/decide.rs", "fn f() { self::x::y(); }"), ["crate::turn::decide::x::y"]);
    assert_eq!(named("turn/mod.rs", "mod live; use live::Live;"), ["crate::turn::live::Live"]);
    assert_eq!(named("turn.rs", "mod live; use live::Live;"), ["crate::turn::live::Live"]);
    assert_eq!(named("tools/tool.rs", "mod inner { use super::super::x::Y; }"), ["crate::tools::x::Y"]);
    assert_eq!(named("tools/tool.rs", "use super::super::turn::run;"), ["crate::turn::run"]);
}

#[test]
fn names_handed_on_by_the_root_lead_home() {
    let root = Source::read("mod turn; pub use turn::decide::{Terminal, Transition as T};");
    let scope = Scope::of("event.rs").with_root(&root);
    let found: Vec<_> =
        Source::read("use crate::{Terminal, T};").named(&scope).iter().map(Named::text).collect();
    assert_eq!(found, ["crate::turn::decide::Terminal", "crate::turn::decide::Transition"]);
}

#[test]
fn a_path_is_inside_what_it_starts_with() {
    let named = Named { path: ["crate", "turn", "decide"].map(str::to_owned).to_vec(), line: 1 };
    assert!(named.is_in("crate::turn") && named.is_in("crate::turn::decide"));
    assert!(!named.is_in("crate::tu") && !named.is_in("crate::turn::decide::x"));
}

#[test]
fn only_what_the_runner_runs_is_a_test() {
    assert_eq!(tests("#[test] fn a() {}"), ["a"]);
    assert_eq!(tests("#[tokio::test(flavor = \"x\")] async fn a() {}"), ["a"]);
    assert_eq!(tests("#[test] #[should_panic] pub(crate) fn a() {}"), ["a"]);
    assert_eq!(tests("proptest! { #[test] fn a(x in 0..9u8) {} }"), ["a"]);
    assert_eq!(tests("fn a() {} #[test] const X: u8 = 1; fn b() {}"), Vec::<&str>::new());
    assert_eq!(tests("#[test] #[ignore] fn a() {}"), Vec::<&str>::new());
    assert_eq!(tests("// #[test] fn a() {}\n\"#[test] fn b() {}\""), Vec::<&str>::new());
}

#[test]
fn macros_are_seen_and_unequal_is_not_one() {
    let names = |text| Source::read(text).macros().map(|token| token.text).collect::<Vec<_>>();
    assert_eq!(names("println!(\"x\"); if a != b {}"), ["println"]);
}
