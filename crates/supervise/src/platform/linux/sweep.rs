//! Killing every process of a tree when no pid namespace does it for us.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, Signal};

use super::procfs::{self, Entry};
use crate::launch::{TREE_VARIABLE, TreeTag};
use crate::tree::{Identity, Pid};

/// One pass of SIGKILL over all descendants of this process.
///
/// Whole process groups are killed at once, because the kernel does that atomically against forks; then every process
/// singly, for those that moved into our own group. Groups of our descendants have no foreign members: a group never
/// crosses a session, and every session below us was begun below us.
pub(super) fn descendants() -> io::Result<()> {
    let entries = procfs::scan()?;
    let me = procfs::own_pid()?;
    let own_group = entries.iter().find(|entry| entry.pid == me).map(|entry| entry.group);
    // Those that look like zombies too: a process whose first thread has ended while others run looks like one.
    let found = procfs::descendants(&entries, me);
    let groups: HashSet<Pid> = found.iter().map(|entry| entry.group).collect();
    for group in groups.into_iter().filter(|group| Some(*group) != own_group && group.get() > 1) {
        if let Ok(group) = super::raw(group) {
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
    }
    for entry in found {
        kill_entry(entry);
    }
    Ok(())
}

/// How many living descendants this process has.
pub(super) fn count() -> io::Result<u32> {
    let entries = procfs::scan()?;
    let living = procfs::descendants(&entries, procfs::own_pid()?);
    let living = living.iter().filter(|entry| !entry.zombie).count();
    Ok(u32::try_from(living).unwrap_or(u32::MAX))
}

/// Kills every process whose environment carries one of the tags, until a pass finds none or a second is over. Returns
/// those that were killed. This process itself is never one of them.
pub(crate) fn kill_tagged(tags: &HashSet<TreeTag>) -> Vec<(TreeTag, Identity)> {
    let deadline = Instant::now() + Duration::from_secs(1);
    let me = Pid::new(std::process::id());
    let mut killed: Vec<(TreeTag, Identity)> = Vec::new();
    loop {
        let mut found = false;
        for entry in procfs::scan().unwrap_or_default() {
            let Some(tag) = tag_of(entry).filter(|tag| tags.contains(tag) && entry.pid != me) else {
                continue;
            };
            found = true;
            if let Ok(identity) = procfs::identity(entry.pid)
                && identity.start_time == entry.start_time
                && kill_individual(&identity)
                && !killed.contains(&(tag, identity.clone()))
            {
                killed.push((tag, identity));
            }
        }
        if !found || Instant::now() > deadline {
            return killed;
        }
        // Killed processes need a moment to go, and there is no event for a process that is not our child.
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Kills this very process, if it still exists: a pidfd is opened first and the identity compared afterwards, so that a
/// recycled number is never hit. Whether somebody living was hit.
pub(crate) fn kill_individual(identity: &Identity) -> bool {
    let Ok(pid) = super::raw(identity.pid) else { return false };
    let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return false };
    if !identity.exists() {
        return false;
    }
    // A dead process that nobody has reaped takes signals without complaint.
    let living = procfs::living(identity.pid);
    rustix::process::pidfd_send_signal(&pidfd, Signal::KILL).is_ok() && living
}

/// The tag the process was started with. None as well when we may not look.
fn tag_of(entry: Entry) -> Option<TreeTag> {
    if entry.zombie {
        return None;
    }
    let environment = fs::read(format!("/proc/{}/environ", entry.pid)).ok()?;
    let prefix = [TREE_VARIABLE.as_bytes(), b"="].concat();
    let value =
        environment.split(|byte| *byte == 0).find_map(|variable| variable.strip_prefix(prefix.as_slice()))?;
    std::str::from_utf8(value).ok()?.parse().ok()
}

fn kill_entry(entry: Entry) {
    let Ok(pid) = super::raw(entry.pid) else { return };
    let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else { return };
    if procfs::identity(entry.pid).is_ok_and(|now| now.start_time == entry.start_time) {
        let _ = rustix::process::pidfd_send_signal(&pidfd, Signal::KILL);
    }
}
