//! What a subject may use: the intersection of what everybody says, and nothing by default.

use outrigger_policy::glob::MAX_LIST_BYTES;
use outrigger_policy::grant::MAX_LAYER_ENTRIES;
use outrigger_policy::{
    Capability, Decision, Grants, Layer, LayerError, LayerLists, Reason, Rule, Subject, Verdict, Voice,
};

fn capability(name: &str) -> Capability {
    Capability::new(name).unwrap()
}

fn layer(voice: Voice, allow: &[&str], ask: &[&str], deny: &[&str]) -> Layer {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Layer::new(voice, &LayerLists { allow: list(allow), ask: list(ask), deny: list(deny) }).unwrap()
}

fn grants(layers: Vec<Layer>) -> Grants {
    Grants::new(Subject::new("org.example.notes"), layers)
}

#[track_caller]
fn check(grants: &Grants, name: &str, expected: Reason) -> Decision {
    let decision = grants.decide(&capability(name));
    assert_eq!((decision.verdict, decision.reason), (expected.verdict(), expected), "{}", decision.explain());
    decision
}

#[test]
fn what_everybody_allows_is_granted() {
    let grants = grants(vec![
        layer(Voice::Declared, &["messages.read"], &[], &[]),
        layer(Voice::Operator, &["messages.*"], &[], &[]),
        layer(Voice::Ceiling, &["*"], &[], &[]),
        layer(Voice::Profile, &["messages.read", "messages.send"], &[], &[]),
    ]);
    check(&grants, "messages.read", Reason::Granted);
    check(&grants, "messages.send", Reason::NotDeclared);
    check(&grants, "contacts.read", Reason::NotDeclared);
    let known = [capability("messages.read"), capability("messages.send")];
    assert_eq!(grants.allowed(&known).collect::<Vec<_>>(), [&known[0]]);
}

#[test]
fn each_layer_refuses_for_a_reason_of_its_own() {
    let all = [Voice::Declared, Voice::Operator, Voice::Ceiling, Voice::Profile];
    let reasons = [Reason::NotDeclared, Reason::NotGranted, Reason::TrustCeiling, Reason::ProfileForbidden];
    for (refusing, reason) in all.into_iter().zip(reasons) {
        let says = |voice| {
            if voice == refusing { layer(voice, &[], &[], &[]) } else { layer(voice, &["*"], &[], &[]) }
        };
        let decision = check(&grants(all.map(says).into()), "a", reason);
        assert_eq!(decision.rule, Some(Rule { list: refusing.name(), pattern: None }));
    }
}

#[test]
fn the_first_layer_that_refuses_is_named_whatever_order_they_came_in() {
    let grants = grants(vec![
        layer(Voice::Profile, &[], &[], &[]),
        layer(Voice::Operator, &[], &[], &["a"]),
        layer(Voice::Declared, &["*"], &[], &[]),
    ]);
    let decision = check(&grants, "a", Reason::NotGranted);
    assert_eq!(decision.rule, Some(Rule { list: "operator", pattern: Some("a".into()) }));
    let expected = "org.example.notes may not use `a`: the operator did not grant it (operator has `a`)";
    assert_eq!(decision.explain(), expected);
}

#[test]
fn denying_beats_asking_and_asking_beats_allowing() {
    let one =
        |allow: &[&str], ask: &[&str], deny: &[&str]| grants(vec![layer(Voice::Operator, allow, ask, deny)]);
    check(&one(&["a"], &["a"], &["a"]), "a", Reason::NotGranted);
    let decision = check(&one(&["a"], &["a"], &[]), "a", Reason::NeedsApproval);
    let expected =
        "org.example.notes may, once approved, use `a`: a person has to approve it (operator has `a`)";
    assert_eq!(decision.explain(), expected);

    let asks = layer(Voice::Operator, &[], &["a"], &[]);
    let allows = layer(Voice::Declared, &["a"], &[], &[]);
    let denies = layer(Voice::Ceiling, &[], &[], &["a"]);
    check(&grants(vec![allows.clone(), asks.clone()]), "a", Reason::NeedsApproval);
    check(&grants(vec![allows, asks, denies]), "a", Reason::TrustCeiling);
}

#[test]
fn where_nobody_can_be_asked_asking_is_denying() {
    let asked = grants(vec![layer(Voice::Operator, &[], &["a"], &[])]).decide(&capability("a"));
    let denied = asked.clone().without_approver();
    assert_eq!((denied.verdict, denied.reason, denied.rule), (Verdict::Deny, Reason::NoApprover, asked.rule));
    let allowed = grants(vec![layer(Voice::Operator, &["a"], &[], &[])]).decide(&capability("a"));
    assert_eq!(allowed.clone().without_approver(), allowed);
}

#[test]
fn grants_that_cannot_be_read_grant_nothing() {
    check(&grants(vec![]), "a", Reason::GrantsUnreadable);
    let everything = layer(Voice::Declared, &["*"], &[], &[]);
    let stored: [(Option<&[u8]>, &str); 7] = [
        (None, "there is nothing stored"),
        (Some(b""), "EOF while parsing a value"),
        (Some(b"{\"allow\":[\"*\"]"), "EOF while parsing an object"),
        (Some(b"{\"allow\":[\"*\"],\"alow\":[]}"), "unknown field `alow`"),
        (Some(b"{\"allow\":\"*\"}"), "invalid type: string"),
        (Some(b"{\"allow\":[\"*\",\"[\"]}"), "entry 1 of the list `allow` is not a pattern"),
        (Some(b"{\"allow\":[\"*\"],\"allow\":[\"*\"]}"), "duplicate field `allow`"),
    ];
    for (stored, why) in stored {
        let operator = Layer::from_json(Voice::Operator, stored);
        assert!(operator.problem().is_some_and(|problem| problem.contains(why)), "{:?}", operator.problem());
        let decision = check(&grants(vec![everything.clone(), operator]), "a", Reason::GrantsUnreadable);
        assert_eq!(decision.rule, Some(Rule { list: "operator", pattern: None }));
    }
    let operator = Layer::from_json(Voice::Operator, Some(b"{\"allow\":[\"a\"],\"deny\":[]}"));
    check(&grants(vec![everything, operator]), "a", Reason::Granted);
}

#[test]
fn revoking_acts_on_the_next_question() {
    let mut grants = grants(vec![layer(Voice::Operator, &["a"], &["b"], &[])]);
    assert!(grants.revoke(capability("a")) && !grants.revoke(capability("a")));
    grants.revoke(capability("b"));
    grants.revoke(capability("c"));
    check(&grants, "a", Reason::Revoked);
    check(&grants, "b", Reason::Revoked);
    check(&grants, "c", Reason::NotGranted);

    grants.replace(layer(Voice::Operator, &["*"], &[], &[]));
    check(&grants, "a", Reason::Revoked);
    check(&grants, "d", Reason::Granted);
    assert!(grants.reinstate(&capability("a")) && !grants.reinstate(&capability("a")));
    check(&grants, "a", Reason::Granted);
}

#[test]
fn a_layer_of_exact_names_has_no_wildcards() {
    let name = capability("messages.read");
    let grants = grants(vec![Layer::only(Voice::Declared, [&name])]);
    check(&grants, "messages.read", Reason::Granted);
    check(&grants, "messages-read", Reason::NotDeclared);
}

#[test]
fn a_layer_holds_so_many_entries_and_no_more() {
    let lists = |count| LayerLists { deny: vec!["a".into(); count], ..LayerLists::default() };
    assert!(Layer::new(Voice::Operator, &lists(MAX_LAYER_ENTRIES)).is_ok());
    let error = Layer::new(Voice::Operator, &lists(MAX_LAYER_ENTRIES + 1)).unwrap_err();
    assert_eq!(error, LayerError::TooMany { list: "deny", count: MAX_LAYER_ENTRIES + 1 });

    let lists = |length| LayerLists { ask: vec!["a".repeat(length); 128], ..LayerLists::default() };
    assert!(Layer::new(Voice::Operator, &lists(MAX_LIST_BYTES / 128)).is_ok());
    let error = Layer::new(Voice::Operator, &lists(MAX_LIST_BYTES / 128 + 1)).unwrap_err();
    assert_eq!(error, LayerError::TooLong { list: "ask", bytes: MAX_LIST_BYTES + 128 });
}

#[test]
fn every_reason_has_a_code_of_its_own() {
    let mut codes: Vec<&str> = Reason::ALL.iter().map(|reason| reason.code()).collect();
    codes.sort_unstable();
    codes.dedup();
    assert_eq!(codes.len(), Reason::ALL.len());
    // Written into audits and sent to peers: these never change.
    let expected = "allow_listed budget_exhausted deny_listed granted grants_unreadable host_invalid needs_approval \
        no_approver not_allow_listed not_declared not_granted notification_form path_escapes path_invalid \
        profile_forbidden rate_limited revoked session_state tool_invalid trust_ceiling unmapped unrestricted \
        version_gated";
    assert_eq!(codes.join(" "), expected);
}

#[test]
fn a_decision_is_one_json_object() {
    let decision = grants(vec![layer(Voice::Operator, &["m.*"], &[], &[])]).decide(&capability("m.read"));
    let json = serde_json::to_string(&decision).unwrap();
    insta::assert_snapshot!(json, @r#"{"verdict":"allow","reason":"granted","rule":{"list":"operator","pattern":"m.*"},"subject":"org.example.notes","action":"use","object":"m.read"}"#);
}
