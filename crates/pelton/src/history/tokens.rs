//! Estimates for what the model has not counted yet. The model's own figures replace them after every answer.

use super::media::Medium;

/// Bytes of JSON text per token. English prose has about four characters per token; code, JSON and escapes fewer.
pub(super) const BYTES_PER_TOKEN: usize = 4;

/// About how many tokens a content array of so many bytes costs. Base64 says nothing about what it costs, so media are
/// counted by the piece.
pub(super) fn estimate(bytes: usize, media: &[Medium]) -> u32 {
    let of_media = media.iter().map(|medium| medium.bytes).sum();
    let words = u32::try_from(bytes.saturating_sub(of_media) / BYTES_PER_TOKEN + 1).unwrap_or(u32::MAX);
    media.iter().fold(words, |sum, medium| sum.saturating_add(medium.tokens))
}
