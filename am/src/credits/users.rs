//! The users of a link on both sides, and when the link may end.
//!
//! Both endpoints of a link may use it. The *users* of one side are the entries of its translation
//! table that lead to the link, and the calls of `map` under way that have found it or made it.
//! Each side counts its own users. The rules:
//!
//! 1. The `map` that makes a connection is its first user. The side that accepts it has none.
//! 2. When the last user of a side goes, that side *asks* the other whether the link may end.
//!    While it asks, the link takes no new user on that side: a `map` makes a new connection.
//! 3. A side that is asked and has users answers "in use". The link stays, and the other side may
//!    use it again.
//! 4. A side that is asked and has no users answers "unused", and has *given up* the link with
//!    that: it takes no user any more. The side that asked then ends the connection.
//!
//! So a link ends only when both sides have no users and neither can get a new one, and what `map`
//! has returned works until its entry is unmapped. And a link that nobody uses always ends: of two
//! sides without users, the one that lost its last user later has asked after that, and the other
//! answers "unused".
//!
//! All users of a side show the same tag. A `map` with another tag makes a new connection, so that
//! it does not take away what the peer has admitted.

use std::sync::Mutex;

use doorbell_verbs::floor::locked;

use crate::wire::Tag;

/// The users of a link on this side, and whether it may end.
#[derive(Default, Debug)]
pub(crate) struct Usage(Mutex<State>);

impl Usage {
    /// Returns whether the link takes users.
    pub fn is_open(&self) -> bool {
        locked(&self.0).stage == Stage::Open
    }

    /// Returns whether the peer is being asked whether the link may end.
    pub fn is_asking(&self) -> bool {
        locked(&self.0).stage == Stage::Asking
    }

    /// Answers the peer's question whether this side uses the link. With a no, this side gives the
    /// link up.
    pub fn is_asked(&self) -> bool {
        locked(&self.0).is_asked()
    }

    /// Takes in the peer's answer whether it uses the link. Returns whether this side is to end the
    /// connection.
    pub fn is_answered(&self, in_use: bool) -> bool {
        locked(&self.0).is_answered(in_use)
    }

    /// Adds a user that shows a tag, or none. Returns whether the link takes the user.
    pub fn join(&self, tag: Option<Tag>) -> bool {
        locked(&self.0).join(tag)
    }

    /// Removes a user of the link. Returns whether that was the last, so that the peer is to be
    /// asked.
    pub fn leave(&self) -> bool {
        locked(&self.0).leave()
    }
}

/// The state of a link's usage, under its lock.
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
struct State {
    stage: Stage,
    /// The entries of the translation table that lead to the link, and the maps under way. While
    /// there are any, the stage is open.
    users: u32,
    /// The tag that the users show, if they show one.
    shows: Option<Tag>,
}

/// How far a link is on its way to the end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
enum Stage {
    /// The link takes users.
    #[default]
    Open,
    /// A question is under way to the peer whether the link may end.
    Asking,
    /// The link is given up: a side has told the other that it does not use the link any more.
    GivenUp,
}

impl State {
    /// Adds a user that shows a tag. Returns whether the link takes the user.
    fn join(&mut self, tag: Option<Tag>) -> bool {
        let joins = self.stage == Stage::Open && (self.users == 0 || self.shows == tag);
        if joins {
            self.users += 1;
            self.shows = tag;
        }
        joins
    }

    /// Removes a user of the link. Returns whether that was the last, so that the peer is to be
    /// asked.
    fn leave(&mut self) -> bool {
        debug_assert!(self.users > 0 && self.stage == Stage::Open, "a user leaves once");
        self.users -= 1;
        if self.users == 0 {
            self.stage = Stage::Asking;
        }
        self.users == 0
    }

    fn is_asked(&mut self) -> bool {
        if self.users == 0 {
            self.stage = Stage::GivenUp;
        }
        self.users > 0
    }

    /// Takes in the peer's answer. A link that this side has given up since it asked is ended by
    /// the peer, which was told so.
    fn is_answered(&mut self, in_use: bool) -> bool {
        match (in_use, self.stage) {
            (false, _) => self.stage = Stage::GivenUp,
            (true, Stage::Asking) => self.stage = Stage::Open,
            (true, _) => {}
        }
        !in_use
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{HashSet, VecDeque};

    use super::*;

    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    enum Message {
        Question,
        Answer(bool),
    }

    /// A side of a link, with the messages on their way to it, and the answer that has come and
    /// that the asking task has not taken yet.
    #[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
    struct Side {
        life: State,
        coming: VecDeque<Message>,
        answer: Option<bool>,
        ends: bool,
        /// The number of users that may still come.
        left: usize,
    }

    type Sides = [Side; 2];

    /// Returns the states that can follow, one for each event that can happen next.
    fn next(sides: &Sides) -> Vec<Sides> {
        let mut all = Vec::new();
        for (near, far) in [(0, 1), (1, 0)] {
            let mut with = |step: &dyn Fn(&mut Sides) -> bool| {
                let mut sides = sides.clone();
                if step(&mut sides) {
                    all.push(sides);
                }
            };
            with(&|sides| {
                let side = &mut sides[near];
                let joins = side.left > 0 && side.life.join(Some(Tag(1)));
                side.left -= usize::from(joins);
                joins
            });
            with(&|sides| {
                let leaves = sides[near].life.users > 0;
                if leaves && sides[near].life.leave() {
                    sides[far].coming.push_back(Message::Question);
                }
                leaves
            });
            with(&|sides| match sides[near].coming.pop_front() {
                Some(Message::Question) => {
                    let in_use = sides[near].life.is_asked();
                    sides[far].coming.push_back(Message::Answer(in_use));
                    true
                }
                Some(Message::Answer(in_use)) => sides[near].answer.replace(in_use).is_none(),
                None => false,
            });
            with(&|sides| {
                let answer = sides[near].answer.take();
                let ends = answer.is_some_and(|in_use| sides[near].life.is_answered(in_use));
                sides[near].ends |= ends;
                answer.is_some()
            });
        }
        all
    }

    /// Runs through each order in which users of both sides come and go, questions and answers
    /// arrive, and answers are taken.
    #[test]
    fn a_link_ends_when_nobody_uses_it_on_either_side_and_not_before_in_every_order_of_events() {
        let mut sides = Sides::default();
        sides.iter_mut().for_each(|side| side.left = 3);
        // The user that makes the connection.
        assert!(sides[0].life.join(Some(Tag(1))));
        let (mut seen, mut new) = (HashSet::new(), vec![sides]);
        while let Some(sides) = new.pop() {
            let users = sides.iter().map(|side| side.life.users).sum::<u32>();
            let ends = sides.iter().any(|side| side.ends);
            assert!(users == 0 || !ends, "a link ends that has users: {sides:?}");
            let over = |side: &Side| side.life.stage == Stage::GivenUp;
            assert!(!ends || sides.iter().all(over), "a side may use a link that ends: {sides:?}");
            let mut after = next(&sides);
            let rests = sides.iter().all(|side| side.coming.is_empty() && side.answer.is_none());
            assert!(users > 0 || ends || !rests, "a link stays that nobody uses: {sides:?}");
            after.retain(|sides| seen.insert(sides.clone()));
            new.extend(after);
        }
        assert!(seen.len() > 500, "{} states", seen.len());
    }

    #[test]
    fn a_user_that_shows_another_tag_than_those_there_are_takes_another_link() {
        let mut life = State::default();
        assert!(life.join(Some(Tag(1))) && !life.join(None) && life.join(Some(Tag(1))));
        assert!(!life.leave() && life.leave());
        assert!(!life.is_answered(true), "the peer uses the link");
        assert!(life.join(None) && !life.join(Some(Tag(1))));
    }
}
