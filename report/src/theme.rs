//! Colours, light and dark, and the styles that use the colours.

use std::fmt::Write;

/// A colour: the name by which styles call the colour, and what the colour is on a light and on a
/// dark page.
type Colour = (&'static str, &'static str, &'static str);

/// All colours. `s0` to `s5` are lines and markers, dark enough on a light page for text; `b0` to
/// `b5` fill bars, and differ in lightness from one to the next. Readers who do not distinguish red
/// from green can tell apart those that are near each other.
const COLOURS: [Colour; 23] = [
    ("paper", "#ffffff", "#14171a"),
    ("ink", "#1b1f23", "#e4e6e8"),
    ("soft", "#59616a", "#a3abb3"),
    ("rule", "#c9ced3", "#3d444b"),
    ("faint", "#e8ebee", "#262b30"),
    ("link", "#0a5c9c", "#7fbcf0"),
    ("holds", "#0b6e4f", "#4cc79a"),
    ("fails", "#b3261e", "#ff8a80"),
    ("warns", "#8a5a00", "#e6b450"),
    ("cited", "#6a5a8c", "#b8a8dc"),
    ("s0", "#0068a8", "#5ab4f0"),
    ("s1", "#c44e00", "#f59556"),
    ("s2", "#00795a", "#3cc9a0"),
    ("s3", "#98448a", "#dc98cf"),
    ("s4", "#876400", "#e3bb3a"),
    ("s5", "#3f51b5", "#a2adf5"),
    ("b0", "#17557f", "#4d9fd6"),
    ("b1", "#e08e1b", "#f2b25c"),
    ("b2", "#3d9a80", "#2f8f74"),
    ("b3", "#8d4a80", "#c98abf"),
    ("b4", "#b5a642", "#d8cc72"),
    ("b5", "#5b6570", "#8b96a1"),
    ("published", "#6f7780", "#9aa3ab"),
];

const PAGE: &str = include_str!("page.css");
const FIGURE: &str = include_str!("figure.css");

/// The style of a page: colours as variables, which a reader's preference or the page's button
/// chooses.
pub fn page() -> String {
    let (light, dark) = (variables(false), variables(true));
    format!(
        ":root{{color-scheme:light;{light}}}\n\
         @media screen and (prefers-color-scheme:dark){{\
         :root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n\
         @media screen{{:root[data-theme=dark]{{color-scheme:dark;{dark}}}}}\n{PAGE}{FIGURE}"
    )
}

/// The style of a figure in a file of its own. Programs that turn SVG into other formats often know
/// neither variables nor media queries: those see the light colours.
pub fn figure() -> String {
    let (light, dark) = (substituted(false), substituted(true));
    format!("{light}@media (prefers-color-scheme:dark){{{dark}}}")
}

fn variables(dark: bool) -> String {
    COLOURS.iter().fold(String::new(), |mut style, (name, light, darker)| {
        // Writing to a string does not fail.
        let _ = write!(style, "--{name}:{};", if dark { darker } else { light });
        style
    })
}

fn substituted(dark: bool) -> String {
    COLOURS.iter().fold(FIGURE.to_owned(), |style, (name, light, darker)| {
        style.replace(&format!("var(--{name})"), if dark { darker } else { light })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The relative luminance of a colour, by the definition of WCAG 2.
    fn luminance(colour: &str) -> f64 {
        let channel = |place: usize| {
            let value = u8::from_str_radix(&colour[place..place + 2], 16).expect("two digits");
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    #[test]
    fn text_and_graphics_stand_out_from_the_page_in_both_themes() {
        for dark in [false, true] {
            let pick = |(_, light, darker): &Colour| luminance(if dark { darker } else { light });
            let paper = pick(&COLOURS[0]);
            for colour in &COLOURS[1..] {
                let (one, other) = (pick(colour), paper);
                let contrast = (one.max(other) + 0.05) / (one.min(other) + 0.05);
                let least = match colour.0 {
                    "rule" | "faint" => 1.0,
                    "published" => 4.0,
                    name if name.starts_with('b') => 2.4,
                    _ => 4.5,
                };
                assert!(contrast >= least, "{} is {contrast:.1} when dark is {dark}", colour.0);
            }
        }
    }

    #[test]
    fn a_figure_in_a_file_of_its_own_has_no_variables() {
        assert!(!figure().contains("var("), "{}", figure());
        assert!(figure().contains("prefers-color-scheme"));
    }
}
