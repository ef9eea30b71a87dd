//! Estimates for what the model has not counted yet. The model's own figures replace them after every answer.

/// Bytes of JSON text per token. English prose has about four characters per token; code, JSON and escapes fewer.
pub(super) const BYTES_PER_TOKEN: usize = 4;

/// What an image costs at the common resolution limit, whatever its bytes.
const IMAGE_TOKENS: u32 = 1_600;

/// About how many tokens a content array costs.
pub fn estimate(json: &[u8]) -> u32 {
    // An image's base64 says nothing about its cost, so it is counted by the piece. The check costs nothing on
    // the small entries, which are nearly all of them.
    const LARGE_BYTES: usize = 4_096;
    const IMAGE: &[u8] = br#""type":"base64""#;
    if json.len() > LARGE_BYTES {
        let images = json.windows(IMAGE.len()).filter(|window| *window == IMAGE).count();
        if images > 0 {
            let images = u32::try_from(images).unwrap_or(u32::MAX);
            return images.saturating_mul(IMAGE_TOKENS);
        }
    }
    u32::try_from(json.len() / BYTES_PER_TOKEN + 1).unwrap_or(u32::MAX)
}
