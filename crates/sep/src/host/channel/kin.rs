//! Whether a process that connected belongs to the one that was started.

use std::fs;

use outrigger_supervise::tree::Pid;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{PidfdFlags, pidfd_open};

/// How far up the family is followed: wrapper scripts connect by their children.
const GENERATIONS: usize = 8;

/// Whether `peer` is `program`, one of its descendants, or one of those that were left by their parents within its box.
///
/// The process is held by a descriptor meanwhile, so that its number cannot pass to another one while its family is looked
/// at. That it was this process that connected is the kernel's word at the time of the connect; a number that was used again
/// before we looked would have to be used again by a process of the very box that is expected.
pub(super) fn is_kin(peer: Pid, program: Pid) -> bool {
    let Some(number) = i32::try_from(peer.get()).ok().and_then(rustix::process::Pid::from_raw) else {
        return false;
    };
    let Ok(held) = pidfd_open(number, PidfdFlags::empty()) else { return false };
    let related = descends(peer, program) || is_in_box(peer, program);
    // A descriptor of a process that has ended becomes readable.
    let mut ended = [PollFd::new(&held, PollFlags::IN)];
    related && matches!(poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
}

fn descends(peer: Pid, program: Pid) -> bool {
    let mut at = peer;
    for _ in 0..=GENERATIONS {
        if at == program {
            return true;
        }
        match parent(at) {
            Some(next) => at = next,
            None => return false,
        }
    }
    false
}

/// Orphans come to the keeper of the box, which is the parent of the program and has no other one. A program that we started
/// ourselves has no keeper, and its siblings are strangers.
fn is_in_box(peer: Pid, program: Pid) -> bool {
    let keeper = parent(program).filter(|keeper| keeper.get() != std::process::id());
    keeper.is_some_and(|keeper| peer != keeper && descends(peer, keeper))
}

fn parent(of: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{of}/status")).ok()?;
    let number = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    number.trim().parse().ok().filter(|number| *number != 0).map(Pid::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_its_own_kin_and_its_parent_is_not() {
        let own = Pid::new(std::process::id());
        assert!(is_kin(own, own));
        let parent = parent(own).expect("somebody started the tests");
        assert!(is_kin(own, parent), "a child belongs to its parent");
        assert!(!is_kin(parent, own), "a parent does not belong to its child");
    }

    #[test]
    fn a_number_that_no_process_has_is_nobody() {
        assert!(!is_kin(Pid::new(u32::MAX), Pid::new(std::process::id())));
        assert!(!is_kin(Pid::new(0), Pid::new(std::process::id())));
    }
}
