//! Untrusted text made safe for a terminal: a model, a file name or a command's output must not be able to move
//! the cursor, change the title or write to the clipboard.

/// The text without control characters and escape sequences; tabs and line ends stay. Invisible characters that
/// reorder or hide text are shown as `<U+202E>`. Joiners stay where scripts and emoji need them.
pub fn plain(text: &str) -> String {
    Plain::default().of(text)
}

/// The same for text that comes in pieces: a sequence may begin in one and end in another.
#[derive(Debug, Default)]
pub(crate) struct Plain {
    inside: Inside,
    /// The last character shown may have a joiner behind it.
    joinable: bool,
}

/// What the next character is part of.
#[derive(Debug, Clone, Copy, Default)]
enum Inside {
    #[default]
    Text,
    /// Behind an escape character.
    Escape,
    /// Behind an escape character and what may come between it and the sequence's last character.
    Intermediate,
    /// In a control sequence (CSI), which ends with a letter.
    Control,
    /// In a string (OSC, DCS, APC, PM, SOS), which ends with a terminator. One that never comes takes the rest of
    /// the line only: the text after it is still the user's to read.
    String,
}

impl Plain {
    /// The next piece, made safe.
    pub fn of(&mut self, text: &str) -> String {
        let mut safe = String::with_capacity(text.len());
        for c in text.chars() {
            self.inside = match (self.inside, c) {
                (Inside::Escape, '[') => Inside::Control,
                (Inside::Escape, ']' | 'P' | 'X' | '^' | '_') => Inside::String,
                (Inside::Escape | Inside::Intermediate, ' '..='/') => Inside::Intermediate,
                (Inside::Escape | Inside::Intermediate, '0'..='~') => Inside::Text,
                (Inside::Control, ' '..='?') => Inside::Control,
                (Inside::Control, '@'..='~') => Inside::Text,
                (Inside::String, '\u{7}' | '\u{9c}') => Inside::Text,
                // The terminator is a sequence of two characters; any other ends the string as well.
                (Inside::String, c) if c != '\n' && c != '\u{1b}' => Inside::String,
                // Anything that does not belong where it stands ends what it stands in.
                (_, c) => self.outside(c, &mut safe),
            };
        }
        safe
    }

    /// A character outside of sequences: shows it, or begins one.
    fn outside(&mut self, c: char, safe: &mut String) -> Inside {
        let joinable = std::mem::take(&mut self.joinable);
        match c {
            '\t' | '\n' => safe.push(c),
            '\u{1b}' => return Inside::Escape,
            // The same sequences exist as single characters.
            '\u{9b}' => return Inside::Control,
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => return Inside::String,
            c if c.is_control() => {}
            // Persian words and families of emoji are written with joiners. Between Latin letters, or one after the
            // other, they mean nothing and only hide that two words differ.
            '\u{200c}' | '\u{200d}' if joinable => safe.push(c),
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}' => {
                safe.push_str(&format!("<U+{:04X}>", u32::from(c)));
            }
            c => {
                self.joinable = !c.is_ascii();
                safe.push(c);
            }
        }
        Inside::Text
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
            ("👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥", "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("pass\u{200d}word", "pass<U+200D>word"),
            ("é\u{200d}\u{200d}", "é\u{200d}<U+200D>"),
        ] {
            assert_eq!(plain(text), expected, "{text:?}");
            // Wherever it is cut.
            for (cut, _) in text.char_indices() {
                let mut pieces = Plain::default();
                let joined = pieces.of(&text[..cut]) + &pieces.of(&text[cut..]);
                assert_eq!(joined, expected, "{text:?} cut at {cut}");
            }
        }
    }
}
