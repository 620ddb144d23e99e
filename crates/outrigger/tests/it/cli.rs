//! The command line itself: help, mistakes, exit codes, JSON, completions.

use std::process::{Command, Stdio};

use crate::process::{Finished, Running, finish, outrigger};

fn run(args: &[&str]) -> Finished {
    finish(&mut outrigger(args.iter().copied()))
}

#[test]
fn the_exit_code_of_the_program_is_ours() {
    for code in [0, 1, 42, 255] {
        assert_eq!(run(&["exec", "--", "sh", "-c", &format!("exit {code}")]).code(), code);
    }
}

#[test]
fn a_program_ended_by_a_signal_gives_128_and_the_number_and_the_report_names_it() {
    let finished = run(&["exec", "--", "sh", "-c", "echo last words >&2; kill -SEGV $$"]);
    assert_eq!(finished.code(), 128 + 11);
    assert!(finished.stderr.contains("SIGSEGV"), "{}", finished.stderr);
    assert!(finished.stderr.contains("last words"), "{}", finished.stderr);
}

#[test]
fn output_passes_through_untouched_and_a_good_run_says_nothing_of_its_own() {
    let finished = run(&["exec", "--", "sh", "-c", "printf 'a\\n\\nb'; printf 'note' >&2"]);
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("a\n\nb", "note"));
}

#[test]
fn standard_input_is_forwarded_when_asked_and_its_end_is_only_the_end_of_the_input() {
    let mut command =
        outrigger(["exec", "--stdin", "forward", "--", "sh", "-c", "sort; sleep 0.2; echo end"]);
    let mut child = command.spawn().expect("outrigger starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    std::io::Write::write_all(&mut stdin, b"b\na\n").expect("the input is read");
    drop(stdin);
    let output = child.wait_with_output().expect("outrigger ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "a\nb\nend\n");
    assert!(output.status.success());
}

#[test]
fn a_standard_input_that_was_never_open_is_not_an_owner_that_left() {
    let mut command = outrigger(["exec", "--", "sh", "-c", "sleep 0.3; echo done"]);
    assert_eq!(finish(command.stdin(Stdio::null())).stdout, "done\n");
    // A pipe whose writer had gone before we started.
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(writer);
    let mut command = outrigger(["exec", "--", "sh", "-c", "sleep 0.3; echo done"]);
    assert_eq!(finish(command.stdin(reader)).stdout, "done\n");
}

#[test]
fn the_environment_starts_small_and_grows_only_by_request() {
    let mut command = outrigger(["exec", "--env", "SET=it", "--env", "PASSED", "--", "env"]);
    let finished = finish(command.env("SECRET", "1").env("PASSED", "on"));
    let names: Vec<_> = finished.stdout.lines().collect();
    assert!(names.contains(&"SET=it") && names.contains(&"PASSED=on"), "{names:?}");
    assert!(!finished.stdout.contains("SECRET"), "{names:?}");
    let mut command = outrigger(["exec", "--env-all", "--", "env"]);
    assert!(finish(command.env("SECRET", "1")).stdout.contains("SECRET=1"));
}

#[test]
fn mistakes_on_the_command_line_are_explained_and_exit_with_2() {
    let check = |args: &[&str], parts: &[&str]| {
        let finished = run(args);
        assert_eq!(finished.code(), 2, "{args:?}\n{}", finished.stderr);
        for part in parts {
            assert!(finished.stderr.contains(part), "{args:?} should mention `{part}`:\n{}", finished.stderr);
        }
        assert_eq!(finished.stdout, "", "{args:?}");
    };
    check(&["exec"], &["<CMD>"]);
    check(&["exec", "sleep", "1"], &["--"]);
    check(&["exec", "--sandbx", "strict", "--", "true"], &["--sandbox"]);
    check(&["exec", "--sandbox", "stric", "--", "true"], &["strict"]);
    check(&["exec", "--ready", "lien:x", "--", "true"], &["line:TEXT"]);
    check(&["exec", "--ready-within", "5", "--", "true"], &["has no unit"]);
    check(&["exec", "--crash-limit", "many", "--", "true"], &["5/10m"]);
    check(&["exce", "--", "true"], &["exec"]);
    check(&[], &["Usage"]);
}

#[test]
fn a_restart_rule_that_could_never_give_up_is_refused_before_anything_starts() {
    let finished =
        run(&["exec", "--restart", "always", "--backoff", "30s", "--crash-limit", "5/10s", "--", "true"]);
    assert_eq!(finished.code(), 125, "{}", finished.stderr);
    assert!(finished.stderr.contains("crash"), "{}", finished.stderr);
}

#[test]
fn a_folder_that_does_not_exist_is_named() {
    let finished = run(&["exec", "--cwd", "/no/such/folder", "--", "true"]);
    assert_eq!(finished.code(), 125);
    assert!(finished.stderr.contains("/no/such/folder"), "{}", finished.stderr);
}

#[test]
fn a_failure_in_a_strict_box_says_how_to_open_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("secret");
    std::fs::write(&file, "42\n").expect("the file is written");
    let file = file.to_str().expect("the path is text");
    let refused = run(&["exec", "--sandbox", "strict", "--", "cat", file]);
    assert_eq!((refused.code(), refused.stdout.as_str()), (1, ""), "{}", refused.stderr);
    assert!(refused.stderr.contains("--read PATH"), "{}", refused.stderr);
    let granted = run(&["exec", "--sandbox", "strict", "--read", file, "--", "cat", file]);
    assert_eq!((granted.code(), granted.stdout.as_str()), (0, "42\n"), "{}", granted.stderr);
}

#[test]
fn times_beyond_the_end_of_the_world_are_as_good_as_none() {
    let long = "1000000000000h";
    let all = ["--timeout", "--term-within", "--ask-within", "--ready-within", "--stall"];
    for option in all {
        let finished = run(&["exec", option, long, "--", "sh", "-c", "exit 7"]);
        assert_eq!(finished.code(), 7, "{option}: {}", finished.stderr);
    }
    let beating =
        run(&["exec", "--ready", "line:up", "--heartbeat", &format!("silence:{long}"), "--", "echo", "up"]);
    assert_eq!(beating.code(), 0, "{}", beating.stderr);
    let running = Running::start(&mut outrigger([
        "exec",
        "--term-within",
        long,
        "--",
        "sh",
        "-c",
        "echo up; exec sleep 1000",
    ]));
    running.wait_for_output("up");
    running.signal("TERM");
    assert_eq!(running.finish().code(), 128 + 15);
}

#[test]
fn every_command_has_help_with_examples() {
    for command in ["exec", "doctor", "completions"] {
        let help = run(&[command, "--help"]).stdout;
        assert!(help.contains("Examples:"), "{command}:\n{help}");
    }
}

#[test]
fn doctor_says_in_words_and_in_json_what_is_enforced_here() {
    let text = run(&["doctor"]);
    assert_eq!(text.code(), 0, "{}", text.stderr);
    for word in ["landlock", "seccomp", "pid namespace"] {
        assert!(text.stdout.to_lowercase().contains(word), "{word} in:\n{}", text.stdout);
    }
    let json = run(&["doctor", "--json"]);
    let report = json.event("doctor");
    assert!(report["sandbox"].is_object(), "{report}");
}

#[test]
fn completion_scripts_are_valid_in_their_shells() {
    for (shell, check) in [("bash", "bash"), ("zsh", "zsh"), ("fish", "fish")] {
        let script = run(&["completions", shell]).stdout;
        assert!(script.contains("outrigger"), "{shell}");
        let mut parser =
            Command::new(check).arg("-n").stdin(Stdio::piped()).spawn().expect("the shell is installed");
        let mut stdin = parser.stdin.take().expect("stdin is piped");
        std::io::Write::write_all(&mut stdin, script.as_bytes()).expect("the shell reads it");
        drop(stdin);
        assert!(parser.wait().expect("the shell ends").success(), "{shell} refuses the script");
    }
}
