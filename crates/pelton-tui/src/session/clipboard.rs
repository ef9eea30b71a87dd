//! A picture from the clipboard. Terminals hand over text alone: pictures are asked of the desktop's own programs.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::Command;
use tokio::time::timeout;

use super::apart::apart;
use crate::draft::IMAGE_BYTES_MAX;
use crate::input::Image;

/// Who owns the clipboard may be asleep; nobody waits for that.
const TIME_MAX: Duration = Duration::from_secs(5);
/// Programs that can write a picture in hexadecimal digits take this many bytes for one, and a few around it.
const HEX_BYTES: u64 = 2;
/// What every PNG begins with.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

/// How a program writes a picture.
#[derive(Clone, Copy)]
enum Form {
    Bytes,
    /// As AppleScript does: `«data PNGf8950…»`.
    Hex,
}

/// Programs that know the clipboard, in the order in which they are tried: of Wayland, of X11, of macOS.
const READERS: [(&str, &[&str], Form); 4] = [
    ("wl-paste", &["--no-newline", "--type", "image/png"], Form::Bytes),
    ("xclip", &["-selection", "clipboard", "-target", "image/png", "-out"], Form::Bytes),
    ("pngpaste", &["-"], Form::Bytes),
    ("osascript", &["-e", "get the clipboard as «class PNGf»"], Form::Hex),
];

/// The picture in the clipboard; or why there is none.
pub(super) async fn picture() -> Result<Image, String> {
    let mut asked = false;
    for (program, words, form) in READERS {
        let Ok(said) = timeout(TIME_MAX, said_by(program, words)).await else {
            return Err(format!("{program} does not say what is in the clipboard"));
        };
        let Some(said) = said else { continue };
        asked = true;
        let bytes = match form {
            Form::Bytes => Some(said),
            Form::Hex => digits(&said),
        };
        let Some(bytes) = bytes.filter(|bytes| bytes.starts_with(PNG)) else { continue };
        if bytes.len() as u64 > IMAGE_BYTES_MAX {
            return Err("the picture in the clipboard is larger than 32 MB".to_owned());
        }
        return Ok(Image::Bytes { media_type: "image/png".to_owned(), data: Arc::from(bytes) });
    }
    Err(match asked {
        true => "there is no picture in the clipboard".to_owned(),
        false => "nothing here can read pictures from the clipboard: install wl-clipboard (Wayland), xclip (X11) or \
                  pngpaste (macOS), or write the path of a file"
            .to_owned(),
    })
}

/// What a program writes; `None` if it is not there.
async fn said_by(program: &str, words: &[&str]) -> Option<Vec<u8>> {
    let mut command = Command::new(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = apart(&mut command).spawn().ok()?;
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        // One byte more than may be, so that it is noticed. What cannot be read is no picture.
        let _ = stdout.take((IMAGE_BYTES_MAX + 1) * HEX_BYTES).read_to_end(&mut said).await;
    }
    Some(said)
}

/// The bytes that hexadecimal digits between words mean.
fn digits(said: &[u8]) -> Option<Vec<u8>> {
    let said = std::str::from_utf8(said).ok()?;
    let (_, digits) = said.split_once("PNGf")?;
    let digits: Vec<u32> = digits.chars().map_while(|digit| digit.to_digit(16)).collect();
    digits.chunks_exact(2).map(|pair| u8::try_from(pair[0] * 16 + pair[1]).ok()).collect()
}
