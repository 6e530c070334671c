//! Where one end of a test runs.

use std::net::IpAddr;

/// Where an end is.
pub struct Place<'a> {
    /// Its device, with what that is opened on.
    pub device: &'a str,
    /// The address of its sockets.
    pub here: IpAddr,
    /// The processor for its NIC's thread, if there is one for that.
    pub spare: Option<usize>,
}
