//! The policy of a host as a file, and laws about manifests that hold for any input.

use std::path::{Path, PathBuf};
use std::time::Duration;

use libtest_mimic::Trial;
use outrigger_sep::config::{
    Activation, Background, HostPolicy, LimitKey, PolicyError, Proof, SandboxPolicy, SignaturePolicy,
    TracePolicy, TransportPolicy, UntrustedLocal,
};
use outrigger_sep::manifest::{Severity, ceilings, check_bytes};
use outrigger_sep::protocol::{ExtensionId, Permission, TrustLevel};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use crate::manifest_fixture::{android, desktop, write};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        an_empty_policy_allows_nothing_that_was_not_asked_for,
        a_whole_policy_is_read_and_written_back_the_same,
        a_slip_in_a_policy_is_named_with_its_line_and_what_was_meant,
        what_a_policy_cannot_mean_is_refused,
        untrusted_ceilings_can_only_be_lowered,
        a_policy_that_cannot_be_read_says_why,
        any_bytes_have_an_answer,
        any_change_of_a_right_manifest_has_a_sorted_and_stable_answer,
    ]
}

const WHOLE: &str = r#"
extensions_dirs = ["extensions", "/srv/extensions"]
builtin_dir = "builtin"
state_dir = "/var/lib/outrigger"
keys_dir = "trusted-keys"
follow_symlinks = true
compatible_with = "4.7.0-rc.1"
untrusted_local = "allow"
signatures = "require"
sandbox = "required"
transport = "fd"
activation = "lazy"
idle_stop_ms = 60000
runtime_path = "/opt/bin:/usr/bin"
untrusted_runtimes = ["python3", "node"]
first_party_keys = ["makers"]
trace = "redacted"

[[approved_programs]]
path = "/opt/tool"
sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

[[trusted]]
id = "org.example.weather"
tree_sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

[[trusted]]
id = "org.example.clock"
key_id = "makers"

[grants]
"org.example.weather" = ["messages.read", "tools.register"]

[limits.untrusted_local]
max_request_bytes = 1024

[limits.first_party]
request_timeout_ms = 60000

[android]
background = "allowlist"
background_allowlist = ["org.example.clock"]
packaged_runtime = "runtime"
packaged_modules = ["weather"]
allow_third_party = true
approved_runtimes = [{ path = "/opt/rt", sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" }]
"#;

fn parse(text: &str) -> Result<HostPolicy, PolicyError> {
    HostPolicy::parse(text, Path::new("/etc/outrigger"))
}

fn an_empty_policy_allows_nothing_that_was_not_asked_for() {
    let policy = parse("").expect("nothing is wrong");
    let mut usual = HostPolicy::new(
        PathBuf::from("/etc/outrigger/state"),
        vec![PathBuf::from("/etc/outrigger/extensions")],
    );
    usual.keys_dir = PathBuf::from("/etc/outrigger/keys");
    assert_eq!(policy, usual);
    assert_eq!(policy.untrusted_local, UntrustedLocal::Deny);
    assert_eq!(policy.signatures, SignaturePolicy::VerifyIfPresent);
    assert_eq!(policy.untrusted_runtimes, ["python3"]);
    assert_eq!(policy.android.background, Background::Deny);
    assert!(!policy.follow_symlinks && !policy.android.allow_third_party);
    assert!(policy.trusted.is_empty() && policy.grants.is_empty() && policy.approved_programs.is_empty());
    assert_eq!(parse(&policy.to_toml()).expect("it was just written"), policy);
}

fn a_whole_policy_is_read_and_written_back_the_same() {
    let policy = parse(WHOLE).expect("nothing is wrong");
    let folder = Path::new("/etc/outrigger");
    assert_eq!(policy.extensions_dirs, [folder.join("extensions"), PathBuf::from("/srv/extensions")]);
    assert_eq!(policy.builtin_dir, Some(folder.join("builtin")));
    assert_eq!(policy.keys_dir, folder.join("trusted-keys"));
    assert_eq!(policy.sandbox, SandboxPolicy::Required);
    assert_eq!(policy.transport, TransportPolicy::Fd);
    assert_eq!((policy.activation, policy.trace), (Activation::Lazy, TracePolicy::Redacted));
    assert_eq!(policy.idle_stop, Some(Duration::from_secs(60)));
    assert!(matches!(policy.trusted[0].proof, Proof::Tree(_)));
    assert!(matches!(policy.trusted[1].proof, Proof::Key(_)));
    let weather = ExtensionId::new("org.example.weather").expect("an id");
    assert_eq!(policy.grants[&weather], [Permission::MessagesRead, Permission::ToolsRegister]);
    assert_eq!(policy.limits[&TrustLevel::UntrustedLocal][&LimitKey::MaxRequestBytes], 1024);
    let clock = ExtensionId::new("org.example.clock").expect("an id");
    assert!(policy.android.background.allows(&clock) && !policy.android.background.allows(&weather));
    let written = policy.to_toml();
    assert_eq!(parse(&written).expect("it was just written"), policy, "{written}");
}

fn a_slip_in_a_policy_is_named_with_its_line_and_what_was_meant() {
    let table = [
        ("sandbx = \"auto\"", 1, "sandbx", "did you mean `sandbox`?"),
        ("\n\nuntrusted_local = \"alow\"", 3, "alow", "did you mean `allow`?"),
        ("[android]\nbackgroud = \"deny\"", 2, "backgroud", "did you mean `background`?"),
        ("[limits.untrusted]\npanels = 1", 1, "untrusted", "untrusted_local"),
        ("[limits.first_party]\npanel = 1", 2, "panel", "did you mean `panels`?"),
        ("[grants]\n\"a.b\" = [\"messages.reed\"]", 2, "messages.reed", "did you mean `messages.read`?"),
        ("[grants]\nab = []", 2, "ab", "is not the id of an extension"),
        ("[[trusted]]\nid = \"a.b\"\ntree_sha = \"\"", 3, "tree_sha", "tree_sha256"),
        ("[[trusted]]\nid = \"a.b\"\ntree_sha256 = \"abc\"", 3, "64", "hexadecimal"),
        ("first_party_keys = [\"../k\"]", 1, "../k", "is not the name of a key"),
        ("idle_stop_ms = -1", 1, "-1", "u64"),
        ("follow_symlinks = \"yes\"", 1, "yes", "boolean"),
        ("transport = \"auto\"\ntransport = \"fd\"", 2, "duplicate", "key"),
        ("not toml", 1, "", ""),
    ];
    for (text, line, word, hint) in table {
        let error = parse(text).expect_err(text);
        let PolicyError::Syntax { line: told, message } = &error else { panic!("{text}: {error:?}") };
        assert_eq!(*told, line, "{text}: {message}");
        assert!(message.contains(word) && message.contains(hint), "{text}: {message}");
        assert!(error.to_string().starts_with(&format!("line {line}: ")), "{error}");
    }
}

fn what_a_policy_cannot_mean_is_refused() {
    let table = [
        ("runtime_path = \"bin:/usr/bin\"", "runtime_path"),
        ("runtime_path = \"\"", "runtime_path"),
        ("untrusted_runtimes = [\"/bin/sh\"]", "untrusted_runtimes"),
        ("compatible_with = \"latest\"", "compatible_with"),
        ("approved_programs = [{ path = \"tool\" }]", "approved_programs"),
        ("trusted = [{ id = \"a.b\" }]", "trusted"),
        ("[android]\nbackground = \"allowlist\"", "android.background"),
        ("[android]\nbackground_allowlist = []", "android.background_allowlist"),
        ("[android]\napproved_runtimes = [{ path = \"/opt/rt\" }]", "android.approved_runtimes"),
        ("[limits.first_party]\nrequest_timeout_ms = 60001", "limits.first_party.request_timeout_ms"),
        ("[limits.first_party]\nrequest_timeout_ms = 999", "limits.first_party.request_timeout_ms"),
        ("[limits.untrusted_local]\nsends_per_minute = 1", "limits.untrusted_local.sends_per_minute"),
    ];
    for (text, key) in table {
        let error = parse(text).expect_err(text);
        let PolicyError::Meaning { key: told, .. } = &error else { panic!("{text}: {error:?}") };
        assert_eq!(told, key, "{error}");
    }
}

fn untrusted_ceilings_can_only_be_lowered() {
    for key in LimitKey::ALL {
        let (least, most) = key.range();
        for trust in TrustLevel::ALL {
            let mut limits = ceilings(*trust);
            let usual = key.of(&limits);
            assert!(key.check(*trust, usual).is_ok(), "{trust} {key}: the usual ceiling is a possible one");
            let raised = key.check(*trust, usual + 1);
            let may_rise = *trust != TrustLevel::UntrustedLocal && usual < most;
            assert_eq!(raised.is_ok(), may_rise, "{trust} {key}");
            assert!(key.check(*trust, most + 1).is_err(), "{trust} {key}");
            assert!(least == 0 || key.check(*trust, least - 1).is_err(), "{trust} {key}");
            key.set(&mut limits, least);
            assert_eq!(key.of(&limits), least, "{trust} {key}");
        }
    }
}

fn a_policy_that_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("policy.toml");
    assert!(matches!(HostPolicy::load(&path), Err(PolicyError::Io { .. })));
    write(&path, b"sandbox = \"off\"\n", 0o644);
    let policy = HostPolicy::load(&path).expect("a policy");
    assert_eq!((policy.sandbox, policy.state_dir), (SandboxPolicy::Off, folder.path().join("state")));
    let comment = |length: usize| [b"#".as_slice(), &vec![b'x'; length - 1]].concat();
    write(&path, &comment(1 << 20), 0o644);
    assert!(HostPolicy::load(&path).is_ok());
    write(&path, &comment((1 << 20) + 1), 0o644);
    assert!(matches!(HostPolicy::load(&path), Err(PolicyError::TooLarge { .. })));
    write(&path, b"\xff", 0o644);
    assert!(matches!(HostPolicy::load(&path), Err(PolicyError::Io { .. })));
}

/// Always the same cases, so that a failure is one for everybody.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn law(bytes: &[u8]) -> Result<(), TestCaseError> {
    let checked = check_bytes(bytes);
    let errors = checked.findings.iter().any(|finding| finding.severity == Severity::Error);
    prop_assert_eq!(checked.manifest.is_none(), errors);
    prop_assert!(checked.findings.is_sorted());
    prop_assert!(checked.findings.iter().all(|finding| finding.code.starts_with("M-")));
    prop_assert_eq!(check_bytes(bytes), checked);
    Ok(())
}

fn any_bytes_have_an_answer() {
    let json_like = proptest::collection::vec(
        prop_oneof![
            Just("{".to_owned()),
            Just("}".to_owned()),
            Just("[".to_owned()),
            Just("]".to_owned()),
            Just(",".to_owned()),
            Just(":".to_owned()),
            Just("\"id\"".to_owned()),
            Just("\"entrypoint\"".to_owned()),
            Just("1e4".to_owned()),
            Just("null".to_owned()),
            Just("\"\\u0000\"".to_owned()),
            "[ -~]{0,8}",
        ],
        0..40,
    );
    runner(400).run(&proptest::collection::vec(any::<u8>(), 0..200), |bytes| law(&bytes)).expect("any bytes");
    runner(400).run(&json_like, |words| law(words.concat().as_bytes())).expect("almost JSON");
}

/// Any JSON value that is not too large.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        any::<String>().prop_map(Value::from),
        "[a-z.]{1,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map("[a-zA-Z/~_]{0,8}", inner, 0..6).prop_map(|map| json!(map)),
        ]
    })
}

/// All places in a value.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(key, value)| {
            places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found)
        }),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| places(value, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

fn any_change_of_a_right_manifest_has_a_sorted_and_stable_answer() {
    let changes =
        proptest::collection::vec((any::<prop::sample::Index>(), any_json(), "[a-zA-Z]{1,8}"), 1..4);
    let law = |(phone, changes): (bool, Vec<(prop::sample::Index, Value, String)>)| {
        let mut manifest = if phone { android() } else { desktop() };
        for (index, value, key) in changes {
            let mut all = Vec::new();
            places(&manifest, "", &mut all);
            let place = manifest.pointer_mut(index.get(&all).as_str()).expect("it was just found");
            match place {
                Value::Object(members) => {
                    members.insert(key, value);
                }
                other => *other = value,
            }
        }
        law(manifest.to_string().as_bytes())
    };
    runner(400).run(&(any::<bool>(), changes), law).expect("any change");
}
