//! The carriers of messages that are compared.

/// The ways in which messages are carried: a name, and the arguments of an exchange. Frames have
/// the 1,500 bytes of the paper's, of which headers take some.
pub const CARRIERS: [(&str, &str); 3] = [
    ("TCP", "--protocol tcp --mtu 1500"),
    ("EMP, run by the program", "--protocol emp --frame 1388 --runs program"),
    ("EMP, run by a thread", "--protocol emp --frame 1388 --runs thread"),
];

/// The arguments of an exchange over a device. TCP takes the same cable, and no device.
pub fn over(device: &str, arguments: &str) -> String {
    match arguments.contains("tcp") {
        true => arguments.to_owned(),
        false => format!("{arguments} --device {device}"),
    }
}
