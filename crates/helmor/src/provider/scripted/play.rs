//! Playing a turn: one step after the other, until the end or until the host wants it to stop.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use outrigger_wire::line::{Item, LineReader, dialect};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::script::{Permission, Step, Turn};
use crate::BoxFuture;
use crate::provider::process::{Command, Programs};
use crate::provider::slot::Slot;
use crate::provider::{
    Desk, Failure, FailureCode, InputAction, InputAsk, Outcome, PermissionAsk, Steering, Turn as HostTurn,
    Verdict,
};

/// After so many objects, or so many bytes of them, the host gets time to read.
const BATCH: Batch = Batch { objects: 64, bytes: 64 << 10 };

/// The longest line of a child that is passed on whole.
const LONGEST_LINE: usize = 64 << 10;

/// Plays a turn. Returns when nothing of it is left.
pub(super) async fn play(script: &Turn, turn: HostTurn, name: &str, programs: &Programs) -> Outcome {
    let HostTurn { send, desk, stop, steering } = turn;
    let mut player = Player {
        desk: &*desk,
        steering,
        resume: send.resume,
        cwd: send.cwd,
        name,
        programs,
        child: Slot::default(),
        told: Batch { objects: 0, bytes: 0 },
        takes_steers: script.takes_steers(),
    };
    let child = player.child.clone();
    let outcome = tokio::select! {
        biased;
        () = stop.cancelled() => Outcome::Aborted,
        ended = player.steps(&script.steps) => match ended {
            Ok(()) => Outcome::Ended,
            Err(failure) => Outcome::Failed(failure),
        },
    };
    child.end().await;
    outcome
}

/// How much was told since the host last got time to read.
#[derive(Clone, Copy)]
struct Batch {
    objects: usize,
    bytes: usize,
}

struct Player<'a> {
    desk: &'a dyn Desk,
    steering: mpsc::Receiver<Steering>,
    resume: Option<String>,
    cwd: Option<PathBuf>,
    name: &'a str,
    programs: &'a Programs,
    /// The child that runs. It is kept here so that it can be waited for when the steps are given up.
    child: Slot,
    told: Batch,
    takes_steers: bool,
}

impl Player<'_> {
    async fn steps(&mut self, steps: &[Step]) -> Result<(), Failure> {
        if self.takes_steers {
            return self.play(1, steps).await;
        }
        // Nothing waits for a steer in this turn, so that whoever sends one is told at once.
        let (_, closed) = mpsc::channel(1);
        let steering = std::mem::replace(&mut self.steering, closed);
        tokio::select! {
            biased;
            ended = self.play(1, steps) => ended,
            never = refuse(steering) => match never {},
        }
    }

    /// Plays steps as often as wanted.
    fn play<'s>(&'s mut self, times: u64, steps: &'s [Step]) -> BoxFuture<'s, Result<(), Failure>> {
        Box::pin(async move {
            for _ in 0..times {
                for step in steps {
                    match step {
                        Step::Pass(object) => self.pass(object).await,
                        Step::Repeat(times, steps) => self.play(*times, steps).await?,
                        other => self.step(other).await?,
                    }
                }
            }
            Ok(())
        })
    }

    async fn step(&mut self, step: &Step) -> Result<(), Failure> {
        match step {
            // These two are played where they are repeated.
            Step::Pass(_) | Step::Repeat(..) => {}
            Step::Wait(millis) => tokio::time::sleep(Duration::from_millis(*millis)).await,
            Step::Permission(permission) => self.permission(permission).await,
            Step::Ask(payload) => self.ask(payload).await,
            Step::Steer => self.steer().await,
            Step::Host { method, params } => {
                let answer = self.desk.host_call(method, params.clone()).await;
                self.tell_answer(match answer {
                    Ok(ok) => json!({ "type": "scripted/answer", "ok": ok }),
                    Err(error) => json!({ "type": "scripted/answer", "error": error }),
                });
            }
            Step::Run(command) => self.run(command).await?,
            Step::Hang => std::future::pending().await,
            Step::Fail(message) => return Err(Failure::new(FailureCode::Provider, message)),
            Step::LoseResume(reason) => {
                if let Some(resume) = self.resume.take() {
                    self.desk.context_lost(&resume, reason);
                }
            }
        }
        Ok(())
    }

    async fn pass(&mut self, object: &str) {
        self.desk.pass(object);
        self.told.objects += 1;
        self.told.bytes += object.len();
        if self.told.objects >= BATCH.objects || self.told.bytes >= BATCH.bytes {
            self.told = Batch { objects: 0, bytes: 0 };
            self.desk.room().await;
            // Also when there is room: a stop must be seen, and a script is not the only thing that runs.
            tokio::task::yield_now().await;
        }
    }

    async fn permission(&mut self, permission: &Permission) {
        let mut asked = self.desk.ask_permission(PermissionAsk {
            id: next_question("permission"),
            call_id: None,
            tool_name: permission.tool.clone(),
            tool_input: permission.input.clone(),
            title: None,
            description: None,
            suggestions: permission.suggestions.clone(),
            required: true,
        });
        self.tell_answer(match asked.answer().await {
            Some(Verdict::Allow { updated }) => {
                json!({ "type": "scripted/answer", "behavior": "allow", "updatedPermissions": updated })
            }
            Some(Verdict::Deny { message }) => {
                let message = message.unwrap_or_else(|| "User denied".to_owned());
                json!({ "type": "scripted/answer", "behavior": "deny", "message": message })
            }
            None => return,
        });
    }

    async fn ask(&mut self, payload: &Value) {
        let message = payload.get("message").and_then(Value::as_str).unwrap_or("The script asks");
        let mut asked = self.desk.ask_input(InputAsk {
            id: next_question("input"),
            source: "Script".to_owned(),
            message: message.to_owned(),
            payload: payload.clone(),
        });
        let Some(answer) = asked.answer().await else { return };
        let action = match answer.action {
            InputAction::Submit => "submit",
            InputAction::Decline => "decline",
            InputAction::Cancel => "cancel",
        };
        let mut told = json!({ "type": "scripted/answer", "action": action });
        if let Some(content) = answer.content {
            told["content"] = Value::Object(content);
        }
        if let Some(meta) = answer.meta {
            told["meta"] = Value::Object(meta);
        }
        self.tell_answer(told);
    }

    async fn steer(&mut self) {
        // Once the sidecar wants no more, nobody will steer; the script goes on.
        if let Some(Steering { steer, taken }) = self.steering.recv().await {
            self.desk.steered(&steer);
            // Who asked may have gone; the steer is taken all the same.
            let _ = taken.send(Ok(()));
        }
    }

    async fn run(&mut self, command: &[String]) -> Result<(), Failure> {
        let Some((program, args)) = command.split_first() else { return Ok(()) };
        let (agent, pipes) = self.child.start(self.programs, self.command(program, args)?).await?;
        drop(pipes.stdin);
        let mut lines = LineReader::new(pipes.stdout, dialect::logs(LONGEST_LINE));
        while let Ok(Some(item)) = lines.next().await {
            if let Item::Line(line) = item {
                let told = json!({ "type": "scripted/output", "text": line.text_lossy() }).to_string();
                self.pass(&told).await;
            }
        }
        let ended = agent.child().wait().await;
        self.child.release().await;
        let how = ended.report.map_or_else(|| "it was stopped".to_owned(), |report| report.to_string());
        self.tell_answer(json!({ "type": "scripted/exited", "how": how }));
        Ok(())
    }

    fn command(&self, program: &str, args: &[String]) -> Result<Command, Failure> {
        let search = std::env::var_os("PATH").unwrap_or_default();
        let found = if program.contains('/') {
            Some(program.into())
        } else {
            crate::provider::locate::on_path(&search, program)
        };
        let program = found.ok_or_else(|| {
            Failure::new(
                FailureCode::NotInstalled,
                format!("the script runs `{program}`, which is not on PATH"),
            )
        })?;
        Ok(Command {
            name: self.name.to_owned(),
            program,
            args: args.iter().map(OsString::from).collect(),
            cwd: self.cwd.clone(),
            set: Vec::new(),
            unset: Vec::new(),
        })
    }

    fn tell_answer(&self, object: Value) {
        self.desk.pass(&object.to_string());
    }
}

/// A name for a question, unlike that of any other of this process: a late answer must not reach another question.
fn next_question(kind: &str) -> String {
    static ASKED: AtomicU64 = AtomicU64::new(1);
    format!("scripted-{kind}-{}", ASKED.fetch_add(1, Ordering::Relaxed))
}

/// Tells everybody who steers that nobody listens.
async fn refuse(mut steering: mpsc::Receiver<Steering>) -> std::convert::Infallible {
    while let Some(Steering { taken, .. }) = steering.recv().await {
        let _ = taken.send(Err("the script takes no steer in this turn".to_owned()));
    }
    std::future::pending().await
}
