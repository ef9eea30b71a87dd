//! The 256 colours that many terminals have: a cube of 6 × 6 × 6 and a scale of 24 greys. The first sixteen are the
//! user's own and can look like anything, so they are never chosen here.

/// Red, green and blue.
pub(super) type Rgb = (u8, u8, u8);

/// What each step of the cube is.
const STEPS: [u8; 6] = [0, 95, 135, 175, 215, 255];

/// The number of the colour that is nearest.
pub(super) fn nearest(rgb: Rgb) -> u8 {
    let (red, green, blue) = (step(rgb.0), step(rgb.1), step(rgb.2));
    let cube = 16 + 36 * red + 6 * green + blue;
    let of_cube = (STEPS[usize::from(red)], STEPS[usize::from(green)], STEPS[usize::from(blue)]);
    let grey = grey(rgb);
    if distance(rgb, shade_of_grey(grey)) < distance(rgb, of_cube) { 232 + grey } else { cube }
}

fn step(value: u8) -> u8 {
    let nearest = (0u8..6).min_by_key(|step| STEPS[usize::from(*step)].abs_diff(value));
    nearest.unwrap_or_default()
}

fn grey(rgb: Rgb) -> u8 {
    let mean = (u16::from(rgb.0) + u16::from(rgb.1) + u16::from(rgb.2)) / 3;
    let step = mean.saturating_sub(3) / 10;
    u8::try_from(step.min(23)).unwrap_or(23)
}

fn shade_of_grey(step: u8) -> Rgb {
    let value = 8 + 10 * step;
    (value, value, value)
}

fn distance(one: Rgb, other: Rgb) -> u32 {
    let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    square(one.0, other.0) + square(one.1, other.1) + square(one.2, other.2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_the_palette_are_found_again() {
        for (rgb, number) in [
            ((0, 0, 0), 16),
            ((255, 255, 255), 231),
            ((255, 0, 0), 196),
            ((95, 135, 175), 67),
            ((8, 8, 8), 232),
            ((238, 238, 238), 255),
            ((128, 128, 128), 244),
            ((254, 1, 1), 196),
        ] {
            assert_eq!(nearest(rgb), number, "{rgb:?}");
        }
    }
}
