//! How much anybody may want of the server at once.

use std::time::Duration;

/// What the server gives. Everything has a bound: whoever is past it is told so, and nothing grows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerLimits {
    /// Connections at the same time; one more is told to come back.
    pub(crate) connections: usize,
    /// Of those, how many may be event streams, so that streams cannot keep requests out.
    pub(crate) streams: usize,
    /// Requests a second, over all connections. A stream is one request.
    pub(crate) per_second: u32,
    /// Requests that may come at once after a quiet time.
    pub(crate) burst: u32,
    /// The request line and the headers together.
    pub(crate) head_bytes: usize,
    /// The body of a request.
    pub(crate) body_bytes: usize,
    /// From the first byte of a request (or the connection) to the end of its headers.
    pub(crate) head_within: Duration,
    /// From the end of the headers to the end of the body.
    pub(crate) body_within: Duration,
    /// How long a connection may stay open with nothing asked.
    pub(crate) idle_within: Duration,
    /// How long a reader may take nothing of what is written to it.
    pub(crate) stall_within: Duration,
    /// How often the reader of a stream who hears nothing is told that we are still there.
    pub(crate) heartbeat: Duration,
    /// How long requests under way have when the daemon leaves.
    pub(crate) drain_within: Duration,
}

impl ServerLimits {
    /// What one person with a browser, a few programs and a scraper needs, with room to spare.
    pub(crate) const USUAL: Self = Self {
        connections: 512,
        streams: 256,
        per_second: 500,
        burst: 1000,
        head_bytes: 64 << 10,
        body_bytes: 4 << 20,
        head_within: Duration::from_secs(10),
        body_within: Duration::from_secs(30),
        idle_within: Duration::from_secs(60),
        stall_within: Duration::from_secs(30),
        heartbeat: Duration::from_secs(15),
        drain_within: Duration::from_secs(5),
    };
}
