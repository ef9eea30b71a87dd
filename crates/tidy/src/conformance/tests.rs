use super::*;

const LOOP: (&str, &str) = (
    "docs/spec/loop.md",
    "# The loop\n\n## Transitions\n- `loop_T1` Tools ran.\n- `loop_T10` One nudge | no more.\n## Ends\n- `loop_X1` Done.\n",
);
const PITFALLS: (&str, &str) =
    ("docs/spec/pitfalls.md", "# Pitfalls\n\n## Compaction\n- `pit_C1` It fits.\n");

fn names(path: &str, text: &str) -> Vec<String> {
    tests_in(&Tree::of([(path, text)])).into_iter().map(|test| test.name).collect()
}

#[test]
fn ids_end_where_their_digits_end() {
    assert_eq!(ids_in("loop_T1_tools_run"), ["loop_T1"]);
    assert_eq!(ids_in("loop_T10_nudge"), ["loop_T10"]);
    assert_eq!(ids_in("test_loop_T1_and_pit_C1"), ["loop_T1", "pit_C1"]);
    assert_eq!(ids_in("loop_T3 recovers"), ["loop_T3"]);
    assert_eq!(ids_in("loop_T1_loop_T2"), ["loop_T1", "loop_T2"]);
    assert_eq!(ids_in("loop_T1x loop_t1 loop_T loop_back noloop_T1 cockpit_C1"), Vec::<String>::new());
}

#[test]
fn tests_are_found_in_every_language_and_skipped_ones_are_not() {
    assert_eq!(names("a.rs", "#[test]\nfn loop_T1_x() {}\nfn loop_T2_x() {}"), ["loop_T1_x"]);
    let python = "def test_loop_T1_x(a):\n  pass\nclass A:\n  async def test_b(self): ...\ndef helper(): ...\n\
                  @pytest.mark.skip(\n  reason='x')\ndef test_c(): ...\ndef test_d(): ...\n# def test_e():";
    assert_eq!(names("a.py", python), ["test_loop_T1_x", "test_b", "test_d"]);
    let javascript = "test(\"loop_T1 x\", () => {});\nit('b', f);\ntest.skip(\"c\", f);\n// test(\"d\")\n\
                      await t.test(`e`, f);\n/x/.test(\"f\");\nlatest(\"g\");\ntest(\"h\", { skip: true }, f);";
    assert_eq!(names("a.test.mjs", javascript), ["loop_T1 x", "b", "e"]);
    assert!(names("a.md", "#[test] fn loop_T1_x() {}").is_empty());
}

#[test]
fn a_name_with_an_unknown_id_is_found() {
    let known = ("a.rs", "#[test] fn loop_T1_x() {}");
    assert!(unknown_ids(&Tree::of([LOOP, PITFALLS, known])).is_empty());
    let unknown = ("a.rs", "\n#[test] fn loop_T2_x() {}");
    let found = unknown_ids(&Tree::of([LOOP, PITFALLS, unknown]));
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].to_string(), "a.rs:2: `loop_T2_x` names `loop_T2`: no such row");
}

#[test]
fn rows_must_be_well_formed_and_single() {
    assert!(well_formed(&Tree::of([LOOP, PITFALLS])).is_empty());
    for bad in [
        "## A\n- `loop_T1` no full stop\n",
        "## A\n- loop_T1 No ticks.\n",
        "## A\n- `pit_C1` Wrong file.\n",
        "## A\n- `loop_T1x` Not an id.\n",
        "- `loop_T1` Before any heading.\n",
        "## A\n- `loop_T1` Once.\n- `loop_T1` Twice.\n",
    ] {
        assert_eq!(well_formed(&Tree::of([("docs/spec/loop.md", bad)])).len(), 1, "{bad}");
    }
}

#[test]
fn the_page_counts_and_lists() {
    let test = ("crates/a/tests/b.rs", "#[test] fn loop_T10_nudged_once() {}");
    let page = page(&Tree::of([LOOP, PITFALLS, test]));
    assert!(page.contains("**1 of 4 rows have a test that names them; 3 are open.**"), "{page}");
    assert!(page.contains("| [The loop](spec/loop.md) | 3 | 1 | 2 |"), "{page}");
    assert!(page.contains("| `loop_T1` | Tools ran. | **open** |"), "{page}");
    let covered =
        "| `loop_T10` | One nudge \\| no more. | [`loop_T10_nudged_once`](../crates/a/tests/b.rs) |";
    assert!(page.contains(covered), "{page}");
}

#[test]
fn a_page_that_does_not_follow_the_tests_is_stale() {
    let written = page(&Tree::of([LOOP, PITFALLS]));
    assert!(stale(&Tree::of([LOOP, PITFALLS, (PAGE, written.as_str())])).is_empty());
    let test = ("a.rs", "#[test] fn loop_T1_x() {}");
    assert_eq!(stale(&Tree::of([LOOP, PITFALLS, (PAGE, written.as_str()), test])).len(), 1);
    assert_eq!(stale(&Tree::of([LOOP, PITFALLS])).len(), 1, "a missing page is stale");
}
