//! Follows a script, step by step.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::channel::{Channel, Heard, after};
use super::script::{Manner, Manners, Step};
use super::{Hands, attempt};
use crate::extension::{Bootstrap, Endpoint, exit};

/// How long an answer of the host is waited for.
const PATIENCE_MS: u64 = 30_000;

/// The extension that follows the script.
pub(super) struct Puppet {
    bootstrap: Option<Bootstrap>,
    hands: Hands,
    channel: Option<Channel>,
    manners: Manners,
}

/// What ends the script early.
type Flow = ControlFlow<ExitCode>;

impl Puppet {
    pub(super) fn new(bootstrap: Option<Bootstrap>, hands: Hands) -> Self {
        Self { bootstrap, hands, channel: None, manners: Manners::default() }
    }

    /// Does all steps, and leaves with 0 if none of them says otherwise.
    pub(super) fn follow(&mut self, script: &[Step]) -> ExitCode {
        match self.steps(script) {
            ControlFlow::Break(code) => code,
            ControlFlow::Continue(()) => ExitCode::SUCCESS,
        }
    }

    fn steps(&mut self, script: &[Step]) -> Flow {
        script.iter().try_for_each(|step| match self.step(step) {
            Ok(flow) => flow,
            Err(error) => {
                print(&json!({"do": name(step), "ok": false, "error": error.to_string(), "os": error.raw_os_error()}));
                ControlFlow::Continue(())
            }
        })
    }

    fn step(&mut self, step: &Step) -> io::Result<Flow> {
        match step {
            Step::Connect => self.connect()?,
            Step::Where => {
                let endpoint = &self.bootstrap.as_ref().ok_or_else(no_host)?.endpoint;
                let endpoint = match endpoint {
                    Endpoint::Unix(path) => format!("unix:{}", path.display()),
                    Endpoint::Fd(number) => format!("fd:{number}"),
                    Endpoint::Tcp(address) => format!("tcp:{address}"),
                };
                print(&json!({"do": "where", "endpoint": endpoint}));
            }
            Step::Attach { token, session, method } => {
                return self.attach(token.as_deref(), session.as_deref(), method.as_deref());
            }
            Step::ReplayToken => return self.replay_token(),
            Step::Manners(manners) => self.adopt(manners),
            Step::Serve { ms, until, times } => {
                return self.serve(ms.map(after), until.as_deref(), times.unwrap_or(1));
            }
            Step::Call { method, params } => {
                let id = self.channel()?.ask(method, params.as_ref())?;
                return self.answer_to(id, &json!({"do": "call", "method": method}));
            }
            Step::Notify { method, params } => {
                let mut note = json!({"jsonrpc": "2.0", "method": method});
                if let Some(params) = params {
                    note["params"] = params.clone();
                }
                self.channel()?.say(&note)?;
            }
            Step::Flood { method, params, times } => return self.flood(method, params.as_ref(), *times),
            Step::FloodDeaf { method, params, times } => {
                for _ in 0..*times {
                    self.channel()?.ask(method, params.as_ref())?;
                }
            }
            Step::DuplicateId { method } => {
                self.channel()?.ask_as(900, method, None)?;
                self.channel()?.ask_as(900, method, None)?;
                for _ in 0..2 {
                    if let ControlFlow::Break(code) = self.any_answer(&json!({"do": "duplicate_id"}))? {
                        return Ok(ControlFlow::Break(code));
                    }
                }
            }
            Step::UnknownResponses { times } => {
                for n in 0..*times {
                    self.channel()?.say(&json!({"jsonrpc": "2.0", "id": 1_000_000 + n, "result": {}}))?;
                }
            }
            Step::Raw { text, times } => {
                for _ in 0..times.unwrap_or(1) {
                    self.channel()?.write(format!("{text}\n").as_bytes())?;
                }
            }
            Step::Bytes { hex } => {
                let bytes = unhex(hex)?;
                self.channel()?.write(&bytes)?;
            }
            Step::Garbage { times } => {
                for n in 0..*times {
                    self.channel()?.write(format!("garbage {n} }}{{\n").as_bytes())?;
                }
            }
            Step::Oversize { bytes, times } => {
                let head = r#"{"jsonrpc":"2.0","id":901,"method":"host.get_capabilities","params":{"x":""#;
                let tail = "\"}}";
                let filling = "x".repeat(bytes.saturating_sub(head.len() + tail.len()));
                for _ in 0..times.unwrap_or(1) {
                    self.channel()?.write(format!("{head}{filling}{tail}\n").as_bytes())?;
                }
            }
            Step::Endless { bytes } => self.channel()?.write("x".repeat(*bytes).as_bytes())?,
            Step::Deep { levels } => {
                let (open, shut) = ("[".repeat(*levels), "]".repeat(*levels));
                let line = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":902,\"method\":\"host.get_capabilities\",\"params\":{{\"x\":{open}{shut}}}}}\n"
                );
                self.channel()?.write(line.as_bytes())?;
            }
            Step::Listen { ms } => return self.listen(*ms),
            Step::Close => self.channel()?.close()?,
            Step::Sleep { ms } => thread::sleep(Duration::from_millis(*ms)),
            Step::Hang => hang(),
            Step::Exit { code } => return Ok(ControlFlow::Break(ExitCode::from(*code))),
            Step::Abort => std::process::abort(),
            // These hold from the beginning.
            Step::IgnoreSigterm | Step::IgnoreLifeline => {}
            Step::First { times, steps } => {
                if attempt::count()? <= *times {
                    return Ok(self.steps(steps));
                }
            }
            Step::Repeat { times, steps } => {
                for _ in 0..*times {
                    if let ControlFlow::Break(code) = self.steps(steps) {
                        return Ok(ControlFlow::Break(code));
                    }
                }
            }
            Step::Setsid
            | Step::Start { .. }
            | Step::Bomb { .. }
            | Step::Eat { .. }
            | Step::Spin { .. }
            | Step::Open { .. }
            | Step::Create { .. }
            | Step::Tcp { .. }
            | Step::Udp { .. }
            | Step::Unix { .. }
            | Step::Signal { .. }
            | Step::Look
            | Step::Print { .. }
            | Step::PrintFlood { .. } => attempt::attempt(step, self.hands)?,
        }
        Ok(ControlFlow::Continue(()))
    }

    fn connect(&mut self) -> io::Result<()> {
        let bootstrap = self.bootstrap.as_ref().ok_or_else(no_host)?;
        self.channel = Some(Channel::connect(&bootstrap.endpoint)?);
        Ok(())
    }

    fn channel(&mut self) -> io::Result<&mut Channel> {
        self.channel.as_mut().ok_or_else(no_host)
    }

    fn attach(
        &mut self,
        token: Option<&str>,
        session: Option<&str>,
        method: Option<&str>,
    ) -> io::Result<Flow> {
        if self.channel.is_none() {
            self.connect()?;
        }
        let bootstrap = self.bootstrap.clone().ok_or_else(no_host)?;
        let params = json!({
            "token": token.unwrap_or(&bootstrap.token),
            "session": session.unwrap_or(&bootstrap.session),
            "sdk": {"name": "fault", "version": env!("CARGO_PKG_VERSION"), "language": "rust"},
        });
        let id = self.channel()?.ask(method.unwrap_or("host.attach"), Some(&params))?;
        self.answer_to(id, &json!({"do": "attach"}))
    }

    fn replay_token(&mut self) -> io::Result<Flow> {
        let endpoint = self.bootstrap.as_ref().map(|bootstrap| &bootstrap.endpoint);
        if matches!(endpoint, Some(Endpoint::Fd(_))) {
            // Whoever was born with a channel has no way to a second one, so the token is shown on the first again.
            return self.attach(None, None, None);
        }
        let first = self.channel.take();
        let answered = self.attach(None, None, None);
        self.channel = first;
        answered
    }

    fn adopt(&mut self, new: &Manners) {
        let Manners { initialize, version, health, event, action, shutdown } = new.clone();
        let old = &mut self.manners;
        old.initialize = initialize.or(old.initialize.take());
        old.version = version.or(old.version.take());
        old.health = health.or(old.health.take());
        old.event = event.or(old.event.take());
        old.action = action.or(old.action.take());
        old.shutdown = shutdown.or(old.shutdown.take());
    }

    fn serve(&mut self, deadline: Option<Instant>, until: Option<&str>, times: u32) -> io::Result<Flow> {
        let mut seen = 0;
        while seen < times {
            match self.channel()?.hear(deadline) {
                Heard::Nothing => break,
                Heard::End => return Ok(ControlFlow::Break(ExitCode::from(exit::IO))),
                Heard::Line(line) => {
                    if let ControlFlow::Break(code) = self.respond(&line)? {
                        return Ok(ControlFlow::Break(code));
                    }
                    seen += u32::from(until.is_some() && line["method"].as_str() == until);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Waits for the answer to a request of ours, and prints it as part of `report`. The host's requests are answered meanwhile.
    fn answer_to(&mut self, id: u64, report: &Value) -> io::Result<Flow> {
        self.answers(report, |line| line["id"] == id)
    }

    /// Waits for whatever answer comes next.
    fn any_answer(&mut self, report: &Value) -> io::Result<Flow> {
        self.answers(report, |_| true)
    }

    fn answers(&mut self, report: &Value, wanted: impl Fn(&Value) -> bool) -> io::Result<Flow> {
        let deadline = after(PATIENCE_MS);
        let mut report = report.clone();
        loop {
            match self.channel()?.hear(Some(deadline)) {
                Heard::Nothing => return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer")),
                Heard::End => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the host closed the channel"));
                }
                Heard::Line(line) if line.get("method").is_some() => {
                    if let ControlFlow::Break(code) = self.respond(&line)? {
                        return Ok(ControlFlow::Break(code));
                    }
                }
                Heard::Line(line) if wanted(&line) => {
                    let member = if line.get("error").is_some() { "error" } else { "result" };
                    report["ok"] = Value::Bool(member == "result");
                    report["id"] = line["id"].clone();
                    report[member] = line[member].clone();
                    print(&report);
                    return Ok(ControlFlow::Continue(()));
                }
                Heard::Line(_) => {}
            }
        }
    }

    fn flood(&mut self, method: &str, params: Option<&Value>, times: u32) -> io::Result<Flow> {
        let mut sorts: BTreeMap<String, u32> = BTreeMap::new();
        let mut waiting = 0;
        let mut sent = 0;
        let deadline = after(PATIENCE_MS);
        // A thousand at a time: a flood that never reads would block itself before it troubles anybody.
        while sent < times || waiting > 0 {
            if sent < times && waiting < 1000 {
                self.channel()?.ask(method, params)?;
                (sent, waiting) = (sent + 1, waiting + 1);
                continue;
            }
            match self.channel()?.hear(Some(deadline)) {
                Heard::Nothing => break,
                Heard::End => {
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the host closed the channel"));
                }
                Heard::Line(line) if line.get("method").is_some() => {
                    if let ControlFlow::Break(code) = self.respond(&line)? {
                        return Ok(ControlFlow::Break(code));
                    }
                }
                Heard::Line(line) => {
                    let sort =
                        line["error"]["code"].as_i64().map_or("result".into(), |code| code.to_string());
                    *sorts.entry(sort).or_default() += 1;
                    waiting -= 1;
                }
            }
        }
        print(
            &json!({"do": "flood", "ok": waiting == 0, "sent": sent, "unanswered": waiting, "answers": sorts}),
        );
        Ok(ControlFlow::Continue(()))
    }

    fn listen(&mut self, ms: u64) -> io::Result<Flow> {
        loop {
            match self.channel()?.hear(Some(after(ms))) {
                Heard::Nothing => return Ok(ControlFlow::Continue(())),
                Heard::End => {
                    print(&json!({"do": "listen", "end": true}));
                    return Ok(ControlFlow::Continue(()));
                }
                Heard::Line(line) => {
                    print(&json!({"do": "listen", "heard": line}));
                    if let ControlFlow::Break(code) = self.respond(&line)? {
                        return Ok(ControlFlow::Break(code));
                    }
                }
            }
        }
    }

    /// Answers a request of the host as the manners say; everything else is let pass.
    fn respond(&mut self, line: &Value) -> io::Result<Flow> {
        let (Some(method), Some(id)) = (line["method"].as_str(), line.get("id")) else {
            return Ok(ControlFlow::Continue(()));
        };
        let params = &line["params"];
        let manners = &self.manners;
        let (manner, well) = match method {
            "sep.initialize" => {
                let version =
                    manners.version.clone().map_or(params["protocolVersion"].clone(), Value::String);
                (&manners.initialize, json!({"protocolVersion": version}))
            }
            "sep.health" => (&manners.health, json!({"status": "ok", "seq": params["seq"]})),
            "sep.event" => (&manners.event, json!({})),
            "sep.action" => (&manners.action, json!({"outcome": "ok"})),
            "sep.shutdown" => (&manners.shutdown, json!({})),
            _ => (&Some(Manner::Error(-32601)), json!({})),
        };
        if matches!(method, "sep.event" | "sep.action" | "sep.shutdown") {
            print(&json!({"do": "heard", "method": method, "params": params}));
        }
        let manner = manner.clone().unwrap_or(Manner::Well);
        let well = json!({"jsonrpc": "2.0", "id": id, "result": well});
        let channel = self.channel.as_mut().ok_or_else(no_host)?;
        match &manner {
            Manner::Well | Manner::ThenCrash | Manner::ThenHang => channel.say(&well)?,
            Manner::Never => {}
            Manner::Slow(ms) => {
                thread::sleep(Duration::from_millis(*ms));
                channel.say(&well)?;
            }
            Manner::Result(result) => channel.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}))?,
            Manner::Error(code) => {
                let error = json!({"code": code, "message": "as the script says"});
                channel.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
            }
            Manner::Garbage => channel.write(b"}{ garbage\n")?,
            Manner::Crash => std::process::abort(),
        }
        match &manner {
            Manner::ThenCrash => std::process::abort(),
            Manner::ThenHang => hang(),
            Manner::Well | Manner::Slow(_) if method == "sep.shutdown" => {
                Ok(ControlFlow::Break(ExitCode::SUCCESS))
            }
            _ => Ok(ControlFlow::Continue(())),
        }
    }
}

/// Prints a finding: one JSON object a line.
pub(super) fn print(finding: &Value) {
    let _ = writeln!(io::stdout(), "{finding}");
    let _ = io::stdout().flush();
}

/// The word in the script.
pub(super) fn name(step: &Step) -> Value {
    serde_json::to_value(step).map_or(Value::Null, |step| step["do"].clone())
}

fn hang() -> ! {
    loop {
        thread::park();
    }
}

fn no_host() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "there is no channel")
}

fn unhex(digits: &str) -> io::Result<Vec<u8>> {
    let bad = || io::Error::new(io::ErrorKind::InvalidInput, "these are no hexadecimal digits");
    let digits: Vec<u8> = digits.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    match digits.len() % 2 {
        0 => Ok(digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()),
        _ => Err(bad()),
    }
}
