//! Numbers as text for people.

use crate::Value;

/// A number with so many digits after the point, and thin spaces between thousands.
pub fn fixed(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let negative = value < 0.0 && digits.bytes().any(|digit| (b'1'..=b'9').contains(&digit));
    let mut text = String::from(if negative { "−" } else { "" });
    for (place, digit) in whole.char_indices() {
        if place > 0 && whole.len() > 4 && (whole.len() - place).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if !fraction.is_empty() {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

/// The interval of a value as text: "± 0.003", how far the interval reaches on the side where it
/// reaches farther; or "0.030 … 0.041", its ends, where the two sides differ by more than a tenth
/// of the interval's width, so that "±" would tell of numbers that the interval does not contain.
/// `None` without an interval.
pub fn interval(value: Value, decimals: usize) -> Option<String> {
    let Value { value, interval } = value.finite()?;
    let (low, high) = interval?;
    let sides = (value - low, high - value);
    let [below, above] = [sides.0, sides.1].map(|side| fixed(side, decimals));
    let is_lopsided = (sides.0 - sides.1).abs() > 0.1 * (high - low);
    let [from, to] = [low, high].map(|end| fixed(end, decimals));
    Some(match is_lopsided && below != above && from != to {
        true => format!("{from} … {to}"),
        false => format!("± {}", fixed(sides.0.max(sides.1).max(0.0), decimals)),
    })
}

/// A number with three significant digits; all digits before the point are kept.
pub fn significant(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e9).contains(&magnitude) {
        return scientific(value, 2);
    }
    let digits = if magnitude == 0.0 { 0 } else { magnitude.log10().floor() as i32 };
    fixed(value, usize::try_from(2 - digits).unwrap_or(0))
}

/// A number with two significant digits for a sentence, as in "0.20" and "2.9"; all digits before
/// the point are kept.
#[must_use]
pub fn brief(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e9).contains(&magnitude) {
        return scientific(value, 1);
    }
    // What is rounded up to a power of ten has a digit less behind the point.
    let digits = if magnitude == 0.0 { 0 } else { (magnitude * 1.005).log10().floor() as i32 };
    fixed(value, usize::try_from(1 - digits).unwrap_or(0))
}

/// A number with no more digits than tell it from other numbers.
pub fn shortest(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e9).contains(&magnitude) {
        return power(value);
    }
    let digits = format!("{magnitude}");
    fixed(value, digits.split_once('.').map_or(0, |(_, fraction)| fraction.len()))
}

/// A number as a power of ten and the shortest factor, if the number has many zeros.
pub fn tick(value: f64) -> String {
    if (1e-4..1e5).contains(&value.abs()) { shortest(value) } else { power(value) }
}

/// A number as a power of ten, and the shortest factor.
fn power(value: f64) -> String {
    let digits = format!("{:e}", value.abs());
    let mantissa = digits.split('e').next().unwrap_or_default();
    scientific(value, mantissa.len().saturating_sub(2))
}

/// A number as a factor and a power of ten, as in "2×10⁻⁶".
fn scientific(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$e}", value.abs());
    let (factor, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let sign = if value < 0.0 { "−" } else { "" };
    let factor = if factor == "1" { String::new() } else { format!("{factor}×") };
    let exponent = exponent.chars().map(|c| match c.to_digit(10) {
        Some(digit) => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit as usize],
        None => '⁻',
    });
    format!("{sign}{factor}10{}", exponent.collect::<String>())
}

/// A size in bytes with the greatest binary unit of which there is one.
pub fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let power = if value.abs() >= 1024.0 { (value.abs().log2() / 10.0).floor() } else { 0.0 };
    let power = power.min((UNITS.len() - 1) as f64);
    let number = value / 1024_f64.powf(power);
    let number = if number.fract() == 0.0 { shortest(number) } else { significant(number) };
    format!("{number} {}", UNITS[power as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_in_a_sentence_has_two_significant_digits() {
        for (value, text) in [
            (0.2, "0.20"),
            (2.94, "2.9"),
            (0.0997, "0.10"),
            (9.96, "10"),
            (-0.064, "−0.064"),
            (1234.0, "1234"),
            (0.0, "0.0"),
        ] {
            assert_eq!(brief(value), text);
        }
    }

    #[test]
    fn a_number_for_people_has_a_minus_sign_and_thin_spaces_between_thousands() {
        assert_eq!(fixed(-1.25, 1), "−1.2");
        assert_eq!(fixed(-0.0004, 3), "0.000");
        assert_eq!(fixed(1234.0, 0), "1234");
        assert_eq!(fixed(1_234_567.5, 1), "1\u{202f}234\u{202f}567.5");
    }

    #[test]
    fn an_interval_is_told_by_its_ends_where_its_sides_differ() {
        let told = |value, low, high| interval(Value::within(value, low, high), 3);
        assert_eq!(told(0.05, 0.046, 0.054).as_deref(), Some("± 0.004"));
        assert_eq!(told(0.05, 0.0462, 0.0544).as_deref(), Some("± 0.004"), "a tenth at the most");
        assert_eq!(told(-0.12, -0.12, -0.05).as_deref(), Some("−0.120 … −0.050"));
        assert_eq!(told(0.05, 0.0499, 0.0502).as_deref(), Some("± 0.000"), "no digit tells");
        assert_eq!(told(0.0167, 0.0166, 0.0174).as_deref(), Some("± 0.001"), "nor do the ends");
        assert_eq!(interval(Value::exact(1.0), 3), None);
        assert_eq!(told(0.05, f64::NAN, 1.0), None);
    }

    #[test]
    fn three_digits_are_significant_whatever_the_magnitude() {
        for (value, text) in [
            (0.0, "0.00"),
            (0.031_24, "0.0312"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (1234.6, "1235"),
            (0.000_001_5, "1.50×10⁻⁶"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn the_shortest_number_has_the_digits_that_it_was_given() {
        for (value, text) in
            [(2.7, "2.7"), (45.0, "45"), (-0.3, "−0.3"), (1e-6, "10⁻⁶"), (2.5e12, "2.5×10¹²")]
        {
            assert_eq!(shortest(value), text);
        }
    }

    #[test]
    fn sizes_have_binary_units() {
        for (value, text) in [
            (4.0, "4 B"),
            (1023.0, "1023 B"),
            (1024.0, "1 KiB"),
            (1536.0, "1.50 KiB"),
            (1_048_576.0, "1 MiB"),
            (0.5, "0.500 B"),
        ] {
            assert_eq!(bytes(value), text);
        }
    }
}
