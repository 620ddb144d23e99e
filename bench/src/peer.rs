//! JSON-RPC calls per second through two peers over a Unix socket pair, against a bare newline echo over the same.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use outrigger_wire::line::dialect;
use outrigger_wire::peer::{
    Answer, BoxFuture, Call, CancelWire, Crowded, Deadline, DuplicateIds, Handler, IncomingLimits, NoMethods,
    Note, OutboxLimits, Peer, PeerConfig, Wiring,
};
use outrigger_wire::rpc::{EnvelopePolicy, ErrorObject, code};
use serde_json::value::{RawValue, to_raw_value};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::runtime::Runtime;

use crate::Filter;
use crate::measure::medians;
use crate::table::{Goal, Nanos, Row};

/// Calls per round: enough to last longer than the clock's grain and the start of a task.
const ONE_BY_ONE: usize = 200;
const PIPELINED: usize = 20_000;
/// How many pipelined calls are in flight at once.
const IN_FLIGHT: usize = 256;

pub(crate) fn bench(_: &Filter) -> Result<Vec<Row>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let client = runtime.block_on(async { connect() })?;
    let params: Arc<RawValue> = Arc::from(to_raw_value(&["a param", "and another"])?);
    let mut echo = runtime.block_on(async { Echo::start() })?;
    let mut echo_pipelined = runtime.block_on(async { Echo::start() })?;

    let [ours_single, theirs_single, ours_pipelined, theirs_pipelined] = medians(
        31,
        [
            &mut || runtime.block_on(one_by_one(&client, &params)),
            &mut || runtime.block_on(echo.one_by_one()),
            &mut || pipelined(&runtime, &client, &params),
            &mut || runtime.block_on(echo_pipelined.pipelined()),
        ],
    )?;
    let row = |name: &str, ours: Duration, theirs: Duration, calls: usize, goal| Row {
        name: name.into(),
        unit: "call",
        ours: Ok(Nanos::each(ours, calls)),
        baseline: "newline echo, same socket pair",
        theirs: Nanos::each(theirs, calls),
        goal,
    };
    Ok(vec![
        row("peer/one by one", ours_single, theirs_single, ONE_BY_ONE, Goal::Shown),
        row("peer/pipelined", ours_pipelined, theirs_pipelined, PIPELINED, Goal::Shown),
    ])
}

const CONFIG: PeerConfig = PeerConfig {
    lines: dialect::STEERABLE,
    envelope: EnvelopePolicy::STANDARD,
    max_line_out: 1 << 20,
    max_calls: 4096,
    incoming: IncomingLimits { running: 256, waiting: 4096, notifications: 256, crowded: Crowded::Pause },
    outbox: OutboxLimits { bytes: 1 << 20, reply_bytes: 1 << 20, events: 256, event_bytes: 1 << 18 },
    write_stall: Duration::from_secs(10),
    drain: Duration::from_secs(1),
    cancel: CancelWire::Notify("$/cancel"),
    duplicate_ids: DuplicateIds::Refuse,
};

struct EchoHandler;

impl Handler for EchoHandler {
    fn request(&self, call: Call) -> Answer {
        // Later, although it is known now: a real handler waits for something.
        Answer::Later(Box::pin(async move {
            call.params.ok_or_else(|| ErrorObject::new(code::INVALID_PARAMS, "params are missing"))
        }))
    }

    fn notification(&self, _: Note) -> Option<BoxFuture<()>> {
        None
    }
}

/// A client whose server lives in a task that holds it.
fn connect() -> Result<Peer> {
    let (near, far) = UnixStream::pair()?;
    let (input, output) = far.into_split();
    let server = Peer::start(Wiring::new(input, output), Arc::new(EchoHandler), CONFIG);
    tokio::spawn(async move { server.ended().await });
    let (input, output) = near.into_split();
    Ok(Peer::start(Wiring::new(input, output), Arc::new(NoMethods), CONFIG))
}

async fn one_by_one(client: &Peer, params: &RawValue) -> Result<()> {
    for _ in 0..ONE_BY_ONE {
        let answer = client.call("echo", Some(params), Deadline::After(Duration::from_secs(5))).await?;
        ensure!(answer.get() == params.get(), "wrong answer");
    }
    Ok(())
}

fn pipelined(runtime: &Runtime, client: &Peer, params: &Arc<RawValue>) -> Result<()> {
    let callers: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (client, params) = (client.clone(), Arc::clone(params));
            runtime.spawn(async move {
                for _ in 0..PIPELINED / IN_FLIGHT {
                    client.call("echo", Some(&params), Deadline::After(Duration::from_secs(5))).await?;
                }
                anyhow::Ok(())
            })
        })
        .collect();
    for caller in callers {
        runtime.block_on(caller)??;
    }
    Ok(())
}

/// The least that can be done: lines of the same length, echoed by a task that looks only for newlines.
struct Echo {
    input: BufReader<tokio::net::unix::OwnedReadHalf>,
    output: tokio::net::unix::OwnedWriteHalf,
    line: Vec<u8>,
}

impl Echo {
    fn start() -> Result<Self> {
        let (near, far) = UnixStream::pair()?;
        tokio::spawn(async move {
            let (mut input, mut output) = far.into_split();
            let mut chunk = vec![0; 32 * 1024];
            while let Ok(got @ 1..) = input.read(&mut chunk).await {
                if output.write_all(&chunk[..got]).await.is_err() {
                    return;
                }
            }
        });
        let (input, output) = near.into_split();
        let line = br#"{"jsonrpc":"2.0","id":12345,"method":"echo","params":["a param","and another"]}"#;
        let line = [&line[..], b"\n"].concat();
        Ok(Self { input: BufReader::with_capacity(32 * 1024, input), output, line })
    }

    async fn one_by_one(&mut self) -> Result<()> {
        let mut back = Vec::new();
        for _ in 0..ONE_BY_ONE {
            self.output.write_all(&self.line).await?;
            back.clear();
            self.input.read_until(b'\n', &mut back).await?;
            ensure!(back == self.line, "wrong echo");
        }
        Ok(())
    }

    async fn pipelined(&mut self) -> Result<()> {
        let mut back = Vec::new();
        let burst = self.line.repeat(IN_FLIGHT);
        for _ in 0..PIPELINED / IN_FLIGHT {
            self.output.write_all(&burst).await?;
            for _ in 0..IN_FLIGHT {
                back.clear();
                let got = self.input.read_until(b'\n', &mut back).await?;
                ensure!(got == self.line.len(), "wrong echo");
            }
        }
        Ok(())
    }
}
