//! `tracestate`: vendor-specific data of tracing systems, which is passed on with a trace context.

use std::sync::Arc;

/// The most bytes of data that are passed on. The recommendation demands at least as many.
const MOST: usize = 512;

/// The most members that the data may have.
const MOST_MEMBERS: usize = 32;

/// Members longer than this are left out first when the data are too long.
const LONG: usize = 128;

/// Combines several `tracestate` values into one list of members. Returns `None` if there is no
/// member, if a member is malformed or comes twice, or if there are too many.
pub fn combined<'v>(values: impl IntoIterator<Item = &'v [u8]>) -> Option<Arc<str>> {
    let mut members: Vec<&str> = Vec::new();
    for value in values {
        for member in str::from_utf8(value).ok()?.split(',') {
            let member = member.trim_matches([' ', '\t']);
            if member.is_empty() {
                continue;
            }
            let key = key_of(member)?;
            let is_known = |other: &&str| key_of(other) == Some(key);
            if members.len() == MOST_MEMBERS || members.iter().any(is_known) {
                return None;
            }
            members.push(member);
        }
    }
    shorten(&mut members);
    (!members.is_empty()).then(|| members.join(",").into())
}

/// Leaves members out until the list is short enough: first long ones, and then the last ones.
fn shorten(members: &mut Vec<&str>) {
    while members.iter().map(|member| member.len() + 1).sum::<usize>() > MOST + 1 {
        let long = members.iter().rposition(|member| member.len() > LONG);
        members.remove(long.unwrap_or(members.len() - 1));
    }
}

/// The key of a member, if both its key and its value are well formed.
fn key_of(member: &str) -> Option<&str> {
    let (key, value) = member.split_once('=')?;
    let is_first = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_key = |byte: &u8| is_first(byte) || b"_-*/@".contains(byte);
    let is_value = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'=';
    let key_fits = key.len() <= 256
        && key.as_bytes().first().is_some_and(is_first)
        && key.as_bytes().iter().all(is_key);
    let value_fits = (1..=256).contains(&value.len()) && value.as_bytes().iter().all(is_value);
    (key_fits && value_fits).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(value: &str) -> Option<String> {
        combined([value.as_bytes()]).map(|state| state.to_string())
    }

    #[test]
    fn well_formed_lists_are_passed_on_without_blanks_and_empty_members() {
        assert_eq!(one("rojo=00f067aa0ba902b7"), Some("rojo=00f067aa0ba902b7".to_owned()));
        assert_eq!(one("a=1 ,\tb@c=x y,,0/_-*=~"), Some("a=1,b@c=x y,0/_-*=~".to_owned()));
        assert_eq!(one(" , "), None);
    }

    #[test]
    fn malformed_lists_are_left_out() {
        let long_key = format!("{}=1", "k".repeat(257));
        let long_value = format!("k={}", "v".repeat(257));
        let too_many: String = (0..33).map(|number| format!("k{number}=1,")).collect();
        let malformed = [
            "a",
            "=1",
            "a=",
            "A=1",
            "_a=1",
            "a b=1",
            "a=b=c",
            "a=\u{7f}",
            "a=é",
            "a=1,a=2",
            &long_key,
            &long_value,
            &too_many,
        ];
        for text in malformed {
            assert_eq!(one(text), None, "{text}");
        }
        assert_eq!(combined([&[0xff_u8][..]]), None);
    }

    #[test]
    fn of_lists_that_are_too_long_long_members_go_first_and_then_the_last() {
        let long = format!("long={}", "v".repeat(200));
        let short: Vec<_> = (0..6).map(|number| format!("k{number}={}", "v".repeat(96))).collect();
        let list = format!("{long},{}", short.join(","));
        assert_eq!(one(&list), Some(short[..5].join(",")));
        assert_eq!(one(&list).map(|state| state.len()), Some(499));
    }
}
