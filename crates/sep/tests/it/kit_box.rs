//! The extensions that ship in the strictest box there is: no sockets but the one they were born with, no second process, no
//! file that was not granted.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_sep::reference::{Draft, Program};
use outrigger_supervise::launch::{Channels, Launcher, Plan, Status, Wiring};
use outrigger_supervise::sandbox::{Level, Limits, Processes, Request};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::kit_host::{PATIENCE, hello};

const MIB: u64 = 1 << 20;

/// All of them.
pub(crate) fn trials() -> Vec<Trial> {
    trials![
        the_auto_reply_works_in_a_strict_box,
        the_auto_reply_in_python_works_in_a_strict_box,
        an_extension_in_a_strict_box_gets_out_in_no_way,
    ]
}

fn the_auto_reply_works_in_a_strict_box() {
    let place = tempfile::tempdir().expect("a folder");
    let program = std::env::current_exe().expect("this binary");
    let program = Program::Own { file: &program, args: &["__extension", "autoreply"] };
    let folder = Draft::autoreply().install(place.path(), program).expect("a folder");
    answers_a_message(place.path(), &folder, folder.join("extension"), &["__extension", "autoreply"]);
}

fn the_auto_reply_in_python_works_in_a_strict_box() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = Draft::autoreply_python().install(place.path(), Program::PYTHON).expect("a folder");
    // Where distributions have it: a box lets nothing be read that lies in somebody's home.
    answers_a_message(place.path(), &folder, "/usr/bin/python3".into(), &["-B", "main.py"]);
}

/// Begins a session, sends an event, sees the reply, looks for what was kept, says goodbye.
fn answers_a_message(place: &Path, folder: &Path, program: PathBuf, args: &[&str]) {
    let data = place.join("data");
    std::fs::create_dir(&data).expect("a folder");
    let mut hello = hello(&["1.1.0", "1.0.0"], "by hand");
    hello["extension"]["dataDir"] = json!(data);
    let (said, status) =
        boxed(place, folder, program, args, move |line, turn| match line["method"].as_str() {
            Some("host.attach") => vec![
                json!({"jsonrpc": "2.0", "id": line["id"], "result": {"session": "s"}}),
                json!({"jsonrpc": "2.0", "id": "hello", "method": "sep.initialize", "params": hello}),
            ],
            Some("host.log") if *turn == 0 => {
                *turn = 1;
                vec![json!({"jsonrpc": "2.0", "id": "event", "method": "sep.event", "params": {
                    "seq": 1, "topic": "message.received", "timeMs": 1, "data": crate::kit::message("01"),
                }})]
            }
            Some(method) if line.get("id").is_some() => {
                let result = match method {
                    "host.messages.send" => {
                        json!({"messageHash": "cc".repeat(32), "state": "outbound", "deduplicated": false})
                    }
                    "host.messages.list" => json!({"messages": [], "nextCursor": null}),
                    "host.contacts.list" => json!({"contacts": [], "nextCursor": null}),
                    "host.notifications.toast" => json!({"shown": true}),
                    _ => json!({"panelKey": "x/stats"}),
                };
                vec![json!({"jsonrpc": "2.0", "id": line["id"], "result": result})]
            }
            None if line["id"] == "event" => {
                assert_eq!(line["result"], json!({}));
                let bye = json!({"reason": "stop", "deadlineMs": 3000});
                vec![json!({"jsonrpc": "2.0", "id": "bye", "method": "sep.shutdown", "params": bye})]
            }
            _ => Vec::new(),
        });
    assert_eq!(status, Status::Code(0), "{said}");
    let kept = std::fs::read_to_string(data.join("autoreply.json")).expect("it may write there");
    let kept: Value = serde_json::from_str(&kept).expect("JSON");
    assert_eq!(kept["counts"], json!({"received": 1, "replied": 1, "skipped": 0, "failed": 0}));
}

fn an_extension_in_a_strict_box_gets_out_in_no_way() {
    let place = tempfile::tempdir().expect("a folder");
    let secret = place.path().join("secret");
    std::fs::write(&secret, "s").expect("room");
    let socket = place.path().join("socket");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    udp.set_nonblocking(true).expect("a socket");
    let script = json!([
        {"do": "attach"},
        {"do": "open", "path": secret},
        {"do": "create", "path": place.path().join("new")},
        {"do": "tcp", "to": tcp.local_addr().expect("an address").to_string()},
        {"do": "udp", "to": udp.local_addr().expect("an address").to_string()},
        {"do": "unix", "path": socket},
        {"do": "signal", "signal": 9},
        {"do": "signal", "signal": 9, "pid": std::process::id()},
        {"do": "bomb", "most": 100},
        {"do": "replay_token"},
        {"do": "exit", "code": 7},
    ])
    .to_string();
    let program = std::env::current_exe().expect("this binary");
    let args = ["__extension", "fault"];
    let draft = Draft { args: vec![script.clone()], ..Draft::fault("org.example.fault", &[]) };
    let folder = draft.install(place.path(), Program::Own { file: &program, args: &args }).expect("a folder");
    let mut attached = 0;
    let args = [args[0], args[1], &script];
    let (said, status) = boxed(place.path(), &folder, folder.join("extension"), &args, move |line, _| {
        attached += 1;
        match attached {
            1 => vec![json!({"jsonrpc": "2.0", "id": line["id"], "result": {"session": "s"}})],
            // The same channel again: there is no other, and the host says so.
            _ => vec![
                json!({"jsonrpc": "2.0", "id": line["id"], "error": {"code": -32003, "message": "again"}}),
            ],
        }
    });
    assert_eq!(status, Status::Code(7), "{said}");
    let found: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let outcome = |n: usize| format!("{} {} {}", found[n]["do"], found[n]["ok"], found[n]["os"]);
    let wanted = [
        r#""attach" true null"#,
        r#""open" false 13"#,
        r#""create" false 13"#,
        r#""tcp" false 1"#,
        r#""udp" false 1"#,
        r#""unix" false 1"#,
    ];
    assert_eq!((0..6).map(outcome).collect::<Vec<_>>(), wanted, "{said}");
    for n in [6, 7] {
        assert_eq!((&found[n]["do"], &found[n]["ok"]), (&json!("signal"), &json!(false)), "{said}");
    }
    assert_eq!(found[8]["found"]["started"], 0, "{said}");
    assert_eq!((&found[9]["do"], &found[9]["ok"]), (&json!("attach"), &json!(false)), "{said}");
    assert!(udp.recv(&mut [0; 8]).is_err(), "a datagram came out");
    assert!(!place.path().join("new").exists());
}

/// Runs a program in a strict box; `respond` says what the host says to each line. What it printed, and how it ended.
fn boxed(
    place: &Path,
    folder: &Path,
    program: PathBuf,
    args: &[&str],
    mut respond: impl FnMut(&Value, &mut u32) -> Vec<Value>,
) -> (String, Status) {
    let limits = Limits { address_space_bytes: Some(256 * MIB), ..Limits::as_the_host() };
    let (ours, theirs) = UnixStream::pair().expect("a pair");
    let plan = Plan {
        name: "boxed".to_owned(),
        program: program.into_os_string(),
        args: args.iter().map(Into::into).collect(),
        env: vec![("SEP_HOST".into(), "1".into()), ("HOME".into(), place.join("data").into())],
        cwd: folder.to_owned(),
        umask: None,
        sandbox: Request {
            processes: Processes::One,
            read: vec![folder.to_owned()],
            write: vec![place.join("data")],
            ..Request::new(Level::Strict, limits)
        },
    };
    let channels =
        Channels { stderr: Wiring::Inherit, extra: vec![OwnedFd::from(theirs)], ..Channels::piped() };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut launched = Launcher::current_exe().launch(plan, channels).await.expect("a launch");
        let bootstrap = json!({"sep": 1, "endpoint": "fd:3", "token": "t", "session": "s"});
        let mut lifeline = launched.stdin.take().expect("a pipe");
        lifeline.write_all(format!("{bootstrap}\n").as_bytes()).await.expect("it reads");
        ours.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut pen = ours.try_clone().expect("a descriptor");
        let mut turn = 0;
        // Blocks the runtime, which has nothing else to do: the box is held by other processes.
        for line in BufReader::new(ours).lines().map_while(Result::ok) {
            let line: Value = serde_json::from_str(&line).expect("JSON");
            for answer in respond(&line, &mut turn) {
                pen.write_all(format!("{answer}\n").as_bytes()).expect("it reads");
            }
        }
        let mut said = String::new();
        let mut stdout = launched.stdout.take().expect("a pipe");
        let read = stdout.read_to_string(&mut said);
        tokio::time::timeout(PATIENCE, read).await.expect("it ends").expect("UTF-8");
        let exit =
            tokio::time::timeout(Duration::from_secs(5), launched.control.wait()).await.expect("it ends");
        (said, exit.status)
    })
}
