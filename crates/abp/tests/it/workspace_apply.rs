//! Bringing changes back: all of them or none, and never anywhere else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use libtest_mimic::Trial;
use outrigger_abp::workspace::ApplyError;

use crate::workspace_kit::{Bench, sh, shape, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("whatever_is_different_in_the_source_is_named_and_nothing_is_done", conflicts),
        trial("changes_beside_what_the_run_touched_are_no_conflict", beside),
        trial("symlinks_that_lead_out_are_not_brought_back", escapes),
        trial("a_replaced_file_keeps_its_mode_and_its_owner", keeps_mode),
        trial("folders_that_become_empty_go_and_others_stay", folders),
        trial("an_interrupted_attempt_is_named_and_not_run_over", interrupted),
        trial("a_change_is_what_it_was_when_it_was_finished", later_edits),
        trial("applying_twice_is_a_conflict_and_not_a_mess", twice),
    ]
}

const SOURCE: &str = "mkdir d gone-folder; echo a >a; echo b >b; echo x >d/x; echo g >gone-folder/g; ln -s a l; echo r >run; chmod +x run";
const AGENT: &str = "echo A >a; rm b; echo n >new; mkdir deep; echo n >deep/n; rm -r gone-folder; ln -sfn b l; echo R >run; echo f >d/f";

async fn conflicts() {
    let cases: &[(&str, &[&str])] = &[
        ("echo other >a", &["`a` has changed"]),
        ("printf 'a' >a", &["`a` has changed"]),
        ("printf 'a\\nmore' >a", &["`a` has changed"]),
        ("rm a", &["`a` is not there any more"]),
        ("rm a; ln -s b a", &["`a` is something else now"]),
        ("rm a; mkfifo a", &["`a` is something else now"]),
        ("rm a; mkdir a", &["`a` is something else now"]),
        ("chmod +x a", &["`a` has another mode"]),
        ("chmod -x run", &["`run` has another mode"]),
        ("rm l; ln -s d l", &["`l` has changed"]),
        ("echo mine >new", &["`new` is there already"]),
        ("mkdir new; touch new/x", &["`new` is there already"]),
        ("ln -s /nowhere new", &["`new` is there already"]),
        ("echo mine >deep", &["`deep/n` cannot be made, because something that is no folder is in its way"]),
        ("ln -s /tmp deep", &["`deep/n` cannot be made, because something that is no folder is in its way"]),
        ("mv d e; ln -s e d", &["`d/f` cannot be made, because something that is no folder is in its way"]),
        ("echo B >b; rm -r gone-folder", &["`b` has changed", "`gone-folder/g` is not there any more"]),
    ];
    let bench = Bench::new(SOURCE);
    let (_prepared, changes) = bench.run(AGENT).await;
    for (number, (user, wanted)) in cases.iter().enumerate() {
        let source = bench.place().join(format!("source-{number}"));
        sh(bench.place(), &format!("cp -a source {}", source.display()));
        sh(&source, user);
        let before = sh(&source, "find . -printf '%p %i %m %T@\\n' | sort");
        let error = changes.apply(&source).await.unwrap_err();
        assert!(matches!(error, ApplyError::Conflict { .. }), "{user}: {error}");
        let text = error.to_string();
        let lines: Vec<_> = text.lines().skip(1).map(str::trim).collect();
        assert_eq!(lines, *wanted, "{user}");
        assert_eq!(sh(&source, "find . -printf '%p %i %m %T@\\n' | sort"), before, "{user}");
    }
}

async fn beside() {
    let bench = Bench::new(SOURCE);
    let (prepared, changes) = bench.run(AGENT).await;
    sh(&bench.source(), "echo mine >mine; echo mine >d/mine; echo changed >d/x; echo o >gone-folder/other");
    changes.apply(&bench.source()).await.unwrap();
    assert_eq!(
        shape(&bench.source()),
        [
            "a = A",
            "d/",
            "d/f = f",
            "d/mine = mine",
            "d/x = changed",
            "deep/",
            "deep/n = n",
            "gone-folder/",
            "gone-folder/other = o",
            "l -> b",
            "mine = mine",
            "new = n",
            "run* = R",
        ]
    );
    prepared.discard().unwrap();
}

async fn escapes() {
    let bench = Bench::new(SOURCE);
    let before = shape(&bench.source());
    let (_prepared, changes) =
        bench.run("echo A >a; ln -s /etc/passwd p; ln -s ../.. d/up; ln -s ../a d/fine").await;
    let error = changes.apply(&bench.source()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the change makes symlinks that lead out of the tree, so nothing was applied: `d/up`, `p`"
    );
    assert_eq!(shape(&bench.source()), before);
}

async fn keeps_mode() {
    let bench = Bench::new("echo a >a; chmod 640 a; echo b >b; chmod 750 b; echo c >c; chmod 640 c");
    if rustix::process::geteuid().is_root() {
        sh(&bench.source(), "chown 1234:4321 a");
    }
    let before = fs::metadata(bench.source().join("a")).unwrap();
    let (_prepared, changes) = bench.run("echo A >a; echo B >b; chmod +x c; echo n >n").await;
    changes.apply(&bench.source()).await.unwrap();
    let facts = |name: &str| fs::metadata(bench.source().join(name)).unwrap();
    let mode = |name: &str| facts(name).permissions().mode() & 0o777;
    assert_eq!([mode("a"), mode("b"), mode("c")], [0o640, 0o750, 0o750]);
    assert_eq!((facts("a").uid(), facts("a").gid()), (before.uid(), before.gid()));
}

async fn folders() {
    let bench = Bench::new(
        "mkdir -p one/two/three keep/in; echo a >one/two/three/a; echo b >keep/b; echo c >keep/in/c",
    );
    let (_prepared, changes) = bench.run("rm -r one; rm keep/in/c").await;
    changes.apply(&bench.source()).await.unwrap();
    assert_eq!(shape(&bench.source()), ["keep/", "keep/b = b"]);
}

async fn interrupted() {
    let bench = Bench::new(SOURCE);
    let (_prepared, changes) = bench.run(AGENT).await;
    sh(&bench.source(), "mkdir .outrigger-apply-run-1; echo x >.outrigger-apply-run-1/journal");
    let before = shape(&bench.source());
    let error = changes.apply(&bench.source()).await.unwrap_err();
    assert!(
        matches!(&error, ApplyError::Interrupted { folder } if folder.ends_with(".outrigger-apply-run-1")),
        "{error}"
    );
    assert_eq!(shape(&bench.source()), before);
}

async fn later_edits() {
    let bench = Bench::new("echo a >a");
    let (prepared, changes) = bench.run("echo A >a; echo n >n").await;
    sh(prepared.root(), "echo later >a; rm n; echo more >m");
    changes.apply(&bench.source()).await.unwrap();
    assert_eq!(shape(&bench.source()), ["a = A", "n = n"]);
}

async fn twice() {
    let bench = Bench::new(SOURCE);
    let (_prepared, changes) = bench.run(AGENT).await;
    changes.apply(&bench.source()).await.unwrap();
    let once = shape(&bench.source());
    assert!(
        matches!(changes.apply(&bench.source()).await, Err(ApplyError::Conflict { files }) if files.len() == 8)
    );
    assert_eq!(shape(&bench.source()), once);
}
