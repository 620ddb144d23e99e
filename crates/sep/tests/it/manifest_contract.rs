//! Which manifests are right: every constraint at its limit and one past it, every rule with its code.

use libtest_mimic::Trial;
use outrigger_sep::manifest::{
    Checked, MAX_DEPTH, MAX_MANIFEST_BYTES, MAX_VIOLATIONS, RuntimeMode, SCHEMA, Severity, check_bytes,
};
use outrigger_sep::protocol::{Permission, Profile, Slot, TrustLevel};
use serde_json::{Value, json};

use crate::manifest_fixture::{android, codes, desktop, set, with};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        a_right_manifest_is_read_as_it_was_written,
        both_kinds_of_manifest_are_right,
        all_violations_come_at_once_sorted_with_what_to_do,
        the_spelling_of_json_is_strict,
        double_keys_are_named_at_any_depth,
        nesting_has_a_limit,
        size_has_a_limit,
        another_format_is_not_judged_by_this_schema,
        every_rule_beyond_the_schema_has_its_code,
        names_that_change_what_a_program_is_cannot_be_set,
        a_phone_manifest_needs_its_part,
        garbage_has_a_bounded_answer,
        the_schema_file_has_no_word_that_is_not_checked,
        findings_look_the_same_for_ever,
    ]
}

fn check(manifest: &Value) -> Checked {
    check_bytes(manifest.to_string().as_bytes())
}

fn a_right_manifest_is_read_as_it_was_written() {
    let checked = check(&desktop());
    assert_eq!(checked.findings, []);
    let manifest = checked.manifest.expect("it is right");
    assert_eq!(manifest.id.as_str(), "org.example.weather");
    assert_eq!(manifest.claimed_trust, TrustLevel::TrustedThirdParty);
    assert_eq!(manifest.profile, Profile::Desktop);
    assert_eq!(manifest.entrypoint.args, ["--quiet"]);
    assert_eq!(manifest.entrypoint.environment["WEATHER_UNITS"], "metric");
    let sorted = [
        Permission::MessagesRead,
        Permission::MessagesSend,
        Permission::EventsSubscribe,
        Permission::ToolsRegister,
    ];
    assert_eq!(manifest.permissions, sorted);
    assert_eq!(manifest.events, ["message.received", "peer.online"]);
    assert_eq!(manifest.health.startup.as_millis(), 8000);
    assert_eq!(manifest.limits.max_request_bytes, 65536);
    assert_eq!(manifest.panels[0].slot, Slot::Primary);
    assert_eq!(manifest.compatibility.host.as_deref(), Some(">=4.5.0"));
    assert!(manifest.android.is_none());
    // What may be left out has a meaning then.
    let mut least = desktop();
    for key in ["description", "platformProfile", "events", "ui", "compatibility", "signing"] {
        least.as_object_mut().expect("an object").remove(key);
    }
    set(&mut least, "/entrypoint", json!({"command": "bin/weather", "args": []}));
    let least = check(&least).manifest.expect("it is right");
    assert_eq!(least.profile, Profile::Desktop);
    assert_eq!(least.entrypoint.working_directory, ".");
    assert!(least.events.is_empty() && least.panels.is_empty() && least.signing.is_none());
}

fn both_kinds_of_manifest_are_right() {
    let checked = check(&android());
    assert_eq!(codes(&checked.findings), ["M-sign-missing"]);
    assert_eq!(checked.findings[0].severity, Severity::Block);
    let phone = checked.manifest.expect("it is right, and blocked").android.expect("its part");
    assert_eq!(phone.runtime, RuntimeMode::PackagedModule);
    assert_eq!(phone.max_memory_mb, Some(128));
    // On a computer the part for phones is allowed, and ignored.
    let mut both = android();
    set(&mut both, "/platformProfile", json!("desktop"));
    set(&mut both, "/signing/required", json!(false));
    assert_eq!(check(&both).findings, []);
}

fn all_violations_come_at_once_sorted_with_what_to_do() {
    let mut manifest = desktop();
    set(&mut manifest, "/permisions", json!([]));
    manifest.as_object_mut().expect("an object").remove("permissions");
    set(&mut manifest, "/trustLevel", json!("trusted_thirdparty"));
    set(&mut manifest, "/health/startupTimeoutMs", json!("8000"));
    set(&mut manifest, "/limits/maxRequestBytes", json!(1));
    set(&mut manifest, "/entrypoint/environment/LD_PRELOAD", json!("x.so"));
    let checked = check(&manifest);
    let paths: Vec<&str> = checked.findings.iter().map(|finding| finding.path.as_str()).collect();
    assert!(paths.is_sorted(), "{paths:?}");
    let hint = |path: &str| {
        let finding = checked.findings.iter().find(|finding| finding.path == path).expect(path);
        finding.suggestion.clone().unwrap_or_default()
    };
    assert_eq!(hint("/permisions"), "did you mean `permissions`?");
    assert_eq!(hint(""), "`permisions` may be meant to be it");
    assert_eq!(hint("/trustLevel"), "did you mean `trusted_third_party`?");
    assert_eq!(hint("/health/startupTimeoutMs"), "write 8000 without quotes");
    assert!(codes(&checked.findings).contains(&"M-env-forbidden"));
}

fn the_spelling_of_json_is_strict() {
    let right = desktop().to_string();
    let marked = [b"\xef\xbb\xbf", right.as_bytes()].concat();
    let broken = right.replace("Weather notes", "Weather \u{0} notes");
    let mut latin = right.clone().into_bytes();
    let at = right.find("Weather").expect("it is there");
    latin[at] = 0xe9;
    let table: Vec<(Vec<u8>, &str)> = vec![
        (b"".to_vec(), "M-json"),
        (b" \n".to_vec(), "M-json"),
        (format!("{right} {right}").into_bytes(), "M-json"),
        (format!("{right}\0").into_bytes(), "M-json"),
        (format!("{right}]").into_bytes(), "M-json"),
        (right.replacen(',', ",,", 1).into_bytes(), "M-json"),
        (right.replace("\"Weather notes\"", "'Weather notes'").into_bytes(), "M-json"),
        (right.replace("Weather notes", "\\ud83c").into_bytes(), "M-json"),
        (right.replace("8000", "08000").into_bytes(), "M-json"),
        (right.replace("8000", "NaN").into_bytes(), "M-json"),
        (right.replace("8000", "1e999").into_bytes(), "M-json"),
        (broken.into_bytes(), "M-json"),
        (right.as_bytes()[..right.len() - 1].to_vec(), "M-json"),
        (marked, "M-utf8"),
        (latin, "M-utf8"),
        (b"\xff".to_vec(), "M-utf8"),
    ];
    for (bytes, code) in table {
        let checked = check_bytes(&bytes);
        assert_eq!(codes(&checked.findings), [code], "{}", String::from_utf8_lossy(&bytes));
        assert!(checked.manifest.is_none());
    }
    // White space around the value is not a second value.
    assert!(check_bytes(format!("\n {right}\r\n\t").as_bytes()).manifest.is_some());
    for value in ["null", "[]", "1", "\"x\"", "true"] {
        let checked = check_bytes(value.as_bytes());
        assert_eq!(checked.findings[0].keyword, Some("type"), "{value}");
    }
}

fn double_keys_are_named_at_any_depth() {
    let right = desktop().to_string();
    let table = [
        (right.replacen('{', "{\"name\":\"first\",", 1), "/name"),
        (right.replace("\"args\":", "\"args\":[],\"args\":"), "/entrypoint/args"),
        (right.replace("\"title\":", "\"title\":\"a\",\"title\":"), "/ui/toolPanels/0/title"),
        (
            right.replace("\"environment\":{", "\"environment\":{\"A/B\":\"\",\"A\\u002fB\":\"\","),
            "/entrypoint/environment/A~1B",
        ),
    ];
    for (text, path) in table {
        let checked = check_bytes(text.as_bytes());
        let double = checked.findings.iter().find(|finding| finding.code == "M-dup-key").expect(path);
        assert_eq!(double.path, path);
        assert!(checked.manifest.is_none());
    }
    // A thousand of them are counted, not told.
    let many = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(1000));
    let doubles: Vec<_> = check_bytes(many.as_bytes()).findings;
    let doubles: Vec<_> = doubles.iter().filter(|finding| finding.code == "M-dup-key").collect();
    assert!(doubles.len() <= 33, "{}", doubles.len());
    assert!(doubles.iter().any(|finding| finding.message.contains("more keys")));
}

fn nesting_has_a_limit() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    // The outermost is one of them.
    assert_eq!(codes(&check_bytes(nested(MAX_DEPTH).as_bytes()).findings), ["M-schema"]);
    assert_eq!(codes(&check_bytes(nested(MAX_DEPTH + 1).as_bytes()).findings), ["M-depth"]);
    assert_eq!(codes(&check_bytes("[".repeat(MAX_MANIFEST_BYTES).as_bytes()).findings), ["M-depth"]);
    // Brackets in texts are no nesting.
    assert!(check(&with("/description", json!("[{\\\"".repeat(100)))).manifest.is_some());
}

fn size_has_a_limit() {
    let right = desktop().to_string();
    let padded = |length: usize| format!("{right}{}", " ".repeat(length - right.len()));
    assert!(check_bytes(padded(MAX_MANIFEST_BYTES).as_bytes()).manifest.is_some());
    let checked = check_bytes(padded(MAX_MANIFEST_BYTES + 1).as_bytes());
    assert_eq!(codes(&checked.findings), ["M-size"]);
    assert!(checked.manifest.is_none());
}

fn another_format_is_not_judged_by_this_schema() {
    for version in ["2.0.0", "0.9.0", "1.1.0", "99999999999999999999.0.0"] {
        let mut manifest = with("/schemaVersion", json!(version));
        set(&mut manifest, "/somethingNew", json!(1));
        let checked = check(&manifest);
        assert_eq!(codes(&checked.findings), ["M-schema-version"], "{version}");
        assert!(checked.manifest.is_none());
    }
}

fn every_rule_beyond_the_schema_has_its_code() {
    use Severity::{Block, Error, Warning};
    let panels = json!([
        {"id": "a", "title": "t", "slot": "tools.page.primary"},
        {"id": "a", "title": "u", "slot": "tools.page.primary"}
    ]);
    let sign = |key: &str, signature: &str| json!({"required": true, "keyId": key, "signature": signature});
    let table = [
        ("/apiVersion", json!("1.2.0"), "M-api-version", Block, "/apiVersion"),
        ("/apiVersion", json!("2.0.0"), "M-api-version", Block, "/apiVersion"),
        ("/apiVersion", json!("0.9.0"), "M-api-version", Block, "/apiVersion"),
        ("/entrypoint/command", json!("../weather"), "M-cmd-escape", Error, "/entrypoint/command"),
        ("/entrypoint/command", json!("bin/../../weather"), "M-cmd-escape", Error, "/entrypoint/command"),
        ("/entrypoint/command", json!(".."), "M-cmd-escape", Error, "/entrypoint/command"),
        ("/entrypoint/command", json!("bin/we\0ather"), "M-cmd-escape", Error, "/entrypoint/command"),
        (
            "/entrypoint/workingDirectory",
            json!("/tmp"),
            "M-cmd-escape",
            Error,
            "/entrypoint/workingDirectory",
        ),
        (
            "/entrypoint/workingDirectory",
            json!("a/../.."),
            "M-cmd-escape",
            Error,
            "/entrypoint/workingDirectory",
        ),
        ("/entrypoint/workingDirectory", json!("\0"), "M-cmd-escape", Error, "/entrypoint/workingDirectory"),
        ("/entrypoint/args", json!(["a", "\0"]), "M-cmd-escape", Error, "/entrypoint/args/1"),
        ("/entrypoint/environment/A", json!("\0"), "M-env-forbidden", Error, "/entrypoint/environment/A"),
        ("/name", json!("a\nb"), "M-text", Error, "/name"),
        ("/name", json!("a\tb"), "M-text", Error, "/name"),
        ("/name", json!("a\u{202E}b"), "M-text", Error, "/name"),
        ("/name", json!("a\u{2066}b"), "M-text", Error, "/name"),
        ("/name", json!("a\u{200F}b"), "M-text", Error, "/name"),
        ("/name", json!("a\u{7F}b"), "M-text", Error, "/name"),
        ("/name", json!("a\u{85}b"), "M-text", Error, "/name"),
        ("/name", json!("a\u{2028}b"), "M-text", Error, "/name"),
        ("/description", json!("a\0b"), "M-text", Error, "/description"),
        ("/description", json!("a\rb"), "M-text", Error, "/description"),
        ("/description", json!("a\u{2069}b"), "M-text", Error, "/description"),
        ("/ui/toolPanels/0/title", json!("a\u{1b}[1mb"), "M-text", Error, "/ui/toolPanels/0/title"),
        ("/ui/toolPanels", panels, "M-panel-dup", Error, "/ui/toolPanels/1/id"),
        ("/permissions", json!(["events.subscribe"]), "M-panel-perm", Warning, "/ui/toolPanels"),
        ("/permissions", json!(["tools.register"]), "M-event-perm", Warning, "/events/subscribe"),
        ("/permissions", json!(["events.subscribe"]), "M-event-data-perm", Warning, "/events/subscribe/0"),
        (
            "/events/subscribe",
            json!(["contact.changed"]),
            "M-event-data-perm",
            Warning,
            "/events/subscribe/0",
        ),
        ("/events/subscribe", json!(["mesage.received"]), "M-event-unknown", Warning, "/events/subscribe/0"),
        (
            "/events/subscribe",
            json!(["lifecycle.pausing"]),
            "M-event-unknown",
            Warning,
            "/events/subscribe/0",
        ),
        ("/compatibility/meshchatx", json!("newest"), "M-compat-range", Error, "/compatibility/meshchatx"),
        (
            "/compatibility/meshchatx",
            json!(">=4.5.0 <5"),
            "M-compat-range",
            Error,
            "/compatibility/meshchatx",
        ),
        ("/signing", sign("", ""), "M-sign-missing", Block, "/signing"),
        ("/signing", sign("k", ""), "M-sign-missing", Block, "/signing"),
        ("/signing", sign("", "s"), "M-sign-missing", Block, "/signing"),
    ];
    for (pointer, value, code, severity, path) in table {
        let checked = check(&with(pointer, value.clone()));
        let finding = checked.findings.iter().find(|finding| finding.code == code);
        let finding = finding.unwrap_or_else(|| panic!("{pointer} {value}: {:#?}", checked.findings));
        assert_eq!((finding.severity, finding.path.as_str()), (severity, path), "{pointer} {value}");
        assert_eq!(checked.manifest.is_none(), severity == Error, "{pointer} {value}");
    }
    // An absolute command is for the policy to allow.
    assert_eq!(check(&with("/entrypoint/command", json!("/opt/tool"))).findings, []);
}

fn names_that_change_what_a_program_is_cannot_be_set() {
    let never = [
        "SEP_HOST",
        "SEP_X",
        "LD_PRELOAD",
        "LD_",
        "DYLD_INSERT_LIBRARIES",
        "GCONV_PATH",
        "BASH_ENV",
        "ENV",
        "IFS",
        "NODE_OPTIONS",
        "PERL5OPT",
        "RUBYOPT",
        "JAVA_TOOL_OPTIONS",
        "PYTHONSTARTUP",
        "PYTHONHOME",
        "HOME",
        "TMPDIR",
    ];
    let forbidden = |name: &str, claim: &str| {
        let mut manifest = with("/trustLevel", json!(claim));
        set(&mut manifest, &format!("/entrypoint/environment/{name}"), json!("x"));
        codes(&check(&manifest).findings) == ["M-env-forbidden"]
    };
    for claim in ["first_party", "trusted_third_party", "untrusted_local"] {
        assert!(never.iter().all(|name| forbidden(name, claim)), "{claim}");
    }
    assert!(!forbidden("PATH", "first_party"));
    assert!(forbidden("PATH", "trusted_third_party") && forbidden("PATH", "untrusted_local"));
    for fine in ["PYTHONUNBUFFERED", "SEPARATOR", "OLD_PATH", "LDX", "ENVIRONMENT", "RUST_LOG"] {
        assert!(!forbidden(fine, "untrusted_local"), "{fine}");
    }
}

fn a_phone_manifest_needs_its_part() {
    let mut manifest = android();
    manifest.as_object_mut().expect("an object").remove("android");
    let finding = check(&manifest).findings.remove(0);
    assert_eq!((finding.path.as_str(), finding.keyword), ("", Some("required")));
    assert!(finding.message.contains("`android`"));
    for key in ["runtimeMode", "allowBackgroundExecution"] {
        let mut manifest = android();
        manifest["android"].as_object_mut().expect("an object").remove(key);
        let finding = check(&manifest).findings.remove(0);
        assert_eq!((finding.path.as_str(), finding.keyword), ("/android", Some("required")));
    }
}

fn garbage_has_a_bounded_answer() {
    let zeros = "0,".repeat(100_000);
    let text = desktop().to_string().replace("[\"--quiet\"]", &format!("[{zeros}0]"));
    let checked = check_bytes(text.as_bytes());
    assert!(checked.findings.len() <= MAX_VIOLATIONS + 1, "{}", checked.findings.len());
    assert!(checked.findings.iter().any(|finding| finding.message.contains("more violations")));
    assert!(checked.findings.iter().any(|finding| finding.keyword == Some("maxItems")));
    // The same answer every time.
    assert_eq!(check_bytes(text.as_bytes()), checked);
    let strangers: String = (0..20_000).map(|i| format!("\"k{i}\":1,")).collect();
    let text = desktop().to_string().replacen('{', &format!("{{{strangers}"), 1);
    assert!(check_bytes(text.as_bytes()).findings.len() <= MAX_VIOLATIONS + 1);
}

fn the_schema_file_has_no_word_that_is_not_checked() {
    let known = [
        "type",
        "enum",
        "const",
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "uniqueItems",
        "items",
        "properties",
        "required",
        "additionalProperties",
        "propertyNames",
        "maxProperties",
        "allOf",
        "if",
        "then",
    ];
    let notes = ["$schema", "$id", "title", "description"];
    fn look(schema: &Value, known: &[&str], notes: &[&str]) {
        let Some(words) = schema.as_object() else { return };
        for (word, value) in words {
            assert!(known.contains(&word.as_str()) || notes.contains(&word.as_str()), "{word}");
            match word.as_str() {
                "properties" => {
                    value.as_object().expect("members").values().for_each(|it| look(it, known, notes))
                }
                "allOf" => value.as_array().expect("parts").iter().for_each(|it| look(it, known, notes)),
                "items" | "additionalProperties" | "propertyNames" | "if" | "then" => {
                    look(value, known, notes)
                }
                "const" => assert!(value.is_string()),
                _ => {}
            }
        }
    }
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    look(&schema, &known, &notes);
    assert!(!SCHEMA.contains("meshchatx."), "no host of somebody else");
}

fn findings_look_the_same_for_ever() {
    let mut manifest = with("/permissions", json!(["messages.sent", "tools.register"]));
    set(&mut manifest, "/limits/maxRequestsPerSecond", json!(0));
    let findings = check(&manifest).findings;
    let lines: Vec<String> = findings.iter().map(|it| serde_json::to_string(it).expect("JSON")).collect();
    insta::assert_snapshot!(lines.join("\n"), @r#"
    {"path":"/events/subscribe","severity":"warning","code":"M-event-perm","message":"no event is delivered without `events.subscribe`","suggestion":"add `events.subscribe` to the permissions"}
    {"path":"/limits/maxRequestsPerSecond","severity":"error","code":"M-schema","keyword":"minimum","message":"is 0; 1 is the least"}
    {"path":"/permissions/0","severity":"error","code":"M-schema","keyword":"enum","message":"`messages.sent` is not allowed here","suggestion":"did you mean `messages.send`?"}
    "#);
}
