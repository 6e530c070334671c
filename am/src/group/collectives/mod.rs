//! Collectives under way at one member: their messages, rounds and results.
//!
//! The folder is told which collective a member begins. It sends the member's messages, takes those
//! of others out of the mailbox, and returns the result, or the failure that all members get.

pub(in crate::group) mod barrier;
mod begin;
mod blocks;
pub(in crate::group) mod folds;
pub(in crate::group) mod moves;
pub(in crate::group) mod run;
mod together;
mod waiting;

pub(in crate::group) use begin::begin;
