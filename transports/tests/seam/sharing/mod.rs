//! Several processes on one interface: real ones, some of which are killed.

mod managers;
mod owners;
mod process;
mod services;
mod strangers;
