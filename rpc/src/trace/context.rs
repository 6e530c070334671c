//! The trace context of a call, and how it is read from metadata and written to it.

use std::fmt;
use std::num::NonZero;
use std::str::{self, FromStr};
use std::sync::Arc;

use super::state;
use crate::metadata::{MOST_METADATA, Metadata};

const PARENT: &str = "traceparent";
const STATE: &str = "tracestate";

/// The flag which says that the caller may have recorded the trace.
const SAMPLED: u8 = 1;
/// The flag which says that the number of the trace is random.
const RANDOM: u8 = 2;

/// The place of a call in a distributed trace, as the W3C recommendation "Trace Context" defines
/// it: the trace, the current span within it, whether the trace is recorded, and vendor-specific
/// data.
///
/// A call carries its context in the metadata `traceparent` and `tracestate`. A handler gets the
/// context of its call from [`trace_context`](crate::trace_context), and the calls that the handler
/// makes inherit it.
///
/// ```
/// use doorbell_rpc::TraceContext;
///
/// let context: TraceContext = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse()?;
/// assert_eq!(context.trace_id(), 0x0af7651916cd43dd8448eb211c80319c);
/// assert_eq!(context.span_id(), 0xb7ad6b7169203331);
/// assert!(context.is_sampled());
/// # Ok::<(), doorbell_rpc::InvalidTraceContext>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TraceContext {
    trace_id: NonZero<u128>,
    span_id: NonZero<u64>,
    flags: u8,
    state: Option<Arc<str>>,
}

/// The error of a text that is not a valid `traceparent`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "a traceparent is a version, the number of a trace, that of a span and flags, in 2, 32, 16 and \
     2 lower-case hexadecimal digits with `-` between them, the numbers not zero"
)]
pub struct InvalidTraceContext;

impl TraceContext {
    /// Makes the context of a span in a trace; `None` if either number is zero.
    #[must_use]
    pub fn new(trace_id: u128, span_id: u64, is_sampled: bool) -> Option<Self> {
        let (trace_id, span_id) = (NonZero::new(trace_id)?, NonZero::new(span_id)?);
        Some(Self { trace_id, span_id, flags: if is_sampled { SAMPLED } else { 0 }, state: None })
    }

    /// Makes the context of a new span in a new trace, both with random numbers. The trace is
    /// recorded.
    #[must_use]
    pub fn root() -> Self {
        let high = u128::from(unlike_others());
        let trace_id = NonZero::new(high << 64 | u128::from(unlike_others()));
        Self {
            trace_id: trace_id.expect("random numbers are not zero"),
            span_id: random_span(),
            flags: SAMPLED | RANDOM,
            state: None,
        }
    }

    /// Makes the context of a new span in the same trace.
    #[must_use]
    pub fn child(&self) -> Self {
        Self { span_id: random_span(), ..self.clone() }
    }

    /// Sets the vendor-specific data, in the format of `tracestate`. Malformed or excessive data is
    /// left out, as the recommendation says.
    #[must_use]
    pub fn with_state(self, state: &str) -> Self {
        Self { state: state::combined([state.as_bytes()]), ..self }
    }

    /// The number of the trace.
    #[must_use]
    pub fn trace_id(&self) -> u128 {
        self.trace_id.get()
    }

    /// The number of the current span.
    #[must_use]
    pub fn span_id(&self) -> u64 {
        self.span_id.get()
    }

    /// Whether the trace is recorded, as far as the caller knows.
    #[must_use]
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The vendor-specific data, in the format of `tracestate`; `None` if there are none.
    #[must_use]
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// Reads the context from metadata. Returns `None` if the metadata has no `traceparent`,
    /// several, or a malformed one. A malformed `tracestate` is left out.
    #[must_use]
    pub fn from_metadata(metadata: &Metadata) -> Option<Self> {
        let mut parents = metadata.all(PARENT);
        let parent = parents.next()?;
        if parents.next().is_some() {
            return None;
        }
        let context: Self = str::from_utf8(parent).ok()?.parse().ok()?;
        let state = state::combined(metadata.all(STATE).map(|value| &**value));
        Some(Self { state, ..context })
    }

    /// Writes the context to metadata, in place of any other. If the metadata has no room, the
    /// context is written without `tracestate`, or not at all, because a trace must not make a call
    /// fail.
    pub fn write_to(&self, metadata: &mut Metadata) {
        self.write_within(metadata, MOST_METADATA);
    }

    /// Writes the context to metadata as [`write_to`](Self::write_to) does, where the metadata may
    /// take at most `most` bytes.
    pub(crate) fn write_within(&self, metadata: &mut Metadata, most: usize) {
        metadata.remove(PARENT);
        metadata.remove(STATE);
        let has_room = |metadata: &Metadata, name: &str, len| {
            metadata.encoded_len() + Metadata::encoded_pair_len(name.len(), len) <= most
        };
        if !has_room(metadata, PARENT, LEN) {
            return;
        }
        metadata.insert(PARENT, self.to_string());
        if let Some(state) = &self.state
            && has_room(metadata, STATE, state.len())
        {
            metadata.insert(STATE, state.to_string());
        }
    }
}

fn random_span() -> NonZero<u64> {
    NonZero::new(unlike_others()).expect("random numbers are not zero")
}

/// Draws a number for a trace or a span, which no other has and which is not zero. It is no secret,
/// and costs no system call.
fn unlike_others() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id()).max(1)
}

/// The length of a `traceparent` of version 0, in bytes.
const LEN: usize = 55;

/// Shows the context as the value of a `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trace_id, span_id, flags, .. } = self;
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

/// Parses the value of a `traceparent`. Of a version later than 0 only the beginning is read, as
/// the recommendation says.
impl FromStr for TraceContext {
    type Err = InvalidTraceContext;

    fn from_str(text: &str) -> Result<Self, InvalidTraceContext> {
        let bytes = text.as_bytes();
        let (front, rest) = bytes.split_at_checked(LEN).ok_or(InvalidTraceContext)?;
        if [front[2], front[35], front[52]] != *b"---" {
            return Err(InvalidTraceContext);
        }
        let version = hexadecimal(&front[..2])?;
        let is_whole = rest.is_empty() || version != 0 && rest[0] == b'-';
        if version == 0xff || !is_whole {
            return Err(InvalidTraceContext);
        }
        let known = if version == 0 { SAMPLED | RANDOM } else { SAMPLED };
        Ok(Self {
            trace_id: NonZero::new(hexadecimal(&front[3..35])?).ok_or(InvalidTraceContext)?,
            span_id: NonZero::new(hexadecimal(&front[36..52])? as u64)
                .ok_or(InvalidTraceContext)?,
            flags: hexadecimal(&front[53..])? as u8 & known,
            state: None,
        })
    }
}

/// Parses up to 32 lower-case hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> Result<u128, InvalidTraceContext> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return Err(InvalidTraceContext),
        };
        Ok(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_that_is_read_is_written_as_it_was() {
        let context: TraceContext = GOOD.parse().expect("it is the recommendation's example");
        assert_eq!(context.trace_id(), 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c);
        assert_eq!(context.span_id(), 0xb7ad_6b71_6920_3331);
        assert!(context.is_sampled());
        assert_eq!(context.to_string(), GOOD);
        let unsampled: TraceContext = GOOD.replace("-01", "-00").parse().expect("it has no flags");
        assert!(!unsampled.is_sampled());
        let root = TraceContext::root();
        assert_eq!(root.to_string().parse(), Ok(root));
    }

    #[test]
    fn malformed_traceparents_are_errors() {
        let malformed = [
            String::new(),
            GOOD[..54].to_owned(),
            format!("{GOOD}-"),
            format!("{GOOD}0"),
            GOOD.to_uppercase(),
            GOOD.replacen("00", "ff", 1),
            GOOD.replacen("00", "0g", 1),
            GOOD.replacen('-', "_", 1),
            GOOD.replacen("0af7", "+af7", 1),
            GOOD.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            GOOD.replace("b7ad6b7169203331", &"0".repeat(16)),
            GOOD.replace("-01", "-0x"),
            format!("01{}0", &GOOD[2..]),
            format!("{}é", &GOOD[..54]),
        ];
        for text in malformed {
            assert_eq!(text.parse::<TraceContext>(), Err(InvalidTraceContext), "{text}");
        }
    }

    #[test]
    fn of_later_versions_the_beginning_is_read_and_unknown_flags_are_left_out() {
        for text in [format!("cc{}", &GOOD[2..]), format!("cc{}-more", &GOOD[2..])] {
            let context: TraceContext = text.parse().expect("the beginning is well formed");
            assert_eq!(context.to_string(), GOOD);
        }
        let flagged: TraceContext = GOOD.replace("-01", "-ff").parse().expect("it has flags");
        assert!(flagged.to_string().ends_with("-03"));
    }

    #[test]
    fn a_child_has_a_span_of_its_own_in_the_same_trace() {
        let parent = TraceContext::root().with_state("vendor=1");
        let child = parent.child();
        assert_ne!(child.span_id(), parent.span_id());
        assert_eq!((child.trace_id(), child.state()), (parent.trace_id(), Some("vendor=1")));
    }

    #[test]
    fn metadata_with_several_traceparents_carries_no_context() {
        let mut metadata = Metadata::new();
        metadata.append(PARENT, GOOD);
        assert!(TraceContext::from_metadata(&metadata).is_some());
        metadata.append(PARENT, GOOD);
        assert_eq!(TraceContext::from_metadata(&metadata), None);
    }

    #[test]
    fn several_tracestates_are_one_and_a_malformed_one_is_left_out() {
        let mut metadata = Metadata::new();
        metadata.append(PARENT, GOOD);
        metadata.append(STATE, "a=1");
        metadata.append(STATE, "b=2,c=3");
        let context = TraceContext::from_metadata(&metadata).expect("there is a context");
        assert_eq!(context.state(), Some("a=1,b=2,c=3"));
        metadata.append(STATE, "a=4");
        let context = TraceContext::from_metadata(&metadata).expect("there is a context");
        assert_eq!(context.state(), None);
    }

    #[test]
    fn a_context_for_which_metadata_has_no_room_is_left_out_in_part_or_wholly() {
        let context = TraceContext::root().with_state("vendor=1");
        let written = |room: usize| {
            let mut metadata = Metadata::new();
            metadata.insert("user", "ann");
            let most = metadata.encoded_len() + room;
            context.write_within(&mut metadata, most);
            assert!(metadata.encoded_len() <= most);
            assert_eq!(metadata.text("user"), Some("ann"));
            (metadata.get(PARENT).is_some(), metadata.get(STATE).is_some())
        };
        let (parent, state) = (4 + PARENT.len() + LEN, 4 + STATE.len() + "vendor=1".len());
        assert_eq!(written(parent + state), (true, true));
        assert_eq!(written(parent + state - 1), (true, false));
        assert_eq!(written(parent), (true, false));
        assert_eq!(written(parent - 1), (false, false));
    }
}
