//! Jupyter notebooks: cells to look at, and cells to change without touching another byte.
//!
//! The text is never written anew. Every value is known by its place in the text (`RawValue` borrows it), and a change
//! replaces that place alone: indentation, order of keys, keys nobody knows and the last newline stay what they are.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// A notebook, as far as it is understood.
pub(super) struct Notebook<'a> {
    text: &'a str,
    /// The array of cells.
    array: Range<usize>,
    pub cells: Vec<Cell<'a>>,
    /// Cells have ids of their own (format 4.5 and later).
    has_ids: bool,
    metadata: Option<&'a RawValue>,
}

/// One cell.
pub(super) struct Cell<'a> {
    /// Its own id, or `cell-N`, counted from 0.
    pub id: String,
    pub kind: Cow<'a, str>,
    pub source: String,
    pub execution_count: Option<u64>,
    pub outputs: Vec<Output<'a>>,
    place: Range<usize>,
    source_place: Range<usize>,
    source_is_list: bool,
    own_id: Option<&'a str>,
    metadata: Option<&'a str>,
}

/// What running a cell brought.
#[derive(Deserialize)]
pub(super) struct Output<'a> {
    #[serde(borrow, default)]
    pub text: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub data: Option<std::collections::BTreeMap<Cow<'a, str>, &'a RawValue>>,
    #[serde(default)]
    pub ename: Option<String>,
    #[serde(default)]
    pub evalue: Option<String>,
    #[serde(default)]
    pub traceback: Option<Vec<String>>,
}

/// A text, or its lines.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Text<'a> {
    One(#[serde(borrow)] Cow<'a, str>),
    Lines(Vec<String>),
}

impl Text<'_> {
    pub fn joined(&self) -> String {
        match self {
            Self::One(text) => text.clone().into_owned(),
            Self::Lines(lines) => lines.concat(),
        }
    }
}

#[derive(Deserialize)]
struct SaidNotebook<'a> {
    #[serde(borrow)]
    cells: &'a RawValue,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(default)]
    nbformat: u64,
    #[serde(default)]
    nbformat_minor: u64,
}

#[derive(Deserialize)]
struct SaidCell<'a> {
    #[serde(borrow)]
    cell_type: Cow<'a, str>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    source: &'a RawValue,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    outputs: Vec<&'a RawValue>,
    #[serde(default)]
    execution_count: Option<u64>,
}

/// What becomes of a cell.
pub(super) enum Change<'a> {
    Replace {
        cell: usize,
        source: &'a str,
        kind: Option<&'a str>,
    },
    /// Behind this cell; first without one.
    Insert {
        behind: Option<usize>,
        source: &'a str,
        kind: &'a str,
        id: &'a str,
    },
    Delete {
        cell: usize,
    },
}

impl<'a> Notebook<'a> {
    /// Understands a notebook; or says what is wrong with it.
    pub fn read(text: &'a str) -> Result<Self, String> {
        let said: SaidNotebook<'a> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let array = place(text, said.cells.get());
        let raw: Vec<&'a RawValue> =
            serde_json::from_str(said.cells.get()).map_err(|error| format!("`cells`: {error}"))?;
        let mut cells = Vec::new();
        for (n, raw) in raw.into_iter().enumerate() {
            let cell: SaidCell<'a> =
                serde_json::from_str(raw.get()).map_err(|error| format!("cell {n}: {error}"))?;
            let source: Text<'a> = serde_json::from_str(cell.source.get())
                .map_err(|_| format!("cell {n}: `source` is no text"))?;
            let own_id = cell.id.and_then(|id| serde_json::from_str::<String>(id.get()).ok());
            cells.push(Cell {
                id: own_id.unwrap_or_else(|| format!("cell-{n}")),
                kind: cell.cell_type,
                source: source.joined(),
                execution_count: cell.execution_count,
                outputs: cell.outputs.iter().filter_map(|raw| serde_json::from_str(raw.get()).ok()).collect(),
                place: place(text, raw.get()),
                source_place: place(text, cell.source.get()),
                source_is_list: matches!(source, Text::Lines(_)),
                own_id: cell.id.map(RawValue::get),
                metadata: cell.metadata.map(RawValue::get),
            });
        }
        let has_ids = (said.nbformat, said.nbformat_minor) >= (4, 5);
        Ok(Self { text, array, cells, has_ids, metadata: said.metadata })
    }

    /// The language of its code, if it says so.
    pub fn language(&self) -> String {
        let metadata: Option<Value> = self.metadata.and_then(|raw| serde_json::from_str(raw.get()).ok());
        let named = metadata.as_ref().and_then(|metadata| metadata["language_info"]["name"].as_str());
        named.unwrap_or_default().to_owned()
    }

    /// The cell of this id; `cell-N` means the N-th of a notebook whose cells have none of their own.
    pub fn find(&self, id: &str) -> Option<usize> {
        let by_number = || id.strip_prefix("cell-")?.parse().ok().filter(|n| *n < self.cells.len());
        self.cells.iter().position(|cell| cell.id == id).or_else(by_number)
    }

    /// The text with one change.
    pub fn with(&self, change: &Change<'_>) -> String {
        match *change {
            Change::Replace { cell, source, kind } => {
                let cell = &self.cells[cell];
                match kind.filter(|kind| *kind != cell.kind) {
                    None => self.spliced(cell.source_place.clone(), &self.source(cell, source)),
                    Some(kind) => {
                        let new = self.cell(kind, cell.own_id.map(str::to_owned), cell.metadata, source);
                        self.spliced(cell.place.clone(), &new)
                    }
                }
            }
            Change::Insert { behind, source, kind, id } => {
                let id = self.has_ids.then(|| Value::from(id).to_string());
                let new = self.cell(kind, id, None, source);
                let (open, close) = (self.array.start + 1, self.array.end - 1);
                match (behind, self.cells.first()) {
                    (Some(behind), _) => {
                        let end = self.cells[behind].place.end;
                        self.spliced(end..end, &format!("{}{new}", self.separator()))
                    }
                    (None, Some(first)) => {
                        let start = first.place.start;
                        self.spliced(start..start, &format!("{new}{}", self.separator()))
                    }
                    (None, None) => {
                        let end = self.lead().rfind('\n').map_or(String::new(), |at| {
                            let unit = self.unit();
                            self.lead()[at..].strip_suffix(&unit).unwrap_or("\n").to_owned()
                        });
                        self.spliced(open..close, &format!("{}{new}{end}", self.lead()))
                    }
                }
            }
            Change::Delete { cell } => {
                let place = &self.cells[cell].place;
                let goes = match (cell.checked_sub(1).map(|n| &self.cells[n]), self.cells.get(cell + 1)) {
                    (_, Some(next)) => place.start..next.place.start,
                    (Some(before), None) => before.place.end..place.end,
                    (None, None) => return self.spliced(self.array.clone(), "[]"),
                };
                self.spliced(goes, "")
            }
        }
    }

    fn spliced(&self, goes: Range<usize>, comes: &str) -> String {
        format!("{}{comes}{}", &self.text[..goes.start], &self.text[goes.end..])
    }

    /// A new source in the form of the old one.
    fn source(&self, cell: &Cell<'_>, source: &str) -> String {
        if !cell.source_is_list {
            return Value::from(source).to_string();
        }
        let old = &self.text[cell.source_place.clone()];
        let inner = match old.find('"') {
            Some(first) => old[1..first].to_owned(),
            None if self.is_compact() => String::new(),
            None => format!("{}{}{}", self.lead(), self.unit(), self.unit()),
        };
        let close = match old.rfind('"') {
            Some(last) => old[last + 1..old.len() - 1].to_owned(),
            None if self.is_compact() => String::new(),
            None => format!("{}{}", self.lead(), self.unit()),
        };
        let between = if inner.contains('\n') || inner.is_empty() { inner.clone() } else { " ".to_owned() };
        list(source, &inner, &between, &close)
    }

    /// A cell in the style of the file.
    fn cell(&self, kind: &str, id: Option<String>, metadata: Option<&str>, source: &str) -> String {
        let (lead, unit) =
            if self.is_compact() { (String::new(), String::new()) } else { (self.lead(), self.unit()) };
        let colon = if self.is_compact() && !self.text.contains("\": ") { ":" } else { ": " };
        let inside = format!("{lead}{unit}");
        let lines = list(source, &format!("{inside}{unit}"), &format!("{inside}{unit}"), &inside);
        let mut fields = vec![format!("\"cell_type\"{colon}{}", Value::from(kind))];
        if kind == "code" {
            fields.push(format!("\"execution_count\"{colon}null"));
        }
        fields.extend(id.map(|id| format!("\"id\"{colon}{id}")));
        fields.push(format!("\"metadata\"{colon}{}", metadata.unwrap_or("{}")));
        if kind == "code" {
            fields.push(format!("\"outputs\"{colon}[]"));
        }
        fields.push(format!("\"source\"{colon}{lines}"));
        format!("{{{inside}{}{lead}}}", fields.join(&format!(",{inside}")))
    }

    /// What stands between two cells.
    fn separator(&self) -> String {
        match self.cells.as_slice() {
            [one, two, ..] => self.text[one.place.end..two.place.start].to_owned(),
            _ => format!(",{}", self.lead()),
        }
    }

    /// What stands before a cell: a line end and blanks, or nothing.
    fn lead(&self) -> String {
        match self.cells.first() {
            Some(first) => self.text[self.array.start + 1..first.place.start].to_owned(),
            None if self.is_compact() => String::new(),
            None => format!("\n{}{}", self.unit(), self.unit()),
        }
    }

    /// One step of indentation.
    fn unit(&self) -> String {
        let first = self.text.find('\n').map_or("", |at| &self.text[at + 1..]);
        let blanks: String = first.chars().take_while(|c| matches!(c, ' ' | '\t')).collect();
        if blanks.is_empty() { " ".to_owned() } else { blanks }
    }

    /// Everything is on one line.
    fn is_compact(&self) -> bool {
        !self.text.trim().contains('\n')
    }
}

/// Where a part of a text is.
fn place(text: &str, part: &str) -> Range<usize> {
    // Both are the same memory: what was read borrows from what it was read from.
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

/// A text as the list of its lines, each with its end.
fn list(text: &str, inner: &str, between: &str, close: &str) -> String {
    if text.is_empty() {
        return "[]".to_owned();
    }
    let lines: Vec<String> = text.split_inclusive('\n').map(|line| Value::from(line).to_string()).collect();
    format!("[{inner}{}{close}]", lines.join(&format!(",{between}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRETTY: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"aa\",\n   \"metadata\": {\"x\": [1,  2]},\n   \"source\": [\n    \"# Title\\n\",\n    \"text\"\n   ]\n  },\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n   \"id\": \"bb\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"unknown\": null,\n   \"source\": [\n    \"a = 1\"\n   ]\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

    #[test]
    fn only_the_changed_place_changes() {
        let notebook = Notebook::read(PRETTY).unwrap();
        assert_eq!(notebook.cells[0].source, "# Title\ntext");
        let new = notebook.with(&Change::Replace { cell: 1, source: "a = 2\nb = \"ü\"\n", kind: None });
        assert_eq!(new, PRETTY.replace("    \"a = 1\"\n", "    \"a = 2\\n\",\n    \"b = \\\"ü\\\"\\n\"\n"));
        let same =
            notebook.with(&Change::Replace { cell: 0, source: "# Title\ntext", kind: Some("markdown") });
        assert_eq!(same, PRETTY);
    }

    #[test]
    fn what_is_inserted_and_deleted_again_leaves_no_trace() {
        let compact =
            r##"{"cells":[{"cell_type":"raw","metadata":{},"source":"x"}],"nbformat":4,"nbformat_minor":2}"##;
        let empty = "{\n \"cells\": [],\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}";
        for text in [PRETTY, compact, empty] {
            let notebook = Notebook::read(text).unwrap();
            let places = std::iter::once(None).chain((0..notebook.cells.len()).map(Some));
            for behind in places {
                for kind in ["code", "markdown"] {
                    let new = notebook.with(&Change::Insert { behind, source: "1\n2", kind, id: "new" });
                    let read = Notebook::read(&new).unwrap_or_else(|error| panic!("{error}: {new}"));
                    let at = behind.map_or(0, |behind| behind + 1);
                    assert_eq!((read.cells[at].source.as_str(), &*read.cells[at].kind), ("1\n2", kind));
                    assert_eq!(new.contains('\n'), text.contains('\n'), "{new}");
                    assert_eq!(read.with(&Change::Delete { cell: at }), text);
                }
            }
        }
    }

    #[test]
    fn a_cell_of_another_kind_stays_a_cell() {
        let notebook = Notebook::read(PRETTY).unwrap();
        let new = notebook.with(&Change::Replace { cell: 1, source: "words", kind: Some("markdown") });
        let read: Value = serde_json::from_str(&new).unwrap();
        let expected =
            serde_json::json!({"cell_type": "markdown", "id": "bb", "metadata": {}, "source": ["words"]});
        assert_eq!(read["cells"][1], expected);
    }
}
