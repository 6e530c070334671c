//! Text as it is set: subscripts, minus signs, widths, shortening.

use std::borrow::Cow;

/// The pieces of a text, each with whether the piece is a subscript: "o_s" is an "o" and a small,
/// low "s". A subscript has up to three letters or digits and follows a single letter.
pub fn pieces(text: &str) -> Vec<(&str, bool)> {
    let mut pieces = Vec::new();
    let mut rest = text;
    let mut from = 0;
    while let Some(offset) = rest[from..].find('_') {
        let mark = from + offset;
        let length = subscript(&rest[..mark], &rest[mark + 1..]);
        if length == 0 {
            from = mark + 1;
            continue;
        }
        pieces.push((&rest[..mark], false));
        pieces.push((&rest[mark + 1..][..length], true));
        rest = &rest[mark + 1 + length..];
        from = 0;
    }
    if !rest.is_empty() {
        pieces.push((rest, false));
    }
    pieces
}

/// How long the subscript is that begins between two texts; 0 if there is none.
fn subscript(before: &str, after: &str) -> usize {
    let mut letters = before.chars().rev();
    let single = letters.next().is_some_and(char::is_alphabetic)
        && !letters.next().is_some_and(|c| c.is_alphanumeric() || c == '_');
    let length = after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len());
    let ends = !after[length..].starts_with(|c: char| c == '_' || c.is_alphanumeric());
    if single && ends && length <= 3 { length } else { 0 }
}

/// A text in which the hyphen before a negative number is a minus sign, as tables have it. A hyphen
/// inside of a word, as in "packet-v2" or "2001-03", or of an option stays.
pub fn with_minus_signs(text: &str) -> Cow<'_, str> {
    let begins =
        |before: &str| before.chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
    let is_minus =
        |at: usize| begins(&text[..at]) && text[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    if !text.match_indices('-').any(|(at, _)| is_minus(at)) {
        return Cow::Borrowed(text);
    }
    let set = text.char_indices().map(|(at, c)| if c == '-' && is_minus(at) { '−' } else { c });
    Cow::Owned(set.collect())
}

/// How wide a text is at a size, in the units of the size. Fonts differ; the estimate is made for a
/// wide font.
pub fn width(text: &str, size: f64) -> f64 {
    let em = |c: char| match c {
        'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.34,
        'f' | 't' | 'r' | '(' | ')' | '[' | ']' | '-' | '/' => 0.43,
        'm' | 'w' | 'M' | 'W' | '%' | '−' | '±' | '×' => 0.92,
        'A'..='Z' => 0.72,
        '\u{1100}'.. => 1.0,
        _ => 0.63,
    };
    pieces(text)
        .iter()
        .map(|(piece, subscript)| {
            let size = if *subscript { 0.75 * size } else { size };
            size * piece.chars().map(em).sum::<f64>()
        })
        .sum()
}

/// A text that is no wider than the room: a longer text has an ellipsis in the place of its end.
pub fn fitted(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.to_owned();
    }
    let mut short: String = text.to_owned();
    while !short.is_empty() && width(&short, size) + size > room {
        short.pop();
    }
    short.trim_end().to_owned() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_with_an_underscore_has_a_subscript_and_other_names_have_not() {
        assert_eq!(pieces("o_s + L"), [("o", false), ("s", true), (" + L", false)]);
        assert_eq!(pieces("(o_r)"), [("(o", false), ("r", true), (")", false)]);
        for plain in ["logp_am", "a_", "_b", "o_send", "x_1_2", "µs per byte", "packet-v2"] {
            assert_eq!(pieces(plain), [(plain, false)], "{plain}");
        }
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn a_negative_number_has_a_minus_sign_and_other_hyphens_stay() {
        let set = with_minus_signs("L is -0.120 µs (-0.2 to -0.1) over packet-2, --quick, 2001-03");
        assert_eq!(set, "L is −0.120 µs (−0.2 to −0.1) over packet-2, --quick, 2001-03");
        assert_eq!(with_minus_signs("-1"), "−1");
    }

    #[test]
    fn a_long_text_is_cut_to_the_room_that_it_has() {
        assert_eq!(fitted("verbs", 12.0, 100.0), "verbs");
        let short = fitted("Split-C, one-sided, packet-v2", 12.0, 100.0);
        assert!(short.starts_with("Split-C") && short.ends_with('…'), "{short}");
        assert!(width(&short, 12.0) <= 100.0);
    }
}
