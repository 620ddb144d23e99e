//! One host has one spelling, whoever wrote it down.

use outrigger_policy::host::MAX_HOST_BYTES;
use outrigger_policy::{Host, HostError, HostPattern, UnknownPort};

fn spelled(text: &str) -> String {
    Host::parse(text).unwrap_or_else(|error| panic!("{text}: {error}")).to_string()
}

#[test]
fn a_host_has_one_spelling() {
    let cases = [
        ("Example.ORG", "example.org"),
        ("example.org.", "example.org"),
        ("example.org.:443", "example.org:443"),
        ("localhost:0", "localhost:0"),
        ("[::1]:80", "[::1]:80"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("2001:DB8::0:1", "[2001:db8::1]"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("::ffff:7f00:1", "127.0.0.1"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.01", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0X7F000001:8080", "127.0.0.1:8080"),
        ("0", "0.0.0.0"),
        ("bücher.example", "bücher.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("1.example", "1.example"),
        ("my_host-1", "my_host-1"),
    ];
    for (text, expected) in cases {
        assert_eq!(spelled(text), expected, "{text}");
    }
}

#[test]
fn what_programs_could_read_differently_is_no_host() {
    let forbidden = |found| HostError::Forbidden { found };
    let cases = [
        ("", HostError::Empty),
        (".", HostError::Empty),
        ("a..b", HostError::EmptyLabel),
        (".a", HostError::EmptyLabel),
        ("a..", HostError::EmptyLabel),
        ("a/b", forbidden('/')),
        ("good.org@evil.org", forbidden('@')),
        ("a\\b", forbidden('\\')),
        ("a%2eb", forbidden('%')),
        ("a b", forbidden(' ')),
        ("a\nb", forbidden('\n')),
        ("a\u{3002}b", forbidden('\u{3002}')),
        ("*.example.org", forbidden('*')),
        ("1.2.3.4.5", HostError::BadAddress),
        ("256.1.1.1", HostError::BadAddress),
        ("1.2.3.256", HostError::BadAddress),
        ("4294967296", HostError::BadAddress),
        ("example.09", HostError::BadAddress),
        ("a:b:c", HostError::BadAddress),
        ("[::1", HostError::BadAddress),
        ("[fe80::1%eth0]", HostError::BadAddress),
        ("[::1]x", HostError::BadPort),
        ("a:", HostError::BadPort),
        ("a:65536", HostError::BadPort),
        ("a:+80", HostError::BadPort),
    ];
    for (text, expected) in cases {
        assert_eq!(Host::parse(text).unwrap_err(), expected, "{text:?}");
    }
    let longest = vec!["a".repeat(63); 4].join(".")[..MAX_HOST_BYTES].to_owned();
    assert!(Host::parse(&longest).is_ok());
    let error = Host::parse(&format!("{longest}a")).unwrap_err();
    assert_eq!(error, HostError::TooLong { length: MAX_HOST_BYTES + 1 });
}

#[test]
fn a_pattern_is_evened_out_like_a_host() {
    let cases = [
        ("Example.org.", "EXAMPLE.ORG", true),
        ("*.Example.org", "a.b.example.org", true),
        ("*.example.org", "example.org", false),
        ("*.example.org", "evilexample.org", false),
        ("*", "anything.at.all", true),
        ("[::1]", "::1", true),
        ("[::1]:80", "[0::1]:80", true),
        ("[::1]:80", "[::1]:81", false),
        ("127.0.0.1", "0x7f000001", true),
        ("127.*", "2130706433", true),
        ("10.{0,1}.*", "10.1.2.3", true),
        ("example.org:443", "example.org:443", true),
        ("example.org:443", "example.org:80", false),
        ("*.example.org:443", "a.example.org:443", true),
        ("example.org", "example.org:80", true),
    ];
    for (pattern, host, expected) in cases {
        let pattern = HostPattern::new(pattern).unwrap();
        let matches = pattern.matches(&Host::parse(host).unwrap(), UnknownPort::Differs);
        assert_eq!(matches, expected, "`{}` on `{host}`", pattern.pattern());
    }
}

#[test]
fn a_port_that_is_not_known_is_taken_at_its_worst() {
    let pattern = HostPattern::new("example.org:443").unwrap();
    let host = Host::parse("example.org").unwrap();
    assert!(pattern.matches(&host, UnknownPort::Matches));
    assert!(!pattern.matches(&host, UnknownPort::Differs));
}
