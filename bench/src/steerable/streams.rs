//! Twenty streams of five thousand chunks at once: what a chunk costs, and how long a ping waits meanwhile.

use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Group;
use super::{relay, server};
use crate::child::Child;
use crate::figure::{Figure, Measured, Spread, Target};

pub(super) const GROUP: Group = Group { rows: &[CHUNK, PING], measure };

const CHUNK: &str = "steerable/chunk-of-20-streams";
const PING: &str = "steerable/ping-beside-20-streams";

const STREAMS: u32 = 20;
const ROUNDS: usize = 10;
/// Between two pings.
const PAUSE: Duration = Duration::from_millis(1);

fn measure() -> Result<Vec<Figure>> {
    let mut server = Child::ourselves(&[server::ARGUMENT.to_owned()])?;
    let port = server.hear()?.to_owned();
    let mut sidecar = super::sidecar()?;
    ensure!(sidecar.hear()?.contains("lifecycle.ready"), "the first line is another one");
    let mut relay = Child::ourselves(&[relay::ARGUMENT.to_owned(), port.clone(), STREAMS.to_string()])?;
    let (mut wall, mut processor, mut floor, mut floor_processor) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let chunks = STREAMS * server::CHUNKS;
    let mut pings = Vec::new();
    for round in 0..=ROUNDS {
        let before = sidecar.processor_time()?;
        let start = Instant::now();
        stream(&mut sidecar, &port, round)?;
        wall.push(start.elapsed() / chunks);
        processor.push((sidecar.processor_time()? - before) / chunks);
        let before = relay.processor_time()?;
        let start = Instant::now();
        copy(&mut relay)?;
        floor.push(start.elapsed() / chunks);
        floor_processor.push((relay.processor_time()? - before) / chunks);
        if round == 0 {
            for times in [&mut wall, &mut processor, &mut floor, &mut floor_processor] {
                times.clear();
            }
        }
        pings.extend(ping(&mut sidecar, &port, round)?);
    }
    pings.sort_unstable();
    let late = *pings.get(pings.len() * 99 / 100).context("nothing was pinged")?;
    let spread = |times| Spread::of(times).context("nothing was timed");
    let (wall, processor) = (spread(wall)?, spread(processor)?);
    let copied = spread(floor_processor)?;
    Ok(vec![
        Figure {
            name: CHUNK,
            measured: Ok(Measured::Time { wall, processor: Some(processor) }),
            floor: Some(("bare relay", spread(floor)?)),
            goal: Target::Processor(Duration::from_nanos(1_000_000_000 / 300_000)),
            note: format!(
                "{:.0} a second of one core; {STREAMS} streams of {} chunks; the relay uses {} ns of a core for one",
                1.0 / processor.median.as_secs_f64(),
                server::CHUNKS,
                copied.median.as_nanos(),
            ),
        },
        Figure {
            name: PING,
            measured: Ok(Measured::Time { wall: Spread { best: pings[0], median: late }, processor: None }),
            floor: None,
            goal: Target::Wall(Duration::from_millis(5)),
            note: format!("the 99th percentile of {}, and the best", pings.len()),
        },
    ])
}

/// Starts all streams, and reads until all have ended.
fn stream(sidecar: &mut Child, port: &str, round: usize) -> Result<()> {
    begin(sidecar, port, round)?;
    let (mut chunks, mut done) = (0, 0);
    let mut line = Vec::new();
    while done < STREAMS {
        line.clear();
        ensure!(sidecar.output.read_until(b'\n', &mut line)? > 0, "the sidecar ended");
        match line.get(27..39) {
            Some(b"stream.chunk") => chunks += 1,
            Some(b"stream.done\"") => done += 1,
            Some(b"stream.error") => anyhow::bail!("{}", String::from_utf8_lossy(&line)),
            _ => {}
        }
    }
    // One more of each stream says why it ended.
    ensure!(chunks == STREAMS * (server::CHUNKS + 1), "{chunks} chunks came");
    Ok(())
}

fn begin(sidecar: &mut Child, port: &str, round: usize) -> Result<()> {
    for number in 0..STREAMS {
        sidecar.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{number},"method":"agent.chat.stream","params":{{"provider":"openai_compat","model":"bench","baseUrl":"http://127.0.0.1:{port}/v1","streamId":"s{round}-{number}","messages":[{{"role":"user","content":"go"}}]}}}}"#
        ))?;
    }
    Ok(())
}

/// How long pings wait while all streams run.
fn ping(sidecar: &mut Child, port: &str, round: usize) -> Result<Vec<Duration>> {
    begin(sidecar, port, round + 1000)?;
    let (mut done, mut answered) = (0, 0);
    let (asked, asks) = std::sync::mpsc::channel::<Instant>();
    let mut times = Vec::new();
    let over = std::sync::atomic::AtomicBool::new(false);
    let mut input = &sidecar.input;
    let output = &mut sidecar.output;
    std::thread::scope(|scope| -> Result<()> {
        scope.spawn(|| {
            while !over.load(std::sync::atomic::Ordering::Relaxed) {
                let line = "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"system.ping\"}\n";
                let now = Instant::now();
                if input.write_all(line.as_bytes()).is_err() || asked.send(now).is_err() {
                    return;
                }
                std::thread::sleep(PAUSE);
            }
            drop(asked);
        });
        let mut line = Vec::new();
        let heard = loop {
            line.clear();
            if output.read_until(b'\n', &mut line)? == 0 {
                break Err(anyhow::anyhow!("the sidecar ended"));
            }
            if line.get(17..25) == Some(b"\"id\":\"p\"") {
                answered += 1;
                // The time was sent before the answer could be.
                if let Ok(at) = asks.recv() {
                    times.push(at.elapsed());
                }
            } else if line.get(27..38) == Some(b"stream.done") {
                done += 1;
            }
            if done == STREAMS {
                break Ok(());
            }
        };
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        heard?;
        // The answers to the last pings belong to nobody's stream.
        while asks.recv().is_ok() {
            answered += 1;
            line.clear();
            output.read_until(b'\n', &mut line)?;
        }
        Ok(())
    })?;
    ensure!(answered > 0, "no ping was answered while the streams ran");
    Ok(times)
}

fn copy(relay: &mut Child) -> Result<()> {
    relay.say("")?;
    let mut line = Vec::new();
    loop {
        line.clear();
        ensure!(relay.output.read_until(b'\n', &mut line)? > 0, "the relay ended");
        if line == b"done\n" {
            return Ok(());
        }
    }
}
