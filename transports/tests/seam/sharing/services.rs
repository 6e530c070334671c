//! Who listens to what.

use crate::sharing::process::*;

#[test]
fn a_service_is_granted_to_one_process_and_to_the_next_when_that_stops() {
    let key = key();
    let mut processes = [(); 3].map(|()| Process::start(&key));
    processes[0].is_granted(7);
    for (has, wants) in [(0, 1), (1, 2), (2, 0)] {
        processes[wants].listen(7);
        processes[wants].until(|state| state.taken.contains(&7));
        processes[has].stop(7);
        processes[wants].until(|state| state.others.is_empty());
        processes[wants].is_granted(7);
        processes[has].until(|state| state.others.contains(&7));
    }
}

#[test]
fn of_many_who_want_the_same_service_at_once_one_has_it() {
    let key = key();
    let mut processes: Vec<_> = (0..5).map(|_| Process::start(&key)).collect();
    for service in 0..50 {
        processes.iter_mut().for_each(|process| process.listen(service));
    }
    let all = |numbers: usize| numbers == 50;
    let states = processes.iter_mut().map(|process| {
        process.until(|state| {
            all(state.granted.len() + state.taken.len())
                && all(state.granted.len() + state.others.len())
        })
    });
    let granted: usize = states.map(|state| state.granted.len()).sum();
    assert_eq!(granted, 50);
}
