//! One child process from spawn to reap.

pub mod driver;
pub mod launch;
pub mod leftovers;
pub mod logs;
pub mod metrics;
mod platform;
pub mod ready;
pub mod report;
pub mod sandbox;
pub mod spec;
pub mod state;
pub mod tree;
