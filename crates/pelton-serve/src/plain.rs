//! Untrusted text made safe for a terminal: a model, a file name or a command's output must not be able to move
//! the cursor, change the title or write to the clipboard.
//!
//! [`plain`] is the whole of it for text that is printed. A screen needs the parts: [`Sequences`] tells what stands outside of
//! escape sequences, [`unseen`] which characters leave no mark, [`shown`] how such a character is written out.

/// The text without control characters and escape sequences; tabs and line ends stay. Invisible characters that
/// reorder or hide text are shown as `‹U+202E›`. Joiners stay where scripts and emoji need them.
pub fn plain(text: &str) -> String {
    Plain::default().of(text)
}

/// A character that leaves no mark, written out. The marks around it mean nothing to a shell.
pub fn shown(c: char) -> String {
    format!("‹U+{:04X}›", u32::from(c))
}

/// Whether a character leaves no mark of its own on a screen: it reorders, joins, hides or carries what nobody sees.
/// Control characters are none of these; they are never shown.
pub fn unseen(c: char) -> bool {
    // The last two of every plane, and a few more, are no characters at all.
    let none = u32::from(c) & 0xfffe == 0xfffe || matches!(c, '\u{fdd0}'..='\u{fdef}');
    none || matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{70f}' | '\u{8e2}' | '\u{115f}' | '\u{1160}'
        | '\u{600}'..='\u{605}' | '\u{6dd}' | '\u{890}'..='\u{891}'
        | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Which of the unseen may follow what was shown before: Persian words and families of emoji are written with joiners, and a selector
/// says whether a sign is a picture. Between Latin letters, or one after the other, they mean nothing and only hide that
/// two words differ.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Joins {
    /// The last character shown may have a joiner behind it.
    joiner: bool,
    /// It may have a selector behind it.
    selector: bool,
}

impl Joins {
    /// Whether the character may stand here as it is; it is what the next one follows.
    pub fn allow(&mut self, c: char) -> bool {
        let before = std::mem::take(self);
        match c {
            '\u{200c}' | '\u{200d}' => before.joiner,
            // A picture may be joined to another behind its selector.
            '\u{fe00}'..='\u{fe0f}' => {
                self.joiner = before.joiner;
                before.selector
            }
            // Mongolian letters have selectors of their own.
            '\u{180b}'..='\u{180d}' | '\u{180f}' => before.selector,
            c if unseen(c) => false,
            c => {
                self.joiner = !c.is_ascii();
                // Signs of keys are digits with a selector: 1️⃣.
                self.selector = !c.is_ascii() || c.is_ascii_digit() || matches!(c, '#' | '*');
                true
            }
        }
    }
}

/// Tells what of a text stands outside of escape sequences, also when it comes in pieces.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sequences {
    inside: Inside,
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
    /// In a string (OSC, DCS, APC, PM, SOS, a title of screen), which ends with a terminator. One that never comes takes the rest of
    /// the line only: the text after it is still the user's to read.
    String,
}

impl Sequences {
    /// The character, unless it is part of a sequence. It can be a control character that begins none.
    pub fn outside(&mut self, c: char) -> Option<char> {
        self.inside = match (self.inside, c) {
            (Inside::Escape, '[') => Inside::Control,
            (Inside::Escape, ']' | 'P' | 'X' | '^' | '_' | 'k') => Inside::String,
            (Inside::Escape | Inside::Intermediate, ' '..='/') => Inside::Intermediate,
            (Inside::Escape | Inside::Intermediate, '0'..='~') => Inside::Text,
            (Inside::Control, ' '..='?') => Inside::Control,
            (Inside::Control, '@'..='~') => Inside::Text,
            (Inside::String, '\u{7}' | '\u{9c}') => Inside::Text,
            // The terminator is a sequence of two characters; any other ends the string as well, and so do the
            // characters that cancel whatever they stand in.
            (Inside::String, c) if !matches!(c, '\n' | '\u{18}' | '\u{1a}' | '\u{1b}') => Inside::String,
            // Anything that does not belong where it stands ends what it stands in.
            (_, '\u{1b}') => Inside::Escape,
            // The same sequences exist as single characters.
            (_, '\u{9b}') => Inside::Control,
            (_, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => Inside::String,
            (_, c) => {
                self.inside = Inside::Text;
                return Some(c);
            }
        };
        None
    }
}

/// [`plain`] for text that comes in pieces: a sequence may begin in one and end in another.
#[derive(Debug, Clone, Default)]
pub struct Plain {
    sequences: Sequences,
    joins: Joins,
}

impl Plain {
    /// The next piece, made safe.
    pub fn of(&mut self, text: &str) -> String {
        let mut safe = String::with_capacity(text.len());
        for c in text.chars().filter_map(|c| self.sequences.outside(c)) {
            match c {
                c if c.is_control() && !matches!(c, '\t' | '\n') => {}
                c if self.joins.allow(c) => safe.push(c),
                // Where a word may be cut at a line's end: nothing is lost with it.
                '\u{ad}' => {}
                c => safe.push_str(&shown(c)),
            }
        }
        safe
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
            ("\u{1b}]0;cancelled\u{18}next", "next"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("a\u{202e}b", "a‹U+202E›b"),
            ("zero\u{200b}width", "zero‹U+200B›width"),
            ("tag\u{e0041}", "tag‹U+E0041›"),
            ("two\u{2028}lines", "two‹U+2028›lines"),
            ("soft\u{ad}ly", "softly"),
            ("日本語 é 👍", "日本語 é 👍"),
            ("👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥", "👩\u{200d}👩\u{200d}👧 ❤\u{fe0f}\u{200d}🔥"),
            ("1\u{fe0f}\u{20e3}", "1\u{fe0f}\u{20e3}"),
            ("word\u{fe0f}\u{fe0f}", "word‹U+FE0F›‹U+FE0F›"),
            ("می\u{200c}خواهم", "می\u{200c}خواهم"),
            ("pass\u{200d}word", "pass‹U+200D›word"),
            ("é\u{200d}\u{200d}", "é\u{200d}‹U+200D›"),
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
