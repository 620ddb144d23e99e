//! The host in an address: what a browser would connect to, whatever else the text makes one believe.

/// What an address names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A host, with the port when the text or its scheme says which.
    Host(String),
    /// Nothing on the network: `data:`, `about:`.
    Local,
}

/// The ports of the schemes whose URLs need not say `//` to be understood.
const SCHEMES: &[(&str, u16)] = &[("http", 80), ("https", 443), ("ws", 80), ("wss", 443), ("ftp", 21)];

/// Schemes that stay where they are.
const LOCAL: &[&str] = &["about", "blob", "data"];

/// What `text`, a URL or a host with or without a port, names. It may be no host at all; the policy refuses it then.
#[must_use]
pub fn address(text: &str) -> Address {
    let text = text.trim_matches(|c: char| c <= ' ');
    let (scheme, rest) = match text.split_once(':') {
        Some((scheme, rest)) => (Some(scheme.to_ascii_lowercase()), rest),
        None => (None, text),
    };
    let known = SCHEMES.iter().find(|(name, _)| scheme.as_deref() == Some(name));
    if scheme.as_deref().is_some_and(|scheme| LOCAL.contains(&scheme)) {
        return Address::Local;
    }
    let (rest, port) = match known {
        // Any number of slashes of either kind, also none: that is how browsers read it.
        Some((_, port)) => (rest.trim_start_matches(['/', '\\']), Some(*port)),
        None if rest.starts_with("//") => (&rest[2..], None),
        // No scheme: `example.org:80/x`, `//example.org/x`.
        None => (text.trim_start_matches(['/', '\\']), None),
    };
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or(rest);
    // Whatever is before the last `@` is a name and a password, even if it looks like a host.
    let host = authority.rsplit('@').next().unwrap_or(authority);
    Address::Host(match port {
        Some(port) if !has_port(host) => format!("{}:{port}", host.strip_suffix(':').unwrap_or(host)),
        Some(_) | None => host.to_owned(),
    })
}

fn has_port(host: &str) -> bool {
    let after_brackets = host.rsplit(']').next().unwrap_or(host);
    after_brackets.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_is_the_one_that_would_be_connected_to() {
        let table = [
            ("https://example.org/x?y#z", "example.org:443"),
            ("HTTP://Example.ORG", "Example.ORG:80"),
            ("https://example.org:8443/x", "example.org:8443"),
            ("https://example.org:/x", "example.org:443"),
            ("https://good.org@evil.org/x", "evil.org:443"),
            ("https://good.org:443@evil.org/x", "evil.org:443"),
            ("https://a@b@evil.org", "evil.org:443"),
            ("https://evil.org\\@good.org", "evil.org:443"),
            ("https://evil.org#@good.org", "evil.org:443"),
            ("https://evil.org?@good.org", "evil.org:443"),
            ("https:/example.org", "example.org:443"),
            ("https:example.org", "example.org:443"),
            ("https:///example.org", "example.org:443"),
            ("https:\\\\example.org", "example.org:443"),
            ("  https://example.org \n", "example.org:443"),
            ("https://[::1]/x", "[::1]:443"),
            ("https://[::1]:8443/x", "[::1]:8443"),
            ("wss://example.org", "example.org:443"),
            ("ssh://git@example.org:22/x", "example.org:22"),
            ("s3://bucket/key", "bucket"),
            ("example.org", "example.org"),
            ("example.org:8080", "example.org:8080"),
            ("example.org/x", "example.org"),
            ("//example.org/x", "example.org"),
            ("user@example.org", "example.org"),
            ("::1", "::1"),
            ("[::1]:80", "[::1]:80"),
            ("127.1", "127.1"),
            ("https://bücher.example/", "bücher.example:443"),
            ("https://", ":443"),
            ("", ""),
        ];
        for (text, host) in table {
            assert_eq!(address(text), Address::Host(host.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_stays_here_names_no_host() {
        for text in ["data:text/plain,https://example.org", "about:blank", "DATA:,x"] {
            assert_eq!(address(text), Address::Local, "{text}");
        }
    }
}
