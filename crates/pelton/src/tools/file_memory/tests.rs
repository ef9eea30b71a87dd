use super::*;

fn content(text: &str) -> Fingerprint {
    Fingerprint::of(text.as_bytes())
}

fn reading(text: &str, lines: Range<u64>, lines_total: u64, range_asked: bool) -> Reading {
    Reading { content: content(text), lines, lines_total, lines_cut: false, range_asked }
}

const WHOLE: Known = Known::Whole { lines_cut: false };

#[test]
fn a_fingerprint_does_not_depend_on_how_the_content_is_cut() {
    let text: Vec<u8> = (0..10_000u32).map(|n| (n * 31 % 251) as u8).collect();
    for piece in [1, 3, 7, 8, 64, 4096] {
        let mut pieces = Fingerprinter::default();
        text.chunks(piece).for_each(|piece| pieces.add(piece));
        assert_eq!(pieces.finish(), Fingerprint::of(&text), "{piece}");
    }
    assert_ne!(content("a"), content("b"));
    assert_ne!(content(""), content("\0"));
}

#[test]
fn content_decides_not_the_path() {
    let memory = FileMemory::new();
    let (a, b) = (Path::new("/a"), Path::new("/b"));
    assert_eq!(memory.recall(a, content("x\n")), Known::Never);
    memory.note_read(a, reading("x\n", 1..2, 1, false));
    assert_eq!(memory.recall(a, content("x\n")), WHOLE);
    assert_eq!(memory.recall(a, content("y\n")), Known::Changed { was_whole: true });
    assert_eq!(memory.recall(b, content("x\n")), WHOLE, "moved");
    assert_eq!(memory.recall(b, content("y\n")), Known::Never);
}

#[test]
fn pages_add_up_and_an_unasked_page_counts_for_nothing() {
    let memory = FileMemory::new();
    let path = Path::new("/a");
    memory.note_read(path, reading("text", 1..11, 30, false));
    assert_eq!(memory.recall(path, content("text")), Known::FirstPage);
    memory.note_read(path, reading("text", 21..31, 30, true));
    assert_eq!(memory.recall(path, content("text")), Known::Lines(vec![1..11, 21..31]));
    memory.note_read(path, reading("text", 11..21, 30, true));
    assert_eq!(memory.recall(path, content("text")), WHOLE);
    memory.note_read(path, reading("other", 1..5, 30, true));
    assert_eq!(
        memory.recall(path, content("other")),
        Known::Lines(std::iter::once(1..5).collect()),
        "pages of other content are gone"
    );
}

#[test]
fn an_edit_moves_what_is_known() {
    let memory = FileMemory::new();
    let path = Path::new("/a");
    memory.note_read(path, reading("text", 1..5, 100, true));
    memory.note_read(path, reading("text", 20..30, 100, true));
    // Line 3 becomes three lines, lines 24 and 25 become one.
    let changes =
        [LineChange { first: 3, removed: 0, added: 2 }, LineChange { first: 24, removed: 1, added: 0 }];
    memory.note_edit(path, content("text"), content("new"), &changes);
    assert_eq!(memory.recall(path, content("new")), Known::Lines(vec![1..7, 22..31]));
    assert_eq!(memory.recall(path, content("text")), Known::Changed { was_whole: false });
}

#[test]
fn an_edit_of_a_whole_file_leaves_it_whole() {
    let memory = FileMemory::new();
    let path = Path::new("/a");
    for (removed, added) in [(0, 0), (3, 0), (0, 5), (3, 9)] {
        memory.note_written(path, content("text"), 10);
        memory.note_edit(path, content("text"), content("new"), &[LineChange { first: 7, removed, added }]);
        assert_eq!(memory.recall(path, content("new")), WHOLE, "-{removed} +{added}");
    }
}

#[test]
fn the_memory_is_bounded_and_forgets_what_was_not_used() {
    let memory = FileMemory::new();
    let path = |n: usize| PathBuf::from(format!("/{n}"));
    for n in 0..FILES_REMEMBERED_MAX {
        memory.note_written(&path(n), content(&n.to_string()), 1);
    }
    assert_eq!(memory.recall(&path(0), content("0")), WHOLE);
    memory.note_written(&path(FILES_REMEMBERED_MAX), content("new"), 1);
    assert_eq!(memory.lock().files.len(), FILES_REMEMBERED_MAX);
    assert_eq!(memory.recall(&path(0), content("0")), WHOLE, "used lately");
    assert_eq!(memory.recall(&path(1), content("1")), Known::Never, "used longest ago");
    for n in 0..10 * FILE_PAGES_REMEMBERED_MAX as u64 {
        memory.note_read(&path(5), reading("text", 3 * n + 1..3 * n + 2, 1_000_000, true));
    }
    let pages = memory.lock().files[path(5).as_path()].pages.clone();
    assert!(pages.len() <= FILE_PAGES_REMEMBERED_MAX);
    let newest = 3 * (10 * FILE_PAGES_REMEMBERED_MAX as u64 - 1) + 1;
    assert_eq!(pages.last(), Some(&(newest..newest + 1)));
}

#[test]
fn an_edit_of_a_moved_file_is_remembered_at_its_new_place() {
    let memory = FileMemory::new();
    memory.note_written(Path::new("/old"), content("text"), 3);
    let path = Path::new("/new");
    memory.note_edit(
        path,
        content("text"),
        content("edited"),
        &[LineChange { first: 1, removed: 0, added: 0 }],
    );
    assert_eq!(memory.recall(path, content("edited")), WHOLE);
}

#[test]
fn what_another_memory_knows_is_taken_over_and_adds_up() {
    let (own, other) = (FileMemory::new(), FileMemory::new());
    let (a, b, empty) = (Path::new("/a"), Path::new("/b"), Path::new("/empty"));
    own.note_read(a, reading("1\n2\n", 1..2, 2, true));
    other.note_read(a, reading("1\n2\n", 2..3, 2, true));
    other.note_read(b, reading("x\n", 1..2, 1, false));
    other.note_read(empty, reading("", 1..1, 0, false));
    let before = own.now();
    own.take_over(&other);
    assert_eq!(own.recall(a, content("1\n2\n")), WHOLE);
    assert_eq!(own.recall(b, content("x\n")), WHOLE);
    assert_eq!(own.recall(empty, content("")), WHOLE);
    assert!(own.remembers(b) && !own.remembers(Path::new("/c")));
    own.forget_since(before);
    assert_eq!(own.recall(b, content("x\n")), Known::Never, "as if it had been read then");
}
