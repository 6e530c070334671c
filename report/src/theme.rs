//! Colours, light and dark, and the styles that use the colours.

use std::fmt::Write;

/// A colour: the name by which styles call the colour, and what the colour is on a light and on a
/// dark page.
type Colour = (&'static str, &'static str, &'static str);

/// The colours of pages and figures. `s0` to `s5` are lines and markers, dark enough on a light
/// page for text; `b0` to `b5` fill bars. Readers who do not distinguish red from green can tell
/// apart any two lines and any two bars.
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
    ("s3", "#8a4fe0", "#8f6cf0"),
    ("s4", "#6e1409", "#e8d44d"),
    ("s5", "#43284a", "#f3eefa"),
    ("b0", "#17557f", "#4d9fd6"),
    ("b1", "#e08e1b", "#f2b25c"),
    ("b2", "#3d9a80", "#2f8f74"),
    ("b3", "#c58af0", "#e3c6f7"),
    ("b4", "#3a2fc0", "#7a5cf0"),
    ("b5", "#8a3418", "#a8492c"),
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

    /// Red, green and blue as shares of the brightest light, of a colour like "#1b1f23".
    fn light(colour: &str) -> [f64; 3] {
        [1, 3, 5].map(|place| {
            let value = u8::from_str_radix(&colour[place..place + 2], 16).expect("two digits");
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        })
    }

    fn times(matrix: [[f64; 3]; 3], vector: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| row.iter().zip(vector).map(|(one, other)| one * other).sum())
    }

    /// The relative luminance of a colour, by the definition of WCAG 2.
    fn luminance(colour: &str) -> f64 {
        times([[0.2126, 0.7152, 0.0722]; 3], light(colour))[0]
    }

    /// A place in the colour space CIELAB, in which distances are differences that people see.
    fn lab(light: [f64; 3]) -> [f64; 3] {
        const XYZ: [[f64; 3]; 3] =
            [[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]];
        let root = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
        let [x, y, z] = times(XYZ, light).map(root);
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    /// What red-green blindness makes of light, in its two forms: G. M. Machado, M. M. Oliveira,
    /// L. A. F. Fernandes, "A Physiologically-based Model for Simulation of Color Vision
    /// Deficiency", IEEE Transactions on Visualization and Computer Graphics 15 (6), 2009.
    const BLIND: [[[f64; 3]; 3]; 2] = [
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
    ];

    #[test]
    fn readers_who_do_not_distinguish_red_from_green_tell_lines_and_bars_apart() {
        for (kind, dark, blindness) in ["s", "b"].into_iter().flat_map(|kind| {
            [false, true].into_iter().flat_map(move |dark| BLIND.map(|matrix| (kind, dark, matrix)))
        }) {
            let seen: Vec<(&str, [f64; 3])> = (COLOURS.iter())
                .filter(|(name, ..)| name.len() == 2 && name.starts_with(kind))
                .map(|(name, light_one, dark_one)| {
                    let colour = light(if dark { dark_one } else { light_one });
                    (*name, lab(times(blindness, colour).map(|part| part.clamp(0.0, 1.0))))
                })
                .collect();
            assert_eq!(seen.len(), 6, "all colours of a kind are compared");
            for (place, (one, here)) in seen.iter().enumerate() {
                for (other, there) in &seen[place + 1..] {
                    let squares = here.iter().zip(there).map(|(a, b)| (a - b).powi(2));
                    let distance = squares.sum::<f64>().sqrt();
                    assert!(distance > 17.0, "{one}, {other}: {distance:.1}, dark: {dark}");
                }
            }
        }
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
