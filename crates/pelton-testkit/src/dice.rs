//! Seeded chance: the same seed gives the same fragments, jitter and ids.

/// A small generator (splitmix64). Good enough to scatter cuts; not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// A generator that depends on the seed and on what it is used for.
    pub(crate) fn new(seed: u64, purpose: &[u8]) -> Self {
        Self(hash(seed, purpose))
    }

    /// A number in `1..=most`; `most` is taken as 1 when it is 0.
    pub(crate) fn roll(&mut self, most: usize) -> usize {
        // The remainder is below `most`, so it fits back into usize.
        (self.bits() % most.max(1) as u64) as usize + 1
    }

    /// An id in the API's manner: prefix, then letters and digits.
    pub(crate) fn id(&mut self, prefix: &str) -> String {
        const LETTERS: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789";
        const LETTERS_IN_ID: usize = 22;
        let tail = (0..LETTERS_IN_ID).map(|_| char::from(LETTERS[self.roll(LETTERS.len()) - 1]));
        format!("{prefix}01{}", tail.collect::<String>())
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// FNV-1a over the bytes, started from the seed.
pub(crate) fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let start = 0xCBF2_9CE4_8422_2325 ^ seed;
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01B3))
}
