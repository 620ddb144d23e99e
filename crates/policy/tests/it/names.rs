//! Names of capabilities and subjects, and paths that stay inside.

use outrigger_policy::name::{MAX_CAPABILITY_BYTES, MAX_SUBJECT_BYTES};
use outrigger_policy::path::MAX_PATH_BYTES;
use outrigger_policy::{Capability, CapabilityError, InsidePath, PathError, Subject};

#[test]
fn the_names_that_dialects_use_are_capabilities() {
    for name in [
        "messages.read",
        "fetch_data",
        "mcp__files__read",
        "$host",
        "Bash",
        "fs:read",
        "a",
        "9-lives",
        "x/y@1",
    ] {
        assert_eq!(Capability::new(name).unwrap().as_str(), name);
    }
}

#[test]
fn what_could_be_taken_for_a_pattern_is_no_capability() {
    for (name, found, at) in
        [("a*", '*', 1), ("a b", ' ', 1), (".a", '.', 0), ("é", 'é', 0), ("a\0", '\0', 1), ("[a]", '[', 0)]
    {
        assert_eq!(Capability::new(name).unwrap_err(), CapabilityError::Forbidden { found, at }, "{name:?}");
    }
    assert_eq!(Capability::new("").unwrap_err(), CapabilityError::Empty);
    assert!(Capability::new("a".repeat(MAX_CAPABILITY_BYTES)).is_ok());
    let error = Capability::new("a".repeat(MAX_CAPABILITY_BYTES + 1)).unwrap_err();
    assert_eq!(error, CapabilityError::TooLong { length: MAX_CAPABILITY_BYTES + 1 });
}

#[test]
fn a_capability_is_checked_when_it_is_read_from_json() {
    assert_eq!(serde_json::from_str::<Capability>("\"a.b\"").unwrap().as_str(), "a.b");
    assert!(serde_json::from_str::<Capability>("\"a.*\"").is_err());
}

#[test]
fn a_subject_can_always_be_shown() {
    assert_eq!(Subject::new("org.example\n\u{202E}x\u{1b}[31m").as_str(), "org.example??x?[31m");
    assert_eq!(Subject::new(&"a".repeat(MAX_SUBJECT_BYTES)).as_str().len(), MAX_SUBJECT_BYTES);
    let cut = Subject::new(&"é".repeat(MAX_SUBJECT_BYTES));
    assert!(cut.as_str().len() <= MAX_SUBJECT_BYTES && cut.as_str().ends_with("é…"), "{cut}");
}

#[test]
fn a_path_inside_has_one_spelling() {
    let cases = [
        ("a", "a"),
        ("./a//b/", "a/b"),
        (".", "."),
        ("a/./b", "a/b"),
        ("...", "..."),
        ("a/..b", "a/..b"),
        ("é/ b", "é/ b"),
    ];
    for (path, expected) in cases {
        assert_eq!(InsidePath::parse(path).unwrap().as_str(), expected, "{path}");
    }
}

#[test]
fn a_path_that_could_lead_out_is_refused() {
    for path in
        ["/etc/passwd", "\\\\server\\x", "C:\\x", "c:x", "~", "~/x", "~root/x", "./~/x", ".//\\x", "./C:x"]
    {
        assert_eq!(InsidePath::parse(path).unwrap_err(), PathError::Absolute, "{path}");
    }
    for path in ["..", "a/..", "a/../b", "a/b/../../..", "a\\..\\b", "..\\b"] {
        assert_eq!(InsidePath::parse(path).unwrap_err(), PathError::Parent, "{path}");
    }
    assert_eq!(InsidePath::parse("a\0/b").unwrap_err(), PathError::Nul { at: 1 });
    assert_eq!(InsidePath::parse("").unwrap_err(), PathError::Empty);
    assert!(InsidePath::parse(&"a".repeat(MAX_PATH_BYTES)).is_ok());
    let error = InsidePath::parse(&"a".repeat(MAX_PATH_BYTES + 1)).unwrap_err();
    assert_eq!(error, PathError::TooLong { length: MAX_PATH_BYTES + 1 });
}
