//! The HTTP client that every stream shares, made when it is first needed.
//!
//! A runtime that talks to a model on this machine never loads certificates: plain addresses have a client of their own,
//! whose list of trusted roots is empty. Nobody follows redirects here; who wants to must judge the new address first.

use std::sync::{Arc, Once, OnceLock};

use reqwest::{Client, ClientBuilder, Url, redirect};

/// How many idle connections to one host are kept for the next stream.
const IDLE_CONNECTIONS: usize = 64;

/// Why there is no client for an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The address is no address.
    #[error("`{address}` is no address: {problem}")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The address is neither http nor https.
    #[error("`{0}` is neither http nor https")]
    Scheme(String),
    /// The client could not be made, mostly for the lack of trusted certificates.
    #[error("cannot make an HTTP client: {0}")]
    Client(String),
}

/// The clients of a process. Clones share them; making one costs nothing until it is used.
#[derive(Clone, Debug, Default)]
pub struct Http {
    clients: Arc<Clients>,
}

#[derive(Debug, Default)]
struct Clients {
    plain: OnceLock<Result<Client, HttpError>>,
    secure: OnceLock<Result<Client, HttpError>>,
}

impl Http {
    /// No client yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The address that a text means, and the client for it.
    ///
    /// # Errors
    ///
    /// If the text is no http or https address, or the client cannot be made.
    pub fn open(&self, address: &str) -> Result<(Client, Url), HttpError> {
        let url = Url::parse(address).map_err(|error| HttpError::Address {
            address: address.to_owned(),
            problem: error.to_string(),
        })?;
        Ok((self.client(&url)?, url))
    }

    /// The client for an address. It keeps connections, takes its proxies from the environment and follows no redirects.
    ///
    /// # Errors
    ///
    /// If the address is not http or https, or the client cannot be made.
    pub fn client(&self, url: &Url) -> Result<Client, HttpError> {
        let client = match url.scheme() {
            "http" if !proxies_are_secure() => self.clients.plain.get_or_init(|| {
                let nobody = std::iter::empty();
                finish(builder().tls_certs_only(nobody))
            }),
            "http" | "https" => self.clients.secure.get_or_init(|| finish(builder())),
            other => return Err(HttpError::Scheme(other.to_owned())),
        };
        client.clone()
    }
}

/// A client like ours, for those who need a resolver or a policy of their own.
pub fn builder() -> ClientBuilder {
    install_cryptography();
    Client::builder()
        .redirect(redirect::Policy::none())
        .referer(false)
        .pool_max_idle_per_host(IDLE_CONNECTIONS)
        .user_agent(concat!("steerable-sidecar/", env!("CARGO_PKG_VERSION")))
}

fn finish(builder: ClientBuilder) -> Result<Client, HttpError> {
    builder.build().map_err(|error| HttpError::Client(chain(&error)))
}

fn install_cryptography() {
    static INSTALLED: Once = Once::new();
    // An error says that somebody else in the process was first, which is as good.
    INSTALLED.call_once(|| drop(rustls::crypto::ring::default_provider().install_default()));
}

/// Whether a plain address could be reached through a proxy that wants TLS.
fn proxies_are_secure() -> bool {
    ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].iter().any(|name| {
        std::env::var_os(name).is_some_and(|value| value.as_encoded_bytes().starts_with(b"https:"))
    })
}

/// An error and its causes in one line: the first alone mostly says nothing ("error sending request").
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_is_none_is_named() {
        let http = Http::new();
        assert_eq!(http.open("ftp://example.org").map(|_| ()), Err(HttpError::Scheme("ftp".to_owned())),);
        let error = http.open("no address").map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "`no address` is no address: relative URL without a base");
    }

    #[test]
    fn a_plain_address_does_not_make_the_secure_client() {
        let http = Http::new();
        http.open("http://127.0.0.1:1/").unwrap();
        assert!(http.clients.plain.get().is_some());
        assert!(http.clients.secure.get().is_none());
    }
}
