//! Which addresses may be connected to. A name is looked up once, what it leads to is judged, and the connection goes to
//! exactly that: a name server that answers differently the second time is never asked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::tools::grants::Hosts;

/// Looks names up for one request.
pub(super) struct Resolver {
    hosts: Arc<Hosts>,
    port: u16,
    refusal: Arc<Mutex<Option<String>>>,
}

impl Resolver {
    pub(super) fn new(hosts: Arc<Hosts>, port: u16) -> Self {
        Self { hosts, port, refusal: Arc::new(Mutex::new(None)) }
    }

    /// Why no address was given out, if they were refused.
    pub(super) fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (hosts, port, refusal) = (Arc::clone(&self.hosts), self.port, Arc::clone(&self.refusal));
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), port)).await?;
            let judged = judge_all(found, port, name.as_str(), &hosts);
            match judged {
                Ok(addresses) => Ok(Box::new(addresses.into_iter()) as Addrs),
                Err(reason) => {
                    *refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason.clone());
                    Err(reason.into())
                }
            }
        })
    }
}

/// The addresses that may be connected to, or why there are none.
fn judge_all(
    found: impl Iterator<Item = SocketAddr>,
    port: u16,
    name: &str,
    hosts: &Hosts,
) -> Result<Vec<SocketAddr>, String> {
    let mut refused = None;
    let mut good = Vec::new();
    for address in found {
        match judge_address(address.ip(), port, Some(name), hosts) {
            Ok(()) => good.push(address),
            Err(reason) => refused = Some(reason),
        }
    }
    match (good.is_empty(), refused) {
        (true, Some(reason)) => Err(reason),
        (true, None) | (false, _) => Ok(good),
    }
}

/// Judges an address: one of the public network may be connected to; any other only if it is granted by its number, or as
/// `localhost`.
pub(super) fn judge_address(
    address: IpAddr,
    port: u16,
    name: Option<&str>,
    hosts: &Hosts,
) -> Result<(), String> {
    let address = address.to_canonical();
    let named = hosts.names_address(address, port)
        || address.is_loopback() && name.is_some_and(is_localhost) && hosts.names_localhost(port);
    if named || is_public(address) {
        return Ok(());
    }
    let which = match name {
        Some(name) => format!("`{name}` leads to the private address {address}"),
        None => format!("{address} is a private address"),
    };
    Err(format!("{which}, which is only reached if it is allowed by its number"))
}

fn is_localhost(name: &str) -> bool {
    name.strip_suffix('.').unwrap_or(name).eq_ignore_ascii_case("localhost")
}

/// Whether an address belongs to the public network.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = match (a, b, c) {
        // This network, private networks, this host.
        (0 | 10 | 127, _, _) => true,
        // Shared by carriers.
        (100, 64..=127, _) => true,
        // Link-local: also where clouds keep their keys.
        (169, 254, _) => true,
        (172, 16..=31, _) | (192, 168, _) => true,
        // Protocol assignments, documentation, relays, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18 | 19, _) | (198, 51, 100) | (203, 0, 113) => true,
        // Multicast, reserved, broadcast.
        (224..=255, _, _) => true,
        _ => false,
    };
    !special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    match segments {
        // Addresses of version 4 in other clothes: translated, tunnelled, compatible.
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => is_public_v4(embedded(high, low)),
        [0x2002, high, low, ..] => is_public_v4(embedded(high, low)),
        [0, 0, 0, 0, 0, 0, _, _] => false,
        // A network's own translation, Teredo and other assignments of protocols, documentation.
        [0x64, 0xff9b, 1, ..] | [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            false
        }
        // Only this eighth of all addresses is given out.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

fn embedded(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(high) << 16 | u32::from(low))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_public_network_is_told_from_everything_else() {
        for public in
            ["1.1.1.1", "93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "64:ff9b::101:101"]
        {
            assert!(is_public(address(public)), "{public}");
        }
        let private = [
            "0.0.0.0",
            "10.1.2.3",
            "127.0.0.1",
            "127.255.255.255",
            "100.64.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "fec0::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "100::1",
        ];
        for private in private {
            assert!(!is_public(address(private)), "{private}");
        }
    }

    #[test]
    fn a_name_that_leads_to_a_private_address_needs_a_grant_of_the_address() {
        let to = |text: &str| vec![SocketAddr::new(address(text), 80)].into_iter();
        let any = Hosts::new(&["*"]).unwrap();
        let numbered = Hosts::new(&["*", "10.0.0.1"]).unwrap();
        let local = Hosts::new(&["localhost"]).unwrap();
        assert!(judge_all(to("1.1.1.1"), 80, "a.org", &any).is_ok());
        assert_eq!(
            judge_all(to("10.0.0.1"), 80, "a.org", &any).unwrap_err(),
            "`a.org` leads to the private address 10.0.0.1, which is only reached if it is allowed by its number"
        );
        assert!(judge_all(to("10.0.0.1"), 80, "a.org", &numbered).is_ok());
        assert!(judge_all(to("::ffff:10.0.0.1"), 80, "a.org", &any).is_err());
        assert!(judge_all(to("127.0.0.1"), 80, "localhost", &local).is_ok());
        assert!(judge_all(to("::1"), 80, "LOCALHOST.", &local).is_ok());
        assert!(judge_all(to("127.0.0.1"), 80, "a.org", &local).is_err());
        assert!(judge_all(to("10.0.0.1"), 80, "localhost", &local).is_err());
        let mixed = vec![SocketAddr::new(address("10.0.0.1"), 80), SocketAddr::new(address("1.1.1.1"), 80)];
        let good = judge_all(mixed.into_iter(), 80, "a.org", &any).unwrap();
        assert_eq!(good, [SocketAddr::new(address("1.1.1.1"), 80)]);
    }
}
