//! Tables: columns as wide as they need to be, or as wide as there is room for. Where there is no room for columns, each row is a list of
//! its cells.

use pulldown_cmark::Alignment;
use ratatui_core::style::Style;
use ratatui_core::text::{Line, Span};

use super::layout::Page;
use super::tree::{Table, Words};
use crate::cells::{width_of, wrap};
use crate::theme::{Depth, Role};

/// Cells of the narrowest column that can still be read.
const COLUMN_CELLS_MIN: usize = 4;
/// Cells between two columns: a bar with a space on either side.
const BETWEEN: usize = 3;

pub(super) fn lay_out(page: &Page, table: &Table) -> Vec<Line<'static>> {
    let columns = table.rows.iter().map(Vec::len).chain([table.head.len()]).max().unwrap_or_default();
    if columns == 0 {
        return Vec::new();
    }
    let strong = page.theme.style(Role::Strong);
    let head = Row::of(page, &table.head, strong, columns);
    let rows: Vec<Row> = table.rows.iter().map(|row| Row::of(page, row, Style::new(), columns)).collect();
    let natural: Vec<usize> = (0..columns)
        .map(|at| rows.iter().chain([&head]).map(|row| row.needs(at)).max().unwrap_or_default())
        .collect();
    let room = page.width.saturating_sub(BETWEEN * (columns - 1));
    let Some(widths) = widths(&natural, room) else { return as_lists(page, &head, &rows) };

    let (bar, dash, cross) =
        if page.theme.depth() == Depth::Bare { ("|", "-", "-+-") } else { ("│", "─", "─┼─") };
    let mark = page.theme.style(Role::Mark);
    let bar = Span::styled(format!(" {bar} "), mark);
    let rule: Vec<String> = widths.iter().map(|cells| dash.repeat(*cells)).collect();
    let mut lines = head.lines(&widths, &table.alignments, &bar);
    lines.push(Line::styled(rule.join(cross), mark));
    for row in &rows {
        lines.extend(row.lines(&widths, &table.alignments, &bar));
    }
    lines
}

struct Row {
    cells: Vec<Vec<Span<'static>>>,
}

impl Row {
    fn of(page: &Page, words: &[Words], base: Style, columns: usize) -> Self {
        let mut cells: Vec<_> = words.iter().map(|words| page.spans(words, base)).collect();
        cells.resize(columns, Vec::new());
        Self { cells }
    }

    /// Cells that the column would take here if there were room for it.
    fn needs(&self, column: usize) -> usize {
        let lines = wrap(&self.cells[column], usize::MAX);
        lines.iter().map(|line| width_of(&line.spans)).max().unwrap_or_default().max(1)
    }

    fn lines(&self, widths: &[usize], alignments: &[Alignment], bar: &Span<'static>) -> Vec<Line<'static>> {
        let wrapped: Vec<Vec<Line<'static>>> =
            self.cells.iter().zip(widths).map(|(cell, width)| wrap(cell, *width)).collect();
        let height = wrapped.iter().map(Vec::len).max().unwrap_or_default();
        let last = widths.len() - 1;
        let mut lines = Vec::with_capacity(height);
        for at in 0..height {
            let mut spans = Vec::new();
            for (column, cell) in wrapped.iter().enumerate() {
                let words = cell.get(at).map(|line| line.spans.clone()).unwrap_or_default();
                let free = widths[column].saturating_sub(width_of(&words));
                let before = match alignments.get(column) {
                    Some(Alignment::Right) => free,
                    Some(Alignment::Center) => free / 2,
                    _ => 0,
                };
                if before > 0 {
                    spans.push(Span::raw(" ".repeat(before)));
                }
                spans.extend(words);
                // Nothing stands behind the last column, not even spaces.
                if column < last {
                    spans.push(Span::raw(" ".repeat(free - before)));
                    spans.push(bar.clone());
                }
            }
            lines.push(Line::from(spans));
        }
        lines
    }
}

/// How wide the columns are: what they need if there is room, otherwise the widest give way. `None`: they would be too narrow to read.
fn widths(natural: &[usize], room: usize) -> Option<Vec<usize>> {
    let total: usize = natural.iter().sum();
    if total <= room {
        return Some(natural.to_vec());
    }
    let narrowest: usize = natural.iter().map(|cells| (*cells).min(COLUMN_CELLS_MIN)).sum();
    if narrowest > room {
        return None;
    }
    // The widest width that all fit under.
    let fits = |cap: usize| natural.iter().map(|cells| (*cells).min(cap)).sum::<usize>() <= room;
    let (mut low, mut high) = (COLUMN_CELLS_MIN, room);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) { low = middle } else { high = middle - 1 }
    }
    let mut widths: Vec<usize> = natural.iter().map(|cells| (*cells).min(low)).collect();
    // What is left goes to those that gave way, from the left.
    let mut left = room - widths.iter().sum::<usize>();
    for (width, natural) in widths.iter_mut().zip(natural) {
        if left > 0 && *width < *natural {
            *width += 1;
            left -= 1;
        }
    }
    Some(widths)
}

fn as_lists(page: &Page, head: &Row, rows: &[Row]) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        if at > 0 {
            lines.push(Line::default());
        }
        for (name, cell) in head.cells.iter().zip(&row.cells) {
            let mut spans = name.clone();
            spans.push(Span::styled(": ", page.theme.style(Role::Mark)));
            spans.extend(cell.iter().cloned());
            lines.extend(wrap(&spans, page.width));
        }
    }
    if rows.is_empty() {
        head.cells.iter().for_each(|name| lines.extend(wrap(name, page.width)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::widths;

    #[test]
    fn the_widest_give_way() {
        for (natural, room, expected) in [
            (&[3, 4][..], 10, Some(vec![3, 4])),
            (&[3, 40], 20, Some(vec![3, 17])),
            (&[30, 40], 20, Some(vec![10, 10])),
            (&[30, 40], 21, Some(vec![11, 10])),
            (&[30, 40, 2], 21, Some(vec![10, 9, 2])),
            (&[30, 40], 8, Some(vec![4, 4])),
            (&[30, 40], 7, None),
            (&[1, 1], 1, None),
        ] {
            assert_eq!(widths(natural, room), expected, "{natural:?} in {room}");
        }
    }
}
