//! The connection manager as its driver sees it: datagrams, time and calls in; datagrams and events
//! out.

mod common;
mod crowd;
mod encrypted;
mod exchange;
mod extensions;
mod faults;
mod floods;
mod golden;
mod processes;
mod restarts;
mod services;
