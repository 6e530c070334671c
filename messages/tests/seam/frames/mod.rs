//! What endpoints of frames promise, over every device, with both policies and each offload.

mod apart;
mod closing;
mod common;
mod everywhere;
mod fabric;
mod hostile;
mod killed;
mod mixed;
mod promises;
