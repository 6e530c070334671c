//! Questions to the driver of an interface, as `ethtool` asks them.

use std::io;

use libc::c_void;

use super::interface::{Request, VALUE, asking_socket};

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1B;
const GET_COUNT: u32 = 0x37;
const GET_FEATURES: u32 = 0x3A;
/// The number of the set of strings that are the names of features.
const FEATURES: u32 = 4;
const NAME_LEN: usize = 32;

/// The feature by which an interface cuts runs of UDP by itself, by the name that `ethtool -k`
/// gives it.
pub(crate) const SEGMENTATION: &str = "tx-udp-segmentation";

/// A question to a driver. How many words its answer takes follows from the question.
enum Question {
    /// The names of the driver and of what belongs to it.
    Driver,
    /// How many features there are.
    FeatureCount,
    /// The names of so many features.
    FeatureNames(usize),
    /// The states of so many features, in blocks of 32.
    Features(usize),
}

impl Question {
    /// Returns the question as the kernel reads it, in as many words as the answer takes.
    fn words(&self) -> Vec<u32> {
        let (question, answer_words) = match *self {
            // The command; then strings, in 49 words.
            Self::Driver => (vec![GET_DRIVER], 64),
            // The command, a reserved word, a mask of sets in 64 bits; over it, the set's size.
            Self::FeatureCount => {
                let [low, high] = in_two(1 << FEATURES);
                (vec![GET_COUNT, 0, low, high], 5)
            }
            // The command, the set, its size; then the strings.
            Self::FeatureNames(count) => {
                (vec![GET_STRINGS, FEATURES, count as u32], 3 + count * NAME_LEN / 4)
            }
            // The command, the number of blocks; then of each block of 32: what there can be, what
            // was asked for, what is, what never changes.
            Self::Features(count) => {
                let blocks = count.div_ceil(32);
                (vec![GET_FEATURES, blocks as u32], 2 + 4 * blocks)
            }
        };
        let mut words = question;
        words.resize(answer_words, 0);
        words
    }
}

/// The part of a request that leads to the words of a question, and as long as the kernel expects.
#[repr(C)]
struct Pointer {
    words: *mut c_void,
    rest: [u8; VALUE - size_of::<*mut c_void>()],
}

/// Asks the driver of an interface, and returns its answer, which stands over the question.
fn ask(interface: &str, question: &Question) -> io::Result<Vec<u32>> {
    let mut words = question.words();
    let pointer = Pointer { words: words.as_mut_ptr().cast(), rest: [0; _] };
    let request = Request::new(interface, pointer)?;
    // SAFETY: the kernel reads and writes words of the vector, which are as many as the answer to
    // the question has: of features, a kernel has always the same number.
    unsafe { request.send(asking_socket()?, SIOCETHTOOL, "SIOCETHTOOL") }?;
    Ok(words)
}

/// Returns the name in some bytes, up to the first zero.
fn name(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    let bytes: Vec<_> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the name of an interface's driver.
pub(crate) fn driver(interface: &str) -> io::Result<String> {
    let words = ask(interface, &Question::Driver)?;
    Ok(name(&words[1..1 + NAME_LEN / 4]))
}

/// Returns the features that are switched on, by the names that `ethtool -k` gives them.
pub(crate) fn features(interface: &str) -> io::Result<Vec<String>> {
    let count = ask(interface, &Question::FeatureCount)?[4] as usize;
    let strings = ask(interface, &Question::FeatureNames(count))?;
    let bits = ask(interface, &Question::Features(count))?;
    let is_on = |index: usize| bits[2 + 4 * (index / 32) + 2] >> (index % 32) & 1 != 0;
    let names = strings[3..].chunks(NAME_LEN / 4).enumerate();
    Ok(names.filter(|(index, _)| is_on(*index)).map(|(_, words)| name(words)).collect())
}

/// Splits a word of 64 bits into the two of 32 that lie where it would.
fn in_two(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}
