//! A model server on the loopback, for as long as the streams are tried: chat completions in a few sorts, told by the model's name.

use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// The longest request that is read.
const MOST_BYTES: usize = 1 << 20;

/// What the model `check-text` says, word by word; the first character of more than one byte arrives in two pieces.
pub(super) const TEXT: &str = "Grüße, 世界 – done.";

/// The server. Dropping it closes it and its connections.
pub(super) struct Server {
    address: String,
    task: AbortHandle,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(super) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://{}/v1", listener.local_addr()?);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((connection, _)) => {
                            connections.spawn(serve(connection));
                        }
                        Err(_) => return,
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        Ok(Self { address, task: task.abort_handle() })
    }

    /// The params of a stream of this model.
    pub(super) fn stream(&self, model: &str, stream: &str) -> Value {
        json!({
            "provider": "openai", "model": model, "baseUrl": self.address, "apiKey": "check",
            "messages": [{"role": "user", "content": "Say it."}], "streamId": stream,
        })
    }
}

async fn serve(mut connection: TcpStream) -> io::Result<()> {
    let body = read_request(&mut connection).await?;
    let model = body["model"].as_str().unwrap_or_default();
    match model {
        "check-refused" => {
            let body = r#"{"error":{"message":"wrong key","type":"invalid_request_error"}}"#;
            let head = "HTTP/1.1 401 Unauthorized\r\nContent-Type: application/json\r\nConnection: close\r\n";
            let answer = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
            connection.write_all(answer.as_bytes()).await
        }
        "check-hang" => {
            connection.write_all(HEAD).await?;
            connection.write_all(event(&delta("waiting")).as_bytes()).await?;
            // Until the other side has had enough.
            connection.read(&mut [0; 1]).await.map(drop)
        }
        "check-tools" => {
            let mut events = String::new();
            for part in [
                json!({"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"first","arguments":""}}]}),
                json!({"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"second","arguments":"{\"b\":"}}]}),
                json!({"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]}),
                json!({"tool_calls":[{"index":1,"function":{"arguments":"[2]}"}},{"index":0,"function":{"arguments":"1}"}}]}),
            ] {
                events.push_str(&event(&json!({"choices":[{"index":0,"delta":part}]})));
            }
            events.push_str(&event(&finish("tool_calls")));
            finish_with(connection, events.as_bytes()).await
        }
        _ => {
            let mut events: Vec<u8> = b": hello\r\n\r\n".to_vec();
            for piece in TEXT.split_inclusive(' ') {
                events.extend_from_slice(event(&delta(piece)).as_bytes());
            }
            events.extend_from_slice(event(&finish("stop")).as_bytes());
            let usage =
                json!({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}});
            events.extend_from_slice(event(&usage).as_bytes());
            connection.write_all(HEAD).await?;
            // Byte by byte around the first character of more than one, so that it arrives in pieces.
            let (first, rest) =
                events.split_at(events.iter().position(|byte| *byte > 127).map_or(0, |at| at + 1));
            connection.write_all(first).await?;
            connection.flush().await?;
            tokio::task::yield_now().await;
            connection.write_all(rest).await?;
            connection.write_all(b"data: [DONE]\n\n").await?;
            connection.shutdown().await
        }
    }
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

async fn finish_with(mut connection: TcpStream, events: &[u8]) -> io::Result<()> {
    connection.write_all(HEAD).await?;
    connection.write_all(events).await?;
    connection.write_all(b"data: [DONE]\n\n").await?;
    connection.shutdown().await
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

fn delta(text: &str) -> Value {
    json!({"choices":[{"index":0,"delta":{"content":text}}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices":[{"index":0,"delta":{},"finish_reason":reason}]})
}

/// Reads the head and the body of a request; the body is JSON or nothing.
async fn read_request(connection: &mut TcpStream) -> io::Result<Value> {
    let mut bytes = Vec::new();
    loop {
        let mut part = [0; 4096];
        let read = connection.read(&mut part).await?;
        bytes.extend_from_slice(&part[..read]);
        if let Some(body) = whole(&bytes) {
            return Ok(serde_json::from_slice(body).unwrap_or_default());
        }
        if read == 0 || bytes.len() > MOST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// The body, once all of it is there. A request in chunks ends with an empty one, and is then only looked into for the model.
fn whole(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let body = &bytes[end + 4..];
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    match length {
        Some(length) if body.len() >= length => Some(&body[..length]),
        Some(_) => None,
        None if head.contains("transfer-encoding: chunked") => {
            if !body.ends_with(b"0\r\n\r\n") {
                return None;
            }
            let (from, to) =
                (body.iter().position(|byte| *byte == b'{')?, body.iter().rposition(|byte| *byte == b'}')?);
            Some(&body[from..=to])
        }
        None => Some(body),
    }
}
