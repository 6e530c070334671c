//! Lines of comma-separated values, as RFC 4180 has them.

/// A line of fields, each in quotes where its text needs quotes.
pub fn line<S: AsRef<str>>(fields: impl IntoIterator<Item = S>) -> String {
    let fields: Vec<String> = fields.into_iter().map(|field| quoted(field.as_ref())).collect();
    fields.join(",") + "\n"
}

fn quoted(field: &str) -> String {
    let special = |c| matches!(c, ',' | '"' | '\n' | '\r');
    let spaced = field.trim() != field;
    match spaced || field.contains(special) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}
