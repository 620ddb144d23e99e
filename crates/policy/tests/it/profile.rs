//! The profile of a work order: which tools, files and hosts.

use outrigger_policy::decision::MAX_SHOWN_BYTES;
use outrigger_policy::glob::{MAX_LIST_BYTES, MAX_PATTERN_BYTES};
use outrigger_policy::profile::{MAX_PROFILE_ENTRIES, MAX_TOOL_BYTES};
use outrigger_policy::{Decision, GlobError, Policy, PolicyProfile, ProfileError, Reason, Subject};

fn list(entries: &[&str]) -> Vec<String> {
    entries.iter().map(|entry| (*entry).to_owned()).collect()
}

/// What the reference command line sends when nobody says anything.
fn reference() -> PolicyProfile {
    PolicyProfile {
        disallowed_tools: list(&["KillBash", "NotebookEdit", "mcp__*__*"]),
        deny_read: list(&["**/.env", "**/.env.*", "**/.git/**", "**/id_rsa", "**/id_ed25519"]),
        deny_write: list(&["**/.git/**"]),
        require_approval_for: list(&["Bash", "Write", "Edit"]),
        ..PolicyProfile::unrestricted()
    }
}

fn subject() -> Subject {
    Subject::new("claude")
}

#[track_caller]
fn check(decision: Decision, expected: Reason) {
    assert_eq!((decision.verdict, decision.reason), (expected.verdict(), expected), "{}", decision.explain());
}

fn policy(profile: PolicyProfile) -> Policy {
    profile.compile().unwrap()
}

#[test]
fn an_empty_profile_restricts_nothing_inside_the_workspace() {
    let policy = policy(PolicyProfile::unrestricted());
    check(policy.check_tool(&subject(), "Bash"), Reason::Unrestricted);
    check(policy.check_read(&subject(), ".env"), Reason::Unrestricted);
    check(policy.check_write(&subject(), "a/b"), Reason::Unrestricted);
    check(policy.check_network(&subject(), "example.org"), Reason::Unrestricted);
    check(policy.check_read(&subject(), "../other"), Reason::PathEscapes);
    check(policy.check_write(&subject(), "/etc/passwd"), Reason::PathEscapes);
}

#[test]
fn tools_are_denied_asked_for_or_allowed_in_that_order() {
    let policy = policy(PolicyProfile {
        allowed_tools: list(&["Read", "Bash*", "Kill*"]),
        disallowed_tools: list(&["Kill*"]),
        require_approval_for: list(&["Bash", "KillBash", "Write"]),
        ..PolicyProfile::unrestricted()
    });
    check(policy.check_tool(&subject(), "Read"), Reason::AllowListed);
    check(policy.check_tool(&subject(), "Bash"), Reason::NeedsApproval);
    check(policy.check_tool(&subject(), "BashOutput"), Reason::AllowListed);
    check(policy.check_tool(&subject(), "KillBash"), Reason::DenyListed);
    check(policy.check_tool(&subject(), "Write"), Reason::NotAllowListed);
    check(policy.check_tool(&subject(), "read"), Reason::NotAllowListed);
}

#[test]
fn the_reference_profile_means_what_it_says() {
    let policy = policy(reference());
    check(policy.check_tool(&subject(), "mcp__files__read"), Reason::DenyListed);
    check(policy.check_tool(&subject(), "Edit"), Reason::NeedsApproval);
    check(policy.check_tool(&subject(), "Edit").without_approver(), Reason::NoApprover);
    for path in [".env", "./a//.env", "a/.env.local", ".git/config", "sub/.git/hooks/x", "k/id_rsa", ".git"] {
        check(policy.check_read(&subject(), path), Reason::DenyListed);
    }
    for path in ["env", "a/environment", ".gitignore", "id_rsa.pub"] {
        check(policy.check_read(&subject(), path), Reason::Unrestricted);
    }
    check(policy.check_write(&subject(), ".env"), Reason::Unrestricted);
    check(policy.check_write(&subject(), "sub/.git/config"), Reason::DenyListed);
}

#[test]
fn a_denial_of_files_covers_every_way_to_read_it() {
    let denies = |pattern: &str, path: &str| {
        let profile = PolicyProfile { deny_read: list(&[pattern]), ..PolicyProfile::unrestricted() };
        !policy(profile).check_read(&subject(), path).is_allowed()
    };
    assert!(denies("*.log", "a.log") && denies("*.log", "a/b.log"));
    assert!(denies("./secret", "secret") && denies("/secret", "secret"));
    assert!(denies("secret/", "secret") && denies("secret/", "secret/a/b") && !denies("secret/", "secrets"));
    assert!(denies("secret/**", "secret"));
}

#[test]
fn a_path_that_no_file_can_have_is_denied() {
    let policy = policy(PolicyProfile::unrestricted());
    for path in ["", "a\0b"] {
        check(policy.check_read(&subject(), path), Reason::PathInvalid);
    }
}

#[test]
fn hosts_are_denied_before_they_are_allowed() {
    let policy = policy(PolicyProfile {
        allow_network: list(&["*.example.org", "example.org:443"]),
        deny_network: list(&["bad.example.org", "worse.example.org:25"]),
        ..PolicyProfile::unrestricted()
    });
    check(policy.check_network(&subject(), "a.example.org"), Reason::AllowListed);
    check(policy.check_network(&subject(), "A.EXAMPLE.ORG.:8080"), Reason::AllowListed);
    check(policy.check_network(&subject(), "BAD.example.org.:443"), Reason::DenyListed);
    check(policy.check_network(&subject(), "worse.example.org"), Reason::DenyListed);
    check(policy.check_network(&subject(), "worse.example.org:80"), Reason::AllowListed);
    check(policy.check_network(&subject(), "example.org:443"), Reason::AllowListed);
    check(policy.check_network(&subject(), "example.org"), Reason::NotAllowListed);
    check(policy.check_network(&subject(), "other.org"), Reason::NotAllowListed);
    check(policy.check_network(&subject(), "a.example.org@other.org"), Reason::HostInvalid);
}

#[test]
fn an_address_is_denied_however_it_is_written() {
    let profile = PolicyProfile { deny_network: list(&["127.*", "[::1]"]), ..PolicyProfile::unrestricted() };
    let policy = policy(profile);
    for host in ["127.0.0.1", "127.1", "2130706433", "0x7f.0.0.1", "[::ffff:127.0.0.1]:80", "::1", "[0:0::1]"]
    {
        check(policy.check_network(&subject(), host), Reason::DenyListed);
    }
}

#[test]
fn a_denial_says_who_what_and_which_list() {
    let policy = policy(reference());
    let said: Vec<String> = [
        policy.check_read(&subject(), "a/.env"),
        policy.check_tool(&subject(), "Bash"),
        policy.check_tool(&subject(), "Grep"),
        policy.check_write(&subject(), "../x"),
        policy.check_network(&subject(), "a b"),
    ]
    .iter()
    .map(Decision::explain)
    .collect();
    insta::assert_snapshot!(said.join("\n"), @r"
    claude may not read `a/.env`: it is on the list of what is denied (deny_read has `**/.env`)
    claude may, once approved, call `Bash`: a person has to approve it (require_approval_for has `Bash`)
    claude may call `Grep`: no rule restricts it
    claude may not write `../x`: the path leads out of the root
    claude may not connect to `a b`: no host can have this name
    ");
}

#[test]
fn what_is_shown_is_cut_and_clean() {
    let decision =
        policy(PolicyProfile::unrestricted()).check_read(&subject(), &format!("a\n{}", "b".repeat(4000)));
    assert!(decision.object.starts_with("a?b") && decision.object.len() <= MAX_SHOWN_BYTES);
}

#[test]
fn a_tool_without_a_proper_name_is_denied() {
    let policy = policy(PolicyProfile::unrestricted());
    for name in ["", "a\nb", "a\0"] {
        check(policy.check_tool(&subject(), name), Reason::ToolInvalid);
    }
    check(policy.check_tool(&subject(), &"a".repeat(MAX_TOOL_BYTES)), Reason::Unrestricted);
    check(policy.check_tool(&subject(), &"a".repeat(MAX_TOOL_BYTES + 1)), Reason::ToolInvalid);
}

#[test]
fn one_bad_entry_spoils_the_profile() {
    let profile = PolicyProfile { deny_write: list(&["a", "[b"]), ..PolicyProfile::unrestricted() };
    let error = profile.compile().unwrap_err();
    let expected = ProfileError::Pattern {
        list: "deny_write",
        index: 1,
        pattern: "[b".into(),
        error: GlobError::UnclosedClass { at: 0 },
    };
    assert_eq!(error, expected);
    let sentence =
        "entry 1 of the policy's `deny_write`, `[b`, is not a pattern: the `[` at byte 0 is never closed";
    assert_eq!(error.to_string(), sentence);
}

#[test]
fn a_list_holds_so_many_entries_and_no_more() {
    let profile =
        |count| PolicyProfile { deny_network: vec!["a".into(); count], ..PolicyProfile::unrestricted() };
    assert!(profile(MAX_PROFILE_ENTRIES).compile().is_ok());
    let error = profile(MAX_PROFILE_ENTRIES + 1).compile().unwrap_err();
    assert_eq!(error, ProfileError::TooMany { list: "deny_network", count: MAX_PROFILE_ENTRIES + 1 });
}

#[test]
fn a_list_holds_so_many_bytes_and_no_more() {
    let profile = |more: &str| {
        let mut deny_read = vec!["a".repeat(MAX_PATTERN_BYTES); MAX_LIST_BYTES / MAX_PATTERN_BYTES - 1];
        deny_read.push(format!("{}{more}", "b".repeat(MAX_PATTERN_BYTES - 1)));
        deny_read.push("c".into());
        PolicyProfile { deny_read, ..PolicyProfile::unrestricted() }
    };
    assert!(profile("").compile().is_ok());
    let error = profile("b").compile().unwrap_err();
    assert_eq!(error, ProfileError::TooLong { list: "deny_read", bytes: MAX_LIST_BYTES + 1 });
}

#[test]
fn all_seven_lists_must_be_there() {
    let whole = serde_json::to_value(reference()).unwrap();
    assert_eq!(serde_json::from_value::<PolicyProfile>(whole.clone()).unwrap(), reference());
    let members: Vec<String> = whole.as_object().unwrap().keys().cloned().collect();
    assert_eq!(members.len(), 7);
    for member in members {
        let mut part = whole.clone();
        part.as_object_mut().unwrap().remove(&member);
        assert!(serde_json::from_value::<PolicyProfile>(part).is_err(), "without {member}");
    }
    let mut more = whole;
    more["new_in_v2"] = true.into();
    assert!(serde_json::from_value::<PolicyProfile>(more).is_ok(), "a newer peer's member is ignored");
}
