//! `outrigger js forget`: what is kept goes when it is told to, and never under somebody's hands.

use std::path::PathBuf;

use super::{Bench, ticket_of, walk};
use crate::process::{PATIENCE, Running, wait_until};

#[test]
fn kept_runs_are_forgotten_by_name_and_a_wrong_name_costs_nothing() {
    for store in ["kept", "kept.db"] {
        let bench = Bench::new();
        let script = bench.script("approve()");
        let at = bench.path(store);
        let at = at.to_str().expect("UTF-8");
        let keep =
            || ticket_of(&bench.run(&["--json", "js", "run", &script, "--allow", "approve", "--store", at]));
        let kept = || {
            let listed = bench.run(&["js", "inspect", "--store", at]).stdout;
            listed.lines().map(|line| line[..32].to_owned()).collect::<Vec<_>>()
        };
        let [one, two, three] = [keep(), keep(), keep()];
        let wrong = bench.run(&["js", "forget", &one, "nonsense", "--store", at]);
        assert_eq!((wrong.code(), wrong.stdout.as_str()), (125, ""));
        assert!(wrong.stderr.contains("begins with `nonsense`"), "{}", wrong.stderr);
        assert_eq!(kept().len(), 3);

        let forgotten = bench.run(&["--json", "js", "forget", &one[..12], &one, "--store", at]);
        assert_eq!(forgotten.code(), 0, "{}", forgotten.stderr);
        assert_eq!(forgotten.event("forgotten")["ticket"], one.as_str());
        assert_eq!(forgotten.stdout.lines().count(), 1, "named twice, forgotten once");
        let mut left = [two.clone(), three];
        left.sort_unstable();
        let mut seen = kept();
        seen.sort_unstable();
        assert_eq!(seen, left);
        let gone = bench.run(&["js", "resume", &one, "--answer", "1", "--store", at]);
        assert!(gone.code() == 125 && gone.stderr.contains("no kept run"), "{}", gone.stderr);

        bench.run(&["js", "resume", &two, "--answer", "1", "--store", at]);
        let all = bench.run(&["js", "forget", "--all", "--store", at]);
        assert_eq!(
            (all.code(), all.stdout.lines().count()),
            (0, 2),
            "also those that were used: {}",
            all.stderr
        );
        let none = bench.run(&["js", "forget", "--all", "--store", at]);
        assert_eq!((none.code(), none.stdout.as_str()), (0, ""));
        assert!(none.stderr.contains("nothing to forget"), "{}", none.stderr);
    }
}

#[test]
fn a_run_is_not_forgotten_while_somebody_runs_it() {
    for store in ["kept", "kept.db"] {
        let bench = Bench::new();
        let script = bench.script("approve(); wait(); 'done'");
        let at = bench.path(store);
        let at = at.to_str().expect("UTF-8");
        let parked = ["--json", "js", "run", &script, "--allow", "approve", "--allow", "wait", "--store", at];
        let ticket = ticket_of(&bench.run(&parked));
        let wait = "wait=touch up; while [ ! -e go ]; do sleep 0.05; done; echo 1";
        let args = ["js", "resume", &ticket, "--answer", "1", "--allow", wait, "--store", at];
        let running = Running::start(&mut bench.command(&args));
        wait_until(PATIENCE, || bench.path("up").exists()).expect("the run goes on");

        let refused = bench.run(&["js", "forget", &ticket, "--store", at]);
        assert_eq!((refused.code(), refused.stdout.as_str()), (125, ""));
        assert!(refused.stderr.contains("is being run at this moment"), "{}", refused.stderr);
        let all = bench.run(&["--json", "js", "forget", "--all", "--store", at]);
        assert_eq!(all.code(), 0, "{}", all.stderr);
        let stays = |line: &str| line.starts_with(r#"{"event":"stays""#) && line.contains("running");
        assert_eq!(all.stdout.lines().count(), 2, "the ticket and the run: {}", all.stdout);
        assert!(all.stdout.lines().all(stays), "{}", all.stdout);

        std::fs::write(bench.path("go"), "").expect("the folder can be written");
        let finished = running.finish();
        assert_eq!((finished.code(), finished.stdout.as_str()), (0, "done\n"), "{}", finished.stderr);
    }
}

#[test]
fn what_a_dead_host_left_and_what_was_changed_on_disk_can_be_forgotten() {
    let bench = Bench::new();
    let script = bench.script("wait()");
    let running = Running::start(&mut bench.command(&[
        "js",
        "run",
        &script,
        "--allow",
        "wait=touch up; sleep 1000",
        "--store",
        "kept",
    ]));
    wait_until(PATIENCE, || bench.path("up").exists()).expect("the call is made");
    running.signal("KILL");
    running.finish();
    let run = bench.run(&["--json", "js", "inspect"]).event("unfinished")["run"]
        .as_str()
        .expect("a run")
        .to_owned();
    assert_eq!(bench.run(&["js", "forget", &run]).stdout, format!("forgot {run}\n"));

    let ticket = ticket_of(&bench.run(&["--json", "js", "run", &script, "--allow", "wait"]));
    let file = walk(&bench.path("kept")).into_iter().find(|path| path.to_string_lossy().contains(&ticket));
    std::fs::write(file.expect("the ticket is a file"), "nonsense").expect("it can be written");
    assert_eq!(bench.run(&["js", "forget", &ticket]).stdout, format!("forgot {ticket}\n"));
    assert_eq!(walk(&bench.path("kept")), Vec::<PathBuf>::new(), "not even a lock is left");
}
