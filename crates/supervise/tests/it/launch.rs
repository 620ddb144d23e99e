//! What a program sees of its start, what the host learns of its end, and every precise way to fail.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use libtest_mimic::Trial;
use outrigger_supervise::launch::{Channels, LaunchError, Launcher, Plan, Signal, Status, Umask, Wiring};
use outrigger_supervise::sandbox::{Contained, Containment, Layer, Level};
use tokio::io::AsyncWriteExt;

use crate::launch_kit::{
    BOTH, PATIENCE, contained, hear, launch, output, plan, read_all, request, shell, tagged, trial, until,
};
use crate::misbehave::hex;

pub(crate) fn trials() -> Vec<Trial> {
    vec![
        trial("exit_codes_and_signals_pass_through_exactly", exit_codes_and_signals),
        trial("the_environment_is_exactly_the_plan", environment),
        trial("arguments_arrive_byte_for_byte", arguments),
        trial("the_program_gets_no_descriptor_but_its_own", descriptors),
        trial("streams_are_wired_as_asked", streams),
        trial("extra_descriptors_are_three_and_four", extra),
    ]
}

async fn exit_codes_and_signals() {
    for containment in BOTH {
        for code in [0, 1, 7, 255] {
            let (_, exit) = output(contained(&["exit", &code.to_string()], containment)).await;
            assert_eq!((exit.status, exit.leftovers, exit.keeper_lost), (Status::Code(code), 0, None));
        }
        for signal in [1, 2, 6, 9, 11, 15, 31] {
            let (_, exit) = output(contained(&["signal", &signal.to_string()], containment)).await;
            assert_eq!(exit.status, Status::Signal(signal));
        }
    }
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
