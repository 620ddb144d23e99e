//! Workspaces as their users see them: what is copied, what is told afterwards, what comes back.

use std::fs;

use libtest_mimic::Trial;
use outrigger_abp::workspace::{AgentRepository, ApplyError, Lines, StageState, Stages, Sweep};

use crate::workspace_kit::{Bench, left_out, name, sh, shape, told, trial};

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("a_staged_tree_is_a_copy_without_what_git_ignores", copied),
        trial("a_root_that_is_no_repository_has_its_ignore_rules_too", rules_without_repository),
        trial("what_is_tracked_is_copied_although_it_is_ignored", tracked_but_ignored),
        trial("a_root_inside_a_repository_obeys_the_rules_above_it", below_the_top),
        trial("a_root_in_an_ignored_folder_is_copied_whole", in_an_ignored_folder),
        trial("include_and_exclude_select_what_is_copied", selected),
        trial("the_result_names_every_kind_of_change_and_the_patch_has_it_all", every_change),
        trial("nothing_changed_is_an_empty_result", nothing_changed),
        trial("new_files_that_the_baseline_ignores_are_counted_and_not_in_the_patch", ignored_new),
        trial("an_agent_cannot_hide_files_with_rules_or_attributes_of_its_own", cannot_hide),
        trial("names_of_any_bytes_come_through_the_patch", odd_names),
        trial("a_staged_tree_is_a_repository_of_its_own_if_wanted", own_repository),
        trial("what_the_agent_does_to_its_repository_does_not_matter", agent_repository_is_its_own),
        trial("a_kept_stage_stays_and_a_discarded_one_is_gone", kept_and_discarded),
        trial("a_stage_inside_its_source_is_not_copied_into_itself", stages_inside),
        trial("in_place_a_receipt_gets_the_status_and_the_difference_with_new_files", in_place),
        trial("in_place_below_the_top_of_a_repository_only_the_root_is_told", in_place_below),
        trial("in_place_without_a_repository_nothing_is_told", in_place_nowhere),
        trial("in_place_nothing_of_the_repository_is_run", in_place_runs_nothing),
        trial("in_place_a_linked_tree_and_a_first_commit_to_come_work", in_place_kinds),
        trial("a_difference_that_is_too_long_is_cut_and_says_so", cut_difference),
    ]
}

async fn copied() {
    let bench = Bench::new(
        "mkdir -p src empty build/deep; echo a >src/a; echo run >src/run; chmod +x src/run; ln -s a src/link; \
         printf 'build/\\n*.log\\n!keep.log\\n' >.gitignore; echo x >build/deep/x; echo l >x.log; echo k >keep.log; init",
    );
    let prepared = bench.prepare().await;
    assert_eq!(
        shape(prepared.root()),
        [
            ".gitignore = build/\n*.log\n!keep.log",
            "empty/",
            "keep.log = k",
            "src/",
            "src/a = a",
            "src/link -> a",
            "src/run* = run",
        ]
    );
    assert_eq!(prepared.left_out(), []);
    assert_eq!(prepared.source(), bench.source().canonicalize().unwrap());
}

async fn rules_without_repository() {
    let bench = Bench::new(
        "mkdir -p a/b; echo '*.o' >.gitignore; echo '!x.o' >a/.gitignore; echo /y >a/b/.gitignore; \
         touch x.o a/x.o a/y a/b/y a/b/z.o",
    );
    let prepared = bench.prepare().await;
    let names: Vec<_> =
        shape(prepared.root()).into_iter().map(|line| line.split(" =").next().unwrap().to_owned()).collect();
    assert_eq!(names, [".gitignore", "a/", "a/.gitignore", "a/b/", "a/b/.gitignore", "a/x.o", "a/y"]);
}

async fn tracked_but_ignored() {
    let bench = Bench::new(
        "mkdir -p out/deep; echo 1 >out/deep/tracked; echo 2 >out/other; echo 3 >t.log; echo 4 >u.log; \
         git init -q .; git add out/deep/tracked t.log; printf 'out/\\n*.log\\n' >.gitignore; git add .gitignore; \
         git commit -qm first",
    );
    let (prepared, changes) = bench.run("echo more >>out/deep/tracked; echo new >out/deep/new").await;
    let lines = shape(prepared.root());
    assert!(lines.contains(&"t.log = 3".to_owned()) && !lines.iter().any(|line| line.starts_with("u.log")));
    assert!(!lines.iter().any(|line| line.starts_with("out/other")));
    assert_eq!(told(&changes), ["modified out/deep/tracked"]);
    assert_eq!(changes.ignored_new, 1);
}

async fn below_the_top() {
    let mut bench = Bench::new(
        "mkdir -p sub/deep; echo '*.tmp' >.gitignore; echo /only-at-top >>.gitignore; echo d >sub/.gitignore; \
         touch sub/x.tmp sub/deep/y.tmp sub/only-at-top sub/deep/f sub/d; init; echo secret >>.git/info/exclude; \
         touch sub/secret",
    );
    bench.request.root.push("sub");
    let (prepared, changes) = bench.run("touch deep/z.tmp deep/w").await;
    assert_eq!(
        shape(prepared.root()),
        [".gitignore = d", "deep/", "deep/f = ", "deep/w = ", "deep/z.tmp = ", "only-at-top = "]
    );
    assert_eq!((told(&changes), changes.ignored_new), (vec!["added deep/w".to_owned()], 1));
}

async fn in_an_ignored_folder() {
    let mut bench = Bench::new("echo work/ >.gitignore; mkdir -p work/x; echo f >work/x/f; init");
    bench.request.root.push("work/x");
    assert_eq!(shape(bench.prepare().await.root()), ["f = f"]);
}

async fn selected() {
    let mut bench = Bench::new(
        "mkdir -p src/deep docs target/d empty; touch src/a.rs src/deep/b.rs src/c.py docs/d.md target/d/e.rs",
    );
    bench.request.include = vec!["*.rs".into(), "docs/**".into()];
    bench.request.exclude = vec!["target".into(), "src/deep/*".into()];
    assert_eq!(shape(bench.prepare().await.root()), ["docs/", "docs/d.md = ", "src/", "src/a.rs = "]);
    bench.request.exclude = vec!["{".into()];
    bench.terms.name = outrigger_abp::workspace::StageName::new("run-2").unwrap();
    let error = bench.try_prepare().await.unwrap_err().to_string();
    assert_eq!(error, r#"the exclude pattern "{": the `{` at byte 0 is never closed"#);
    assert!(!bench.place().join("stages/run-2").exists());
}

const MANY: &str = "mkdir -p d; seq 50 >moved; echo t >text; printf 'a\\000b' >binary; echo g >gone; echo m >mode; \
                    echo k >kind; ln -s text link; echo f >folder-to-be; mkdir file-to-be; echo x >file-to-be/x; echo same >d/same";
const CHANGE_MANY: &str = "git mv moved d/moved; echo 51 >>d/moved; echo u >>text; printf 'a\\000c' >binary; rm gone; \
                           chmod +x mode; rm kind; ln -s text kind; rm link; ln -s d/same link; echo n >new; \
                           printf '\\000\\001' >new-binary; rm folder-to-be; mkdir folder-to-be; echo y >folder-to-be/y; \
                           rm -r file-to-be; echo z >file-to-be; echo s >new-run; chmod +x new-run; mkdir newly-empty";

async fn every_change() {
    let bench = Bench::new(MANY);
    let (prepared, changes) = bench.run(CHANGE_MANY).await;
    assert_eq!(
        told(&changes),
        [
            "modified binary",
            "renamed moved to d/moved",
            "added file-to-be",
            "deleted file-to-be/x",
            "deleted folder-to-be",
            "added folder-to-be/y",
            "deleted gone",
            "type kind",
            "modified link",
            "mode mode",
            "added new",
            "added new-binary",
            "added new-run",
            "modified text",
        ]
    );
    let lines = |path: &str| {
        changes.files.iter().find(|file| file.path.to_string() == path).map(|file| file.lines).unwrap()
    };
    assert_eq!(lines("text"), Lines::Text { added: 1, deleted: 0 });
    assert_eq!(lines("binary"), Lines::Binary);
    let status = &changes.status.as_ref().unwrap().text;
    for line in ["M  text", "D  gone", "R  moved -> d/moved", "A  new", "T  kind"] {
        assert!(status.lines().any(|found| found == line), "{line} is not in\n{status}");
    }
    // Any git can apply it to another copy of the source.
    let patch = changes.patch.as_ref().unwrap();
    assert_eq!(patch.bytes, fs::metadata(&patch.path).unwrap().len());
    assert_eq!(changes.diff.as_ref().unwrap().text, fs::read_to_string(&patch.path).unwrap());
    let other = bench.place().join("other");
    fs::create_dir(&other).unwrap();
    sh(&other, &format!("{MANY}; git init -q .; git apply --whitespace=nowarn {}", patch.path.display()));
    let mut staged = shape(prepared.root());
    staged.retain(|line| line != "newly-empty/");
    assert_eq!(shape(&other), staged);
    // So do we.
    let applied = changes.apply(&bench.source()).await.unwrap();
    assert_eq!(applied.paths.len(), 15);
    assert_eq!(shape(&bench.source()), staged);
    prepared.discard().unwrap();
}

async fn nothing_changed() {
    let bench = Bench::new("echo a >a; init");
    let (_prepared, changes) = bench.run("touch a; mkdir empty").await;
    assert_eq!((told(&changes), &changes.patch, changes.ignored_new), (vec![], &None, 0));
    assert_eq!(changes.status.as_ref().unwrap().text, "");
    assert_eq!(changes.apply(&bench.source()).await.unwrap().paths, []);
}

async fn ignored_new() {
    let bench = Bench::new("printf 'target/\\n*.o\\n' >.gitignore; echo a >a");
    let (_prepared, changes) =
        bench.run("mkdir -p target/x src; touch target/x/1 target/x/2 target/3 src/b.o src/c").await;
    assert_eq!((told(&changes), changes.ignored_new), (vec!["added src/c".to_owned()], 4));
}

async fn cannot_hide() {
    let bench = Bench::new("echo a >a.txt; echo '*.o' >.gitignore; init");
    let (_prepared, changes) = bench
        .run(
            "echo '*' >.gitignore; echo '* -diff -text filter=evil binary' >.gitattributes; echo hidden >hidden.txt; \
             printf 'one\\r\\ntwo\\r\\n' >crlf; echo '*' >.git/info/exclude; git config filter.evil.clean 'echo nothing'; \
             git update-index --assume-unchanged a.txt; echo b >a.txt; mkdir nested; echo n >nested/n; \
             (cd nested; git init -q .; git add n; git commit -qm n); mkdir bare; (cd bare; git init -q .; echo w >w)",
        )
        .await;
    assert_eq!(
        told(&changes),
        [
            "added .gitattributes",
            "modified .gitignore",
            "modified a.txt",
            "added bare/w",
            "added crlf",
            "added hidden.txt",
            "added nested/n",
        ]
    );
    let diff = &changes.diff.as_ref().unwrap().text;
    assert!(diff.contains("+one\r\n+two\r\n") && diff.contains("-a\n+b\n") && !diff.contains("GIT binary"));
}

async fn odd_names() {
    let bench = Bench::new("echo a >a");
    let prepared = bench.prepare().await;
    let long = vec![b'n'; 255];
    let names: [&[u8]; 9] = [
        b"new\nline",
        b"quo\"te",
        b"tab\there",
        b"back\\slash",
        b"\xff\xfe",
        b" space ",
        b":(top)x",
        b"-dash",
        &long,
    ];
    for odd in names {
        fs::write(prepared.root().join(name(odd)), b"x\n").unwrap();
    }
    let changes = prepared.finish().await.unwrap();
    assert_eq!(changes.files.len(), names.len());
    let other = bench.place().join("other");
    fs::create_dir(&other).unwrap();
    sh(
        &other,
        &format!("echo a >a; git init -q .; git apply {}", changes.patch.as_ref().unwrap().path.display()),
    );
    changes.apply(&bench.source()).await.unwrap();
    for odd in names {
        assert_eq!(fs::read(other.join(name(odd))).unwrap(), b"x\n");
        assert_eq!(fs::read(bench.source().join(name(odd))).unwrap(), b"x\n");
    }
    assert_eq!(changes.files.iter().filter(|file| file.path.to_string() == "\\xff\\xfe").count(), 1);
    // And from a source that has them already.
    let again = bench.named(outrigger_abp::workspace::StageName::new("again").unwrap());
    let (prepared, changes) = again.run("rm -- -dash; echo more >>':(top)x'").await;
    assert_eq!(told(&changes), ["deleted -dash", "modified :(top)x"]);
    assert_eq!(fs::read_dir(prepared.root()).unwrap().count(), names.len() + 1);
}

async fn own_repository() {
    let mut bench = Bench::new("mkdir s; echo a >a; echo b >s/b; echo '*.o' >.gitignore; init; git tag v1");
    let prepared = bench.prepare().await;
    assert_eq!(
        sh(prepared.root(), "git status --porcelain; git log --format=%s; git tag; git fsck --strict"),
        "baseline\n"
    );
    sh(prepared.root(), "echo c >>a; git commit -qam second; git gc -q");
    assert_eq!(told(&prepared.finish().await.unwrap()), ["modified a"]);
    prepared.discard().unwrap();
    bench.terms.repository = AgentRepository::None;
    let prepared = bench.prepare().await;
    assert!(!prepared.root().join(".git").exists());
    assert_eq!(told(&prepared.finish().await.unwrap()), [""; 0]);
}

async fn agent_repository_is_its_own() {
    let bench = Bench::new("echo a >a; init");
    for (number, agent) in
        ["rm -rf .git", "rm -rf .git; echo gitdir: /nonexistent >.git", "rm -rf .git; ln -s / .git"]
            .iter()
            .enumerate()
    {
        let name = outrigger_abp::workspace::StageName::new(&format!("r{number}")).unwrap();
        let bench = Bench::new("echo a >a; init").named(name);
        let (_prepared, changes) = bench.run(&format!("{agent}; echo b >a")).await;
        assert_eq!(told(&changes), ["modified a"], "{agent}");
    }
    // The repository of the source is not ours to change.
    let before = sh(&bench.source(), "find .git | sort");
    let (prepared, changes) = bench.run("echo b >a; git commit -qam b").await;
    changes.apply(&bench.source()).await.unwrap();
    prepared.discard().unwrap();
    assert_eq!(sh(&bench.source(), "find .git | sort"), before);
    assert_eq!(sh(&bench.source(), "git status --porcelain"), " M a\n");
}

async fn kept_and_discarded() {
    let bench = Bench::new("echo a >a");
    let (prepared, changes) = bench.run("mkdir closed; echo x >closed/x; chmod 000 closed/x closed").await;
    assert_eq!(told(&changes), ["added closed/x"]);
    let stage = prepared.stage().unwrap().to_owned();
    drop(changes);
    assert_eq!(prepared.keep("the run failed").unwrap().as_ref(), Some(&stage));
    let stages = Stages::of(bench.place().join("stages"));
    let there = stages.sweep(Sweep::Abandoned { for_at_least: std::time::Duration::ZERO }).unwrap().there;
    assert_eq!(there.len(), 1);
    assert_eq!(there[0].state, StageState::Kept { why: "the run failed".into() });
    assert!(stage.join("tree/a").exists() && stage.join("changes.patch").exists());

    let bench = Bench::new("echo a >a");
    let (prepared, _changes) = bench.run("mkdir -p closed/deep; chmod 000 closed/deep closed").await;
    prepared.discard().unwrap();
    assert_eq!(fs::read_dir(bench.place().join("stages")).unwrap().count(), 0);
}

async fn stages_inside() {
    let mut bench = Bench::new("echo a >a; mkdir inner; echo b >inner/b");
    bench.terms.stages = bench.source().join("inner/stages");
    assert_eq!(shape(bench.prepare().await.root()), ["a = a", "inner/", "inner/b = b"]);
}

async fn in_place() {
    let bench = Bench::new(
        "echo a >a; echo b >b; echo '*.o' >.gitignore; mkdir nested; init; (cd nested; echo n >n; init)",
    )
    .in_place();
    let before = sh(&bench.source(), "find .git -type f | sort | xargs sha1sum");
    let prepared = bench.prepare().await;
    assert_eq!((prepared.root(), prepared.stage()), (bench.source().canonicalize().unwrap().as_path(), None));
    sh(prepared.root(), "echo c >>a; rm b; echo new >new; touch x.o; echo m >nested/m");
    let changes = prepared.finish().await.unwrap();
    assert_eq!(changes.note, None);
    let status = changes.status.as_ref().unwrap().text.clone();
    assert_eq!(status, " M a\n D b\n?? nested/\n?? new\n");
    assert_eq!(told(&changes), ["modified a", "deleted b", "added new"]);
    let diff = &changes.diff.as_ref().unwrap().text;
    assert!(diff.contains("\n a\n+c\n") && diff.contains("\n-b\n") && diff.contains("\n+new\n"), "{diff}");
    assert!(changes.patch.is_none());
    assert!(matches!(changes.apply(&bench.source()).await, Err(ApplyError::InPlace)));
    prepared.discard().unwrap();
    assert_eq!(sh(&bench.source(), "find .git -type f | sort | xargs sha1sum"), before);
    assert_eq!(fs::read_dir(bench.place().join("stages")).unwrap().count(), 0);
}

async fn in_place_below() {
    let mut bench = Bench::new("mkdir 's*b' sub; echo a >a; echo b >'s*b/b'; echo c >sub/c; init").in_place();
    bench.request.root.push("s*b");
    let (_prepared, changes) = bench.run("echo x >>../a; echo x >>b; echo x >>../sub/c; echo x >new").await;
    assert_eq!(told(&changes), ["modified s*b/b", "added s*b/new"]);
    assert_eq!(changes.status.unwrap().text, " M s*b/b\n?? s*b/new\n");
}

async fn in_place_nowhere() {
    let bench = Bench::new("echo a >a").in_place();
    let (prepared, changes) = bench.run("echo b >b").await;
    assert_eq!(
        (&changes.status, &changes.diff, &changes.note, changes.files.len()),
        (&None, &None, &None, 0)
    );
    prepared.discard().unwrap();
    assert!(!bench.place().join("stages").exists());
}

async fn in_place_runs_nothing() {
    let bench = Bench::new(
        "echo a >a; echo '* filter=evil diff=evil' >.gitattributes; init; P=\"touch $PWD/../ran;\"; \
         git config core.fsmonitor \"$P false\"; git config filter.evil.clean \"$P cat\"; \
         git config filter.evil.process \"$P false\"; git config diff.evil.textconv \"$P cat\"; \
         git config diff.evil.command \"$P true\"; git config diff.external \"$P true\"; git config core.pager \"$P cat\"; \
         mkdir -p .git/hooks; for hook in post-index-change pre-commit post-checkout; do \
         printf '#!/bin/sh\\n%s\\n' \"$P\" >.git/hooks/$hook; chmod +x .git/hooks/$hook; done",
    )
    .in_place();
    let (_prepared, changes) = bench.run("echo b >a; echo n >new").await;
    assert_eq!(
        (told(&changes), &changes.note),
        (vec!["modified a".to_owned(), "added new".to_owned()], &None)
    );
    assert!(!bench.place().join("ran").exists());
    // The very same repository does run them for a git that believes it, or this test shows nothing.
    let _ = sh(&bench.source(), "git -c core.hooksPath=/dev/null status >/dev/null 2>&1 || true");
    assert!(bench.place().join("ran").exists());
}

async fn in_place_kinds() {
    let mut linked =
        Bench::new("echo a >a; init; git worktree add -q ../linked; git pack-refs --all").in_place();
    linked.request.root = linked.place().join("linked");
    let (_prepared, changes) = linked.run("echo b >a").await;
    assert_eq!((told(&changes), &changes.note), (vec!["modified a".to_owned()], &None));

    let unborn = Bench::new("git init -q .; echo a >a").in_place();
    let (_prepared, changes) = unborn.run("echo b >b").await;
    assert_eq!((told(&changes), &changes.note), (vec!["added a".to_owned(), "added b".to_owned()], &None));

    let sha256 =
        Bench::new("git init -q --object-format=sha256 .; echo a >a; git add a; git commit -qm a").in_place();
    let (_prepared, changes) = sha256.run("echo b >a").await;
    assert_eq!((told(&changes), &changes.note), (vec!["modified a".to_owned()], &None));

    let split = Bench::new("echo a >a; init; git update-index --split-index").in_place();
    let (_prepared, changes) = split.run("echo b >a").await;
    assert_eq!((told(&changes), &changes.note), (vec!["modified a".to_owned()], &None));

    // A `.git` that points to a repository that knows nothing of it.
    let stranger = Bench::new(
        "mkdir secret; cd secret; echo s >s; init; cd ..; mkdir root; echo gitdir: ../secret/.git >root/.git",
    );
    let mut stranger = stranger.in_place();
    stranger.request.root.push("root");
    let (_prepared, changes) = stranger.run("echo b >b").await;
    assert_eq!((&changes.status, &changes.diff), (&None, &None));
}

async fn cut_difference() {
    let mut bench = Bench::new("echo a >a; init");
    let agent = "seq 1000 >a";
    let (prepared, changes) = bench.run(agent).await;
    let whole = changes.diff.as_ref().unwrap().clone();
    prepared.discard().unwrap();
    bench.terms.limits.text_bytes = whole.text.len() as u64;
    let (prepared, changes) = bench.run(agent).await;
    assert_eq!(changes.diff, Some(whole.clone()));
    prepared.discard().unwrap();
    bench.terms.limits.text_bytes -= 1;
    let (prepared, changes) = bench.run(agent).await;
    let cut = changes.diff.as_ref().unwrap();
    assert!(cut.cut_bytes > 0 && cut.text.ends_with(&format!("# cut here: {} more bytes\n", cut.cut_bytes)));
    assert_eq!(changes.patch.as_ref().unwrap().bytes, whole.text.len() as u64);
    prepared.discard().unwrap();
    bench.terms.limits.patch_bytes = whole.text.len() as u64 - 1;
    let prepared = bench.prepare().await;
    sh(prepared.root(), agent);
    let error = prepared.finish().await.unwrap_err().to_string();
    assert!(error.starts_with("the patch has more than"), "{error}");
    assert_eq!(left_out(prepared.left_out()), [""; 0]);
}
