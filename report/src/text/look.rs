//! Colours of terminals, by escape sequences.

/// Whether a text has colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Look {
    Plain,
    Coloured,
}

/// A colour of a terminal, or its bold type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Colour {
    Bold,
    Red,
    Green,
    Yellow,
}

impl Look {
    /// A text in a colour, or as it is where the look is plain.
    pub fn set(self, text: &str, colour: Colour) -> String {
        let code = match colour {
            Colour::Bold => 1,
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Coloured => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
        }
    }
}
