//! What Active Messages promise, on every device, and on a simulated network with faults: each
//! message is handled once, in the order of its pair, and answered once; nothing is dropped or
//! waits for want of a buffer; nobody waits for ever.

pub mod devices;
mod ending;
mod errors;
mod flood;
mod gone;
mod hostile;
mod liars;
mod strangers;
mod unasked;
mod wire;
