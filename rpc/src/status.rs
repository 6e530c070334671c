//! Statuses: how a call ended, with the codes of gRPC, a message for people, and the error behind
//! it.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// The code of a [`Status`]. Numbers and meanings are those of gRPC.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Code {
    /// The call has succeeded.
    Ok = 0,
    /// The caller has given the call up.
    Cancelled = 1,
    /// An error that no other code describes.
    Unknown = 2,
    /// The request is invalid, whatever the state of the server. For example, its body can't be
    /// decoded.
    InvalidArgument = 3,
    /// The deadline passed before the call was over.
    DeadlineExceeded = 4,
    /// The thing that the request names does not exist.
    NotFound = 5,
    /// The thing that the request would create exists already.
    AlreadyExists = 6,
    /// The caller is not allowed to make the call.
    PermissionDenied = 7,
    /// A limit is reached, such as the calls in flight, the longest body, or memory.
    ResourceExhausted = 8,
    /// The server is in a state that does not allow the call. For example, its schema differs from
    /// the caller's.
    FailedPrecondition = 9,
    /// The call was given up because of a conflict. For example, the call has run before, and its
    /// answer was lost.
    Aborted = 10,
    /// The request reaches beyond a valid range.
    OutOfRange = 11,
    /// The server has no such method.
    Unimplemented = 12,
    /// The server is faulty. For example, its handler panicked.
    Internal = 13,
    /// The server can't be reached, or is shutting down. The call may be tried again.
    Unavailable = 14,
    /// Data is lost or damaged.
    DataLoss = 15,
    /// The caller has not proved who it is.
    Unauthenticated = 16,
}

impl Code {
    /// The number of codes.
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

    /// The code with a number; [`Code::Unknown`] for a number that no code has.
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

/// The failure of a call: a code for programs, a message for people, and the error that caused it.
///
/// A status that a handler returns reaches the caller with its code and message. The source stays
/// in the process where the status was made, so text that callers should see belongs in the
/// message. So a status that this crate makes of another error says in its message all that the
/// error and its sources say, and has no source: whoever shows an error with its sources shows
/// nothing twice.
///
/// ```
/// use doorbell_rpc::{Code, Status};
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
    /// Whether it is proven that the call's handler has not run.
    not_run: bool,
}

/// Defines functions that each make a status with one code.
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
    /// Makes a status with a code, and a message for people.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, message: message.into(), source: None, not_run: false }))
    }

    /// Sets the error that caused the status, which [`Error::source`] then returns. The source is
    /// not sent to the other side. The message should not say what the source says.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// Makes a status of an error that middleware has returned. An error that is a status, or was
    /// caused by one, becomes that status. Otherwise the message is the text of the error and those
    /// of its sources, and the code is [`Code::DeadlineExceeded`] for an `Elapsed` of tower or
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
        Self::new(code, chain(&*error))
    }

    /// The code of the status.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// The message for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns whether it is certain that no handler has run, or will run, for the call which ended
    /// with this status. Such a call may be made again whether or not its method is idempotent.
    ///
    /// The answer is `true` when the request never left this process, and when every server that
    /// has got the request refused it before the handler began: because it was shutting down, was
    /// overloaded, or had no room, or an interceptor refused the call. In all other cases the
    /// answer is `false`, also when the handler happens not to have run.
    ///
    /// The code still tells whether another try makes sense: a call without permission is refused
    /// again.
    #[must_use]
    pub fn has_not_run(&self) -> bool {
        self.0.not_run
    }

    /// Marks the status as that of a call whose handler has not run, which must be proven.
    #[must_use]
    pub(crate) fn not_run(mut self) -> Self {
        self.0.not_run = true;
        self
    }

    /// Marks the status as that of a call whose handler may have run.
    #[must_use]
    pub(crate) fn may_have_run(mut self) -> Self {
        self.0.not_run = false;
        self
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl fmt::Debug for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { code, message, source, not_run } = &*self.0;
        let mut shown = f.debug_struct("Status");
        shown.field("code", code).field("message", message);
        if let Some(source) = source {
            shown.field("source", source);
        }
        if *not_run {
            shown.field("has_not_run", not_run);
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

/// The text of an error, followed by the texts of its sources.
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
    /// Replaces the message by what a function makes of it.
    pub(crate) fn with_message(mut self, function: impl FnOnce(&str) -> String) -> Self {
        self.0.message = function(&self.0.message);
        self
    }

    /// The code with which the status is sent as an error. A status with [`Code::Ok`] would be
    /// taken for an answer, or for the end of a stream, so it is sent as [`Code::Internal`].
    pub(crate) fn error_code(&self) -> Code {
        match self.code() {
            Code::Ok => Code::Internal,
            code => code,
        }
    }
}

/// The message of a panic, if the panic has a text.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> Option<&str> {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}
