//! The exit codes that mean something to a host, after `sysexits.h`.

/// Started by hand, or with arguments that make no sense.
pub const USAGE: u8 = 64;
/// The host cannot be reached, or does not want us.
pub const UNAVAILABLE: u8 = 69;
/// The extension broke.
pub const SOFTWARE: u8 = 70;
/// The channel broke.
pub const IO: u8 = 74;
/// No common version of the protocol. The host does not try again.
pub const PROTOCOL: u8 = 76;
/// The extension's configuration is wrong. The host does not try again.
pub const CONFIG: u8 = 78;
