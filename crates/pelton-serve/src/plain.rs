//! Untrusted text made safe for a terminal: a model, a file name or a command's output must not be able to move
//! the cursor, change the title or write to the clipboard.

/// The text without control characters and escape sequences; tabs and line ends stay. Invisible characters that
/// reorder or hide text are shown as `<U+202E>`.
pub fn plain(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\t' | '\n' => safe.push(c),
            '\u{1b}' => skip_escape(&mut chars),
            // The same sequences exist as single characters.
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut chars),
            c if c.is_control() => {}
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
                safe.push_str(&format!("<U+{:04X}>", u32::from(c)));
            }
            c => safe.push(c),
        }
    }
    safe
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.peek() {
        Some('[') => {
            chars.next();
            skip_csi(chars);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            chars.next();
            skip_string(chars);
        }
        // Intermediate bytes, then a final one.
        Some(' '..='/') => {
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
        Some('0'..='~') => {
            chars.next();
        }
        _ => {}
    }
}

fn skip_csi(chars: &mut Chars<'_>) {
    while chars.next_if(|c| (' '..='?').contains(c)).is_some() {}
    chars.next_if(|c| ('@'..='~').contains(c));
}

/// Up to the string terminator. One that never comes takes the rest of the line only: the text after it is still
/// the user's to read.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(c) = chars.next_if(|c| *c != '\n') {
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if(|c| *c == '\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequences_vanish_and_words_stay() {
        for (text, expected) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]52;c;aGk=\u{1b}\\x", "x"),
            ("\u{1b}]8;;http://a\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{1b}Pq#0\u{1b}\\x", "x"),
            ("\u{9b}2Jx", "x"),
            ("\u{1b}(0x", "x"),
            ("\u{1b}cx", "x"),
            ("a\rb\u{8}c\u{7f}d\u{85}e", "abcde"),
            ("\u{1b}]0;never ends\nnext", "\nnext"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("a\u{202e}b", "a<U+202E>b"),
            ("zero\u{200b}width", "zero<U+200B>width"),
            ("日本語 é 👍", "日本語 é 👍"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
        }
    }
}
