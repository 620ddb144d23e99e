//! `mustard-sidecar` as a process: arguments, exit codes, what it says at its end, and what it can no longer do.

use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};

/// Both names of the same child.
fn commands() -> [Command; 2] {
    let mut outrigger = Command::new(env!("CARGO_BIN_EXE_outrigger"));
    outrigger.args(["sidecar", "mustard"]);
    [Command::new(env!("CARGO_BIN_EXE_mustard-sidecar")), outrigger]
}

/// Runs to its end with this input.
fn run(mut command: Command, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the sidecar starts");
    // It may have ended already, and that is for the caller to see.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("the sidecar ends")
}

fn frame(header: &Value, blob: &[u8]) -> Vec<u8> {
    let header = header.to_string();
    let lengths = [header.len(), blob.len()].map(|n| u32::try_from(n).unwrap().to_le_bytes());
    [&lengths[0][..], &lengths[1], header.as_bytes(), blob].concat()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("text")
}

/// A child that is asked something and waits for the next question.
struct Waiting(Child);

impl Waiting {
    fn new(command: &mut Command) -> Waiting {
        Waiting(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the sidecar starts"))
    }

    fn ask(&mut self, request: &Value) -> (Value, Vec<u8>) {
        self.0.stdin.as_mut().expect("a pipe").write_all(&frame(request, b"")).expect("it listens");
        let output = self.0.stdout.as_mut().expect("a pipe");
        let mut lengths = [0; 8];
        output.read_exact(&mut lengths).expect("it answers");
        let length = |at: usize| u32::from_le_bytes(lengths[at..at + 4].try_into().unwrap()) as usize;
        let (mut header, mut blob) = (vec![0; length(0)], vec![0; length(4)]);
        output.read_exact(&mut header).expect("a header");
        output.read_exact(&mut blob).expect("a blob");
        (serde_json::from_slice(&header).expect("JSON"), blob)
    }

    /// A line of what the kernel says about it.
    fn status(&self, name: &str) -> String {
        let text = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).expect("it is alive");
        let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel knows");
        line.trim().to_owned()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // It ends with its input; a test that failed has nothing to wait for.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn the_end_of_the_input_is_a_clean_exit_after_all_earlier_requests() {
    for command in commands() {
        let output = run(command, &[], b"");
        assert_eq!((output.status.code(), output.stdout, output.stderr), (Some(0), vec![], vec![]));
    }
    for command in commands() {
        let requests =
            "{\"protocol_version\":2,\"id\":1,\"method\":\"compile\",\"source\":\"1\"}\n".repeat(3);
        let output = run(command, &["--jsonl", "--jsonl"], requests.as_bytes());
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
        assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 3);
    }
}

#[test]
fn help_is_three_lines_on_standard_output_and_touches_no_input() {
    for argument in ["--help", "-h"] {
        for command in commands() {
            let output = run(command, &[argument], b"nonsense");
            assert_eq!((output.status.code(), stderr(&output)), (Some(0), String::new()));
            assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 3);
        }
    }
}

#[test]
fn an_argument_that_nobody_knows_is_named_and_the_exit_code_is_1() {
    for command in commands() {
        let output = run(command, &["--frobnicate"], b"");
        assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0));
        assert!(stderr(&output).starts_with("Error: unknown argument `--frobnicate`"));
    }
}

#[test]
fn what_is_fatal_is_said_on_standard_error_and_the_exit_code_is_1() {
    let oversize = [1_048_576u32.to_le_bytes(), 1u32.to_le_bytes()].concat();
    let long_line = vec![b'x'; 1_048_578];
    for (arguments, input, words) in [
        (&[][..], &oversize[..], "request frame exceeds maximum size"),
        (&["--jsonl"], &long_line, "request line exceeds maximum size"),
        (&[], b"\x02\0\0\0\0\0\0\0{]", "invalid request header"),
        (&["--jsonl"], b"{]\n", "invalid request"),
        (&[], b"\x01\0", "unexpected EOF while reading frame length"),
    ] {
        for command in commands() {
            let output = run(command, arguments, input);
            assert_eq!((output.status.code(), output.stdout.len()), (Some(1), 0), "{words}");
            let text = stderr(&output);
            assert!(text.starts_with("Error: ") && text.contains(words), "{text}");
        }
    }
}

#[test]
fn a_sidecar_holds_no_privilege_when_it_answers_its_first_request() {
    for mut command in commands() {
        let mut child = Waiting::new(&mut command);
        let (hello, _) = child.ask(&json!({"protocol_version": 2, "id": 1, "method": "hello"}));
        let sandbox = &hello["result"]["sandbox"];
        assert_eq!(child.status("NoNewPrivs:"), "1");
        assert_eq!(child.status("CapEff:"), "0000000000000000");
        assert_eq!(child.status("CapPrm:"), "0000000000000000");
        // Where the kernel has no filters the greeting says so.
        let filtered = child.status("Seccomp:") == "2";
        assert_eq!(sandbox["seccomp"] == "applied", filtered, "{sandbox}");
        let landlock = sandbox["landlock"].as_str().unwrap();
        assert!(landlock.contains("applied (abi ") || landlock.starts_with("missing: "), "{landlock}");
        let limits = std::fs::read_to_string(format!("/proc/{}/limits", child.0.id())).expect("it is alive");
        let core =
            limits.lines().find(|line| line.starts_with("Max core file size")).expect("the kernel knows");
        assert_eq!(core.split_whitespace().collect::<Vec<_>>()[4..6], ["0", "0"]);
        assert_eq!(child.status("Threads:"), "1");
    }
}

#[test]
fn a_confined_sidecar_still_does_everything_it_is_for() {
    let mut child = Waiting::new(&mut Command::new(env!("CARGO_BIN_EXE_mustard-sidecar")));
    let source = "const a = []; for (let i = 0; i < 50000; i++) a.push({ i, s: `${i}` }); \
                  a.sort((x, y) => y.i - x.i); ask(Date.now() > 1e12, Math.random() < 1); \
                  a[0].s + /4+/.exec(a[5555].s)[0] + 10n ** 100n";
    let (program, _) =
        child.ask(&json!({"protocol_version": 2, "id": 1, "method": "compile", "source": source}));
    let limits = json!({"instruction_budget": 100_000_000, "heap_limit_bytes": 64_000_000, "allocation_budget": 1_000_000});
    let options = json!({"capabilities": ["ask"], "limits": limits});
    let start = json!({
        "protocol_version": 2, "id": 2, "method": "start", "program_id": program["result"]["program_id"], "options": options,
    });
    let (step, snapshot) = child.ask(&start);
    assert_eq!(step["result"]["step"]["args"], json!([{"Bool": true}, {"Bool": true}]), "{step}");
    assert!(snapshot.len() > 100_000);
}

#[test]
fn a_killed_sidecar_loses_nothing_that_the_host_kept() {
    let mut child = Waiting::new(&mut Command::new(env!("CARGO_BIN_EXE_mustard-sidecar")));
    let (_, program) =
        child.ask(&json!({"protocol_version": 2, "id": 1, "method": "compile", "source": "6 * 7"}));
    child.0.kill().expect("it was alive");
    drop(child);
    let start = json!({"protocol_version": 2, "id": 1, "method": "start", "options": {}});
    let output = run(Command::new(env!("CARGO_BIN_EXE_mustard-sidecar")), &[], &frame(&start, &program));
    assert!(String::from_utf8_lossy(&output.stdout).contains(r#""value":{"Number":{"Finite":42.0}}"#));
}
