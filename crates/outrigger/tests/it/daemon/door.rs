//! The door of a daemon: plain HTTP/1.1 over a socket, so that tests see what is on the wire.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::process::PATIENCE;

/// Where a daemon listens, and the token that lets one in.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) address: String,
    pub(crate) token: String,
}

/// What was answered.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Door {
    pub(crate) fn new(address: &str, token: &str) -> Self {
        Self { address: address.to_owned(), token: token.to_owned() }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &[("content-type", "application/json")], body.to_string().as_bytes())
    }

    pub(crate) fn delete(&self, path: &str) -> Response {
        self.send("DELETE", path, &[], b"")
    }

    /// One request with the token, and its answer.
    pub(crate) fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Response {
        let bearer = format!("Bearer {}", self.token);
        let mut all = vec![("host", self.address.as_str()), ("authorization", bearer.as_str())];
        all.extend_from_slice(headers);
        self.raw(method, path, &all, body).unwrap_or_else(|error| panic!("{method} {path}: {error}"))
    }

    /// One request with exactly these headers.
    pub(crate) fn raw(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<Response> {
        let mut reader = self.open(method, path, headers, body)?;
        let (status, headers) = head(&mut reader)?;
        let mut response = Response { status, headers, body: Vec::new() };
        if response.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            while let Some(chunk) = chunk(&mut reader)? {
                response.body.extend(chunk);
            }
        } else {
            reader.read_to_end(&mut response.body)?;
        }
        Ok(response)
    }

    fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<BufReader<TcpStream>> {
        let mut socket = TcpStream::connect(&self.address)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        let mut request = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() || method == "POST" {
            request.push_str(&format!("content-length: {}\r\n", body.len()));
        }
        request.push_str("\r\n");
        socket.write_all(request.as_bytes())?;
        socket.write_all(body)?;
        Ok(BufReader::new(socket))
    }

    /// Server-sent events of a path, from after this id if there is one.
    pub(crate) fn stream(&self, path: &str, last_id: Option<u64>) -> std::io::Result<Stream> {
        let bearer = format!("Bearer {}", self.token);
        let last = last_id.map(|id| id.to_string());
        let mut headers = vec![
            ("host", self.address.as_str()),
            ("authorization", bearer.as_str()),
            ("accept", "text/event-stream"),
        ];
        headers.extend(last.as_deref().map(|last| ("last-event-id", last)));
        let mut reader = self.open("GET", path, &headers, b"")?;
        let (status, _) = head(&mut reader)?;
        assert_eq!(status, 200, "{path}");
        Ok(Stream { reader, text: String::new() })
    }
}

/// Server-sent events as they come.
pub(crate) struct Stream {
    reader: BufReader<TcpStream>,
    text: String,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) id: Option<u64>,
    pub(crate) name: String,
    pub(crate) data: String,
}

impl Stream {
    /// The next event; none when the stream has ended, however it has.
    pub(crate) fn next(&mut self) -> Option<Sent> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let (event, rest) = (event.to_owned(), rest.to_owned());
                self.text = rest;
                if let Some(sent) = Sent::read(&event) {
                    return Some(sent);
                }
                continue;
            }
            let more = chunk(&mut self.reader).ok()??;
            self.text.push_str(&String::from_utf8(more).expect("events are text"));
        }
    }
}

impl Sent {
    /// None for comments and settings.
    fn read(text: &str) -> Option<Self> {
        let mut sent = Self { id: None, name: "message".to_owned(), data: String::new() };
        for line in text.lines() {
            let (name, value) = line.split_once(':')?;
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "id" => sent.id = value.parse().ok(),
                "event" => value.clone_into(&mut sent.name),
                "data" => sent.data.push_str(value),
                _ => {}
            }
        }
        (!sent.data.is_empty()).then_some(sent)
    }
}

impl Response {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(found, _)| found.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// The same, if it has this status.
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

fn head(reader: &mut impl BufRead) -> std::io::Result<(u16, Vec<(String, String)>)> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| std::io::Error::other(format!("no answer: {line:?}")))?;
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_owned(), value.to_owned())),
            None => return Ok((status, headers)),
        }
    }
}

/// One chunk of a chunked body; none at its end.
fn chunk(reader: &mut impl BufRead) -> std::io::Result<Option<Vec<u8>>> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let Ok(length @ 1..) = usize::from_str_radix(line.trim(), 16) else { return Ok(None) };
    let mut bytes = vec![0; length + 2];
    reader.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(Some(bytes))
}
