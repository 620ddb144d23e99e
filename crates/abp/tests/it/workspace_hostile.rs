//! Sources and agents that do everything to make a workspace copy, show or overwrite what it must not.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_abp::workspace::{FinishError, GitError, PrepareError, ScanError, prepare};

use crate::host_kit::alone;
use crate::workspace_kit::{Bench, left_out, sh, shape, supervisor, told, trial};

pub(crate) fn trials() -> Vec<Trial> {
    let named = |what: &str, case: &str| format!("{what}__{}", case.replace(' ', "_"));
    let sources = SOURCES.iter().map(|case| {
        trial(&named("a_hostile_source_is_copied_without_its_poison", case.0), move || source(case))
    });
    let agents = AGENTS
        .iter()
        .map(|case| trial(&named("what_a_hostile_agent_did_is_told", case.0), move || agent(case)));
    let others = vec![
        trial("a_socket_is_left_out", sockets),
        alone("an_unreadable_file_or_folder_is_left_out_and_named", unreadable),
        trial("as_many_files_as_may_be_are_copied_and_one_more_is_refused", too_many),
        trial("as_many_bytes_as_may_be_are_copied_and_one_more_is_refused", too_large),
        trial("a_sparse_file_stays_sparse", sparse),
        trial("a_file_that_never_stops_changing_is_refused_by_name", changing),
        trial("a_folder_that_flips_to_a_symlink_never_leads_us_out", flipping),
        trial("a_stage_that_the_agent_replaced_is_refused", replaced),
        trial("a_root_that_is_none_is_refused", no_root),
        trial("without_git_the_error_says_what_to_do", no_git),
        trial("a_git_that_takes_too_long_is_killed", late_git),
        trial("a_preparation_that_nobody_waits_for_leaves_nothing", cancelled),
        trial("ignore_rules_of_an_absurd_size_are_refused", huge_rules),
    ];
    sources.chain(agents).chain(others).collect()
}

/// A source, what is copied of it, and what is left out.
type Source = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const SOURCES: &[Source] = &[
    (
        "symlinks that leave",
        "ln -s /etc abs; ln -s .. up; mkdir d; ln -s ../.. d/up; ln -s ../ok d/fine; ln -s d/../../x d/sly; echo o >ok",
        &["d/", "d/fine -> ../ok", "ok = o"],
        &["Escapes abs", "Escapes d/sly", "Escapes d/up", "Escapes up"],
    ),
    ("a .git that points elsewhere", "echo 'gitdir: /etc' >.git; echo a >a", &["a = a"], &[]),
    (
        "repositories in repositories",
        "echo a >a; init; mkdir -p n/m; cd n; echo n >n; echo '*.o' >.gitignore; touch x.o; init; cd m; echo m >m; init",
        &["a = a", "n/", "n/.gitignore = *.o", "n/m/", "n/m/m = m", "n/n = n"],
        &[],
    ),
    (
        "a submodule",
        "mkdir ../lib; cd ../lib; echo l >l; init; cd ../source; echo a >a; init; \
         git -c protocol.file.allow=always submodule -q add ../lib sub; git commit -qm sub",
        &[".gitmodules = [submodule \"sub\"]\n\tpath = sub\n\turl = ../", "a = a", "sub/", "sub/l = l"],
        &[],
    ),
    ("a pipe", "mkfifo p; echo a >a", &["a = a"], &["Special p"]),
    ("a device that is a symlink", "ln -s /dev/zero z; echo a >a", &["a = a"], &["Escapes z"]),
    (
        "twins that differ in case",
        "echo 1 >Read; echo 2 >READ; echo 3 >read",
        &["READ = 2", "Read = 1", "read = 3"],
        &[],
    ),
    (
        "names that git keeps",
        "mkdir .GIT .Git; echo x >.GIT/config; echo a >a; mkdir d; echo g >d/.gIt; echo n >git~1",
        &["a = a", "d/", "git~1 = n"],
        &["Reserved .GIT", "Reserved .Git", "Reserved d/.gIt"],
    ),
    (
        "rules that are no file of rules",
        "mkdir .gitignore d; ln -s /etc/passwd d/.gitignore; echo a >a; mkdir e; mkfifo e/.gitignore",
        &[".gitignore/", "a = a", "d/", "e/"],
        &["Escapes d/.gitignore", "Special e/.gitignore"],
    ),
    (
        "attributes that change bytes",
        "echo '* text eol=crlf ident working-tree-encoding=UTF-16 filter=lfs' >.gitattributes; \
         printf '$Id$\\none\\n' >a",
        &[".gitattributes = * text eol=crlf ident working-tree-encod", "a = $Id$\none"],
        &[],
    ),
    ("hard links", "echo a >a; ln a b", &["a = a", "b = a"], &[]),
    (
        "an apply that was interrupted",
        "echo a >a; mkdir .outrigger-apply-x; echo old >.outrigger-apply-x/o0",
        &["a = a"],
        &["Reserved .outrigger-apply-x"],
    ),
];

async fn source((_, script, copied, left): &Source) {
    let bench = Bench::new(script);
    let prepared = bench.prepare().await;
    assert_eq!(shape(prepared.root()), *copied);
    assert_eq!(left_out(prepared.left_out()), *left);
    let changes = prepared.finish().await.unwrap();
    assert_eq!(told(&changes), [""; 0]);
    assert_eq!(left_out(&changes.unrecorded), [""; 0]);
}

/// What an agent does to `a`, `d/x` and `d/y`, and what is told of it.
type Agent = (&'static str, &'static str, &'static [&'static str], &'static [&'static str]);

const AGENTS: &[Agent] = &[
    (
        "a folder becomes a symlink to /",
        "rm -r d; ln -s / d",
        &["added d", "deleted d/x", "deleted d/y"],
        &[],
    ),
    ("a file becomes a folder", "rm a; mkdir a; echo b >a/b", &["deleted a", "added a/b"], &[]),
    ("a symlink to a secret", "ln -s /etc/shadow s", &["added s"], &[]),
    ("a pipe in place of a file", "rm a; mkfifo a", &["deleted a"], &["Special a"]),
    ("closed files and folders", "echo n >d/n; chmod 000 a d/x d/n d", &["added d/n"], &[]),
    (
        "a folder that git calls its own",
        "mkdir .GIT; echo x >.GIT/x; mkdir d/.Git",
        &[],
        &["Reserved .GIT", "Reserved d/.Git"],
    ),
    ("a symlink that git calls its own", "ln -s a .gitmodules", &[], &["Reserved .gitmodules"]),
    ("a repository around a folder", "cd d; git init -q .; echo z >x", &["modified d/x"], &[]),
    (
        "a broken repository around a folder",
        "echo gitdir: nowhere >d/.git; echo z >x; echo z >d/x",
        &["modified d/x", "added x"],
        &[],
    ),
    ("times that lie", "T=$(stat -c %Y a); echo Z >a; touch -d @$T a", &["modified a"], &[]),
    ("everything is gone", "rm -rf a d .git", &["deleted a", "deleted d/x", "deleted d/y"], &[]),
    (
        "a tower of folders",
        "P=.; for i in $(seq 120); do P=$P/t; done; mkdir -p $P; echo f >$P/f; echo n >n",
        &["added n"],
        &[
            "TooDeep t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t/t",
        ],
    ),
];

async fn agent((_, script, files, unrecorded): &Agent) {
    let bench = Bench::new("mkdir d; echo a >a; echo x >d/x; seq 9 >d/y; init");
    let (prepared, changes) = bench.run(script).await;
    assert_eq!(told(&changes), *files);
    assert_eq!(left_out(&changes.unrecorded), *unrecorded);
    prepared.discard().unwrap();
}

async fn sockets() {
    let bench = Bench::new("echo a >a");
    let _socket = UnixListener::bind(bench.source().join("s")).unwrap();
    let prepared = bench.prepare().await;
    assert_eq!(left_out(prepared.left_out()), ["Special s"]);
}

/// Root may read everything, so the whole test is done by a thread that is nobody, and by what it starts: in a process of
/// its own, because children are started by a thread that all tests share.
async fn unreadable() {
    let bench = Bench::new("echo a >a; mkdir closed; echo b >closed/b; echo c >c; chmod 000 closed c");
    let place = bench.place().to_owned();
    if rustix::process::geteuid().is_root() {
        sh(&place, "chmod 755 .; chown -R 65534:65534 source; chmod 777 .");
    }
    let work = std::thread::spawn(move || {
        if rustix::process::geteuid().is_root() {
            let nobody = rustix::fs::Uid::from_raw(65534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let prepared = bench.prepare().await;
            assert_eq!(left_out(prepared.left_out()), ["Unreadable c", "Unreadable closed"]);
            assert_eq!(shape(prepared.root()), ["a = a", "closed/"]);
            let changes = prepared.finish().await.unwrap();
            assert_eq!(told(&changes), [""; 0]);
            prepared.discard().unwrap();
        });
    });
    work.join().unwrap();
    sh(&place, "chmod 755 source/closed");
}

async fn too_many() {
    let mut bench = Bench::new("mkdir d; touch a d/b d/c");
    bench.terms.limits.entries = 4;
    bench.prepare().await.discard().unwrap();
    bench.terms.limits.entries = 3;
    let error = bench.try_prepare().await.unwrap_err();
    assert!(matches!(error, PrepareError::Scan(ScanError::TooMany { limit: 3, .. })), "{error}");
    assert!(error.to_string().ends_with("leave some out with --exclude, or work --in-place"));
    assert_eq!(fs::read_dir(bench.place().join("stages")).unwrap().count(), 0);
    bench.request.exclude = vec!["d/c".into()];
    bench.prepare().await.discard().unwrap();
}

async fn too_large() {
    let mut bench = Bench::new("head -c 1000 /dev/zero >a; head -c 24 /dev/zero >b");
    bench.terms.limits.bytes = 1024;
    let prepared = bench.prepare().await;
    // The same limit holds for what a run leaves.
    sh(prepared.root(), "echo >>b");
    let error = prepared.finish().await.unwrap_err();
    assert!(matches!(error, FinishError::Scan(ScanError::TooLarge { limit: 1024, .. })), "{error}");
    prepared.discard().unwrap();
    bench.terms.limits.bytes = 1023;
    let error = bench.try_prepare().await.unwrap_err();
    assert!(matches!(error, PrepareError::Scan(ScanError::TooLarge { limit: 1023, .. })), "{error}");
    // What a file claims counts, not what it takes: everything is read once.
    sh(&bench.source(), "truncate -s 100G huge");
    bench.terms.limits = outrigger_abp::workspace::Limits::usual();
    let error = bench.try_prepare().await.unwrap_err();
    assert!(error.to_string().contains("`huge` included"), "{error}");
}

async fn sparse() {
    let bench = Bench::new(
        "truncate -s 64M holes; printf end >>holes; printf x | dd of=holes bs=1 seek=33554432 conv=notrunc 2>/dev/null",
    );
    let prepared = bench.prepare().await;
    let copy = fs::metadata(prepared.root().join("holes")).unwrap();
    assert_eq!(copy.len(), (64 << 20) + 3);
    assert!(copy.blocks() * 512 < 1 << 20, "{} blocks", copy.blocks());
    sh(prepared.root(), &format!("cmp holes {}", bench.source().join("holes").display()));
}

async fn changing() {
    let bench = Bench::new("head -c 300000 /dev/zero >busy; echo a >a");
    let stop = Arc::new(AtomicBool::new(false));
    let (path, flag) = (bench.source().join("busy"), Arc::clone(&stop));
    let writer = std::thread::spawn(move || {
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        while !flag.load(Ordering::Relaxed) {
            std::os::unix::fs::FileExt::write_at(&file, b"x", 0).unwrap();
        }
    });
    // Times of files have the grain of a clock tick, so one attempt may see nothing; every one cannot.
    let mut outcomes = Vec::new();
    for _ in 0..20 {
        match bench.try_prepare().await {
            Ok(prepared) => prepared.discard().unwrap(),
            Err(error) => outcomes.push(error.to_string()),
        }
        if !outcomes.is_empty() {
            break;
        }
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().unwrap();
    assert_eq!(
        outcomes,
        ["`busy` changed while it was copied; stop what is writing it, or leave it out with --exclude"]
    );
}

/// Somebody exchanges a folder and a symlink to a place with a secret as fast as he can. Whatever we get, it is no secret.
async fn flipping() {
    let bench = Bench::new("mkdir d ../secret; echo fine >d/f; echo secret >../secret/f; ln -s ../secret l");
    let stop = Arc::new(AtomicBool::new(false));
    let (source, flag) = (bench.source(), Arc::clone(&stop));
    let flipper = std::thread::spawn(move || {
        let folder = fs::File::open(&source).unwrap();
        let mut flips = 0_u64;
        while !flag.load(Ordering::Relaxed) {
            rustix::fs::renameat_with(&folder, "d", &folder, "l", rustix::fs::RenameFlags::EXCHANGE).unwrap();
            flips += 1;
        }
        flips
    });
    for _ in 0..5 {
        if let Ok(prepared) = bench.try_prepare().await {
            for path in ["d/f", "l/f"] {
                let content = fs::read_to_string(prepared.root().join(path)).unwrap_or_default();
                assert_ne!(content.trim(), "secret");
            }
            prepared.discard().unwrap();
        }
    }
    stop.store(true, Ordering::Relaxed);
    assert!(flipper.join().unwrap() > 1000);
}

async fn replaced() {
    for agent in ["rm -rf ../tree; ln -s / ../tree", "rm -rf ../tree; mkdir ../tree", "rm -rf ../tree"] {
        let bench = Bench::new("echo a >a");
        let prepared = bench.prepare().await;
        sh(prepared.root(), agent);
        let error = prepared.finish().await.unwrap_err();
        assert!(matches!(error, FinishError::Replaced { .. }), "{agent}: {error}");
    }
}

async fn no_root() {
    let mut bench = Bench::new("echo a >file");
    for (root, why) in [("file", "not a directory"), ("nothing", "No such file or directory (os error 2)")] {
        bench.request.root = bench.place().join("source").join(root);
        let error = bench.try_prepare().await.unwrap_err().to_string();
        assert!(error.ends_with(&format!("{root}` cannot be used: {why}")), "{error}");
    }
    assert!(!bench.place().join("stages").exists());
}

/// The path of the host is what it is, so a git is hidden from a child of ours by a file of that name that is no program.
async fn no_git() {
    assert_eq!(
        GitError::Missing.to_string(),
        "the program `git` was not found on the PATH; staged workspaces need it (Debian: `apt install git`), or work in place"
    );
    let bench = Bench::new("echo a >a");
    let exe = std::env::current_exe().unwrap();
    let script = format!("PATH=/nonexistent {} __stage {}", exe.display(), bench.source().display());
    let said = sh(bench.place(), &script);
    assert_eq!(said.trim(), GitError::Missing.to_string());
    assert_eq!(fs::read_dir(bench.place().join("staged-by-child")).unwrap().count(), 0);
}

/// Stages a folder in a process of its own, and prints what became of it.
#[expect(clippy::print_stdout, reason = "a child that tells its test what happened")]
pub(crate) fn stage(args: &[String]) -> std::process::ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let bench = Bench::new(":");
    let (mut request, mut terms) = (bench.request.clone(), bench.terms.clone());
    request.root = args[0].clone().into();
    terms.stages = request.root.parent().unwrap().join("staged-by-child");
    let result = runtime.block_on(prepare(&supervisor(), &request, &terms));
    match result {
        Ok(_) => println!("staged"),
        Err(error) => println!("{error}"),
    }
    std::process::ExitCode::SUCCESS
}

async fn late_git() {
    let mut bench = Bench::new("echo a >a");
    bench.terms.limits.git_within = Duration::ZERO;
    let error = bench.try_prepare().await.unwrap_err();
    assert!(error.to_string().ends_with("took more than 0 s and was killed"), "{error}");
    assert_eq!(fs::read_dir(bench.place().join("stages")).unwrap().count(), 0);
}

async fn cancelled() {
    let bench = Bench::new("echo a >a");
    {
        let mut work = std::pin::pin!(bench.try_prepare());
        // As far as it goes without waiting: the stage is made then.
        let polled =
            std::future::poll_fn(|context| std::task::Poll::Ready(work.as_mut().poll(context).is_pending()));
        assert!(polled.await);
        assert!(bench.place().join("stages/run-1").exists());
    }
    assert!(!bench.place().join("stages/run-1").exists());
}

async fn huge_rules() {
    let bench = Bench::new("mkdir d; head -c 1048576 /dev/zero | tr '\\0' '#' >d/.gitignore; echo a >a");
    bench.prepare().await.discard().unwrap();
    sh(&bench.source(), "printf '#' >>d/.gitignore");
    let error = bench.try_prepare().await.unwrap_err().to_string();
    assert_eq!(error, "`d/.gitignore` has more than 1048576 bytes, which are no ignore rules");
}
