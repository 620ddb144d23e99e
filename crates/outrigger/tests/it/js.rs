//! `outrigger js` as a person uses it.

mod forget;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use crate::process::{Finished, PATIENCE, Running, finish, outrigger, wait_until};

/// A folder for one test: scripts, a store, and whatever capabilities leave behind.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder") }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn script(&self, text: &str) -> String {
        self.file("script.js", text)
    }

    fn file(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).expect("the folder can be written");
        self.path(name).to_str().expect("UTF-8").to_owned()
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = outrigger(args.iter().copied());
        command.current_dir(self.folder.path()).env("OUTRIGGER_JS_STORE", self.path("kept"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command
    }

    fn run(&self, args: &[&str]) -> Finished {
        finish(&mut self.command(args))
    }

    /// Runs with these lines on standard input.
    fn run_with(&self, args: &[&str], input: &str) -> Finished {
        let mut running = Running::start(&mut self.command(args));
        let mut stdin = running.child.stdin.take().expect("stdin is piped");
        stdin.write_all(input.as_bytes()).expect("the input is read");
        drop(stdin);
        running.finish()
    }

    /// The lines that capabilities appended to a file.
    fn lines(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.path(name)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

fn ticket_of(finished: &Finished) -> String {
    finished.event("parked")["ticket"].as_str().expect("a ticket").to_owned()
}

#[test]
fn a_script_is_run_and_its_value_printed() {
    let bench = Bench::new();
    let script = bench.script("const doubled = list.map(n => n * 2); ({ doubled, who })");
    let finished = bench.run(&["js", "run", &script, "--input", "list=[1,2]", "--input", r#"who="Ada""#]);
    assert_eq!(finished.code(), 0, "{}", finished.stderr);
    assert_eq!(finished.stdout, "{\n  \"doubled\": [\n    2,\n    4\n  ],\n  \"who\": \"Ada\"\n}\n");
    let text = bench.script("'plain text'");
    assert_eq!(bench.run(&["js", "run", &text]).stdout, "plain text\n");
    let nothing = bench.script("undefined");
    assert_eq!(bench.run(&["js", "run", &nothing]).stdout, "");
}

#[test]
fn a_script_comes_from_standard_input_and_inputs_from_a_file() {
    let bench = Bench::new();
    let inputs = bench.file("inputs.json", r#"{"n": 20, "m": 1}"#);
    let finished =
        bench.run_with(&["js", "run", "-", "--inputs-file", &inputs, "--input", "m=2"], "n * m + 2");
    assert_eq!((finished.code(), finished.stdout.as_str()), (0, "42\n"), "{}", finished.stderr);
}

#[test]
fn json_has_one_event_a_line_and_keeps_the_order_of_members() {
    let bench = Bench::new();
    let script = bench.script("console.log('hello', { z: 1, a: 2 }); ({ z: 1, a: [undefined, NaN] })");
    let finished = bench.run(&["--json", "js", "run", &script]);
    assert_eq!(finished.event("console")["args"], serde_json::json!(["hello", {"z": 1, "a": 2}]));
    assert!(finished.stdout.contains(r#""value":{"z":1,"a":[null,null]}"#), "{}", finished.stdout);
    assert_eq!(finished.event("finished")["statistics"]["hops"], 1);
}

#[test]
fn what_a_script_prints_goes_to_standard_error() {
    let bench = Bench::new();
    let script = bench.script("console.log('a', 1, [2], undefined); console.error('b'); 'value'");
    let finished = bench.run(&["js", "run", &script]);
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("value\n", "a 1 [2] undefined\nb\n"));
}

#[test]
fn an_error_shows_its_line_with_a_caret_and_the_way_there() {
    let bench = Bench::new();
    let script = bench.script("function inner(thing) {\n  return thing.x.y;\n}\ninner({});\n");
    let finished = bench.run(&["js", "run", &script]);
    assert_eq!(finished.code(), 1);
    let shown = finished.stderr.replace(&script, "script.js");
    let expected = "\
Runtime: TypeError: Cannot read properties of undefined (reading 'y')
 --> script.js:2:18
  |
2 |   return thing.x.y;
  |                  ^
  at inner (script.js:2:18)
  at <script> (script.js:4:1)
";
    assert_eq!(shown, expected);
    let json = bench.run(&["--json", "js", "run", &script]).event("failed");
    assert_eq!((&json["line"], &json["kind"], &json["exit_code"]), (&2.into(), &"Runtime".into(), &1.into()));
}

#[test]
fn a_mistake_in_the_script_is_shown_where_it_is() {
    let bench = Bench::new();
    let script = bench.script("const a = 1;\nconst b = ;\n");
    let finished = bench.run(&["js", "run", &script]);
    assert_eq!(finished.code(), 4);
    let shown = finished.stderr.replace(&script, "script.js");
    assert!(shown.starts_with("Parse: "), "{shown}");
    assert!(shown.contains("--> script.js:2:11\n"), "{shown}");
    assert!(shown.contains("2 | const b = ;\n  |           ^\n"), "{shown}");
}

#[test]
fn limits_and_time_end_a_run_with_a_code_of_their_own() {
    let bench = Bench::new();
    let endless = bench.script("while (true) {}");
    let budget = bench.run(&["--json", "js", "run", &endless, "--instructions", "10000"]);
    assert_eq!((budget.code(), &budget.event("failed")["code"]), (3, &"limit_instructions".into()));
    for limits in ["instruction_budget=10000,call_depth_limit=9", r#"{"instruction_budget": 10000}"#] {
        let named = bench.run(&["--json", "js", "run", &endless, "--limits", limits]);
        assert_eq!((named.code(), &named.event("failed")["code"]), (3, &"limit_instructions".into()));
    }
    let long = ["--json", "js", "run", &endless, "--instructions", "1000000000000000"];
    let deadline = bench.run(&[&long[..], &["--deadline", "50ms"]].concat());
    assert_eq!((deadline.code(), &deadline.event("failed")["code"]), (3, &"limit_deadline".into()));
    let timeout = bench.run(&[&long[..], &["--deadline", "60s", "--timeout", "200ms"]].concat());
    assert_eq!((timeout.code(), &timeout.event("failed")["code"]), (3, &"deadline".into()));
    let heap = bench.script("const all = []; while (true) all.push('x'.repeat(1000) + all.length);");
    let heap = bench.run(&["--json", "js", "run", &heap, "--heap", "1M", "--instructions", "100000000"]);
    assert_eq!((heap.code(), &heap.event("failed")["code"]), (3, &"limit_heap".into()));
}

#[test]
fn a_command_answers_with_json_and_fails_as_an_error_of_the_script() {
    let bench = Bench::new();
    let script = bench.script(
        "const echoed = echo(1, { two: [2] }); let caught; try { broken(); } catch (e) { caught = [e.name, e.code, e.message]; }\
         ({ echoed, caught, nothing: silent(), fixed: fixed() })",
    );
    let finished = bench.run(&[
        "--json",
        "js",
        "run",
        &script,
        "--allow",
        "echo=cat",
        "--allow",
        "broken=echo out of cheese >&2; exit 3",
        "--allow",
        "silent=true",
        "--allow",
        r#"fixed=json:{"a":[1]}"#,
    ]);
    let value = &finished.event("finished")["value"];
    assert_eq!(value["echoed"], serde_json::json!([1, {"two": [2]}]));
    assert_eq!(value["caught"][0], "CommandError");
    assert_eq!(value["caught"][1], "exit_3");
    assert!(value["caught"][2].as_str().expect("a message").contains("out of cheese"), "{value}");
    assert_eq!(value["fixed"], serde_json::json!({"a": [1]}));
    assert!(value.get("nothing").is_none(), "{value}");
}

#[test]
fn commands_of_calls_that_wait_together_run_at_the_same_time() {
    let bench = Bench::new();
    // Each waits for the other's file: one after the other they would wait for ever.
    let script = bench.script("const both = await Promise.all([a(), b()]); both.join()");
    let meet = |mine: &str, other: &str| {
        format!("{mine}=touch {mine}; while [ ! -e {other} ]; do sleep 0.01; done; echo '\"{mine}\"'")
    };
    let finished = bench.run(&[
        "js",
        "run",
        &script,
        "--allow",
        &meet("a", "b"),
        "--allow",
        &meet("b", "a"),
        "--timeout",
        "20s",
    ]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (0, "a,b\n"), "{}", finished.stderr);
}

#[test]
fn tools_of_an_mcp_server_are_capabilities() {
    let bench = Bench::new();
    let server = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fixtures/mcp.py");
    let server = format!("my=python3 {}", server.display());
    let script = bench.script(
        "let failed; try { my_fail({}); } catch (e) { failed = e.message; }\
         [my_to_upper({ text: 'loud' }), my_sum({ a: 1, b: 2 }).sum, failed].join()",
    );
    let finished = bench.run(&["js", "run", &script, "--mcp", &server]);
    assert_eq!((finished.code(), finished.stdout.as_str()), (0, "LOUD,3,no luck\n"), "{}", finished.stderr);

    let dead = bench.run(&["js", "run", &script, "--mcp", "echo 'no module named mcp' >&2; exit 1"]);
    assert_eq!(dead.code(), 125);
    assert!(dead.stderr.contains("no module named mcp"), "{}", dead.stderr);
}

#[test]
fn a_run_waits_for_a_person_and_is_resumed_once() {
    for store in ["kept", "kept.db"] {
        let bench = Bench::new();
        let script = bench.script("const who = approve('deploy', { env: 'prod' }); `approved by ${who}`");
        let at = bench.path(store);
        let at = at.to_str().expect("UTF-8");
        let parked = bench.run(&["--json", "js", "run", &script, "--allow", "approve", "--store", at]);
        assert_eq!(parked.code(), 75, "{}", parked.stderr);
        let call = &parked.event("parked")["calls"][0];
        assert_eq!(call["args"], serde_json::json!(["deploy", {"env": "prod"}]));
        let ticket = ticket_of(&parked);

        let seen = bench.run(&["--json", "js", "inspect", &ticket, "--store", at]).event("inspection");
        assert_eq!(seen["calls"][0]["capability"], "approve");
        assert!(seen["bytes"].as_u64().expect("a number") > 0);

        let wrong = bench.run(&["js", "resume", &ticket, "--answer", "9=1", "--store", at]);
        assert_eq!(wrong.code(), 125);
        assert!(wrong.stderr.contains("call 9 does not wait"), "{}", wrong.stderr);

        let short = &ticket[..10];
        let resumed = bench.run(&["js", "resume", short, "--answer", r#""Ada""#, "--store", at]);
        assert_eq!((resumed.code(), resumed.stdout.as_str()), (0, "approved by Ada\n"), "{}", resumed.stderr);

        let again = bench.run(&["js", "resume", &ticket, "--answer", r#""Eve""#, "--store", at]);
        assert_eq!(again.code(), 125);
        assert!(again.stderr.contains("--replay"), "{}", again.stderr);
        let replayed =
            bench.run(&["js", "resume", &ticket, "--answer", r#""Bob""#, "--replay", "--store", at]);
        assert_eq!(replayed.stdout, "approved by Bob\n", "{}", replayed.stderr);
    }
}

#[test]
fn a_refusal_is_an_error_that_the_script_can_catch() {
    let bench = Bench::new();
    let script =
        bench.script("let said; try { approve(); said = 'yes'; } catch (e) { said = e.message; } said");
    let ticket = ticket_of(&bench.run(&["--json", "js", "run", &script, "--allow", "approve"]));
    let resumed = bench.run(&["js", "resume", &ticket, "--error", "not today"]);
    assert_eq!(resumed.stdout, "not today\n", "{}", resumed.stderr);
}

#[test]
fn a_kept_run_that_was_changed_on_disk_is_refused() {
    let bench = Bench::new();
    let script = bench.script("approve()");
    let ticket = ticket_of(&bench.run(&["--json", "js", "run", &script, "--allow", "approve"]));
    let file = walk(&bench.path("kept")).into_iter().find(|path| path.to_string_lossy().contains(&ticket));
    let file = file.expect("the ticket is a file");
    let mut bytes = std::fs::read(&file).expect("it can be read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&file, bytes).expect("it can be written");
    let resumed = bench.run(&["js", "resume", &ticket, "--answer", "1"]);
    assert_eq!((resumed.code(), resumed.stdout.as_str()), (125, ""), "{}", resumed.stderr);
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn every_call_can_be_answered_by_hand() {
    let bench = Bench::new();
    let script = bench.script(
        "const a = ask('name?'); let b; try { ask('age?'); } catch (e) { b = e.message; } [a, b, tool(2)].join()",
    );
    let answers = "nonsense\n\"Ada\"\nerror too personal\ncall\n";
    let args = ["--json", "js", "step", &script, "--allow", "ask", "--allow", "tool=json:7"];
    let stepped = bench.run_with(&args, answers);
    assert_eq!(stepped.event("finished")["value"], "Ada,too personal,7", "{}", stepped.stderr);
    let calls: Vec<_> = stepped.events().into_iter().filter(|event| event["event"] == "call").collect();
    assert_eq!(calls.len(), 3);
    assert_eq!(calls[0]["args"][0], "name?");

    let kept = bench.run_with(&args, "\"Ada\"\nkeep\n");
    assert_eq!(kept.code(), 75);
    assert_eq!(kept.event("parked")["calls"][0]["args"][0], "age?");
    let left = bench.run_with(&args, "");
    assert_eq!(left.code(), 75, "whoever leaves loses nothing");
    let quit = bench.run_with(&args, "quit\n");
    assert_eq!(quit.code(), 130);
}

#[test]
fn ctrl_c_stops_a_script_that_never_ends() {
    let bench = Bench::new();
    let script = bench.script("console.log('up'); while (true) {}");
    let args = ["--json", "js", "run", &script, "--instructions", "1000000000000000", "--deadline", "1h"];
    let running = Running::start(&mut bench.command(&args));
    running.wait_for_output("up");
    running.signal("INT");
    let finished = running.finish();
    assert_eq!(finished.code(), 130, "{}", finished.stderr);
}

#[test]
fn a_run_survives_the_death_of_its_host_and_no_effect_happens_twice() {
    let bench = Bench::new();
    let script = bench.script("let sum = 0; for (let i = 1; i <= 5; i += 1) { sum += effect(i); } sum");
    // The third call holds until the host has been killed.
    let effect = "effect=read args; echo \"$args\" >> effects; case $args in '[3]') if [ ! -e killed ]; then touch third; sleep 1000; fi;; esac; echo 10";
    let store = bench.path("kept");
    let store = store.to_str().expect("UTF-8");
    let running =
        Running::start(&mut bench.command(&["js", "run", &script, "--allow", effect, "--store", store]));
    wait_until(PATIENCE, || bench.path("third").exists()).expect("the third call is made");
    running.signal("KILL");
    running.finish();
    std::fs::write(bench.path("killed"), "").expect("the folder can be written");

    let listed = bench.run(&["--json", "js", "inspect"]).event("unfinished");
    let run = listed["run"].as_str().expect("a run");
    let resumed = bench.run(&["js", "resume", run, "--allow", effect]);
    assert_eq!((resumed.code(), resumed.stdout.as_str()), (0, "50\n"), "{}", resumed.stderr);
    // The third call was cut off in the middle, so it was made again; no call that had been answered was.
    assert_eq!(bench.lines("effects"), ["[1]", "[2]", "[3]", "[3]", "[4]", "[5]"]);
}

#[test]
fn two_who_resume_the_same_ticket_at_once_get_it_once() {
    let bench = Bench::new();
    let script = bench.script("approve(); effect(); 'done'");
    for round in 0..5 {
        let ticket = ticket_of(
            &bench.run(&["--json", "js", "run", &script, "--allow", "approve", "--allow", "effect"]),
        );
        let args = ["js", "resume", &ticket, "--answer", "1", "--allow", "effect=echo x >> effects; echo 1"];
        let both = [Running::start(&mut bench.command(&args)), Running::start(&mut bench.command(&args))];
        let mut codes = both.map(|running| running.finish().code());
        codes.sort_unstable();
        assert_eq!(codes, [0, 125]);
        assert_eq!(bench.lines("effects").len(), round + 1);
    }
}

#[test]
fn mistakes_on_the_command_line_say_what_to_do() {
    let bench = Bench::new();
    let script = bench.script("1");
    let cases: [(&[&str], i32, &str); 14] = [
        (&["js", "run", &script, "--limits", "memory=3"], 2, "there is no limit `memory`"),
        (&["js", "run", &script, "--limits", "heap_limit_bytes=much"], 2, "not a whole number"),
        (&["js", "run", "missing.js"], 125, "missing.js cannot be opened"),
        (&["js", "run"], 2, "FILE"),
        (&["js", "run", &script, "--input", "n"], 2, "NAME=JSON is needed"),
        (&["js", "run", &script, "--input", "n=hello"], 2, "a text needs quotes"),
        (&["js", "run", &script, "--allow", "f="], 2, "what answers `f`"),
        (&["js", "run", &script, "--allow", "f=true", "--allow", "f=false"], 125, "`f` is given twice"),
        (&["js", "resume", "0123"], 125, "no kept run"),
        (&["js", "step", "-"], 125, "must be a file"),
        (&["js", "forget"], 2, "RUN"),
        (&["js", "forget", ""], 2, "a value is required"),
        (&["js", "forget", "0123"], 125, "no kept run"),
        (&["js", "forget", "--all", "0123"], 2, "cannot be used with"),
    ];
    for (args, code, words) in cases {
        let finished = bench.run(args);
        assert_eq!(finished.code(), code, "{args:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(words), "{args:?}: {}", finished.stderr);
    }
}

#[test]
fn a_script_is_measured() {
    let bench = Bench::new();
    let script = bench.script("let sum = 0; for (let i = 0; i < 10; i += 1) sum += price(i); sum");
    let args = ["--json", "js", "bench", &script, "--runs", "20", "--allow", "price=json:2"];
    let measured = bench.run(&args).event("bench");
    assert_eq!((&measured["hops"], &measured["runs"]), (&10.into(), &20.into()));
    assert!(measured["run_median_us"].as_f64().expect("a number") > 0.0);
}

#[test]
fn nothing_is_left_when_a_run_is_killed() {
    let bench = Bench::new();
    let tag = crate::process::Tag::new();
    let script = bench.script("wait()");
    let (name, value) = tag.as_arg().split_once('=').expect("NAME=VALUE");
    let mut command = bench.command(&["js", "run", &script, "--allow", "wait=touch up; sleep 1000"]);
    let running = Running::start(command.env(name, value));
    wait_until(PATIENCE, || bench.path("up").exists()).expect("the command runs");
    running.signal("KILL");
    tag.must_be_gone(Duration::from_secs(2), "SIGKILL of a script's host");
    running.finish();
}
