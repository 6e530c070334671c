//! How a call ended: the codes of gRPC, with a message for people and the error behind them.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The code of a [`Status`], by the numbers and with the meanings of gRPC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Code {
    /// The call succeeded.
    Ok = 0,
    /// The caller has given the call up.
    Cancelled = 1,
    /// An error that no other code describes.
    Unknown = 2,
    /// The request is wrong, whatever the state of the server: a body that can't be decoded.
    InvalidArgument = 3,
    /// The deadline was over before the call was.
    DeadlineExceeded = 4,
    /// What the request names does not exist.
    NotFound = 5,
    /// What the request would create exists.
    AlreadyExists = 6,
    /// The caller may not do that.
    PermissionDenied = 7,
    /// Something is used up: calls in flight, the longest body, memory.
    ResourceExhausted = 8,
    /// The state of the server does not allow the call: another schema than the caller's.
    FailedPrecondition = 9,
    /// The call was given up for a conflict: it has run before, and its answer was lost.
    Aborted = 10,
    /// The request goes beyond a valid range.
    OutOfRange = 11,
    /// The server has no such method.
    Unimplemented = 12,
    /// Something is broken in the server: its handler panicked.
    Internal = 13,
    /// The server can't be reached, or is shutting down: the call may be tried again.
    Unavailable = 14,
    /// Data is lost or damaged.
    DataLoss = 15,
    /// The caller has not said who it is.
    Unauthenticated = 16,
}

impl Code {
    /// How many codes there are.
    pub(crate) const COUNT: usize = 17;

    const ALL: [Self; Self::COUNT] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The code of a number; [`Code::Unknown`] for a number that is no code.
    #[must_use]
    pub fn from_number(number: u8) -> Self {
        Self::ALL.get(usize::from(number)).copied().unwrap_or(Self::Unknown)
    }

    /// The number of the code.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// How a call failed: a code for programs, a message for people, and the error that caused it.
///
/// A status that a handler returns reaches its caller with the code and the message; the source
/// stays where the status was made. Text of sources that callers are to see belongs in the message.
///
/// ```
/// use doorbell::rpc::{Code, Status};
///
/// let status = Status::not_found("no account has number 7");
/// assert_eq!(status.code(), Code::NotFound);
/// assert_eq!(status.to_string(), "NotFound: no account has number 7");
/// ```
#[derive(Clone)]
pub struct Status(Box<Inner>);

#[derive(Clone)]
struct Inner {
    code: Code,
    message: String,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

/// Functions that make a status of one code.
macro_rules! makes {
    ($($name:ident: $code:ident),* $(,)?) => {
        impl Status {
            $(
                #[doc = concat!("A status with [`Code::", stringify!($code), "`].")]
                #[must_use]
                pub fn $name(message: impl Into<String>) -> Self {
                    Self::new(Code::$code, message)
                }
            )*
        }
    };
}

makes! {
    cancelled: Cancelled,
    unknown: Unknown,
    invalid_argument: InvalidArgument,
    deadline_exceeded: DeadlineExceeded,
    not_found: NotFound,
    already_exists: AlreadyExists,
    permission_denied: PermissionDenied,
    resource_exhausted: ResourceExhausted,
    failed_precondition: FailedPrecondition,
    aborted: Aborted,
    out_of_range: OutOfRange,
    unimplemented: Unimplemented,
    internal: Internal,
    unavailable: Unavailable,
    data_loss: DataLoss,
    unauthenticated: Unauthenticated,
}

impl Status {
    /// A status of a code, with a message for people.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, message: message.into(), source: None }))
    }

    /// The status with the error that caused it, for [`Error::source`] of the side that made the
    /// status: the source does not travel.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// The status that an error of a middleware is: the status itself if the error is one or was
    /// caused by one. Else the code is [`Code::DeadlineExceeded`] for an `Elapsed` of tower or
    /// Tokio, [`Code::ResourceExhausted`] for tower's `Overloaded`, and [`Code::Unknown`] for other
    /// errors.
    #[must_use]
    pub fn from_error(error: Box<dyn Error + Send + Sync>) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(status) => return *status,
            Err(other) => other,
        };
        let mut code = Code::Unknown;
        let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
        while let Some(found) = cause {
            if let Some(status) = found.downcast_ref::<Self>() {
                return status.clone();
            }
            // The types are those of many crates: `Elapsed` of tower and of Tokio, for one.
            match format!("{found:?}").split(|at: char| !at.is_alphanumeric()).next() {
                Some("Elapsed") => code = Code::DeadlineExceeded,
                Some("Overloaded") => code = Code::ResourceExhausted,
                _ => {}
            }
            cause = found.source();
        }
        Self::new(code, error.to_string()).with_source(error)
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, message, source } = &*self.0;
        let mut shown = f.debug_struct("Status");
        shown.field("code", code).field("message", message);
        if let Some(source) = source {
            shown.field("source", source);
        }
        shown.finish()
    }
}

impl Error for Status {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

impl From<Box<dyn Error + Send + Sync>> for Status {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        Self::from_error(error)
    }
}

/// The text of an error with those of its sources behind it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(next) = source {
        let more = next.to_string();
        // Some errors have the text of their source in their own.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = next.source();
    }
    text
}

impl Status {
    /// The code of the status as an error that travels. An error whose code is [`Code::Ok`] would
    /// be taken for an answer, or for the end of a stream: it is [`Code::Internal`].
    pub(crate) fn error_code(&self) -> Code {
        match self.code() {
            Code::Ok => Code::Internal,
            code => code,
        }
    }
}

/// What a panic says, if that is text.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}
