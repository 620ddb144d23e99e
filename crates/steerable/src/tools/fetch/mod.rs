//! `web_fetch`: a page of an allowed host as text. Every host on the way is judged, and every address that is connected to.
//!
//! It never goes through a proxy: a proxy would look names up itself, and nobody would have judged what it found.

mod address;
mod html;
mod page;

use std::sync::Arc;
use std::time::Duration;

use outrigger_policy::Host;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url};
use serde_json::json;
use serde_json::value::RawValue;

use self::address::{Resolver, judge_address};
use super::arguments::Arguments;
use super::files::Trouble;
use super::grants::Hosts;
use super::tool::{Mode, Place, Tool, Turns};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};
use crate::net::http::{builder, chain};

/// Bytes that are read of a page, unless the call says otherwise.
const USUAL_BYTES: u64 = 1 << 20;

/// Bytes that are read of a page at most.
const MAX_BYTES: u64 = 8 << 20;

/// How many times a server may send us on.
const MAX_HOPS: usize = 10;

/// How long all of it may take.
const WITHIN: Duration = Duration::from_secs(60);

/// How long a server may take to be connected to.
const CONNECT: Duration = Duration::from_secs(10);

/// The tool.
pub(super) struct WebFetch {
    spec: ToolSpec,
}

impl WebFetch {
    pub(super) fn new() -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The address, with http:// or https://."},
                "maxBytes": {"type": "integer", "minimum": 1, "maximum": MAX_BYTES, "description": "How much of the page is read. Default: 1048576."},
            },
            "required": ["url"],
            "additionalProperties": false,
        });
        let description = "Fetches a page by GET and answers with its text; HTML is reduced to what a person would read. Only hosts \
                           that were allowed can be reached.";
        Self { spec: super::toolbox::spec("web_fetch", description, &parameters) }
    }
}

impl Tool for WebFetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn mode(&self) -> Mode {
        Mode::Read
    }

    fn turns(&self) -> Turns {
        Turns::Together
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let arguments = match Arguments::read(&self.spec, arguments) {
                Ok(arguments) => arguments,
                Err(refused) => return refused,
            };
            let max_bytes = arguments.number("maxBytes", USUAL_BYTES).min(MAX_BYTES);
            let hosts = Arc::new(at.grants.hosts.clone());
            let fetched =
                tokio::time::timeout(WITHIN, fetch(arguments.string("url"), &hosts, max_bytes)).await;
            let slow = || Err(Trouble::Failed(format!("it took longer than {} s", WITHIN.as_secs())));
            fetched
                .unwrap_or_else(|_| slow())
                .unwrap_or_else(|trouble| trouble.into_result(&self.spec.name, Mode::Read))
        })
    }
}

async fn fetch(address: &str, hosts: &Arc<Hosts>, max_bytes: u64) -> Result<ToolResult, Trouble> {
    let mut url = Url::parse(address)
        .map_err(|error| Trouble::Failed(format!("`{address}` is no address: {error}")))?;
    for hop in 0..=MAX_HOPS {
        let response = get(&url, hosts).await.map_err(|trouble| sent_on(trouble, hop, address))?;
        let status = response.status();
        let next = response.headers().get(LOCATION).filter(|_| status.is_redirection());
        let Some(next) = next else {
            return read(response, url, max_bytes).await;
        };
        let next = next.to_str().ok().and_then(|next| url.join(next).ok());
        url = next.ok_or_else(|| Trouble::Failed(format!("`{url}` sends us to no address")))?;
    }
    Err(Trouble::Failed(format!("`{address}` sends us on more than {MAX_HOPS} times")))
}

/// A refusal that says how we came to the address.
fn sent_on(trouble: Trouble, hop: usize, address: &str) -> Trouble {
    match trouble {
        Trouble::Denied(reason) if hop > 0 => Trouble::Denied(format!("`{address}` sends us on: {reason}")),
        other => other,
    }
}

async fn get(url: &Url, hosts: &Arc<Hosts>) -> Result<Response, Trouble> {
    let port = judge(url, hosts)?;
    let resolver = Arc::new(Resolver::new(Arc::clone(hosts), port));
    let client = client(url.clone(), Arc::clone(&resolver)).await?;
    let response =
        client.get(url.clone()).header(ACCEPT, "text/html, text/*;q=0.9, application/json, */*;q=0.5");
    response.send().await.map_err(|error| match resolver.refusal() {
        Some(reason) => Trouble::Denied(reason),
        None => Trouble::Failed(format!("`{url}`: {}", chain(&error.without_url()))),
    })
}

/// Judges an address as it is written, and gives its port.
fn judge(url: &Url, hosts: &Hosts) -> Result<u16, Trouble> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Trouble::Denied(format!("`{url}` is neither http nor https")));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Trouble::Denied("an address with a user or a password in it is not fetched".to_owned()));
    }
    let (Some(name), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
        return Err(Trouble::Failed(format!("`{url}` names no host")));
    };
    let bracketed =
        if name.contains(':') && !name.starts_with('[') { format!("[{name}]") } else { name.to_owned() };
    let host = Host::parse(&format!("{bracketed}:{port}"))
        .map_err(|error| Trouble::Failed(format!("`{name}` is no host: {error}")))?;
    if !hosts.allows(&host) {
        let allowed = hosts.patterns().join(", ");
        let allowed = if allowed.is_empty() { "none".to_owned() } else { allowed };
        return Err(Trouble::Denied(format!(
            "`{host}` is not among the hosts that may be reached ({allowed}); --allow-host or allowedHosts would grant it"
        )));
    }
    // Names are judged again when it is known where they lead.
    if let Ok(address) = host.name().parse() {
        judge_address(address, port, None, hosts).map_err(Trouble::Denied)?;
    }
    Ok(port)
}

/// A client for one request: connections are not kept, because the next call may have other grants.
async fn client(url: Url, resolver: Arc<Resolver>) -> Result<Client, Trouble> {
    let build = move || {
        let plain = builder()
            .no_proxy()
            .dns_resolver(resolver)
            .pool_max_idle_per_host(0)
            .connect_timeout(CONNECT)
            .timeout(WITHIN);
        // A plain address needs no certificates, which take a while to load.
        let none = std::iter::empty::<reqwest::Certificate>();
        if url.scheme() == "http" { plain.tls_certs_only(none).build() } else { plain.build() }
    };
    match tokio::task::spawn_blocking(build).await {
        Ok(Ok(client)) => Ok(client),
        Ok(Err(error)) => Err(Trouble::Failed(format!("no HTTP client can be made: {}", chain(&error)))),
        Err(error) => Err(Trouble::Failed(format!("no HTTP client can be made: {error}"))),
    }
}

async fn read(mut response: Response, url: Url, max_bytes: u64) -> Result<ToolResult, Trouble> {
    let status = response.status().as_u16();
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.unwrap_or_default().to_owned();
    let limit = usize::try_from(max_bytes).unwrap_or(usize::MAX);
    let mut body: Vec<u8> = Vec::new();
    let mut whole = true;
    loop {
        let piece = response.chunk().await;
        let piece =
            piece.map_err(|error| Trouble::Failed(format!("`{url}`: {}", chain(&error.without_url()))))?;
        let Some(piece) = piece else { break };
        let room = limit - body.len();
        body.extend_from_slice(&piece[..piece.len().min(room)]);
        if piece.len() > room {
            whole = false;
            break;
        }
    }
    // Reducing a large page takes a while, and others want to run too.
    let reduced =
        tokio::task::spawn_blocking(move || page::reduce(&body, &kind).map(|page| (page, kind))).await;
    let (page, kind) = match reduced {
        Ok(Ok(page)) => page,
        Ok(Err(problem)) => return Err(Trouble::Failed(format!("`{url}` {problem}"))),
        Err(error) => return Err(Trouble::Failed(format!("the tool broke down: {error}"))),
    };
    let mut result = super::outcome::text(page.text).with("url", url.as_str()).with("status", status);
    if !kind.is_empty() {
        result = result.with("contentType", kind);
    }
    if let Some(title) = page.title {
        result = result.with("title", title);
    }
    if !whole || page.cut {
        result = result.with("cut", true);
        result.message = Some("only the beginning of the page is here".to_owned());
    }
    if status >= 400 {
        return Ok(ToolResult {
            data: result.data,
            ..ToolResult::failure(format!("the server answered {status}"))
        });
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(url: &str, patterns: &[&str]) -> Result<u16, Trouble> {
        judge(&Url::parse(url).unwrap(), &Hosts::new(patterns).unwrap())
    }

    #[test]
    fn addresses_are_judged_before_anything_is_looked_up() {
        let allowed = ["*.example.org", "example.org:8080", "*", "10.0.0.1"];
        assert_eq!(judged("https://a.example.org/x", &allowed[..1]), Ok(443));
        assert_eq!(judged("http://example.org:8080/", &allowed[..2]), Ok(8080));
        assert_eq!(judged("http://10.0.0.1/", &allowed), Ok(80));
        assert_eq!(judged("http://93.184.216.34/", &allowed), Ok(80));
        let denied = [
            ("http://example.org/", &allowed[..2]),
            ("ftp://a.example.org/", &allowed[..]),
            ("file:///etc/passwd", &allowed[..]),
            ("http://user@a.example.org/", &allowed[..]),
            ("http://127.0.0.1/", &allowed[..]),
            ("http://0x7f.1/", &allowed[..]),
            ("http://2130706433/", &allowed[..]),
            ("http://[::1]/", &allowed[..]),
            ("http://[::ffff:169.254.169.254]/", &allowed[..]),
            ("http://169.254.169.254/latest/meta-data", &allowed[..]),
            ("http://0.0.0.0/", &allowed[..]),
        ];
        for (url, allowed) in denied {
            match judged(url, allowed) {
                Err(Trouble::Denied(_)) => {}
                other => panic!("{url}: {other:?}"),
            }
        }
    }
}
