//! What a program sees of its start, what the host learns of its end, and every precise way to fail.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use libtest_mimic::Trial;
use outrigger_supervise::launch::{Channels, LaunchError, Launcher, Plan, Status, Umask, Wiring};
use outrigger_supervise::sandbox::{Contained, Containment, Layer, Level};
use tokio::io::AsyncWriteExt;

use crate::launch_kit::{
    BOTH, PATIENCE, alone, command, contained, hear, launch, output, plan, read_all, request, shell, tagged,
    trial, until,
};
use crate::misbehave::hex;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("exit_codes_and_signals_pass_through_exactly", exit_codes_and_signals),
        trial("what_the_host_ignores_its_programs_do_not", ignoring_host),
        trial("the_environment_is_exactly_the_plan", environment),
        trial("arguments_arrive_byte_for_byte", arguments),
        alone("the_program_gets_no_descriptor_but_its_own", descriptors),
        trial("streams_are_wired_as_asked", streams),
        trial("extra_descriptors_are_three_and_four", extra),
        trial("one_extra_descriptor_too_many_is_refused", too_many_extra),
        trial("the_program_starts_with_a_clean_slate", clean_slate),
        alone("a_host_that_raised_its_descriptor_limit_does_not_pass_that_on", descriptor_limit),
        trial("the_host_knows_who_the_program_is", identity),
        trial("the_working_directory_and_relative_programs_start_there", working_directory),
        trial("a_bare_name_is_looked_up_on_the_childs_own_path", lookup),
        trial("a_missing_program_lists_where_it_was_looked_for", not_found),
        trial("a_file_that_cannot_be_executed_says_why", not_executable),
        trial("a_missing_interpreter_is_named", bad_interpreter),
        trial("a_bad_working_directory_is_named", bad_cwd),
        alone("a_program_that_is_being_written_is_tried_again_and_then_refused", busy),
        trial("a_megabyte_of_environment_arrives_and_too_much_is_refused", large_environment),
        trial("a_launcher_that_is_none_is_explained", no_launcher),
        alone("a_launch_that_fails_leaves_no_process_and_no_descriptor", no_leak),
        trial("fifty_launches_at_once_do_not_mix_their_pipes", concurrent),
        trial("usage_counts_the_whole_tree", usage),
        trial("the_exit_tells_what_was_used", accounting),
    ]
}

async fn exit_codes_and_signals() {
    for containment in BOTH {
        for code in [0, 1, 7, 255] {
            let (_, exit) = output(contained(&["exit", &code.to_string()], containment)).await;
            assert_eq!((exit.status, exit.leftovers, exit.keeper_lost), (Status::Code(code), 0, None));
        }
        for signal in [1, 2, 6, 9, 15, 31] {
            let (_, exit) = output(contained(&["signal", &signal.to_string()], containment)).await;
            assert_eq!(exit.status, Status::Signal(signal));
        }
        // A real-time signal has no name in any library, but a number.
        let (_, exit) =
            output(Plan { sandbox: request(Level::Basic, containment), ..shell("kill -40 $$") }).await;
        assert_eq!(exit.status, Status::Signal(40));
    }
}

/// `nohup` and `&` make a host ignore signals; the programs it starts must not. The same test, in such a host.
async fn ignoring_host() {
    let ignore = "trap '' HUP INT QUIT USR1 TERM; exec \"$0\" \"$@\"";
    let mut host = command("/bin/sh".as_ref());
    host.args(["-c", ignore]).arg(std::env::current_exe().expect("a path"));
    let ran = host.args(["--exact", "exit_codes_and_signals_pass_through_exactly"]).output().expect("a host");
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success() && said.contains("1 passed"), "{said}");
}

async fn environment() {
    let env = vec![("A".into(), "1".into()), ("B=".into(), "".into())];
    let refused = Launcher::current_exe().launch(Plan { env, ..plan(&["show"]) }, Channels::piped()).await;
    assert!(matches!(refused, Err(LaunchError::InvalidPlan { .. })));

    let odd = OsString::from_vec(vec![0xff, b'=', b'\n']);
    let env = vec![("A".into(), odd.clone()), ("B".into(), "".into())];
    let launched = launch(Plan { env, ..plan(&["show"]) }).await;
    let tag = launched.tag;
    let shown = read_all(launched.stdout).await;
    let mut seen: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("env ")).collect();
    seen.sort_unstable();
    let mut expected = vec![
        format!("{}={}", hex(b"A"), hex(odd.as_encoded_bytes())),
        format!("{}=", hex(b"B")),
        format!("{}={}", hex(b"OUTRIGGER_TREE"), hex(tag.to_string().as_bytes())),
    ];
    expected.sort_unstable();
    assert_eq!(seen, expected);
}

async fn arguments() {
    let odd = OsString::from_vec((1..=255).collect());
    let mut plan = plan(&["show"]);
    plan.args.extend([OsString::new(), odd.clone(), "ü".into()]);
    let (shown, _) = output(plan).await;
    let seen: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("arg ")).collect();
    assert_eq!(seen, ["".to_owned(), hex(odd.as_encoded_bytes()), hex("ü".as_bytes())]);
}

async fn descriptors() {
    // A descriptor that the host forgot to mark close-on-exec must not arrive.
    let (leak, _other) = rustix::pipe::pipe().expect("a pipe");
    assert!(!rustix::io::fcntl_getfd(&leak).expect("flags").contains(rustix::io::FdFlags::CLOEXEC));
    for containment in BOTH {
        let (shown, _) = output(contained(&["show"], containment)).await;
        let mut seen: Vec<&str> = shown.lines().filter_map(|line| line.strip_prefix("fd ")).collect();
        seen.sort_unstable();
        assert_eq!(seen, ["0", "1", "2"]);
    }
}

async fn streams() {
    let mut launched =
        Launcher::current_exe().launch(plan(&["cat"]), Channels::piped()).await.expect("a launch");
    let mut stdin = launched.stdin.take().expect("a pipe");
    stdin.write_all(b"to and fro").await.expect("stdin");
    drop(stdin);
    assert_eq!(read_all(launched.stdout.take()).await, "to and fro");
    assert_eq!(read_all(launched.stderr.take()).await, "10 bytes");

    let file = tempfile::tempfile().expect("a file");
    let channels = Channels {
        stdin: Wiring::Null,
        stdout: Wiring::Fd(file.try_clone().expect("a descriptor").into()),
        stderr: Wiring::Fd(file.try_clone().expect("a descriptor").into()),
        extra: Vec::new(),
    };
    let mut launched = Launcher::current_exe().launch(plan(&["cat"]), channels).await.expect("a launch");
    assert!(launched.stdin.is_none() && launched.stdout.is_none() && launched.stderr.is_none());
    launched.control.wait().await;
    let mut text = String::new();
    std::io::Seek::rewind(&mut &file).expect("rewind");
    std::io::Read::read_to_string(&mut &file, &mut text).expect("the file");
    assert_eq!(text, "0 bytes");
}

async fn extra() {
    for containment in BOTH {
        let (three, to_three) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        let (from_four, four) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).expect("a pipe");
        let extra: Vec<OwnedFd> = vec![three, four];
        rustix::io::write(&to_three, b"shout").expect("a write");
        drop(to_three);
        let channels = Channels { stdin: Wiring::Null, stdout: Wiring::Null, stderr: Wiring::Inherit, extra };
        let plan = contained(&["extra"], containment);
        let mut launched = Launcher::current_exe().launch(plan, channels).await.expect("a launch");
        assert_eq!(launched.control.wait().await.status, Status::Code(0));
        let mut answer = [0; 16];
        let count = rustix::io::read(&from_four, &mut answer).expect("an answer");
        assert_eq!(&answer[..count], b"SHOUT");
    }
}

async fn too_many_extra() {
    for (count, fits) in [(Channels::MAX_EXTRA, true), (Channels::MAX_EXTRA + 1, false)] {
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").expect("/dev/null"));
        let extra = std::iter::repeat_with(null).take(count).collect();
        let channels = Channels { stdin: Wiring::Null, stdout: Wiring::Pipe, stderr: Wiring::Inherit, extra };
        match Launcher::current_exe().launch(plan(&["show"]), channels).await {
            Ok(launched) => {
                assert!(fits);
                let shown = read_all(launched.stdout).await;
                assert_eq!(shown.lines().filter(|line| line.starts_with("fd ")).count(), count + 3);
            }
            Err(LaunchError::InvalidPlan { .. }) => assert!(!fits),
            Err(other) => panic!("{other}"),
        }
    }
}

async fn clean_slate() {
    for (containment, level, privileges) in [
        (Containment::PidNamespace, Level::Off, "NoNewPrivs:0"),
        (Containment::PidNamespace, Level::Basic, "NoNewPrivs:1"),
        (Containment::Subreaper, Level::Basic, "NoNewPrivs:1"),
    ] {
        let plan =
            Plan { umask: Some(Umask(0o027)), sandbox: request(level, containment), ..plan(&["show"]) };
        let (shown, _) = output(plan).await;
        let has = |line: &str| assert!(shown.lines().any(|shown| shown == line), "no {line:?} in:\n{shown}");
        has(privileges);
        has("Umask:0027");
        has("SigBlk:0000000000000000");
        has("CapAmb:0000000000000000");
        has("leads its group true");
        has("own number in /proc true");
        has("cwd /");
    }
    // Rust ignores SIGPIPE in every program of its own, also in the launcher; a child must not inherit that.
    let (ignored, _) = output(shell("grep SigIgn /proc/self/status")).await;
    let ignored = u64::from_str_radix(ignored.trim_start_matches("SigIgn:").trim(), 16).expect("a mask");
    let sigpipe = 1 << (13 - 1);
    assert_eq!(ignored & sigpipe, 0, "{ignored:x}");
}

async fn descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let born = getrlimit(Resource::Nofile);
    let soft = born.current.expect("a limit");
    setrlimit(Resource::Nofile, Rlimit { current: born.maximum, ..born }).expect("raising the soft limit");
    let (shown, _) = output(shell("ulimit -Sn")).await;
    assert_eq!(shown.trim(), soft.to_string());
}

async fn identity() {
    for containment in BOTH {
        let mut launched = launch(contained(&["sleep"], containment)).await;
        let _reader = hear(&mut launched, "ready").await;
        assert_eq!(launched.identity.pid, launched.pid);
        assert!(launched.identity.exists() && launched.launcher.exists());
        let command =
            std::fs::read(format!("/proc/{}/cmdline", launched.pid)).expect("the program's command line");
        assert!(String::from_utf8_lossy(&command).contains("__child\0sleep"), "{command:?}");
        match (containment, &launched.enforced.containment) {
            (Containment::PidNamespace, Contained::PidNamespace { proc_mounted, .. }) => {
                assert_eq!(proc_mounted, &Layer::Applied);
            }
            (Containment::Subreaper, Contained::Subreaper { .. }) => {}
            (asked, got) => panic!("asked for {asked:?}, got {got:?}"),
        }
        launched.control.kill();
        let exit = launched.control.wait().await;
        assert_eq!(exit.status, Status::Signal(9));
        assert_eq!(launched.control.wait().await, exit);
        assert!(!launched.identity.exists() && !launched.launcher.exists());
    }
}

async fn working_directory() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("tool");
    write_script(&script, "#!/bin/sh\npwd\n");
    let cwd = directory.path().canonicalize().expect("a path");
    let (shown, _) =
        output(Plan { program: "./tool".into(), args: Vec::new(), cwd: cwd.clone(), ..plan(&[]) }).await;
    assert_eq!(shown.trim(), cwd.to_str().expect("UTF-8"));
}

async fn lookup() {
    let directory = tempfile::tempdir().expect("a directory");
    let (first, second) = (directory.path().join("a"), directory.path().join("b"));
    for (directory, mode) in [(&first, 0o644), (&second, 0o755)] {
        std::fs::create_dir(directory).expect("a directory");
        write_script(&directory.join("tool"), "#!/bin/sh\necho $0\n");
        std::fs::set_permissions(directory.join("tool"), PermissionsExt::from_mode(mode)).expect("a mode");
    }
    let path = std::env::join_paths([&first, &second]).expect("a PATH");
    let plan =
        Plan { program: "tool".into(), args: Vec::new(), env: vec![("PATH".into(), path)], ..plan(&[]) };
    let (shown, _) = output(plan).await;
    // The first hit is not executable, so the second one it is.
    assert_eq!(shown.trim(), second.join("tool").to_str().expect("UTF-8"));
}

async fn refusal(plan: Plan) -> LaunchError {
    Launcher::current_exe().launch(plan, Channels::piped()).await.map(drop).expect_err("a refusal")
}

async fn not_found() {
    let path = Plan { program: "/no/such/program".into(), ..plan(&[]) };
    let error = refusal(path).await;
    assert_eq!((error.code(), error.is_permanent()), ("program_not_found", true));
    assert_eq!(error.to_string(), "program `/no/such/program` was not found; looked in /no/such/program");

    let env = vec![("PATH".into(), "/bin:/no/dir::/usr/bin".into())];
    let error = refusal(Plan { program: "no-such-tool".into(), env, ..plan(&[]) }).await;
    assert_eq!(error.to_string(), "program `no-such-tool` was not found; looked in /bin, /no/dir, /usr/bin");

    let error = refusal(Plan { program: "sh".into(), ..plan(&[]) }).await;
    assert_eq!(error.to_string(), "program `sh` was not found; looked in nothing: the child's PATH is empty");
}

async fn not_executable() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("data");
    write_script(&file, "no shebang\n");
    let program = |path: &std::path::Path| Plan { program: path.into(), ..plan(&[]) };

    let error = refusal(program(&file)).await;
    assert_eq!((error.code(), error.is_permanent()), ("not_executable", true));
    assert!(
        error.to_string().ends_with("neither a program for this machine nor a script with a `#!` line"),
        "{error}"
    );

    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("a mode");
    let error = refusal(program(&file)).await;
    assert!(
        error
            .to_string()
            .ends_with("no execute permission for this user; if it is a program, chmod +x helps"),
        "{error}"
    );

    let error = refusal(program(directory.path())).await;
    assert!(error.to_string().ends_with("it is a directory"), "{error}");
}

async fn bad_interpreter() {
    let directory = tempfile::tempdir().expect("a directory");
    let script = directory.path().join("script");
    write_script(&script, "#!/no/such/interpreter -x\n");
    let error = refusal(Plan { program: script.clone().into(), ..plan(&[]) }).await;
    let interpreter = "/no/such/interpreter".to_owned();
    assert_eq!(error, LaunchError::BadInterpreter { path: script, interpreter });
}

async fn bad_cwd() {
    for (cwd, reason) in
        [("/no/such/dir", "No such file or directory"), ("/dev/null", "it is not a directory")]
    {
        let error = refusal(Plan { cwd: cwd.into(), ..plan(&["exit", "0"]) }).await;
        assert_eq!(error.code(), "bad_cwd");
        assert!(error.to_string().contains(cwd) && error.to_string().contains(reason), "{error}");
    }
    let error = refusal(Plan { cwd: "relative".into(), ..plan(&["exit", "0"]) }).await;
    assert_eq!(error.code(), "invalid_plan");
}

async fn busy() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("program");
    std::fs::copy("/bin/sh", &program).expect("a copy");
    let writing = std::fs::OpenOptions::new().append(true).open(&program).expect("the copy");
    let plan =
        || Plan { program: program.clone().into(), args: vec!["-c".into(), "exit 5".into()], ..plan(&[]) };
    let begin = std::time::Instant::now();
    let error = refusal(plan()).await;
    assert_eq!(error, LaunchError::Busy { path: program.clone() });
    assert!(!error.is_permanent());
    assert!(begin.elapsed() >= std::time::Duration::from_millis(150), "three pauses of 50 ms");

    // The writer lets go while the launcher is at work: the launch waits and succeeds.
    let let_go = async {
        until("the keeper at work", PATIENCE, keeper_at_work).await;
        drop(writing);
    };
    let ((_, exit), ()) = tokio::join!(output(plan()), let_go);
    assert_eq!(exit.status, Status::Code(5));
}

/// Whether some launcher of this process has come as far as the keeper.
fn keeper_at_work() -> bool {
    let me = std::process::id();
    let Ok(usage) = outrigger_supervise::tree::usage(&[outrigger_supervise::tree::Pid::new(me)]) else {
        return false;
    };
    usage[0].is_some_and(|usage| usage.processes >= 3)
}

async fn large_environment() {
    let value: OsString = "x".repeat(100_000).into();
    let env: Vec<(OsString, OsString)> = (0..12).map(|i| (format!("V{i}").into(), value.clone())).collect();
    let (shown, _) = output(Plan { env, ..plan(&["show"]) }).await;
    assert_eq!(shown.lines().filter(|line| line.len() > 200_000).count(), 12);

    // A single string of more than 128 KiB is over the kernel's limit.
    let env = vec![("V".into(), "x".repeat(200_000).into())];
    let error = refusal(Plan { env, ..plan(&["show"]) }).await;
    assert_eq!(error.code(), "invalid_plan");
}

async fn no_launcher() {
    let error = Launcher::at("/bin/true".into()).launch(subreaper(), Channels::piped()).await.map(drop);
    let error = error.expect_err("a refusal");
    assert_eq!(error.code(), "launcher_died");
    assert!(error.to_string().contains("call `launch::intercept`?"), "{error}");

    let error = Launcher::at("/bin/sh".into()).launch(subreaper(), Channels::piped()).await.map(drop);
    let error = error.expect_err("a refusal");
    assert!(error.to_string().contains("__launch"), "the shell's complaint should be quoted: {error}");

    let error =
        Launcher::at("/no/such/launcher".into()).launch(subreaper(), Channels::piped()).await.map(drop);
    assert!(error.expect_err("a refusal").to_string().contains("starting the launcher failed"));
}

/// A plan that needs no trial of namespaces, which would go through the wrong launcher.
fn subreaper() -> Plan {
    contained(&["exit", "0"], Containment::Subreaper)
}

async fn no_leak() {
    // The first launch starts the thread that stays.
    output(plan(&["exit", "0"])).await;
    let open = || std::fs::read_dir("/proc/self/fd").expect("/proc").count();
    let before = open();
    for containment in BOTH {
        for _ in 0..5 {
            refusal(Plan { program: "/no/such/program".into(), ..contained(&[], containment) }).await;
            output(contained(&["exit", "0"], containment)).await;
        }
    }
    until("closing everything", PATIENCE, || open() <= before).await;
    assert_eq!(zombies(), 0);
}

/// Dead children of this process that nobody reaped.
fn zombies() -> usize {
    let me = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc").expect("/proc").flatten();
    stats
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter_map(|stat| stat.rsplit_once(") ").map(|(_, rest)| rest.to_owned()))
        .filter(|rest| rest.starts_with(&format!("Z {me} ")))
        .count()
}

async fn concurrent() {
    let launches: Vec<_> = (0..50)
        .map(|i| {
            let containment = BOTH[i % 2];
            tokio::spawn(async move {
                let plan = contained(&["cat"], containment);
                let mut launched =
                    Launcher::current_exe().launch(plan, Channels::piped()).await.expect("a launch");
                let mut stdin = launched.stdin.take().expect("a pipe");
                stdin.write_all(i.to_string().as_bytes()).await.expect("stdin");
                // If any other child held a copy of this end, `cat` would never see the end of the file.
                drop(stdin);
                let text = read_all(launched.stdout.take()).await;
                assert_eq!(text, i.to_string());
                assert!(launched.control.wait().await.status.success());
            })
        })
        .collect();
    for launch in launches {
        launch.await.expect("a launch");
    }
}

async fn usage() {
    for containment in BOTH {
        let mut launched = launch(contained(&["bomb", "3"], containment)).await;
        let _reader = hear(&mut launched, "ready").await;
        let tree =
            || outrigger_supervise::tree::usage(&[launched.launcher.pid]).expect("/proc")[0].expect("a tree");
        let keepers = match containment {
            Containment::PidNamespace => 2,
            Containment::Subreaper | Containment::Strongest => 1,
        };
        // Three processes in between have to go first.
        let seen = |processes: u32| {
            tagged(launched.tag).len() == processes as usize && tree().processes == processes
        };
        until("three grandchildren", PATIENCE, || seen(keepers + 1 + 3)).await;
        assert!(tree().rss_bytes > 1024 * 1024);
    }
}

async fn accounting() {
    for containment in BOTH {
        let script = "head -c 50000000 /dev/zero | tail -c 30000000 >/dev/null; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let (_, exit) = output(Plan { sandbox: request(Level::Basic, containment), ..shell(script) }).await;
        assert!(exit.cpu > std::time::Duration::from_millis(5), "{exit:?}");
        // `tail` has to keep its thirty megabytes.
        assert!((28_000_000..200_000_000).contains(&exit.max_rss_bytes), "{exit:?}");
    }
}

fn write_script(path: &std::path::Path, text: &str) {
    std::fs::write(path, text).expect("a script");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("a mode");
}
