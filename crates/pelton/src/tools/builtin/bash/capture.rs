//! What a command prints: read as it comes, from two pipes, in bounded memory.
//!
//! The model gets one text in the order of arrival; its beginning and its end if it is long. Everything goes to a file
//! then, which is made only when it is needed.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::pin;

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdout};
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use crate::limits::{
    PROGRESS_EVERY, PROGRESS_LINE_CHARS_MAX, PROGRESS_LINES_MAX, SHELL_DRAIN_QUIET, SHELL_DRAIN_TIME_MAX,
};
use crate::spill::{Shown, Spill, first_chars, last_chars};
use crate::tools::process::ProcessTree;
use crate::tools::text::cut;
use crate::tools::tool::{Report, ToolCx};

/// Bytes read at once: what a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;

/// The two pipes of a command, and what came through them.
pub(super) struct Pipes<'a> {
    cx: &'a ToolCx,
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    chunks: [Vec<u8>; 2],
    both: Both,
    spill: Spill,
    progress: Interval,
    newest: NewestLines,
}

/// What a command printed.
pub(super) struct Captured {
    /// Everything, or its beginning and its end with a note between.
    pub text: String,
    /// The same of standard output alone.
    pub stdout: String,
    /// The same of standard error alone.
    pub stderr: String,
    /// All bytes printed.
    pub bytes: u64,
    /// The file with everything, when the text has not.
    pub kept_at: Option<PathBuf>,
    /// Why there is no such file although there should be.
    pub lost: Option<io::Error>,
}

struct Both {
    merged: HeadTail,
    stdout: HeadTail,
    stderr: HeadTail,
}

#[derive(Clone, Copy)]
enum Source {
    Stdout,
    Stderr,
}

impl<'a> Pipes<'a> {
    /// The pipes of a command that was just started.
    pub fn new(tree: &mut ProcessTree, cx: &'a ToolCx) -> Option<Self> {
        let (stdout, stderr) = tree.take_output()?;
        let chars_max = cx.limits.shell_output_chars_max;
        let mut progress = interval(PROGRESS_EVERY);
        progress.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(Self {
            cx,
            stdout: Some(stdout),
            stderr: Some(stderr),
            chunks: [vec![0; CHUNK_BYTES], vec![0; CHUNK_BYTES]],
            both: Both {
                merged: HeadTail::new(chars_max),
                stdout: HeadTail::new(chars_max),
                stderr: HeadTail::new(chars_max),
            },
            spill: Spill::default(),
            progress,
            newest: NewestLines::default(),
        })
    }

    /// Reads until something happens; `None` when too much was printed before that.
    pub async fn read_until<T>(&mut self, event: impl Future<Output = T>) -> Option<T> {
        let mut event = pin!(event);
        loop {
            tokio::select! {
                biased;
                happened = &mut event => return Some(happened),
                _ = self.progress.tick() => self.report(),
                Some((source, bytes)) = next(&mut self.stdout, &mut self.stderr, &mut self.chunks) => {
                    self.take(source, bytes).await;
                    if self.both.merged.bytes > self.cx.limits.shell_spill_bytes_max {
                        return None;
                    }
                }
            }
        }
    }

    /// Reads until something happens, however much is printed; what is beyond the limit is not kept.
    pub async fn read_on_until(&mut self, event: impl Future<Output = ()>) {
        let mut event = pin!(event);
        while self.read_until(&mut event).await.is_none() {}
    }

    /// Reads what is still on its way, for a short while.
    pub async fn drain(&mut self) {
        let started = self.cx.world.monotonic();
        loop {
            let spent = self.cx.world.monotonic().saturating_sub(started);
            let left = SHELL_DRAIN_TIME_MAX.saturating_sub(spent);
            if left.is_zero() {
                return;
            }
            let next = next(&mut self.stdout, &mut self.stderr, &mut self.chunks);
            match timeout(left.min(SHELL_DRAIN_QUIET), next).await {
                Ok(Some((source, bytes))) => self.take(source, bytes).await,
                Ok(None) | Err(_) => return,
            }
        }
    }

    /// Puts everything so far, and all that comes, into a file. Tells where that is.
    pub async fn put_aside(&mut self) -> Option<PathBuf> {
        self.spill.open(&self.cx.spill_dir, &self.cx.call_id, self.both.merged.pieces()).await;
        match &self.spill {
            Spill::Open { path, .. } => Some(path.clone()),
            Spill::None | Spill::Failed(_) => None,
        }
    }

    /// What was printed so far, and the work of putting the rest where the beginning is.
    pub fn leave(self) -> (Shown, BoxFuture<'static, ()>) {
        let shown = self.both.merged.text(self.cx.limits.shell_failure_chars_max);
        let Self { mut stdout, mut stderr, mut chunks, mut spill, .. } = self;
        let rest = async move {
            while let Some((source, bytes)) = next(&mut stdout, &mut stderr, &mut chunks).await {
                let chunk = match source {
                    Source::Stdout => &chunks[0][..bytes],
                    Source::Stderr => &chunks[1][..bytes],
                };
                spill.write(chunk).await;
                spill.flush().await;
            }
        };
        (shown, rest.boxed())
    }

    /// What was printed in all, so much of it as is shown.
    pub async fn finish(mut self, chars_max: usize) -> Captured {
        let Both { merged, stdout, stderr } = self.both;
        let text = merged.text(chars_max);
        if text.omitted > 0 {
            // What fits the buffers was not written yet.
            self.spill.open(&self.cx.spill_dir, &self.cx.call_id, merged.pieces()).await;
        }
        let (kept_at, lost) = self.spill.finish(&self.cx.secrets).await;
        Captured {
            text: text.with_note(kept_at.as_deref()),
            stdout: stdout.text(chars_max).with_note(kept_at.as_deref()),
            stderr: stderr.text(chars_max).with_note(kept_at.as_deref()),
            bytes: merged.bytes,
            kept_at,
            lost,
        }
    }

    async fn take(&mut self, source: Source, bytes: usize) {
        let (own, chunk) = match source {
            Source::Stdout => (&mut self.both.stdout, &self.chunks[0][..bytes]),
            Source::Stderr => (&mut self.both.stderr, &self.chunks[1][..bytes]),
        };
        own.add(chunk);
        self.newest.add(chunk);
        if !self.both.merged.holds(chunk.len()) {
            let so_far = self.both.merged.pieces();
            self.spill.open(&self.cx.spill_dir, &self.cx.call_id, so_far).await;
        }
        if self.both.merged.bytes < self.cx.limits.shell_spill_bytes_max {
            self.spill.write(chunk).await;
        }
        self.both.merged.add(chunk);
    }

    fn report(&mut self) {
        for line in self.newest.take() {
            self.cx.progress.report(&self.cx.call_id, Report::OutputLine(line));
        }
    }
}

/// The next bytes from either pipe, into its chunk; `None` when both have ended.
async fn next(
    stdout: &mut Option<ChildStdout>,
    stderr: &mut Option<ChildStderr>,
    [out, err]: &mut [Vec<u8>; 2],
) -> Option<(Source, usize)> {
    loop {
        let (source, read) = match (stdout.as_mut(), stderr.as_mut()) {
            (Some(stdout), Some(stderr)) => tokio::select! {
                read = stdout.read(out) => (Source::Stdout, read),
                read = stderr.read(err) => (Source::Stderr, read),
            },
            (Some(stdout), None) => (Source::Stdout, stdout.read(out).await),
            (None, Some(stderr)) => (Source::Stderr, stderr.read(err).await),
            (None, None) => return None,
        };
        match (source, read) {
            (Source::Stdout, Ok(0) | Err(_)) => *stdout = None,
            (Source::Stderr, Ok(0) | Err(_)) => *stderr = None,
            (source, Ok(read)) => return Some((source, read)),
        }
    }
}

/// The beginning and the end of a stream of bytes.
struct HeadTail {
    chars_max: usize,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// All that came.
    bytes: u64,
}

impl HeadTail {
    fn new(chars_max: usize) -> Self {
        Self { chars_max, head: Vec::new(), tail: VecDeque::new(), bytes: 0 }
    }

    /// Half of the characters, each of at most four bytes.
    fn half_bytes(&self) -> usize {
        self.chars_max / 2 * 4
    }

    /// Whether `more` bytes fit without losing any.
    fn holds(&self, more: usize) -> bool {
        self.bytes + more as u64 <= 2 * self.half_bytes() as u64
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(self.half_bytes() - self.head.len()));
        self.head.extend_from_slice(head);
        // Of a long piece only its end can stay.
        let rest = &rest[rest.len().saturating_sub(self.half_bytes())..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.half_bytes());
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Both, in the order they came, while nothing is lost between them.
    fn pieces(&self) -> [&[u8]; 3] {
        let (first, second) = self.tail.as_slices();
        [&self.head, first, second]
    }

    /// At most so many characters, no more than were held for it.
    fn text(&self, chars_max: usize) -> Shown {
        let chars_max = chars_max.min(self.chars_max);
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.bytes == (self.head.len() + tail.len()) as u64 {
            let all = [&self.head[..], &tail].concat();
            return Shown::of(&String::from_utf8_lossy(&all), chars_max);
        }
        // The buffers hold more than is shown, so a character torn at their inner ends is never seen.
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        let head = first_chars(&head, chars_max / 2);
        let tail = last_chars(&tail, chars_max / 2);
        let omitted = self.bytes.saturating_sub((head.len() + tail.len()) as u64);
        Shown { head: head.to_owned(), tail: tail.to_owned(), omitted }
    }
}

/// The newest complete lines, for whoever watches: as many as one look has room for, none of those between them missing.
#[derive(Default)]
struct NewestLines {
    /// The line that is coming in, as far as it is shown.
    coming: Vec<u8>,
    /// Since they were last taken, the newest last.
    complete: VecDeque<String>,
}

impl NewestLines {
    fn add(&mut self, bytes: &[u8]) {
        // Only the last few line ends matter, however many there are.
        let mut ends = memchr::memchr_iter(b'\n', bytes).rev();
        let Some(end) = ends.next() else { return self.extend(bytes) };
        if let Some(before) = ends.nth(PROGRESS_LINES_MAX - 1) {
            self.coming.clear();
            bytes[before + 1..end].split(|byte| *byte == b'\n').for_each(|line| self.ended(line));
        } else {
            bytes[..end].split(|byte| *byte == b'\n').for_each(|line| self.ended(line));
        }
        self.extend(&bytes[end + 1..]);
    }

    /// A line is complete with this.
    fn ended(&mut self, rest: &[u8]) {
        self.extend(rest);
        let line = String::from_utf8_lossy(&self.coming);
        let line = cut(line.trim_end(), PROGRESS_LINE_CHARS_MAX).0;
        if !line.is_empty() {
            self.complete.push_back(line.to_owned());
            if self.complete.len() > PROGRESS_LINES_MAX {
                self.complete.pop_front();
            }
        }
        self.coming.clear();
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = (PROGRESS_LINE_CHARS_MAX * 4).saturating_sub(self.coming.len());
        self.coming.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn take(&mut self) -> VecDeque<String> {
        std::mem::take(&mut self.complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(chars_max: usize, pieces: &[&str], shown: &str) {
        let mut both = HeadTail::new(chars_max);
        pieces.iter().for_each(|piece| both.add(piece.as_bytes()));
        assert_eq!(both.text(chars_max).with_note(None), shown, "{pieces:?}");
    }

    #[test]
    fn the_beginning_and_the_end_are_kept() {
        check(4, &["ab", "cd"], "abcd");
        check(4, &["ab", "cde"], "ab\n[… 1 bytes omitted. …]\nde");
        check(4, &["äö", "üäö"], "äö\n[… 2 bytes omitted. …]\näö");
        check(4, &["漢字", &"x".repeat(1000), "漢字"], "漢字\n[… 1000 bytes omitted. …]\n漢字");
        check(4, &["x\n\n"], "x");
        check(4, &[], "");
    }

    #[test]
    fn characters_are_never_torn() {
        let text = "a€漢𝄞é".repeat(500);
        for size in [1, 2, 3, 5, 64] {
            let mut both = HeadTail::new(20);
            text.as_bytes().chunks(size).for_each(|piece| both.add(piece));
            let shown = both.text(20);
            assert!(text.starts_with(&shown.head) && text.ends_with(&shown.tail), "{size}");
            assert_eq!((shown.head.chars().count(), shown.tail.chars().count()), (10, 10));
            assert_eq!(shown.omitted as usize, text.len() - shown.head.len() - shown.tail.len());
        }
    }

    #[test]
    fn the_newest_lines_are_found_across_pieces() {
        let mut newest = NewestLines::default();
        for (piece, lines) in [
            ("one\ntwo\nthr", &["one", "two"][..]),
            ("ee", &[]),
            ("\n", &["three"]),
            ("\n", &[]),
            ("a\nb\nc\nd", &["a", "b", "c"]),
            ("\r\ncut o", &["d"]),
            // Of many only the last few, and nothing of those between them is missing.
            ("ff\n1\n2\n3\n4\n5\n6\n7\n8\n9\ncoming", &["5", "6", "7", "8", "9"]),
            ("?\n", &["coming?"]),
        ] {
            newest.add(piece.as_bytes());
            assert_eq!(newest.take(), lines, "{piece:?}");
        }
        // And so where they come one by one.
        (0..100).for_each(|line| newest.add(format!("{line}\n").as_bytes()));
        assert_eq!(newest.take(), ["95", "96", "97", "98", "99"]);
    }
}
