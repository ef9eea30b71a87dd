//! Entities of HTML: the numbered ones, and the named ones that are met in texts. Pure.

use std::borrow::Cow;

/// Characters of the longest name that is looked at.
const NAME_CHARS_MAX: usize = 10;

const NAMED: &[(&str, &str)] = &[
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", " "),
    ("ensp", " "),
    ("emsp", " "),
    ("thinsp", " "),
    ("shy", ""),
    ("zwnj", ""),
    ("zwj", ""),
    ("lrm", ""),
    ("rlm", ""),
    ("ndash", "–"),
    ("mdash", "—"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("sbquo", "‚"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bdquo", "„"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("lsaquo", "‹"),
    ("rsaquo", "›"),
    ("hellip", "…"),
    ("bull", "•"),
    ("middot", "·"),
    ("dagger", "†"),
    ("Dagger", "‡"),
    ("permil", "‰"),
    ("prime", "′"),
    ("Prime", "″"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("sect", "§"),
    ("para", "¶"),
    ("deg", "°"),
    ("plusmn", "±"),
    ("sup1", "¹"),
    ("sup2", "²"),
    ("sup3", "³"),
    ("frac12", "½"),
    ("frac14", "¼"),
    ("frac34", "¾"),
    ("times", "×"),
    ("divide", "÷"),
    ("minus", "−"),
    ("micro", "µ"),
    ("cent", "¢"),
    ("pound", "£"),
    ("yen", "¥"),
    ("euro", "€"),
    ("curren", "¤"),
    ("iexcl", "¡"),
    ("iquest", "¿"),
    ("brvbar", "¦"),
    ("uml", "¨"),
    ("ordf", "ª"),
    ("ordm", "º"),
    ("not", "¬"),
    ("macr", "¯"),
    ("acute", "´"),
    ("cedil", "¸"),
    ("szlig", "ß"),
    ("AElig", "Æ"),
    ("aelig", "æ"),
    ("OElig", "Œ"),
    ("oelig", "œ"),
    ("Oslash", "Ø"),
    ("oslash", "ø"),
    ("Aring", "Å"),
    ("aring", "å"),
    ("Agrave", "À"),
    ("agrave", "à"),
    ("Aacute", "Á"),
    ("aacute", "á"),
    ("Acirc", "Â"),
    ("acirc", "â"),
    ("Atilde", "Ã"),
    ("atilde", "ã"),
    ("Auml", "Ä"),
    ("auml", "ä"),
    ("Ccedil", "Ç"),
    ("ccedil", "ç"),
    ("Egrave", "È"),
    ("egrave", "è"),
    ("Eacute", "É"),
    ("eacute", "é"),
    ("Ecirc", "Ê"),
    ("ecirc", "ê"),
    ("Euml", "Ë"),
    ("euml", "ë"),
    ("Igrave", "Ì"),
    ("igrave", "ì"),
    ("Iacute", "Í"),
    ("iacute", "í"),
    ("Icirc", "Î"),
    ("icirc", "î"),
    ("Iuml", "Ï"),
    ("iuml", "ï"),
    ("ETH", "Ð"),
    ("eth", "ð"),
    ("Ntilde", "Ñ"),
    ("ntilde", "ñ"),
    ("Ograve", "Ò"),
    ("ograve", "ò"),
    ("Oacute", "Ó"),
    ("oacute", "ó"),
    ("Ocirc", "Ô"),
    ("ocirc", "ô"),
    ("Otilde", "Õ"),
    ("otilde", "õ"),
    ("Ouml", "Ö"),
    ("ouml", "ö"),
    ("Ugrave", "Ù"),
    ("ugrave", "ù"),
    ("Uacute", "Ú"),
    ("uacute", "ú"),
    ("Ucirc", "Û"),
    ("ucirc", "û"),
    ("Uuml", "Ü"),
    ("uuml", "ü"),
    ("Yacute", "Ý"),
    ("yacute", "ý"),
    ("yuml", "ÿ"),
    ("THORN", "Þ"),
    ("thorn", "þ"),
    ("Scaron", "Š"),
    ("scaron", "š"),
    ("fnof", "ƒ"),
    ("alpha", "α"),
    ("beta", "β"),
    ("gamma", "γ"),
    ("delta", "δ"),
    ("Delta", "Δ"),
    ("epsilon", "ε"),
    ("theta", "θ"),
    ("lambda", "λ"),
    ("mu", "μ"),
    ("pi", "π"),
    ("sigma", "σ"),
    ("Sigma", "Σ"),
    ("tau", "τ"),
    ("phi", "φ"),
    ("omega", "ω"),
    ("Omega", "Ω"),
    ("larr", "←"),
    ("uarr", "↑"),
    ("rarr", "→"),
    ("darr", "↓"),
    ("harr", "↔"),
    ("lArr", "⇐"),
    ("rArr", "⇒"),
    ("hArr", "⇔"),
    ("forall", "∀"),
    ("part", "∂"),
    ("exist", "∃"),
    ("empty", "∅"),
    ("nabla", "∇"),
    ("isin", "∈"),
    ("notin", "∉"),
    ("sum", "∑"),
    ("prod", "∏"),
    ("radic", "√"),
    ("infin", "∞"),
    ("cap", "∩"),
    ("cup", "∪"),
    ("int", "∫"),
    ("asymp", "≈"),
    ("ne", "≠"),
    ("equiv", "≡"),
    ("le", "≤"),
    ("ge", "≥"),
    ("sub", "⊂"),
    ("sup", "⊃"),
    ("oplus", "⊕"),
    ("otimes", "⊗"),
    ("check", "✓"),
    ("star", "☆"),
    ("lbrace", "{"),
    ("rbrace", "}"),
    ("lbrack", "["),
    ("rbrack", "]"),
    ("lpar", "("),
    ("rpar", ")"),
    ("num", "#"),
    ("commat", "@"),
    ("colon", ":"),
    ("comma", ","),
    ("period", "."),
    ("sol", "/"),
    ("bsol", "\\"),
    ("lowbar", "_"),
    ("grave", "`"),
    ("vert", "|"),
    ("ast", "*"),
    ("NewLine", "\n"),
    ("Tab", "\t"),
    ("dollar", "$"),
    ("percnt", "%"),
    ("excl", "!"),
    ("quest", "?"),
    ("equals", "="),
    ("plus", "+"),
    ("semi", ";"),
];

/// Names that were written without a `;` before there were rules.
const WITHOUT_END: &[&str] = &["amp", "lt", "gt", "quot", "nbsp", "copy", "reg"];

/// A text with its entities read. What is none stays as it is.
pub(super) fn read(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        read.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = entity(&rest[1..], &mut read).map_or_else(
            || {
                read.push('&');
                1
            },
            |length| 1 + length,
        );
        rest = &rest[length..];
    }
    read.push_str(rest);
    Cow::Owned(read)
}

/// Reads the entity behind an `&`, and tells how long it is.
fn entity(rest: &str, read: &mut String) -> Option<usize> {
    if let Some(number) = rest.strip_prefix('#') {
        let (digits, base, before) = match number.strip_prefix(['x', 'X']) {
            Some(digits) => (digits, 16, 2),
            None => (number, 10, 1),
        };
        let length = digits.bytes().take_while(|c| char::from(*c).is_digit(base)).count();
        if length == 0 {
            return None;
        }
        let code = u32::from_str_radix(&digits[..length.min(8)], base).unwrap_or(u32::MAX);
        read.push(character(code));
        return Some(before + length + usize::from(digits[length..].starts_with(';')));
    }
    let length = rest.bytes().take(NAME_CHARS_MAX).take_while(u8::is_ascii_alphanumeric).count();
    let name = &rest[..length];
    let ends = rest[length..].starts_with(';');
    let named = |name: &str| NAMED.iter().find(|(known, _)| *known == name);
    if let Some((_, text)) = named(name).filter(|_| ends || WITHOUT_END.contains(&name)) {
        read.push_str(text);
        return Some(length + usize::from(ends));
    }
    None
}

fn character(code: u32) -> char {
    match code {
        // What older pages mean by these is in another table.
        0x80..=0x9f => {
            let byte = [u8::try_from(code).unwrap_or(b'?')];
            encoding_rs::WINDOWS_1252
                .decode_without_bom_handling(&byte)
                .0
                .chars()
                .next()
                .unwrap_or('\u{fffd}')
        }
        0xa0 => ' ',
        0 => '\u{fffd}',
        _ => char::from_u32(code).unwrap_or('\u{fffd}'),
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn entities_are_read_and_the_rest_stays() {
        for (text, expected) in [
            ("a &amp; b", "a & b"),
            ("&lt;p&gt;", "<p>"),
            ("&#65;&#x42;&#X43;", "ABC"),
            ("&#150;&#8211;", "––"),
            ("&copy 2026", "© 2026"),
            ("a&b=c&notit=1", "a&b=c&notit=1"),
            ("&uuml;&Uuml;", "üÜ"),
            ("&;&#;&#x;&nosuch;", "&;&#;&#x;&nosuch;"),
            ("&#99999999999;&#0;", "\u{fffd}\u{fffd}"),
            ("&", "&"),
            ("ä&ä", "ä&ä"),
        ] {
            assert_eq!(read(text), expected);
        }
    }
}
