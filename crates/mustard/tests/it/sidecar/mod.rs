//! The sidecar as a host meets it, byte for byte: one file per part of the contract, each conversation in both framings.

mod execution;
mod extensions;
mod fine_print;
mod hostile;
mod kit;
mod requests;
mod resume;
mod start;
mod transport;
mod values;
