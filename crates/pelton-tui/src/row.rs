//! A styled line as the bytes a terminal gets, and how wide it is there.

use ratatui_core::style::{Color, Modifier, Style};
use ratatui_core::text::Line;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// One line, ready to be written. It holds no escape sequence but those for colours that are made here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// The bytes.
    pub text: String,
    /// Cells it takes.
    pub width: usize,
}

impl Row {
    /// The whole line, however wide.
    pub fn of(line: &Line<'_>) -> Self {
        Self::up_to(line, usize::MAX)
    }

    /// The line, cut where it would be wider than so many cells.
    pub fn up_to(line: &Line<'_>, width_max: usize) -> Self {
        let mut row = Self::default();
        let is_cut = line.width() > width_max;
        let room = if is_cut { width_max.saturating_sub(1) } else { width_max };
        let mut now = Style::default();
        'spans: for span in &line.spans {
            let style = line.style.patch(span.style);
            for cluster in span.content.graphemes(true) {
                // Text was made safe before it came here; what could still move the cursor is left out.
                if cluster.chars().any(char::is_control) {
                    continue;
                }
                let width = cluster.width();
                if row.width + width > room {
                    break 'spans;
                }
                if style != now {
                    put_style(&mut row.text, style);
                    now = style;
                }
                row.text.push_str(cluster);
                row.width += width;
            }
        }
        if is_cut && width_max > 0 {
            row.text.push('…');
            row.width += 1;
        }
        if now != Style::default() {
            row.text.push_str("\u{1b}[0m");
        }
        row
    }

    /// Rows that it takes where rows have so many cells. A wide character that has no place goes to the next row whole.
    pub fn rows_in(&self, columns: usize) -> usize {
        if self.width <= columns {
            return 1;
        }
        let (mut rows, mut column) = (1, 0);
        for cells in self.cells() {
            if column + cells > columns {
                (rows, column) = (rows + 1, 0);
            }
            column += cells;
        }
        rows
    }

    /// Cells of each character, without what only colours it.
    fn cells(&self) -> impl Iterator<Item = usize> {
        let mut in_sequence = false;
        let seen = move |cluster: &&str| match *cluster {
            "\u{1b}" => {
                in_sequence = true;
                false
            }
            "m" if in_sequence => {
                in_sequence = false;
                false
            }
            _ => !in_sequence,
        };
        self.text.graphemes(true).filter(seen).map(UnicodeWidthStr::width)
    }
}

/// Everything before is taken back, so that the style stands alone.
fn put_style(text: &mut String, style: Style) {
    text.push_str("\u{1b}[0");
    for (modifier, code) in [
        (Modifier::BOLD, ";1"),
        (Modifier::DIM, ";2"),
        (Modifier::ITALIC, ";3"),
        (Modifier::UNDERLINED, ";4"),
        (Modifier::REVERSED, ";7"),
        (Modifier::CROSSED_OUT, ";9"),
    ] {
        if style.add_modifier.contains(modifier) {
            text.push_str(code);
        }
    }
    if let Some(colour) = style.fg {
        put_colour(text, colour, Ground::Fore);
    }
    if let Some(colour) = style.bg {
        put_colour(text, colour, Ground::Back);
    }
    text.push('m');
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ground {
    Fore,
    Back,
}

fn put_colour(text: &mut String, colour: Color, ground: Ground) {
    let shift = if ground == Ground::Fore { 0 } else { 10 };
    let named = |number: u32| match number {
        0..8 => 30 + number + shift,
        _ => 90 + (number - 8) + shift,
    };
    let code = match colour {
        Color::Reset => (39 + shift).to_string(),
        Color::Black => named(0).to_string(),
        Color::Red => named(1).to_string(),
        Color::Green => named(2).to_string(),
        Color::Yellow => named(3).to_string(),
        Color::Blue => named(4).to_string(),
        Color::Magenta => named(5).to_string(),
        Color::Cyan => named(6).to_string(),
        Color::Gray => named(7).to_string(),
        Color::DarkGray => named(8).to_string(),
        Color::LightRed => named(9).to_string(),
        Color::LightGreen => named(10).to_string(),
        Color::LightYellow => named(11).to_string(),
        Color::LightBlue => named(12).to_string(),
        Color::LightMagenta => named(13).to_string(),
        Color::LightCyan => named(14).to_string(),
        Color::White => named(15).to_string(),
        Color::Indexed(index) => format!("{};5;{index}", 38 + shift),
        Color::Rgb(red, green, blue) => format!("{};2;{red};{green};{blue}", 38 + shift),
    };
    text.push(';');
    text.push_str(&code);
}

#[cfg(test)]
mod tests {
    use ratatui_core::style::Stylize as _;
    use ratatui_core::text::Span;

    use super::*;

    #[test]
    fn a_line_is_cut_by_cells_and_ends_without_a_style() {
        let line = Line::from(vec![Span::raw("日本語"), Span::raw("ab").red().bold()]);
        assert_eq!(Row::of(&line), Row { text: "日本語\u{1b}[0;1;31mab\u{1b}[0m".to_owned(), width: 8 });
        assert_eq!(Row::up_to(&line, 8).width, 8);
        assert_eq!(Row::up_to(&line, 6), Row { text: "日本…".to_owned(), width: 5 });
        assert_eq!(Row::up_to(&line, 0).width, 0);
    }

    #[test]
    fn rows_are_counted_as_a_terminal_breaks_them() {
        let line = Line::from(vec![Span::raw("日本語日本"), Span::raw("mm").red().bold()]);
        let row = Row::of(&line);
        // In an odd width the last cell stays empty in front of a wide character.
        for (columns, rows) in [(12, 1), (11, 2), (7, 2), (6, 2), (5, 3), (4, 3), (3, 6)] {
            assert_eq!(row.rows_in(columns), rows, "{columns}");
        }
        assert_eq!(Row::default().rows_in(1), 1);
    }

    #[test]
    fn what_could_move_the_cursor_is_left_out() {
        let line = Line::raw("a\u{1b}[2Jb\rc\u{9b}d");
        assert_eq!(Row::of(&line).text, "a[2Jbcd");
    }
}
