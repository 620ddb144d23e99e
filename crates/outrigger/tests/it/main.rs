//! The program as a user meets it: real processes, real signals, the real binary.
#![expect(clippy::disallowed_methods, reason = "tests start the program the way a user's shell does")]

mod abp_sdk;
mod agents;
mod chat;
mod cli;
mod coding;
mod daemon;
mod ext;
mod helmor;
mod js;
mod misbehave;
mod model;
mod mustard_host;
mod mustard_sidecar;
mod owner;
mod process;
mod run;
mod sdk;
mod steerable;
mod terminal;
