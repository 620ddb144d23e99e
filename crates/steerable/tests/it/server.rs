//! A model server on loopback that does what a test says, faults included: threads and plain sockets, no runtime of its own.
//!
//! [`Server::scenarios`] chooses its answer by the model's name (see `server_scenarios.rs`), so that a test on the far side
//! of a process can steer it; [`Server::start`] takes any function from request to [`Answer`].

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::Value;

/// How long anything is waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    pub(crate) method: String,
    /// Path and query.
    pub(crate) path: String,
    /// Names in small letters.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// How many requests came before it.
    pub(crate) number: usize,
}

impl Got {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// What the server does with a request.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A whole body with its length.
    Whole { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    /// Headers of an event stream, then the steps.
    Stream(Vec<Step>),
    /// Not even headers, until the client hangs up.
    Silence,
}

/// One step of a streamed answer.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One HTTP chunk.
    Chunk(Vec<u8>),
    /// The end of the body, as it should be. The connection can be used again.
    End,
    /// The connection is closed without the end of the body.
    Cut,
    /// The connection is reset.
    Reset,
    /// Nothing more, until the client hangs up.
    Hang,
    /// A pause, for tests of cancelling in the middle.
    Pause(Duration),
}

impl Answer {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::Whole {
            status,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.to_string().into_bytes(),
        }
    }

    /// One chunk and a proper end.
    pub(crate) fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::Stream(vec![Step::Chunk(body.into()), Step::End])
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        if let Self::Whole { headers, .. } = &mut self {
            headers.push((name.to_owned(), value.to_owned()));
        }
        self
    }
}

/// The server; it stops listening when it is dropped.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    answer: Box<dyn Fn(&Got) -> Answer + Send + Sync>,
    requests: Mutex<Vec<Got>>,
    connections: AtomicUsize,
    hangups: Mutex<usize>,
    hung_up: Condvar,
    stopped: AtomicBool,
}

impl Server {
    /// Answers every request as the function says.
    pub(crate) fn start(answer: impl Fn(&Got) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            answer: Box::new(answer),
            requests: Mutex::new(Vec::new()),
            connections: AtomicUsize::new(0),
            hangups: Mutex::new(0),
            hung_up: Condvar::new(),
            stopped: AtomicBool::new(false),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { return };
                accepting.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&accepting);
                thread::spawn(move || serve(&shared, stream));
            }
        });
        Self { address, shared }
    }

    /// Answers by the model's name, in the dialect of the path.
    pub(crate) fn scenarios() -> Self {
        Self::start(crate::server_scenarios::answer)
    }

    /// `http://127.0.0.1:PORT`.
    pub(crate) fn root(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://127.0.0.1:PORT/v1`.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Everything that was asked so far.
    pub(crate) fn requests(&self) -> Vec<Got> {
        self.shared.requests.lock().unwrap().clone()
    }

    /// How many connections were made.
    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Waits until so many clients hung up while the server was silent; says whether they did within ten seconds.
    pub(crate) fn sees_hangups(&self, count: usize) -> bool {
        let hangups = self.shared.hangups.lock().unwrap();
        let waited = self.shared.hung_up.wait_timeout_while(hangups, PATIENCE, |seen| *seen < count);
        *waited.unwrap().0 >= count
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // The listener is woken by one last connection.
        drop(TcpStream::connect(self.address));
    }
}

/// Serves one connection until it ends. Errors of the socket mean that the client is gone, which is its right.
fn serve(shared: &Shared, stream: TcpStream) {
    stream.set_nodelay(true).unwrap();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut stream = stream;
    while let Some(mut got) = read_request(&mut reader) {
        {
            let mut requests = shared.requests.lock().unwrap();
            got.number = requests.len();
            requests.push(got.clone());
        }
        let goes_on = match (shared.answer)(&got) {
            Answer::Whole { status, headers, body } => write_whole(&mut stream, status, &headers, &body),
            Answer::Stream(steps) => write_stream(shared, &mut stream, &mut reader, steps),
            Answer::Silence => {
                wait_for_hangup(shared, &mut reader);
                None
            }
        };
        if goes_on.is_none() {
            return;
        }
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Got> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut words = line.split_whitespace();
    let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some(Got { method, path, headers, body, number: 0 })
}

fn write_whole(stream: &mut TcpStream, status: u16, headers: &[(String, String)], body: &[u8]) -> Option<()> {
    let mut head = format!("HTTP/1.1 {status} Some Reason\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()
}

fn write_stream(
    shared: &Shared,
    stream: &mut TcpStream,
    reader: &mut BufReader<TcpStream>,
    steps: Vec<Step>,
) -> Option<()> {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    for step in steps {
        match step {
            Step::Chunk(bytes) => {
                let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                chunk.extend_from_slice(&bytes);
                chunk.extend_from_slice(b"\r\n");
                stream.write_all(&chunk).ok()?;
            }
            Step::End => {
                stream.write_all(b"0\r\n\r\n").ok()?;
                return Some(());
            }
            Step::Cut => {
                stream.shutdown(Shutdown::Both).ok()?;
                return None;
            }
            Step::Reset => {
                rustix::net::sockopt::set_socket_linger(&*stream, Some(Duration::ZERO)).unwrap();
                return None;
            }
            Step::Hang => {
                wait_for_hangup(shared, reader);
                return None;
            }
            Step::Pause(duration) => thread::sleep(duration),
        }
    }
    None
}

fn wait_for_hangup(shared: &Shared, reader: &mut BufReader<TcpStream>) {
    let mut byte = [0];
    if matches!(reader.read(&mut byte), Ok(0) | Err(_)) {
        *shared.hangups.lock().unwrap() += 1;
        shared.hung_up.notify_all();
    }
}
