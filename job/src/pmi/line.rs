//! Lines of `key=value`.

use std::fmt;

/// An answer of a launcher.
#[derive(Debug)]
pub struct Line(Vec<(String, String)>);

impl Line {
    /// The words of a line; none if one of them is no `key=value`. A value may have spaces if it is
    /// the message of a result, which comes last.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words: Vec<(String, String)> = Vec::new();
        for word in text.trim_end_matches(['\n', '\r']).split(' ').filter(|word| !word.is_empty()) {
            match (word.split_once('='), words.last_mut()) {
                (Some((key, value)), _) if !key.is_empty() => {
                    words.push((key.to_owned(), value.to_owned()));
                }
                (_, Some((key, value))) if key == "msg" => {
                    value.push(' ');
                    value.push_str(word);
                }
                _ => return None,
            }
        }
        (!words.is_empty()).then_some(Self(words))
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (key, value)) in self.0.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{key}={value}")?;
        }
        Ok(())
    }
}
