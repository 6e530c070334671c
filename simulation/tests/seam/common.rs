//! Small things that the tests of a network need.

#![allow(dead_code, reason = "each file of tests uses some of it")]

use std::time::Duration;

use doorbell_core::wire::{EtherType, Ethernet, Mac};
use doorbell_simulation::{Event, Network, StationId, Time};

pub const NANOSECOND: Duration = Duration::from_nanos(1);
pub const MICROSECOND: Duration = Duration::from_micros(1);

/// The moment so many nanoseconds after the beginning.
pub fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

/// The address of the station of that number; of a group from 256 on.
pub fn mac(number: u8) -> Mac {
    Mac([2, 0, 0, 0, 0, number])
}

pub const EVERYBODY: Mac = Mac([0xFF; 6]);

/// A frame of `len` bytes.
pub fn frame(destination: Mac, source: Mac, len: usize) -> Vec<u8> {
    let header = Ethernet { destination, source, ethertype: EtherType(0x88B5) };
    let mut frame = header.to_bytes().to_vec();
    frame.resize(len, 0);
    frame
}

/// A frame of 60 bytes from the first station to the second that carries a number.
pub fn numbered(number: u32) -> Vec<u8> {
    let mut frame = frame(mac(1), mac(0), 60);
    frame[14..18].copy_from_slice(&number.to_be_bytes());
    frame
}

/// The number that a frame carries.
pub fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[14], frame[15], frame[16], frame[17]])
}

/// Returns all frames that arrive within the next second, each with its time and its station.
pub fn arrivals(network: &mut Network) -> Vec<(Time, StationId, Vec<u8>)> {
    let until = network.now() + Duration::from_secs(1);
    let mut arrived = Vec::new();
    while let Some((station, event)) = network.step(until) {
        match event {
            Event::Frame(frame) => arrived.push((network.now(), station, frame)),
            Event::Wake => panic!("a timer that nobody set went off"),
        }
    }
    assert_eq!(network.in_flight(), 0);
    arrived
}

/// Returns the numbers that the frames of the next second carry.
pub fn numbers(network: &mut Network) -> Vec<u32> {
    arrivals(network).iter().map(|(_, _, frame)| number(frame)).collect()
}

/// Returns the time and the station of each frame that arrives within the next second.
pub fn times(network: &mut Network) -> Vec<(u64, StationId)> {
    arrivals(network).iter().map(|(time, station, _)| (time.as_nanos(), *station)).collect()
}
