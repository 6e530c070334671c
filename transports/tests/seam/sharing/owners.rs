//! Who is the owner, and what stays when it is killed.

use doorbell_core::wire::ServiceId;
use doorbell_transports::sharing::{Event, Membership};

use crate::sharing::process::*;

fn some(count: usize) -> (String, Vec<Process>) {
    let key = key();
    let processes = (0..count).map(|_| Process::start(&key)).collect();
    (key, processes)
}

#[test]
fn of_three_processes_one_is_the_owner_and_each_knows_the_tags_of_the_others() {
    let (_, mut processes) = some(3);
    let tags = tags(&mut processes);
    let owner = owner(&mut processes);
    processes.push(owner);
    for process in &mut processes {
        let state = process.state();
        let mut others = tags.clone();
        others.remove(&state.tag.into());
        assert_eq!(state.there, others);
    }
}

#[test]
fn when_the_owner_is_killed_one_other_is_and_tags_and_services_are_as_they_were() {
    let (key, mut processes) = some(3);
    for (process, service) in processes.iter_mut().zip(1..) {
        process.is_granted(service);
    }
    let mut killed = owner(&mut processes);
    let [lost] = killed.state().granted.into_iter().collect::<Vec<_>>()[..] else { panic!() };
    let before = tags(&mut processes);
    killed.kill();
    let mut next = owner(&mut processes);
    processes.push(Process::start(&key));
    let fourth = next.until(|state| state.there.len() == 2).there;
    assert_eq!(fourth.intersection(&before).count(), 1, "the third has kept its tag");
    assert!(before.contains(&next.state().tag.into()));
    processes.push(next);
    for process in &mut processes {
        let state = process.until(|state| state.others.len() + state.granted.len() == 2);
        assert!(!state.others.contains(&lost) && !state.granted.contains(&lost), "{state:?}");
    }
    tags(&mut processes);
    // What was the killed one's may be had by another.
    processes[1].is_granted(lost);
}

#[test]
fn ten_that_come_at_once_have_ten_tags_and_one_owner_however_often_that_is_killed() {
    let key = key();
    let begun: Vec<_> = (0..10).map(|_| Process::begin(&key)).collect();
    let mut processes: Vec<_> = begun.into_iter().map(Process::welcome).collect();
    let mut all = tags(&mut processes);
    while processes.len() > 1 {
        let mut killed = owner(&mut processes);
        all.remove(&killed.state().tag.into());
        killed.kill();
        assert_eq!(tags(&mut processes), all);
    }
    processes[0].until(|state| state.owner == 1 && state.there.is_empty());
}

#[test]
fn newcomers_that_find_the_owner_killed_take_nothing_from_those_who_were_there() {
    for _ in 0..10 {
        let (key, mut processes) = some(3);
        let killed = owner(&mut processes);
        for (process, service) in processes.iter_mut().zip(1..) {
            process.is_granted(service);
        }
        let mut newcomers = [(); 4].map(|()| Process::begin(&key));
        killed.kill();
        for newcomer in &mut newcomers {
            newcomer.listen(1);
            newcomer.listen(2);
        }
        for newcomer in newcomers {
            let mut newcomer = newcomer.welcome();
            newcomer.until(|state| state.taken.len() == 2 && state.others.len() == 2);
            processes.push(newcomer);
        }
        for (process, service) in processes.iter_mut().zip(1..3) {
            let state = process.state();
            assert!(state.granted == [service].into() && state.taken.is_empty(), "{state:?}");
        }
        owner(&mut processes);
    }
}

/// All events that there are now.
fn events(of: &mut Membership) -> Vec<Event> {
    std::iter::from_fn(|| of.turn()).collect()
}

/// In one process, where it is certain who is first. Only a name may be free later than it was
/// given back: processes that other tests start have it until they are what they shall be.
#[test]
fn a_newcomer_that_is_first_to_the_free_name_is_the_owner_when_it_has_heard_the_others() {
    let (key, service) = (key(), ServiceId(7));
    let [mut killed, mut has, mut wants] =
        [(); 3].map(|()| Membership::join(&key).expect("a membership"));
    has.listen(service).expect("room");
    let [mut granted, mut known] = [false; 2];
    while !granted || !known {
        events(&mut killed);
        granted |= events(&mut has).contains(&Event::Granted(service));
        known |= events(&mut wants).contains(&Event::Listens(service));
    }
    let left = killed.tag();
    drop(killed);

    let mut newcomer = Membership::join(&key).expect("a membership");
    let [mut told, mut kept, mut refused] = [const { Vec::new() }; 3];
    newcomer.listen(service).expect("room");
    let again = newcomer.tag() == left;
    while !told.contains(&Event::Welcome) || !again && !told.contains(&Event::Left(left)) {
        told.extend(events(&mut newcomer));
    }
    wants.listen(service).expect("room");
    while !told.contains(&Event::Joined(wants.tag())) {
        refused.extend(events(&mut wants));
        told.extend(events(&mut newcomer));
    }
    // One is not heard yet.
    for _ in 0..10 {
        refused.extend(events(&mut wants));
        told.extend(events(&mut newcomer));
    }
    assert!(!newcomer.is_owner() && !told.contains(&Event::BecameOwner));
    assert!(!told.contains(&Event::Taken(service)) && !told.contains(&Event::Granted(service)));
    while !newcomer.is_owner() || !refused.contains(&Event::Taken(service)) {
        kept.extend(events(&mut has));
        refused.extend(events(&mut wants));
        told.extend(events(&mut newcomer));
    }
    assert!(told.contains(&Event::Taken(service)) && told.contains(&Event::BecameOwner));
    assert!(!kept.contains(&Event::Taken(service)), "{kept:?}");
}
