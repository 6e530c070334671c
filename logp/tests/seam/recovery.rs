//! A machine whose parameters are known, in virtual time, on which the method must find them.

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::rc::Rc;

use doorbell_logp::{Clock, Estimate, Measurement, Parameters, Plan, PlanError, Requester};

/// The parameters of a machine, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Machine {
    send: f64,
    receive: f64,
    latency: f64,
    gap: f64,
    per_byte: f64,
    /// How many requests may be under way.
    window: usize,
    /// How many nanoseconds a look takes that finds no answer.
    look: f64,
}

/// The processor of the requester: its time, and what disturbs it.
#[derive(Clone)]
struct Processor {
    now: Rc<Cell<f64>>,
    luck: Rc<Cell<u64>>,
    /// After how long something takes the processor for 100 µs, give or take a half, if anything
    /// does; and when it does so next.
    disturbed: Option<f64>,
    next: Rc<Cell<f64>>,
}

impl Processor {
    fn new(disturbed: Option<f64>) -> Self {
        let luck = Rc::new(Cell::new(9));
        let [now, next] =
            [0.0, disturbed.unwrap_or(f64::INFINITY)].map(|time| Rc::new(Cell::new(time)));
        Self { now, luck, disturbed, next }
    }

    /// Is busy for so long, give or take a hundredth.
    fn works(&self, nanos: f64) {
        let luck = self.luck.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.luck.set(luck);
        let drawn = (luck >> 33) as f64 / (1_u64 << 31) as f64;
        self.now.set(self.now.get() + nanos * (0.99 + 0.02 * drawn));
        if let (Some(pause), true) = (self.disturbed, self.now.get() >= self.next.get()) {
            self.now.set(self.now.get() + 100_000.0);
            self.next.set(self.now.get() + pause * (0.5 + drawn));
        }
    }
}

impl Clock for Processor {
    fn now(&self) -> f64 {
        // A reading takes time, which is part of what was timed.
        self.now.set(self.now.get() + 20.0);
        self.now.get()
    }

    fn compute(&self, nanos: f64) {
        self.works(1.07 * nanos);
    }
}

struct Simulated {
    machine: Machine,
    processor: Processor,
    /// When each answer that is under way comes.
    answers: VecDeque<f64>,
    answered: u64,
    /// When the network takes the next message of either side, and the server the next request.
    ours: f64,
    theirs: f64,
    server: f64,
}

impl Simulated {
    fn new(machine: Machine, processor: Processor) -> Self {
        let answers = VecDeque::new();
        Self { machine, processor, answers, answered: 0, ours: 0.0, theirs: 0.0, server: 0.0 }
    }

    fn handle(&mut self) {
        self.processor.works(self.machine.receive);
        self.answers.pop_front();
        self.answered += 1;
    }
}

impl Requester for Simulated {
    type Error = Infallible;

    fn send(&mut self, bytes: usize) -> Result<(), Infallible> {
        let Machine { send, receive, latency, gap, per_byte, window, .. } = self.machine;
        while self.answers.len() >= window {
            let first = self.answers[0];
            self.processor.now.set(self.processor.now.get().max(first));
            self.handle();
        }
        self.processor.works(send);
        let long = bytes as f64 * per_byte;
        let leaves = self.ours.max(self.processor.now.get());
        self.ours = leaves + gap + long;
        let handled = self.server.max(leaves + latency + long) + receive;
        self.server = handled + send;
        let back = self.theirs.max(self.server);
        self.theirs = back + gap;
        self.answers.push_back(back + latency);
        Ok(())
    }

    fn poll(&mut self) -> Result<(), Infallible> {
        if self.answers.front().is_none_or(|comes| *comes > self.processor.now.get()) {
            self.processor.works(self.machine.look);
        }
        while self.answers.front().is_some_and(|comes| *comes <= self.processor.now.get()) {
            self.handle();
        }
        Ok(())
    }

    fn answered(&self) -> u64 {
        self.answered
    }
}

fn measured(machine: Machine, disturbed: Option<f64>) -> Parameters {
    let processor = Processor::new(disturbed);
    let requester = Simulated::new(machine, processor.clone());
    let mut measurement = Measurement::new(requester, processor, Plan::quick()).expect("a plan");
    while measurement.round().unwrap_or_else(|never| match never {}) {}
    assert_eq!(measurement.progress(), (15, 15));
    measurement.parameters().expect("there were rounds")
}

#[track_caller]
fn assert_near(what: &str, found: Estimate, expected: f64, machine: Machine) {
    let off = (found.value - expected).abs() / expected;
    assert!(off < 0.05, "{what} is {found}, and should be {expected}: {machine:?}");
    let width = found.width();
    assert!(width <= (0.2 * expected).max(10.0), "{what} is {found}: {machine:?}");
}

fn machines() -> Vec<Machine> {
    let usual = Machine {
        send: 300.0,
        receive: 400.0,
        latency: 2000.0,
        gap: 1500.0,
        per_byte: 0.25,
        window: 64,
        look: 5.0,
    };
    vec![
        usual,
        // A network that is faster than the processor.
        Machine { gap: 100.0, ..usual },
        Machine { gap: 690.0, ..usual },
        // Those of the paper's first table.
        Machine { send: 3100.0, receive: 2900.0, latency: 29_600.0, gap: 30_000.0, ..usual },
        // Shared memory.
        Machine { send: 40.0, receive: 60.0, latency: 150.0, gap: 90.0, per_byte: 0.05, ..usual },
        // Sending costs more than everything else.
        Machine { send: 900.0, receive: 100.0, latency: 1200.0, gap: 1100.0, ..usual },
        Machine { send: 100.0, receive: 900.0, latency: 10_000.0, gap: 4000.0, ..usual },
    ]
}

fn check(machine: Machine, found: Parameters) {
    assert_near("o_s", found.send_overhead, machine.send, machine);
    assert_near("o_r", found.receive_overhead, machine.receive, machine);
    assert_near("L", found.latency, machine.latency, machine);
    let busy = machine.send + machine.receive;
    assert_near("g", found.gap, machine.gap.max(busy), machine);
    let is_of_the_processor = machine.gap < 1.05 * busy;
    assert_eq!(found.gap_is_of_the_processor, is_of_the_processor, "{machine:?}");
    let round_trip = 2.0 * (machine.send + machine.latency + machine.receive);
    assert_near("RTT", found.round_trip, round_trip, machine);
    let per_byte = found.gap_per_byte.expect("it was measured");
    assert_near("G", per_byte, machine.per_byte, machine);
}

#[test]
fn the_method_finds_the_parameters_of_a_machine_within_a_twentieth() {
    for machine in machines() {
        check(machine, measured(machine, None));
    }
}

#[test]
fn the_method_finds_them_where_something_else_takes_the_processor_now_and_then() {
    for machine in machines() {
        let busy = machine.send + machine.receive;
        // Where the gap is hardly longer than the processor's time, a disturbance empties the
        // network, and it takes hundreds of requests to fill it again.
        if machine.gap < busy || machine.gap > 1.2 * busy {
            check(machine, measured(machine, Some(2e6)));
        }
    }
}

#[test]
fn a_plan_that_measures_nothing_is_refused() {
    let refused = |plan: Plan| {
        let processor = Processor::new(None);
        let requester = Simulated::new(machines()[0], processor.clone());
        Measurement::new(requester, processor, plan).expect_err("it measures nothing")
    };
    assert_eq!(refused(Plan { rounds: 0, ..Plan::quick() }), PlanError::Zero { field: "rounds" });
    let lengths = vec![64];
    let found = refused(Plan { lengths: lengths.clone(), ..Plan::quick() });
    assert_eq!(found, PlanError::Lengths { found: lengths });
}
