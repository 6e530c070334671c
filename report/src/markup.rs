//! A writer of HTML and SVG that escapes all text.

use std::fmt::{Display, Write};

use crate::words;

/// HTML or SVG under construction.
#[derive(Default)]
pub struct Markup(String);

/// An attribute of an element: a name, and a value that is escaped when written.
pub type Attribute<'a> = (&'a str, &'a dyn Display);

impl Markup {
    /// Opens an element, which [`close`](Self::close) closes.
    pub fn open(&mut self, name: &str, attributes: &[Attribute]) {
        self.tag(name, attributes);
        self.0.push('>');
    }

    /// Closes an element that was opened.
    pub fn close(&mut self, name: &str) {
        self.raw(&format!("</{name}>"));
    }

    /// Adds an element of SVG without content.
    pub fn leaf(&mut self, name: &str, attributes: &[Attribute]) {
        self.tag(name, attributes);
        self.0.push_str("/>");
    }

    /// Adds an element with text in it.
    pub fn element(&mut self, name: &str, attributes: &[Attribute], text: &str) {
        self.open(name, attributes);
        self.text(text);
        self.close(name);
    }

    /// Adds text, in which what markup would be read from is escaped.
    pub fn text(&mut self, text: &str) {
        self.0.push_str(&escaped(text));
    }

    /// Adds text of HTML in which the "s" of "o_s" is a subscript, and negative numbers have minus
    /// signs.
    pub fn words(&mut self, text: &str) {
        for (piece, subscript) in words::pieces(&words::with_minus_signs(text)) {
            match subscript {
                true => self.element("sub", &[], piece),
                false => self.text(piece),
            }
        }
    }

    /// Adds an element of HTML with text in which the "s" of "o_s" is a subscript.
    pub fn words_in(&mut self, name: &str, attributes: &[Attribute], text: &str) {
        self.open(name, attributes);
        self.words(text);
        self.close(name);
    }

    /// Adds markup that is escaped already.
    pub fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// The markup that was written.
    pub fn finish(self) -> String {
        self.0
    }

    fn tag(&mut self, name: &str, attributes: &[Attribute]) {
        // Writing to a string does not fail.
        let _ = write!(self.0, "<{name}");
        for (name, value) in attributes {
            let _ = write!(self.0, " {name}=\"{}\"", escaped(&value.to_string()));
        }
    }
}

/// Text with everything escaped that HTML or XML would take for markup. Characters that XML has no
/// place for become U+FFFD.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(c),
            '\0'..' ' | '\u{7f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A `data:` URI of a text.
pub fn data_uri(media_type: &str, text: &str) -> String {
    let mut uri = format!("data:{media_type};charset=utf-8,");
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'~'
            | b'/'
            | b','
            | b':'
            | b';'
            | b'='
            | b'('
            | b')' => uri.push(char::from(byte)),
            byte => {
                // Writing to a string does not fail.
                let _ = write!(uri, "%{byte:02X}");
            }
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_attributes_are_escaped() {
        let mut markup = Markup::default();
        markup.element("p", &[("title", &"\"<&'>")], "</p><script>\u{1}");
        assert_eq!(
            markup.finish(),
            "<p title=\"&quot;&lt;&amp;&#39;&gt;\">&lt;/p&gt;&lt;script&gt;\u{fffd}</p>"
        );
    }

    #[test]
    fn a_data_uri_encodes_what_a_uri_may_not_contain() {
        assert_eq!(
            data_uri("text/csv", "a,\"µ\"\n"),
            "data:text/csv;charset=utf-8,a,%22%C2%B5%22%0A"
        );
    }
}
