//! The launcher that is started ahead: used when it fits, replaced, never in the way.

use libtest_mimic::Trial;
use outrigger_supervise::launch::{Launched, Launcher, Status};
use outrigger_supervise::tree::Pid;

use crate::launch_death::kill;
use crate::launch_kit::{PATIENCE, alone, listening, plan, read_all, shell, until};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        alone("a_spare_launcher_is_used_for_the_next_child_and_replaced", used_and_replaced),
        alone("a_spare_that_was_killed_is_no_fault_of_the_next_child", killed_spare),
        alone("a_host_that_wants_no_spare_has_none", no_spare),
    ]
}

async fn warm(script: &str) -> Launched {
    Launcher::current_exe().with_spare().launch(shell(script), listening()).await.expect("a launch")
}

async fn used_and_replaced() {
    let mut first = warm("echo first").await;
    assert_eq!(read_all(first.stdout.take()).await, "first\n");
    assert_eq!(first.control.wait().await.status, Status::Code(0));
    let mut spare = the_spare().await;
    for round in 0..5 {
        let mut next = warm(&format!("echo {round}; exit {round}")).await;
        assert_eq!(next.launcher.pid, spare, "the spare is taken");
        assert_eq!(read_all(next.stdout.take()).await, format!("{round}\n"));
        assert_eq!(next.control.wait().await.status, Status::Code(round));
        let replaced = the_spare().await;
        assert_ne!(replaced, spare);
        spare = replaced;
    }
}

async fn killed_spare() {
    warm("true").await.control.wait().await;
    let spare = the_spare().await;
    kill(spare, rustix::process::Signal::KILL);
    until("the end of the spare", PATIENCE, || children().is_empty()).await;
    let mut next = warm("echo fine").await;
    assert_eq!(read_all(next.stdout.take()).await, "fine\n");
    assert_eq!(next.control.wait().await.status, Status::Code(0));
}

async fn no_spare() {
    let mut launched =
        Launcher::current_exe().launch(plan(&["exit", "0"]), listening()).await.expect("a launch");
    launched.control.wait().await;
    assert_eq!(children(), []);
}

/// Waits for the spare, which is our only child while nothing else runs.
async fn the_spare() -> Pid {
    until("a spare", PATIENCE, || children().len() == 1).await;
    children()[0]
}

/// Our own children, zombies included.
fn children() -> Vec<Pid> {
    let parent = format!(" {} ", std::process::id());
    let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.len() > 2 && rest[2..].starts_with(&parent))
        })
        .map(Pid::new)
        .collect()
}
