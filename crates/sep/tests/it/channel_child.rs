//! A child for the tests of the channel: it reads its bootstrap line and does what its arguments say, word by word.

use std::io::{BufRead, BufReader, Read, Write, stdin, stdout};
use std::process::{ExitCode, Stdio};

use outrigger_sep::extension::Link;
use serde_json::{Value, json};

/// Is such a child, if the arguments say so: `__channel STEP…`.
pub(crate) fn intercept() -> Option<ExitCode> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((first, steps)) if first == "__channel" => Some(run(steps)),
        Some(_) | None => None,
    }
}

/// The line of the bootstrap, and the connection once there is one.
struct Guest {
    line: String,
    bootstrap: Value,
    link: Option<(Link, BufReader<Link>)>,
}

fn run(steps: &[String]) -> ExitCode {
    let mut line = String::new();
    stdin().read_line(&mut line).expect("a bootstrap line");
    let bootstrap = serde_json::from_str(&line).expect("it is JSON");
    let mut guest = Guest { line, bootstrap, link: None };
    for step in steps {
        guest.act(step);
    }
    ExitCode::SUCCESS
}

impl Guest {
    fn act(&mut self, step: &str) {
        match step {
            "connect" => self.link = self.connect(),
            "attach" => self.say(&format!("{}\n", attach_line(&self.bootstrap))),
            // Both lines in one write, so that they arrive together.
            "attach+ask" => {
                let ask = json!({"jsonrpc": "2.0", "id": 2, "method": "ask"});
                self.say(&format!("{}\n{ask}\n", attach_line(&self.bootstrap)));
            }
            "read" => {
                let line = self.read();
                tell(line.trim_end());
            }
            // Until the lifeline breaks.
            "wait" => drop(stdin().read_to_end(&mut Vec::new())),
            "grandchild" => drop(self.spawn(&["connect", "attach", "read"]).wait()),
            // By a child that ends at once and leaves its own child behind.
            "orphan" => drop(self.spawn(&["abandon"]).wait()),
            "abandon" => drop(self.spawn(&["connect", "attach", "read"])),
            other => panic!("no such step: {other}"),
        }
    }

    fn connect(&self) -> Option<(Link, BufReader<Link>)> {
        let endpoint = self.bootstrap["endpoint"].as_str().expect("a text");
        let endpoint = outrigger_sep::extension::Endpoint::parse(endpoint).expect("an endpoint");
        match Link::connect(&endpoint) {
            Ok(link) => {
                let reader = BufReader::new(link.try_clone().expect("a second handle"));
                Some((link, reader))
            }
            Err(error) => {
                tell(&format!("no connection: {}", error.kind()));
                None
            }
        }
    }

    fn say(&mut self, text: &str) {
        // Whether the host still listens is what the answers show.
        if let Some((link, _)) = &mut self.link {
            let _ = link.write_all(text.as_bytes());
        }
    }

    fn read(&mut self) -> String {
        let mut line = String::new();
        let read = self.link.as_mut().map(|(_, reader)| reader.read_line(&mut line));
        match read {
            Some(Ok(0) | Err(_)) | None => "closed".into(),
            Some(Ok(_)) => line,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "an extension starts what it likes")]
    fn spawn(&self, steps: &[&str]) -> std::process::Child {
        let program = std::env::current_exe().expect("this binary");
        let mut child = std::process::Command::new(program)
            .arg("__channel")
            .args(steps)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a child");
        let mut stdin = child.stdin.take().expect("it is a pipe");
        stdin.write_all(self.line.as_bytes()).expect("the child reads");
        child
    }
}

/// The frame that shows the token.
pub(crate) fn attach_line(bootstrap: &Value) -> Value {
    let sdk = json!({"name": "test", "version": "1", "language": "rust"});
    let params = json!({"token": bootstrap["token"], "session": bootstrap["session"], "sdk": sdk});
    json!({"jsonrpc": "2.0", "id": 1, "method": "host.attach", "params": params})
}

fn tell(line: &str) {
    let mut out = stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("somebody listens");
}
