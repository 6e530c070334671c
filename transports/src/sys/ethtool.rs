//! What an interface's driver is asked.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use super::check;
use super::interface::{Query, asking};

const SIOCETHTOOL: libc::Ioctl = 0x8946;
const GET_DRIVER: u32 = 0x03;
const GET_STRINGS: u32 = 0x1B;
const GET_COUNT: u32 = 0x37;
const GET_FEATURES: u32 = 0x3A;
/// The set of strings that features are called by.
const FEATURES: u32 = 4;
const NAME_LEN: usize = 32;

/// The feature by which an interface cuts runs of UDP by itself, by the name that `ethtool -k`
/// gives it.
pub(crate) const SEGMENTATION: &str = "tx-udp-segmentation";

/// Passes words to the driver, and has it write its answer over them.
///
/// # Safety
/// There must be as many words as the answer to the command in the first has.
unsafe fn ask(socket: BorrowedFd<'_>, query: &mut Query, words: &mut [u32]) -> io::Result<()> {
    query.0.ifr_ifru.ifru_data = words.as_mut_ptr().cast();
    // SAFETY: the kernel reads a live ifreq, and writes to the words that it points to.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut query.0) };
    check(result, "SIOCETHTOOL").map(drop)
}

/// The name in some bytes, up to the first zero.
fn name(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_ne_bytes());
    let bytes: Vec<_> = bytes.take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The name of the driver.
pub(crate) fn driver(interface: &str) -> io::Result<String> {
    // The command, then strings of 32 bytes, the first of which it is.
    let mut words = [0; 64];
    words[0] = GET_DRIVER;
    // SAFETY: the answer has 49 words.
    unsafe { ask(asking()?.as_fd(), &mut Query::new(interface)?, &mut words)? };
    Ok(name(&words[1..1 + NAME_LEN / 4]))
}

/// The features that are switched on, by the names that `ethtool -k` gives them.
pub(crate) fn features(interface: &str) -> io::Result<Vec<String>> {
    let (socket, mut query) = (asking()?, Query::new(interface)?);
    // The command, a reserved word, a mask of sets in 64 bits; over it, the set's size.
    let mut count = [GET_COUNT, 0, 0, 0, 0];
    count[2..4].copy_from_slice(&in_two(1 << FEATURES));
    // SAFETY: the answer has a word more than the question for each set that was asked for.
    unsafe { ask(socket.as_fd(), &mut query, &mut count)? };
    let features = count[4] as usize;

    // The command, the set, its size; then the strings.
    let mut strings = vec![0; 3 + features * NAME_LEN / 4];
    strings[..3].copy_from_slice(&[GET_STRINGS, FEATURES, features as u32]);
    // SAFETY: the answer has a string for each feature, of which a kernel has always the same.
    unsafe { ask(socket.as_fd(), &mut query, &mut strings)? };

    // The command, the number of blocks; then of each block of 32: what there can be, what was
    // asked for, what is, what never changes.
    let blocks = features.div_ceil(32);
    let mut bits = vec![0; 2 + 4 * blocks];
    bits[..2].copy_from_slice(&[GET_FEATURES, blocks as u32]);
    // SAFETY: the answer has as many blocks as were asked for.
    unsafe { ask(socket.as_fd(), &mut query, &mut bits)? };
    let is_on = |index: usize| bits[2 + 4 * (index / 32) + 2] >> (index % 32) & 1 != 0;
    let names = strings[3..].chunks(NAME_LEN / 4).enumerate();
    Ok(names.filter(|(index, _)| is_on(*index)).map(|(_, words)| name(words)).collect())
}

/// A word of 64 bits as the two of 32 that lie where it would.
fn in_two(word: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [u32::from_ne_bytes([a, b, c, d]), u32::from_ne_bytes([e, f, g, h])]
}
