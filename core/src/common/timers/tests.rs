use proptest::prelude::*;

use super::*;

/// The time that the whole wheel covers, in nanoseconds.
const SPAN: u64 = TICK << shift(LEVELS);

fn nanos(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn ticks(ticks: u64) -> Time {
    nanos(ticks * TICK)
}

/// Returns the timers that fire at a time, lowest index first.
fn fired(timers: &mut Timers, now: Time) -> Vec<u32> {
    let mut fired = Vec::new();
    timers.expire(now, &mut fired);
    fired.sort_unstable();
    fired
}

/// Returns when each timer fires if the wheel turns at each time that it asks for.
fn run(timers: &mut Timers) -> Vec<(Time, u32)> {
    let mut order = Vec::new();
    while let Some(now) = timers.next() {
        order.extend(fired(timers, now).into_iter().map(|index| (now, index)));
        assert!(timers.next().is_none_or(|next| next > now), "asked to wait, but not to wait");
    }
    order
}

#[test]
fn nothing_armed_is_nothing_to_wait_for() {
    let mut timers = Timers::new(4);
    assert_eq!(timers.next(), None);
    assert!(fired(&mut timers, nanos(u64::MAX)).is_empty());
    assert!(fired(&mut Timers::new(0), nanos(u64::MAX)).is_empty());
}

#[test]
fn a_time_within_a_tick_is_waited_for_until_the_tick_ends() {
    for (at, tick) in [(0, 0), (1, 1), (TICK - 1, 1), (TICK, 1), (TICK + 1, 2)] {
        let mut timers = Timers::new(1);
        timers.arm(0, nanos(at));
        assert_eq!(timers.next(), Some(ticks(tick)));
        if tick > 0 {
            assert!(fired(&mut timers, nanos(tick * TICK - 1)).is_empty(), "armed for {at}");
        }
        assert_eq!(fired(&mut timers, ticks(tick)), [0], "armed for {at}");
        assert_eq!(timers.next(), None);
        assert!(fired(&mut timers, nanos(u64::MAX)).is_empty(), "again, armed for {at}");
    }
}

#[test]
fn at_a_levels_boundary_as_elsewhere_each_fires_in_its_tick_and_once() {
    for start in [0, 1, 63, 64, 4095, SPAN / TICK - 1, SPAN / TICK, 3 * SPAN / TICK - 65] {
        let boundaries = (1..=LEVELS).map(|level| 1 << shift(level));
        let delays: Vec<u64> =
            boundaries.flat_map(|span| [span - 2, span - 1, span, span + 1, span + 63]).collect();
        let mut timers = Timers::new(delays.len() + 1);
        // A timer that fires turns the wheel to the tick at which the others shall start.
        timers.arm(delays.len() as u32, ticks(start));
        assert_eq!(fired(&mut timers, ticks(start)), [delays.len() as u32]);
        for (index, delay) in (0..).zip(&delays) {
            timers.arm(index, ticks(start + delay));
        }
        let mut expected: Vec<_> =
            (0..).zip(&delays).map(|(index, delay)| (ticks(start + delay), index)).collect();
        expected.sort_unstable();
        assert_eq!(run(&mut timers), expected, "starting at tick {start}");
    }
}

#[test]
fn all_within_the_span_fire_at_the_first_wake_up() {
    for bits in 0..30 {
        let mut timers = Timers::new(1);
        timers.arm(0, ticks((1 << bits) + 5));
        let next = timers.next().unwrap();
        assert_eq!(fired(&mut timers, next), [0], "woken in vain at {next:?}");
    }
}

#[test]
fn a_jump_over_everything_loses_nothing() {
    let mut timers = Timers::new(200);
    for index in 0..200 {
        timers.arm(index, ticks(1 << (index % 40)));
    }
    assert_eq!(fired(&mut timers, ticks(1 << 41)), Vec::from_iter(0..200));
    assert_eq!(timers.next(), None);
    timers.arm(7, ticks((1 << 41) + 3));
    assert_eq!(run(&mut timers), [(ticks((1 << 41) + 3), 7)]);
}

#[test]
fn what_is_beyond_the_last_level_fires_when_its_time_has_come() {
    let mut timers = Timers::new(3);
    let times = [nanos(10 * SPAN + 1), nanos(SPAN), nanos(1000 * SPAN)];
    for (index, at) in (0..).zip(times) {
        timers.arm(index, at);
    }
    let expected = [(times[1], 1), (nanos(10 * SPAN + TICK), 0), (times[2], 2)];
    assert_eq!(run(&mut timers), expected);
}

#[test]
fn a_near_timer_is_not_hidden_by_a_far_one_in_an_earlier_slot() {
    let mut timers = Timers::new(3);
    let slot = SPAN / SLOTS;
    timers.arm(0, nanos(10 * SPAN)); // in the last slot, though its time is far beyond
    timers.arm(1, nanos(40 * slot));
    assert_eq!(fired(&mut timers, nanos(40 * slot)), [1]);
    timers.arm(2, nanos(70 * slot)); // seven slots after that last one
    let expected = [(nanos(70 * slot), 2), (nanos(10 * SPAN), 0)];
    assert_eq!(run(&mut timers), expected);
}

#[test]
fn the_end_of_the_clock_is_never() {
    let mut timers = Timers::new(1);
    timers.arm(0, nanos(u64::MAX));
    assert!(fired(&mut timers, nanos(u64::MAX)).is_empty());
    assert!(timers.next().is_some());
}

#[test]
fn only_an_earlier_time_moves_what_is_armed() {
    let mut timers = Timers::new(2);
    timers.arm(0, ticks(5000));
    timers.arm(0, ticks(6000));
    assert_eq!(timers.next(), Some(ticks(5000)));
    timers.arm(0, ticks(70));
    timers.arm(1, ticks(71));
    timers.arm(0, ticks(5000));
    assert_eq!(run(&mut timers), [(ticks(70), 0), (ticks(71), 1)]);
}

#[test]
fn what_has_passed_already_fires_at_once() {
    let mut timers = Timers::new(2);
    timers.arm(0, ticks(1000));
    assert_eq!(fired(&mut timers, ticks(1000)), [0]);
    timers.arm(0, ticks(1000));
    timers.arm(1, ticks(3));
    assert_eq!(fired(&mut timers, ticks(1000)), [0, 1]);
    assert_eq!(timers.next(), None);
}

#[test]
fn those_that_fired_can_be_armed_again_right_away() {
    let mut timers = Timers::new(10);
    for index in 0..10 {
        timers.arm(index, ticks(100));
    }
    let mut fired = Vec::with_capacity(10);
    for round in 1..1000 {
        let now = ticks(round * 100);
        timers.expire(now, &mut fired);
        assert_eq!(fired.len(), 10, "round {round}");
        for index in fired.drain(..) {
            timers.arm(index, ticks((round + 1) * 100));
        }
    }
}

#[test]
fn a_slot_whose_only_timer_is_disarmed_is_empty() {
    let mut timers = Timers::new(2);
    for delay in [0, 3, 100, 5000, 1 << 40] {
        timers.arm(0, ticks(delay));
        timers.disarm(0);
        timers.disarm(0);
        assert_eq!(timers.next(), None);
        assert_eq!(timers.occupied, [0; LEVELS]);
    }
    assert!(fired(&mut timers, nanos(u64::MAX)).is_empty());
}

#[test]
fn the_neighbours_of_one_disarmed_stay() {
    for gone in 0..3 {
        let mut timers = Timers::new(3);
        for index in 0..3 {
            timers.arm(index, ticks(5000));
        }
        timers.disarm(gone);
        let left: Vec<_> = (0..3).filter(|&index| index != gone).collect();
        assert_eq!(fired(&mut timers, ticks(5000)), left);
    }
}

#[test]
fn waiting_for_one_that_was_disarmed_comes_to_an_end() {
    let mut timers = Timers::new(3);
    for (index, at) in (0..).zip([5000, 5001, 5002]) {
        timers.arm(index, ticks(at));
    }
    timers.disarm(0);
    timers.disarm(1);
    assert_eq!(run(&mut timers), [(ticks(5002), 2)]);
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn an_index_beyond_the_capacity_is_refused() {
    Timers::new(3).arm(3, Time::ZERO);
}

#[derive(Debug, Clone)]
enum Step {
    Arm(u32, u64),
    Disarm(u32),
    /// Lets the time pass at one go.
    Jump(u64),
    /// Lets the time pass, and turns the wheel at each time that it asks for.
    Wait(u64),
}

/// Delays of every magnitude, up to some hours.
fn delay() -> impl Strategy<Value = u64> {
    (any::<u64>(), 20..60_u32).prop_map(|(delay, shift)| delay >> shift)
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..INDICES, delay()).prop_map(|(index, delay)| Step::Arm(index, delay)),
        1 => (0..INDICES).prop_map(Step::Disarm),
        1 => delay().prop_map(Step::Jump),
        2 => delay().prop_map(Step::Wait),
    ]
}

const INDICES: u32 = 40;

/// The wheel, and beside it nothing but the tick of each timer.
struct Both {
    timers: Timers,
    model: Vec<Option<u64>>,
}

impl Both {
    fn arm(&mut self, index: u32, at: u64) {
        let tick = at.div_ceil(TICK);
        let armed = &mut self.model[index as usize];
        *armed = Some(armed.map_or(tick, |armed| armed.min(tick)));
        self.timers.arm(index, nanos(at));
    }

    fn disarm(&mut self, index: u32) {
        self.model[index as usize] = None;
        self.timers.disarm(index);
    }

    /// Exactly those fire whose tick has come, whatever happened before.
    fn expire(&mut self, now: u64) {
        let due = |tick: &u64| *tick <= now / TICK;
        let expected: Vec<u32> = (0..INDICES)
            .filter(|index| self.model[*index as usize].take_if(|tick| due(tick)).is_some())
            .collect();
        assert_eq!(fired(&mut self.timers, nanos(now)), expected, "at {now}");
    }

    fn check_next(&self) {
        let earliest = self.model.iter().flatten().min().map(|&tick| ticks(tick));
        assert_eq!(self.timers.next().is_some(), earliest.is_some());
        assert!(self.timers.next() <= earliest);
    }
}

proptest! {
    #[test]
    fn as_a_list_of_deadlines(
        start in delay(),
        steps in proptest::collection::vec(step(), 1..200),
    ) {
        let model = vec![None; INDICES as usize];
        let mut both = Both { timers: Timers::new(INDICES as usize), model };
        let mut now = start;
        for step in steps {
            match step {
                Step::Arm(index, delay) => both.arm(index, now + delay),
                Step::Disarm(index) => both.disarm(index),
                Step::Jump(delay) => {
                    now += delay;
                    both.expire(now);
                }
                Step::Wait(delay) => {
                    now += delay;
                    let now = nanos(now);
                    while let Some(next) = both.timers.next().filter(|next| *next <= now) {
                        both.expire(next.as_nanos());
                        both.check_next();
                        prop_assert!(both.timers.next().is_none_or(|later| later > next));
                    }
                    both.expire(now.as_nanos());
                }
            }
            both.check_next();
        }
    }
}
