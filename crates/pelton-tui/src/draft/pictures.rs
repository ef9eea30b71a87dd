//! Files that are pictures: by what is in them, whatever they are called.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use crate::input;

/// As many bytes of a file as tell its format.
const HEAD_BYTES: u64 = 12;

/// The pictures that were dropped on the terminal, by their paths: terminals paste those, and nothing else.
pub(super) fn dropped(pasted: &str) -> Option<Vec<String>> {
    let are_there = |paths: &Vec<String>| !paths.is_empty() && paths.iter().all(|path| is_picture(path));
    let one = input::image_path(pasted).map(|path| vec![path]);
    one.filter(are_there).or_else(|| input::image_paths(pasted).filter(are_there))
}

fn is_picture(path: &str) -> bool {
    let mut head = Vec::new();
    let mut read = || File::open(path)?.take(HEAD_BYTES).read_to_end(&mut head);
    // Whoever opens a pipe waits for somebody who writes into it.
    Path::new(path).is_file() && read().is_ok() && media_type(&head).is_some()
}

/// What a picture is that begins so, if the API takes it.
pub(super) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    const BEGINNINGS: [(&[u8], &str); 4] = [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xFF\xD8\xFF", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
    ];
    let known =
        BEGINNINGS.iter().find(|(beginning, _)| bytes.starts_with(beginning)).map(|(_, known)| *known);
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    known.or(is_webp.then_some("image/webp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_picture_by_what_is_in_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = dir.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            path.display().to_string()
        };
        let (one, other) =
            (file("a.png", b"\x89PNG\r\n\x1a\n..."), file("my b.jpg", b"RIFF\x01\0\0\0WEBPVP8L"));
        let words = file("words.png", b"no picture at all");
        assert_eq!(dropped(&one), Some(vec![one.clone()]));
        assert_eq!(dropped(&format!("{one}\n{other}")), Some(vec![one.clone(), other.clone()]));
        assert_eq!(dropped(&format!("{one} '{other}'")), Some(vec![one.clone(), other]));
        assert_eq!(dropped(&words), None, "it stays the path that was pasted");
        assert_eq!(dropped(&format!("{one} {words}")), None);
        assert_eq!(dropped(&format!("{one}.gone.png")), None);
        assert_eq!(dropped(""), None);
    }
}
