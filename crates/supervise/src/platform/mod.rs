//! The only place that knows which operating system this is.
//!
//! Both rooms offer the same handful of functions and one type (`Grip`); nothing else in the crate says `cfg`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Grip, confine_self, identity, in_box_of, intercept, kill_individual, kill_tagged, launch, own_executable,
    probe, usage,
};

#[cfg(not(target_os = "linux"))]
mod unsupported;
#[cfg(not(target_os = "linux"))]
pub(crate) use unsupported::{
    Grip, confine_self, identity, in_box_of, intercept, kill_individual, kill_tagged, launch, own_executable,
    probe, usage,
};
