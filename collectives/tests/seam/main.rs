//! Collectives over links of a program's own, compared with what they should give.

mod channels;
mod program;
