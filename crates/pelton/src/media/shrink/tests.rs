use std::io::Cursor;

use image::codecs::gif::GifEncoder;
use image::{Frame, GrayImage, RgbImage, Rgba, RgbaImage};
use proptest::prelude::*;

use super::*;

fn encoded(image: impl Into<DynamicImage>, format: Format) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.into().write_to(&mut Cursor::new(&mut bytes), format.into()).unwrap();
    bytes
}

/// Noise: what compresses worst.
fn noise(width: u32, height: u32) -> RgbImage {
    let mut state = 1u32;
    RgbImage::from_fn(width, height, |_, _| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let [a, b, c, _] = state.to_be_bytes();
        image::Rgb([a, b, c])
    })
}

fn plain(width: u32, height: u32) -> RgbImage {
    RgbImage::from_fn(width, height, |x, y| image::Rgb([(x / 8) as u8, (y / 8) as u8, 77]))
}

fn brought_down(bytes: &[u8], goal: Goal) -> Result<Picture, Unfit> {
    bring_down(bytes, goal, &CancellationToken::new())
}

/// The picture and its bytes; that they are what it says, and fit, is checked in passing.
#[track_caller]
fn fits(bytes: &[u8], goal: Goal) -> (Picture, Vec<u8>) {
    let picture = brought_down(bytes, goal).unwrap();
    let now = BASE64.decode(&picture.base64).unwrap();
    assert_eq!((Format::of(&now), Size::of(&now)), (Some(picture.format), Some(picture.size)));
    assert_eq!((picture.original, picture.original_bytes), (Size::of(bytes).unwrap(), bytes.len()));
    assert!(picture.size.edge() <= IMAGE_EDGE_PX_MAX && now.len() <= IMAGE_BYTES_MAX, "{}", picture.size);
    assert!(picture.base64.len() <= 5_000_000);
    open(&now, picture.format, picture.size).unwrap();
    (picture, now)
}

#[test]
fn what_fits_stays_as_it_is() {
    for format in [Format::Png, Format::Jpeg, Format::Gif, Format::Webp] {
        let bytes = encoded(plain(300, 200), format);
        for goal in [Goal::Sendable, Goal::Small] {
            let (picture, now) = fits(&bytes, goal);
            assert_eq!((picture.format, now == bytes), (format, true), "{format:?}");
            assert_eq!(picture.note(), None);
        }
    }
}

#[test]
fn what_has_too_many_pixels_keeps_its_shape() {
    for format in [Format::Png, Format::Jpeg, Format::Gif, Format::Webp] {
        let (picture, _) = fits(&encoded(plain(2162, 322), format), Goal::Sendable);
        assert_eq!((picture.size.width, picture.size.height), (2000, 298), "{format:?}");
        assert_eq!(
            picture.note().unwrap(),
            "[Scaled down from 2162×322 to 2000×298 pixels. Coordinates in the original are 1.08 times those seen here.]"
        );
    }
    let (picture, _) = fits(&encoded(GrayImage::new(1, 9000), Format::Png), Goal::Sendable);
    assert_eq!((picture.size.width, picture.size.height), (1, 2000));
}

#[test]
fn what_has_too_many_bytes_is_written_as_a_photograph() {
    let bytes = encoded(noise(1200, 1100), Format::Png);
    assert!(bytes.len() > IMAGE_BYTES_MAX);
    let (picture, now) = fits(&bytes, Goal::Sendable);
    assert_eq!((picture.format, picture.size), (Format::Jpeg, picture.original));
    assert!(now.len() < bytes.len());
}

#[test]
fn a_large_file_is_written_anew_only_if_that_helps_and_somebody_asked() {
    let bytes = encoded(noise(500, 500), Format::Png);
    assert!(bytes.len() > IMAGE_REWRITTEN_BYTES);
    assert_eq!(fits(&bytes, Goal::Sendable).1, bytes);
    let (picture, now) = fits(&bytes, Goal::Small);
    assert_eq!((picture.format, picture.size), (Format::Jpeg, picture.original));
    assert!(now.len() < bytes.len());
    let mut poor = Vec::new();
    noise(1600, 1500).write_with_encoder(JpegEncoder::new_with_quality(&mut poor, 15)).unwrap();
    assert!(poor.len() > IMAGE_REWRITTEN_BYTES);
    assert_eq!(fits(&poor, Goal::Small).1, poor, "it never grows");
}

#[test]
fn what_shows_through_is_kept_where_there_is_any() {
    let glass = RgbaImage::from_fn(2400, 100, |x, _| Rgba([9, 9, 9, if x < 1200 { 0 } else { 255 }]));
    let (picture, now) = fits(&encoded(glass, Format::Png), Goal::Sendable);
    assert_eq!(picture.format, Format::Png);
    let pixels = open(&now, picture.format, picture.size).unwrap().into_rgba8();
    assert_eq!((pixels.get_pixel(10, 10).0[3], pixels.get_pixel(1990, 10).0[3]), (0, 255));

    let mut noisy = DynamicImage::from(noise(1200, 1100)).into_rgba8();
    noisy.put_pixel(0, 0, Rgba([0, 0, 0, 0]));
    let (picture, _) = fits(&encoded(noisy, Format::Png), Goal::Sendable);
    assert_eq!(picture.format, Format::Png);
    assert!(picture.size.edge() == 900, "as large as fits: {}", picture.size);

    let opaque = DynamicImage::from(noise(1200, 1100)).into_rgba8();
    assert_eq!(fits(&encoded(opaque, Format::Png), Goal::Sendable).0.format, Format::Jpeg);
}

#[test]
fn a_moving_gif_stays_unless_it_is_too_large() {
    let moving = |width: u32, height: u32| {
        let mut bytes = Vec::new();
        let mut encoder = GifEncoder::new(&mut bytes);
        for shade in [20, 200] {
            encoder
                .encode_frame(Frame::new(RgbaImage::from_pixel(width, height, Rgba([shade, 0, 0, 255]))))
                .unwrap();
        }
        drop(encoder);
        bytes
    };
    let small = moving(100, 50);
    assert_eq!(fits(&small, Goal::Small).1, small);
    let (picture, now) = fits(&moving(2500, 50), Goal::Small);
    assert_eq!(picture.format, Format::Png);
    let first = open(&now, picture.format, picture.size).unwrap().into_rgb8();
    assert_eq!(first.get_pixel(5, 5).0, [20, 0, 0], "the first frame");
}

#[test]
fn a_photograph_taken_upright_stays_upright() {
    // A JPEG whose header says: turn by 90 degrees.
    let mut bytes = encoded(plain(2400, 1000), Format::Jpeg);
    let turned = b"\xFF\xE1\x00\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";
    bytes.splice(2..2, turned.iter().copied());
    let picture = brought_down(&bytes, Goal::Sendable).unwrap();
    assert_eq!((picture.size.width, picture.size.height), (833, 2000));
}

#[test]
fn images_that_cannot_be_used_are_told_apart() {
    let why = |bytes: &[u8]| brought_down(bytes, Goal::Sendable).unwrap_err();
    assert_eq!(why(b""), Unfit::NotAnImage);
    assert_eq!(why(b"<svg/>"), Unfit::NotAnImage);
    let png = encoded(noise(100, 100), Format::Png);
    for cut in [9, 30, 2_000, png.len() - 20] {
        assert!(matches!(why(&png[..cut]), Unfit::Damaged { format: Format::Png, .. }), "cut at {cut}");
    }
    let mut flipped = png.clone();
    flipped[5_000] ^= 0x55;
    assert!(matches!(why(&flipped), Unfit::Damaged { .. }));
    // A bomb: a few bytes that declare a wall of pixels.
    let mut bomb = encoded(plain(8, 8), Format::Png);
    bomb[16..20].copy_from_slice(&60_000u32.to_be_bytes());
    bomb[20..24].copy_from_slice(&60_000u32.to_be_bytes());
    assert_eq!(why(&bomb), Unfit::TooManyPixels { size: Size { width: 60_000, height: 60_000 } });
    assert!(why(&bomb).to_string().contains("ImageMagick"), "a way out");
    assert_eq!(
        why(&vec![0; IMAGE_SOURCE_BYTES_MAX + 1]),
        Unfit::TooManyBytes { bytes: IMAGE_SOURCE_BYTES_MAX as u64 + 1 }
    );
}

#[test]
fn half_a_photograph_is_shown_as_far_as_it_goes() {
    let whole = encoded(noise(400, 400), Format::Jpeg);
    let half = &whole[..whole.len() * 2 / 3];
    let (picture, now) = fits(half, Goal::Sendable);
    assert_eq!(picture.size, picture.original);
    assert!(jpeg_is_complete(&now));
}

#[test]
fn work_that_nobody_waits_for_ends() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let bytes = encoded(plain(100, 100), Format::Png);
    assert_eq!(bring_down(&bytes, Goal::Sendable, &cancel), Err(Unfit::Interrupted));
}

fn any_format() -> impl Strategy<Value = Format> {
    prop::sample::select(vec![Format::Png, Format::Jpeg, Format::Gif, Format::Webp])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn no_bytes_are_a_panic(format in any_format(), mut bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let start: &[u8] = match format {
            Format::Png => b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x09\0\0\0\x09\x08\x06\0\0\0",
            Format::Jpeg => b"\xFF\xD8\xFF\xE0",
            Format::Gif => b"GIF89a\x09\0\x09\0",
            Format::Webp => b"RIFF\x90\x01\0\0WEBPVP8L",
        };
        bytes.splice(0..0, start.iter().copied());
        let _ = brought_down(&bytes, Goal::Small);
    }

    #[test]
    fn no_damage_is_a_panic_and_what_comes_out_fits(
        format in any_format(),
        (width, height) in (1u32..60, 1u32..60),
        cut in 0.0..1.0f64,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        whole: bool,
    ) {
        let mut bytes = encoded(noise(width, height), format);
        for (at, with) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= with;
        }
        if !whole {
            bytes.truncate((bytes.len() as f64 * cut) as usize);
        }
        if let Ok(picture) = brought_down(&bytes, Goal::Small) {
            prop_assert!(picture.size.edge() <= IMAGE_EDGE_PX_MAX);
            prop_assert!(picture.base64.len() <= 5_000_000);
        }
    }

    #[test]
    fn sizes_only_shrink_and_keep_a_pixel(width in 1u32..200_000, height in 1u32..200_000, edge in 1u32..3_000) {
        let size = Size { width, height };
        let within = size.within(edge);
        prop_assert!(within.edge() <= edge.max(1) || within == size);
        prop_assert!(within.width >= 1 && within.height >= 1 && within.width <= width && within.height <= height);
    }
}
