//! Reading the process table. Everything here is a snapshot that may be stale when it returns; callers that kill check
//! again under a pidfd.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::OnceLock;

use crate::tree::{Identity, Pid, Usage};

/// One line of the process table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) pid: Pid,
    pub(super) parent: Pid,
    pub(super) group: Pid,
    pub(super) zombie: bool,
    pub(super) start_time: u64,
    rss_pages: u64,
}

/// The whole process table, as far as this process may see it.
pub(super) fn scan() -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    let mut text = Vec::new();
    for directory in fs::read_dir("/proc")? {
        let Some(pid) = directory?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A process that ends between the listing and the reading is simply not there.
        if let Ok(entry) = read_entry(Pid::new(pid), &mut text) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

/// The descendants of `root` in `entries`, `root` itself not included.
pub(super) fn descendants(entries: &[Entry], root: Pid) -> Vec<Entry> {
    let mut children: HashMap<Pid, Vec<Entry>> = HashMap::new();
    for entry in entries {
        children.entry(entry.parent).or_default().push(*entry);
    }
    let mut found = Vec::new();
    let mut open = vec![root];
    while let Some(pid) = open.pop() {
        // Taking the list out guards against a loop in a table that was read while it changed.
        for child in children.remove(&pid).unwrap_or_default() {
            open.push(child.pid);
            found.push(child);
        }
    }
    found
}

/// See [`crate::tree::usage`].
pub(crate) fn usage(roots: &[Pid]) -> io::Result<Vec<Option<Usage>>> {
    let entries = scan()?;
    let page = rustix::param::page_size() as u64;
    let by_pid: HashMap<Pid, &Entry> = entries.iter().map(|entry| (entry.pid, entry)).collect();
    Ok(roots
        .iter()
        .map(|root| {
            let head = by_pid.get(root)?;
            let mut usage = Usage { processes: 0, rss_bytes: 0 };
            for entry in descendants(&entries, *root).iter().chain([*head]).filter(|entry| !entry.zombie) {
                usage.processes += 1;
                usage.rss_bytes += entry.rss_pages * page;
            }
            Some(usage)
        })
        .collect())
}

/// See [`crate::tree::in_box_of`]. The keeper is the program's parent, and has no other program.
pub(crate) fn in_box_of(program: Pid) -> io::Result<Vec<Identity>> {
    let entries = scan()?;
    let Some(keeper) = entries.iter().find(|entry| entry.pid == program).map(|entry| entry.parent) else {
        return Ok(Vec::new());
    };
    let boot_id = boot_id()?;
    let living = descendants(&entries, keeper).into_iter().filter(|entry| !entry.zombie);
    Ok(living
        .map(|entry| Identity { pid: entry.pid, start_time: entry.start_time, boot_id: boot_id.clone() })
        .collect())
}

/// The signals that this process ignores.
pub(super) fn ignored_signals() -> io::Result<Vec<i32>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    Ok((1..=64).filter(|signal| mask & (1 << (signal - 1)) != 0).collect())
}

/// See [`Identity::of`].
pub(crate) fn identity(pid: Pid) -> io::Result<Identity> {
    let entry = read_entry(pid, &mut Vec::new())?;
    Ok(Identity { pid, start_time: entry.start_time, boot_id: boot_id()? })
}

/// Whether the process with this number exists and is not a zombie.
pub(super) fn living(pid: Pid) -> bool {
    read_entry(pid, &mut Vec::new()).is_ok_and(|entry| !entry.zombie)
}

/// The number under which the process behind a pidfd is known here, whatever namespace the pidfd came from.
pub(super) fn pid_of(pidfd: &OwnedFd) -> io::Result<Pid> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", pidfd.as_raw_fd()))?;
    info.lines()
        .find_map(|line| line.strip_prefix("Pid:"))
        .and_then(|number| number.trim().parse().ok())
        .map(Pid::new)
        .ok_or_else(|| io::Error::other("the process is gone or not visible in /proc"))
}

/// The number of this process in the process table that `/proc` shows; inside a pid namespace whose `/proc` is still the
/// outer one that is not `getpid()`.
pub(super) fn own_pid() -> io::Result<Pid> {
    let link = fs::read_link("/proc/self")?;
    let number = link.to_str().and_then(|name| name.parse().ok());
    number.map(Pid::new).ok_or_else(|| io::Error::other("/proc/self is not a number"))
}

fn boot_id() -> io::Result<String> {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(known) = BOOT.get() {
        return Ok(known.clone());
    }
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
    Ok(BOOT.get_or_init(|| id).clone())
}

fn read_entry(pid: Pid, text: &mut Vec<u8>) -> io::Result<Entry> {
    text.clear();
    fs::File::open(format!("/proc/{pid}/stat"))?.read_to_end(text)?;
    parse(pid, text).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat is not in the known form")))
}

/// The second field is the program's name, which may contain blanks and brackets: everything is counted from the last
/// closing bracket.
fn parse(pid: Pid, text: &[u8]) -> Option<Entry> {
    let close = text.iter().rposition(|byte| *byte == b')')?;
    let fields: Vec<&str> =
        std::str::from_utf8(text.get(close + 2..)?).ok()?.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    // Kernel threads and processes of other namespaces have parent and group 0; `-1` never occurs in these fields.
    let process = |field: usize| number(field).and_then(|number| u32::try_from(number).ok()).map(Pid::new);
    Some(Entry {
        pid,
        parent: process(4)?,
        group: process(5)?,
        zombie: matches!(*fields.first()?, "Z" | "X"),
        start_time: number(22)?,
        rss_pages: number(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks_does_not_shift_the_fields() {
        let stat = b"42 (a) R 1 (b) S 7 8 9 0 -1 4194304 1 0 0 0 3 4 5 6 20 0 1 0 777 1000 250 1 2 3";
        let entry = parse(Pid::new(42), stat).unwrap();
        assert_eq!(
            entry,
            Entry {
                pid: Pid::new(42),
                parent: Pid::new(7),
                group: Pid::new(8),
                zombie: false,
                start_time: 777,
                rss_pages: 250
            }
        );
    }

    #[test]
    fn truncated_and_foreign_lines_are_refused() {
        for bad in ["", "42", "42 (x", "42 (x)", "42 (x) S 1", "42 (x) S a b c"] {
            assert_eq!(parse(Pid::new(42), bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn this_process_has_an_identity_that_stays() {
        let me = Pid::new(std::process::id());
        assert_eq!(identity(me).unwrap(), identity(me).unwrap());
        assert_eq!(own_pid().unwrap(), me);
    }

    #[test]
    fn the_usage_of_this_process_is_its_own_and_an_absent_root_is_none() {
        let me = Pid::new(std::process::id());
        let found = usage(&[me, Pid::new(u32::MAX)]).unwrap();
        assert!(found[0].unwrap().processes >= 1);
        assert!(found[0].unwrap().rss_bytes > 100_000);
        assert_eq!(found[1], None);
    }
}
