//! The history of a call: what became of it in earlier attempts, and whether another one follows.

use doorbell_am::Name;

use super::connection::unnamed;
use super::states::Failure;
use crate::method::MethodId;
use crate::status::{Code, Status};
use crate::wire::NO_METHOD;

/// Where a call may have begun: at which server, in which of its sessions, and by which number.
#[derive(Clone, Copy, Debug)]
pub struct Begun {
    pub server: u64,
    pub session: u64,
    pub number: u64,
}

/// How many times a call is sent again after its connection has ended.
const RESENDS: usize = 8;

/// The attempts of a call so far, as far as the next attempt depends on them.
#[derive(Default)]
pub struct History {
    /// Where the latest attempt was made of which it is not known whether the server has begun the
    /// call, if there was such an attempt.
    begun: Option<Begun>,
    /// The status of the latest attempt that has failed.
    lost: Option<Status>,
    resends: usize,
}

impl History {
    /// The number with which the call was sent, if its server may have begun the call. The server
    /// knows the call again by that number. Otherwise the next attempt draws a new number.
    pub fn number(&self) -> Option<u64> {
        self.begun.map(|begun| begun.number)
    }

    /// Notes that the server may have begun the call in the present attempt.
    pub fn may_have_begun(&mut self, begun: Begun) {
        self.begun = Some(begun);
    }

    /// Checks whether the call may be sent in the session of a server. A call that is not
    /// idempotent goes only where it is known whether the call has begun.
    ///
    /// # Errors
    /// When the call may have begun elsewhere.
    pub fn allows(&self, method: MethodId, server: u64, session: u64) -> Result<(), Status> {
        let is_same = |begun: Begun| (begun.server, begun.session) == (server, session);
        if method.is_idempotent() || self.begun.is_none_or(is_same) {
            return Ok(());
        }
        Err(Status::unavailable(format!(
            "the server that is there now does not know whether {method} ran; mark the method \
             idempotent to have it called again"
        )))
    }

    /// Takes in that an attempt has failed, and decides whether the call is sent again. Of a
    /// request that is a stream, `taken` says whether pieces may have been taken from it already;
    /// `None` stands for a request that is no stream.
    ///
    /// # Errors
    /// The status of the call, if it is not sent again.
    pub fn lost(
        &mut self,
        failure: Failure,
        method: MethodId,
        taken: Option<bool>,
    ) -> Result<(), Status> {
        let status = match failure {
            Failure::Final(status) => return Err(self.ended(unknown_method(status, method))),
            Failure::OutcomeUnknown(status) if taken.is_some() => return Err(status),
            Failure::OutcomeUnknown(status) => status,
            // What was taken of the request's stream is lost.
            Failure::NotBegun(status) if taken == Some(true) => return Err(status.not_run()),
            Failure::NotBegun(status) => status.not_run(),
        };
        if self.resends == RESENDS {
            return Err(self.ended(status));
        }
        self.lost = Some(status);
        self.resends += 1;
        Ok(())
    }

    /// The status of a call whose last attempt has ended with `status`. An attempt that did not run
    /// tells nothing about those before.
    fn ended(&self, status: Status) -> Status {
        if self.begun.is_some() { status.may_have_run() } else { status }
    }

    /// The failure of a call that is not sent again because of `why`. Its status mentions first why
    /// the call was lost before, if it was.
    #[cold]
    pub fn behind(&self, server: &Name, why: Status) -> Failure {
        Failure::Final(match &self.lost {
            None => why,
            Some(lost) => why
                .with_message(|why| format!("{}; then: {}", lost.message(), unnamed(why, server))),
        })
    }
}

/// Adds the path of the method to a status which says that the server does not have the method. The
/// server knows only the number of the path.
fn unknown_method(status: Status, method: MethodId) -> Status {
    match status.code() {
        Code::Unimplemented if status.message().starts_with(NO_METHOD) => {
            status.with_message(|message| format!("calling {method}: {message}"))
        }
        _ => status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: MethodId = MethodId::new("get").idempotent();
    const ADD: MethodId = MethodId::new("add");

    fn lost() -> Status {
        Status::unavailable("the connection has ended")
    }

    /// The history of a call that was sent in session 2 of server 1, and lost with its connection.
    fn of_lost_call(method: MethodId) -> History {
        let mut history = History::default();
        history.may_have_begun(Begun { server: 1, session: 2, number: 3 });
        history.lost(Failure::OutcomeUnknown(lost()), method, None).expect("it is sent again");
        history
    }

    #[test]
    fn a_lost_call_goes_with_its_number_to_the_session_that_remembers_it() {
        let history = of_lost_call(ADD);
        assert_eq!(history.number(), Some(3));
        assert!(history.allows(ADD, 1, 2).is_ok());
        assert!(history.allows(ADD, 1, 4).is_err() && history.allows(ADD, 5, 2).is_err());
        assert!(of_lost_call(GET).allows(GET, 5, 4).is_ok());
    }

    #[test]
    fn a_call_that_was_lost_may_have_run_whatever_becomes_of_it_later() {
        let refused = || Failure::Final(lost().not_run());
        let first = History::default().lost(refused(), ADD, None);
        assert!(first.expect_err("it is refused").has_not_run());
        let again = of_lost_call(ADD).lost(refused(), ADD, None);
        assert!(!again.expect_err("it is refused").has_not_run());
    }

    #[test]
    fn a_call_is_sent_again_eight_times_at_most_and_draws_a_number_each_time_it_has_not_begun() {
        let mut history = History::default();
        for _ in 0..RESENDS {
            assert!(history.lost(Failure::NotBegun(lost()), ADD, None).is_ok());
            assert_eq!(history.number(), None);
        }
        let why = history.lost(Failure::NotBegun(lost()), ADD, None);
        assert!(why.expect_err("it is given up").has_not_run());
    }

    #[test]
    fn a_request_that_is_a_stream_is_sent_again_only_while_none_of_it_was_taken() {
        let mut history = History::default();
        assert!(history.lost(Failure::NotBegun(lost()), GET, Some(false)).is_ok());
        assert!(history.lost(Failure::NotBegun(lost()), GET, Some(true)).is_err());
        assert!(history.lost(Failure::OutcomeUnknown(lost()), GET, Some(true)).is_err());
    }
}
