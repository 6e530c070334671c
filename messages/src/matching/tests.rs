//! Random programs of receives, messages, cancellations and probes, beside a model that looks
//! through plain lists as MPI's text has it.

use super::*;

/// A Splitmix64 generator, which makes the same pseudo-random numbers on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

/// Receives and messages that wait, in order.
#[derive(Default)]
struct Model {
    receives: Vec<(Pattern, u64)>,
    messages: Vec<(Envelope, u64)>,
}

impl Model {
    fn post(&mut self, pattern: Pattern, receive: u64) -> Option<(Envelope, u64)> {
        match self.messages.iter().position(|(message, _)| pattern.takes(*message)) {
            Some(at) => Some(self.messages.remove(at)),
            None => {
                self.receives.push((pattern, receive));
                None
            }
        }
    }

    /// Has a message wait again that came when messages of its number did.
    fn put_back(&mut self, envelope: Envelope, message: u64) -> Option<u64> {
        let receive = self.arrive(envelope, message);
        self.messages.sort_by_key(|&(_, message)| message);
        receive
    }

    fn arrive(&mut self, envelope: Envelope, message: u64) -> Option<u64> {
        match self.receives.iter().position(|(pattern, _)| pattern.takes(envelope)) {
            Some(at) => Some(self.receives.remove(at).1),
            None => {
                self.messages.push((envelope, message));
                None
            }
        }
    }

    fn cancel(&mut self, receive: u64) -> bool {
        let at = self.receives.iter().position(|&(_, of)| of == receive);
        at.map(|at| self.receives.remove(at)).is_some()
    }

    fn probe(&self, pattern: Pattern) -> Option<(Envelope, u64)> {
        self.messages.iter().copied().find(|(message, _)| pattern.takes(*message))
    }
}

/// A pattern of one of many classes, that takes some of the envelopes below.
fn pattern(random: &mut Random, classes: u64) -> Pattern {
    let masks = [u64::MAX, 0, 1, 3, 6, 0xff, 0xf0, 0xff00, 0x1ff, 4, 5, 7];
    let mask = masks[random.below(classes.min(masks.len() as u64)) as usize];
    let source = (random.below(3) > 0).then(|| random.below(3) as Source);
    Pattern::new(source, random.below(6), mask)
}

fn envelope(random: &mut Random) -> Envelope {
    Envelope { source: random.below(3) as Source, bits: random.below(6) }
}

fn agrees_with_the_model(seed: u64) {
    let mut random = Random(seed);
    let (mut matcher, mut model) = (Matcher::<u64, u64>::default(), Model::default());
    let (mut ids, mut taken) = (Vec::new(), Vec::new());
    // Some programs post more than they send, and some the other way round.
    let (posts, classes) = (1 + random.below(8), 1 + random.below(12));
    for number in 0..400 {
        match random.below(13) {
            12 if !taken.is_empty() => {
                let again = taken.swap_remove(random.below(taken.len() as u64) as usize);
                let Taken { envelope, message, .. } = again;
                let receive = matcher.receive_for(envelope);
                if receive.is_none() {
                    matcher.put_back(again);
                }
                let expected = model.put_back(envelope, message);
                assert_eq!(receive, expected, "seed {seed}, step {number}");
            }
            0 => {
                let pattern = pattern(&mut random, classes);
                let found = matcher.probe(pattern).map(|(envelope, &message)| (envelope, message));
                assert_eq!(found, model.probe(pattern), "seed {seed}, step {number}");
            }
            1 if !ids.is_empty() => {
                let (id, receive) = ids[random.below(ids.len() as u64) as usize];
                let is_back = matcher.cancel(id);
                assert!(is_back.is_none_or(|back| back == receive), "seed {seed}, step {number}");
                let is_back = is_back.is_some();
                assert_eq!(is_back, model.cancel(receive), "seed {seed}, step {number}");
            }
            step if step <= posts + 1 => {
                let pattern = pattern(&mut random, classes);
                let met = match matcher.post(pattern, number) {
                    Post::Met(receive, met) => {
                        assert_eq!(receive, number);
                        let seen = (met.envelope, met.message);
                        taken.push(met);
                        Some(seen)
                    }
                    Post::Waits(id) => {
                        ids.push((id, number));
                        None
                    }
                };
                assert_eq!(met, model.post(pattern, number), "seed {seed}, step {number}");
            }
            _ => {
                let envelope = envelope(&mut random);
                let receive = matcher.receive_for(envelope);
                if receive.is_none() {
                    matcher.put(envelope, number, number);
                } else {
                    let turn = matcher.next_turn(number);
                    taken.push(Taken { turn, envelope, message: number });
                }
                assert_eq!(receive, model.arrive(envelope, number), "seed {seed}, step {number}");
            }
        }
        assert_eq!(matcher.receives(), model.receives.len());
        assert_eq!(matcher.messages(), model.messages.len());
    }
}

#[test]
fn random_programs_match_as_a_search_through_plain_lists_does() {
    (0..2000).for_each(agrees_with_the_model);
}

// A message that had come ahead of others was put back where it had arrived, and so before them.
#[test]
fn messages_that_are_put_back_are_taken_in_the_order_in_which_their_sender_has_sent_them() {
    for seed in 0..500 {
        let (mut random, mut matcher) = (Random(seed), Matcher::<(), u64>::default());
        if seed % 2 == 0 {
            assert!(matches!(matcher.post(Pattern::new(None, 0, 0), ()), Post::Waits(_)));
            matcher.receive_for(Envelope { source: 9, bits: 0 });
        }
        let mut sent: Vec<_> = (0..20).collect();
        let mut taken: Vec<_> = Vec::new();
        while !sent.is_empty() {
            let number = sent.remove(random.below(sent.len() as u64) as usize);
            let envelope = Envelope { source: number % 2, bits: number };
            taken.push(Taken { turn: matcher.next_turn(number), envelope, message: number });
        }
        while !taken.is_empty() {
            matcher.put_back(taken.swap_remove(random.below(taken.len() as u64) as usize));
        }
        let mut got = [Vec::new(), Vec::new()];
        while let Post::Met((), taken) = matcher.post(Pattern::new(None, 0, 0), ()) {
            got[taken.envelope.source as usize].push(taken.message);
        }
        assert!(got.iter().all(|got| got.len() == 10 && got.is_sorted()), "seed {seed}: {got:?}");
    }
}

#[test]
fn a_receive_whose_message_does_not_come_waits_again_where_it_was() {
    for masks in [1, 20] {
        let mut matcher = Matcher::<u64, u64>::default();
        for number in 0..20 {
            matcher.post(Pattern::new(None, 0, number % masks), number);
        }
        let envelope = Envelope { source: 1, bits: 0 };
        let promised: Vec<_> = (0..5).filter_map(|_| matcher.promise_for(envelope)).collect();
        for met in promised.into_iter().rev() {
            assert!(matches!(matcher.post_again(met), Post::Waits(_)));
        }
        let order: Vec<_> = (0..20).filter_map(|_| matcher.receive_for(envelope)).collect();
        assert_eq!(order, (0..20).collect::<Vec<_>>(), "with {masks} masks");
    }
}
