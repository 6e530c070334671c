//! Types as text, as a program writes them.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::{Fields, Ident};

/// The name of a field or a type, without the `r#` that lets it be a keyword.
pub fn name(name: &Ident) -> String {
    name.unraw().to_string()
}

/// A type as text. The spaces between its parts are the usual ones, whatever the program has there.
pub fn of(part: &impl ToTokens) -> String {
    let mut text = String::new();
    append(part.to_token_stream(), &mut text);
    text
}

/// The brackets around the fields of a struct, empty if it has none, and whether its fields have
/// names.
pub struct Brackets {
    pub open: &'static str,
    pub close: &'static str,
    pub named: bool,
}

impl Brackets {
    /// The brackets of a struct with these fields.
    pub fn around(fields: &Fields) -> Self {
        match fields {
            Fields::Named(fields) if !fields.named.is_empty() => {
                Self { open: " { ", close: " }", named: true }
            }
            Fields::Unnamed(fields) if !fields.unnamed.is_empty() => {
                Self { open: "(", close: ")", named: false }
            }
            _ => Self { open: "", close: "", named: false },
        }
    }
}

/// Returns whether `found` is true for some identifier among the tokens.
pub fn any_ident(tokens: TokenStream, found: &impl Fn(&Ident) -> bool) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => found(&ident),
        TokenTree::Group(group) => any_ident(group.stream(), found),
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    })
}

fn append(tokens: TokenStream, text: &mut String) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::None => ("", ""),
                };
                append_part(open, text);
                append(group.stream(), text);
                text.push_str(close);
            }
            token => append_part(&token.to_string(), text),
        }
    }
}

/// Appends one token, behind a space if the two would run together without, or usually have one.
fn append_part(part: &str, text: &mut String) {
    let word = |at: char| at.is_alphanumeric() || at == '_';
    let behind = text.ends_with([',', ';', '+', '=']) || text.ends_with("->");
    let behind_colon = text.ends_with(':') && !text.ends_with("::") && part != ":";
    let before = matches!(part, "+" | "=" | "-");
    let between_words = text.ends_with(|at| word(at) || at == '>') && part.starts_with(word);
    if behind || behind_colon || before || between_words {
        text.push(' ');
    }
    text.push_str(part);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(source: &str) -> String {
        of(&source.parse::<TokenStream>().expect("tokens"))
    }

    #[test]
    fn the_text_of_a_type_is_as_programs_write_it() {
        for usual in [
            "u64",
            "Vec<u8>",
            "Box<[Point]>",
            "::std::vec::Vec<(u8, [u16; 4])>",
            "&'static mut str",
            "<Vec<T> as IntoIterator>::Item",
            "Box<dyn Fn(u8) -> u16 + Send>",
            "Option<Box<dyn Iterator<Item = u8>>>",
        ] {
            assert_eq!(text_of(usual), usual);
        }
    }

    #[test]
    fn the_spaces_in_the_source_do_not_matter() {
        assert_eq!(text_of("Vec <\n [ u8;4 ] >"), "Vec<[u8; 4]>");
        assert_eq!(text_of("std :: vec :: Vec<u8>"), "std::vec::Vec<u8>");
    }
}
