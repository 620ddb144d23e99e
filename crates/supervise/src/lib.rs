//! One child process from spawn to reap.

pub mod launch;
pub mod leftovers;
mod platform;
pub mod sandbox;
pub mod tree;
