//! The rows of a table, until all of them are known. Pure.

/// A table. Tables inside of its cells are part of their text.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
    /// Tables that are open inside of a cell.
    inner: usize,
}

impl Table {
    /// A table inside of this one begins.
    pub fn begin_inner(&mut self) {
        self.inner += 1;
    }

    /// A table ends. Tells whether it was this one.
    pub fn end(&mut self) -> bool {
        let is_this = self.inner == 0;
        self.inner = self.inner.saturating_sub(1);
        is_this
    }

    pub fn begin_row(&mut self) {
        if self.inner == 0 {
            self.rows.push(Vec::new());
        }
    }

    pub fn begin_cell(&mut self) {
        if self.inner > 0 {
            return;
        }
        match self.rows.last_mut() {
            Some(row) => row.push(String::new()),
            None => self.rows.push(vec![String::new()]),
        }
    }

    /// Adds a paragraph to the cell that is being read; what stands outside of cells gets one of its own.
    pub fn write(&mut self, text: &str) {
        match self.rows.last_mut().map(|row| (row.is_empty(), row)) {
            Some((false, row)) => {
                if let Some(cell) = row.last_mut() {
                    if !cell.is_empty() {
                        cell.push_str("\n\n");
                    }
                    cell.push_str(text);
                }
            }
            Some((true, row)) => row.push(text.to_owned()),
            None => self.rows.push(vec![text.to_owned()]),
        }
    }

    /// As Markdown. What is only there to put things side by side is written one below the other.
    pub fn written(&self) -> String {
        let filled = |row: &&Vec<String>| row.iter().any(|cell| !cell.is_empty());
        let rows: Vec<&Vec<String>> = self.rows.iter().filter(filled).collect();
        let columns = rows.iter().map(|row| row.len()).max().unwrap_or_default();
        let cells = rows.iter().flat_map(|row| row.iter());
        let is_layout = columns < 2 || rows.len() < 2 || cells.clone().any(|cell| cell.lines().count() > 6);
        if is_layout {
            return cells.filter(|cell| !cell.is_empty()).cloned().collect::<Vec<_>>().join("\n\n");
        }
        let mut written = String::new();
        for (nth, row) in rows.iter().enumerate() {
            let cells: Vec<String> = row.iter().map(|cell| on_one_line(cell)).collect();
            // A row is as long as it is: missing cells are empty by themselves.
            written.push_str(&format!("| {} |\n", cells.join(" | ")));
            if nth == 0 {
                written.push_str(&format!("|{}\n", " --- |".repeat(columns.min(row.len().max(2)))));
            }
        }
        written.truncate(written.trim_end().len());
        written
    }
}

fn on_one_line(cell: &str) -> String {
    cell.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
