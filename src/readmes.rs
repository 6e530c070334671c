//! The programs in the READMEs of the workspace's crates, which are compiled and run with the tests
//! of this crate: it depends on all of them.

#![cfg(doctest)]

#[doc = include_str!("../am/README.md")]
struct Am;

#[doc = include_str!("../bytestream/README.md")]
struct Bytestream;

#[doc = include_str!("../collectives/README.md")]
struct Collectives;

#[doc = include_str!("../core/README.md")]
struct Core;

#[doc = include_str!("../job/README.md")]
struct Job;

#[doc = include_str!("../logp/README.md")]
struct Logp;

#[doc = include_str!("../macros/README.md")]
struct Macros;

#[doc = include_str!("../messages/README.md")]
struct Messages;

#[doc = include_str!("../report/README.md")]
struct Report;

#[doc = include_str!("../rpc/README.md")]
struct Rpc;

#[doc = include_str!("../simulation/README.md")]
struct Simulation;

#[doc = include_str!("../splitc/README.md")]
struct SplitC;

#[doc = include_str!("../transports/README.md")]
struct Transports;

#[doc = include_str!("../verbs/README.md")]
struct Verbs;
