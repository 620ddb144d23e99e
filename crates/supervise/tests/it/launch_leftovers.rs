//! What a crash leaves behind is found by the next host, and nobody else is hurt.

use std::path::Path;
use std::process::Stdio;

use libtest_mimic::Trial;
use outrigger_supervise::launch::TreeTag;
use outrigger_supervise::leftovers::{Killed, Leftovers, Swept};
use outrigger_supervise::sandbox::Containment;
use outrigger_supervise::tree::{Identity, Pid};

use crate::launch_death::{Host, Privilege};
use crate::launch_kit::{PATIENCE, carrying, command, contained, hear, launch, tagged, trial, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_sweep_removes_what_host_and_keeper_left_when_they_were_killed_together", both_killed),
        trial("a_sweep_leaves_a_recycled_number_alone", recycled),
        trial("a_sweep_leaves_the_trees_of_living_hosts_alone", living),
        trial("a_host_that_ends_in_order_leaves_no_notes", in_order),
        trial("a_half_written_note_still_names_its_tree", half_written),
        trial("a_folder_that_was_never_finished_is_removed_when_it_is_old", abandoned_folder),
    ]
}

async fn both_killed() {
    let registry = tempfile::tempdir().expect("a directory");
    let place = tempfile::tempdir().expect("a directory");
    let mut host =
        Host::start(place.path(), Privilege::AsWeAre, Containment::Subreaper, 900, Some(registry.path()));
    host.hear("up");
    until("four processes", PATIENCE, || carrying(&host.mark).len() >= 4).await;
    // A keeper that is stopped cannot sweep when it sees its host go, so both are dead before anybody has cleaned up.
    let keeper = carrying(&host.mark)
        .into_iter()
        .find(|pid| command_line(*pid).contains("__launch"))
        .expect("a keeper");
    crate::launch_death::kill(keeper, rustix::process::Signal::STOP);
    host.child.kill().expect("SIGKILL");
    host.child.wait().expect("the host");
    crate::launch_death::kill(keeper, rustix::process::Signal::KILL);
    until("the orphans", PATIENCE, || carrying(&host.mark).len() == 2).await;

    let mut orphans: Vec<Identity> =
        carrying(&host.mark).into_iter().map(|pid| Identity::of(pid).expect("an orphan")).collect();
    let swept = Leftovers::sweep(registry.path()).expect("a sweep");
    let mut killed: Vec<Identity> = swept.killed.iter().map(|killed| killed.identity.clone()).collect();
    orphans.sort_by_key(|identity| identity.pid);
    killed.sort_by_key(|identity| identity.pid);
    assert_eq!(killed, orphans);
    assert_eq!((swept.dead_hosts, swept.living_hosts), (1, 0));
    assert_eq!(carrying(&host.mark), []);
    assert_eq!(Leftovers::sweep(registry.path()).expect("a sweep"), nothing());
}

async fn recycled() {
    let registry = tempfile::tempdir().expect("a directory");
    let mut innocent =
        command(Path::new("sleep")).arg("1000").stdin(Stdio::null()).spawn().expect("a process");
    let who = Identity::of(Pid::new(innocent.id())).expect("its identity");
    let earlier = Identity { start_time: who.start_time - 1, ..who.clone() };
    let other_boot = Identity { boot_id: "another boot".to_owned(), ..who.clone() };

    crash(registry.path(), TreeTag::random().expect("a tag"), &[earlier, other_boot]);
    let swept = Leftovers::sweep(registry.path()).expect("a sweep");
    assert_eq!(swept, Swept { dead_hosts: 1, strangers: vec![who.clone(), who.clone()], ..nothing() });
    assert_eq!(innocent.try_wait().expect("a look"), None, "the innocent process lives");

    // The same process under its true identity is somebody we know.
    let tag = TreeTag::random().expect("a tag");
    crash(registry.path(), tag, std::slice::from_ref(&who));
    let swept = Leftovers::sweep(registry.path()).expect("a sweep");
    assert_eq!(swept, Swept { dead_hosts: 1, killed: vec![Killed { tag, identity: who }], ..nothing() });
    innocent.wait().expect("its end");
}

async fn living() {
    let registry = tempfile::tempdir().expect("a directory");
    let host = Leftovers::open(registry.path()).expect("a registry");
    let mut launched = launch(contained(&["escape"], Containment::Subreaper)).await;
    let _reader = hear(&mut launched, "ready").await;
    let _note = host.note(&launched).expect("a note");
    assert_eq!(Leftovers::sweep(registry.path()).expect("a sweep"), Swept { living_hosts: 1, ..nothing() });
    assert!(launched.identity.exists());
    assert!(!tagged(launched.tag).is_empty());
}

async fn in_order() {
    let registry = tempfile::tempdir().expect("a directory");
    let host = Leftovers::open(registry.path()).expect("a registry");
    let note = host.note_processes(TreeTag::random().expect("a tag"), &[]).expect("a note");
    drop((note, host));
    assert_eq!(std::fs::read_dir(registry.path()).expect("the registry").count(), 0);
    assert_eq!(Leftovers::sweep(&registry.path().join("absent")).expect("a sweep"), nothing());
}

async fn half_written() {
    let registry = tempfile::tempdir().expect("a directory");
    let mut launched = launch(contained(&["escape"], Containment::Subreaper)).await;
    let _reader = hear(&mut launched, "ready").await;
    crash(registry.path(), launched.tag, &[]);
    let folder =
        std::fs::read_dir(registry.path()).expect("the registry").next().expect("a host").expect("an entry");
    std::fs::write(folder.path().join(launched.tag.to_string()), b"[{\"pid\":12").expect("half a note");

    let swept = Leftovers::sweep(registry.path()).expect("a sweep");
    // How many the sweep gets depends on how fast our own factory notices that the launcher is gone.
    assert!(!swept.killed.is_empty());
    assert!(swept.killed.iter().all(|killed| killed.tag == launched.tag));
    launched.control.wait().await;
    assert_eq!(tagged(launched.tag), []);
}

/// A registry as a host leaves it that was killed.
fn crash(registry: &Path, tag: TreeTag, processes: &[Identity]) {
    let host = Leftovers::open(registry).expect("a registry");
    let note = host.note_processes(tag, processes).expect("a note");
    // Neither is struck out; the lock goes with the descriptor.
    std::mem::forget(note);
    drop(host);
}

fn nothing() -> Swept {
    Swept { living_hosts: 0, dead_hosts: 0, killed: Vec::new(), strangers: Vec::new() }
}

fn command_line(pid: Pid) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()).into_owned()
}

async fn abandoned_folder() {
    let registry = tempfile::tempdir().expect("a folder");
    let (old, new) = (registry.path().join(".old"), registry.path().join(".new"));
    for folder in [&old, &new] {
        std::fs::create_dir(folder).expect("a folder");
        std::fs::write(folder.join("lock"), "").expect("a file");
    }
    let hour_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::open(&old).and_then(|folder| folder.set_modified(hour_ago)).expect("a time");
    Leftovers::sweep(registry.path()).expect("a sweep");
    assert!(!old.exists() && new.exists());
}
