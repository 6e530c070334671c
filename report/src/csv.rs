//! Comma-separated values, as RFC 4180 has them, with line feeds between lines.

use crate::Value;

/// The columns of a [`Record`].
pub const COLUMNS: [&str; 9] =
    ["group", "row", "row_unit", "column", "value", "low", "high", "unit", "published"];

/// A number of a table or a figure with everything that a reader must know to use the number alone.
pub struct Record<'a> {
    /// The name of the group that the row belongs to; empty if to none.
    pub group: &'a str,
    /// The row of a table, the bar, or the place on the x axis.
    pub row: String,
    /// The unit of the row.
    pub row_unit: &'a str,
    /// The column of a table, the part of a bar, or the name of a line.
    pub column: &'a str,
    /// The number.
    pub value: Value,
    /// The unit of the number.
    pub unit: &'a str,
    /// Where the number was published, if it is not of this report.
    pub published: Option<&'a str>,
}

impl Record<'_> {
    /// The fields, in the order of [`COLUMNS`].
    pub fn fields(&self) -> [String; 9] {
        let (low, high) = ends(self.value);
        [
            self.group.to_owned(),
            self.row.clone(),
            self.row_unit.to_owned(),
            self.column.to_owned(),
            number(self.value.value),
            low,
            high,
            self.unit.to_owned(),
            self.published.unwrap_or_default().to_owned(),
        ]
    }
}

/// A number with all of its digits, and with an exponent in the place of many zeros.
pub fn number(value: f64) -> String {
    let plain = value == 0.0 || (1e-6..1e16).contains(&value.abs());
    if plain { value.to_string() } else { format!("{value:e}") }
}

/// The ends of a value's interval as text; empty without an interval.
pub fn ends(value: Value) -> (String, String) {
    value.interval.map(|(low, high)| (number(low), number(high))).unwrap_or_default()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_all_of_its_digits_and_an_exponent_instead_of_many_zeros() {
        for (value, text) in
            [(0.1, "0.1"), (-1234567.0, "-1234567"), (1.5e-9, "1.5e-9"), (2e99, "2e99"), (0.0, "0")]
        {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn a_field_is_quoted_where_its_text_would_be_read_as_something_else() {
        let fields = ["plain", "a,b", "say \"hi\"", "two\nlines", " spaced", "", "µs"];
        let expected = "plain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",\" spaced\",,µs\n";
        assert_eq!(line(fields), expected);
    }
}
