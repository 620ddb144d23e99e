//! What a schema cannot say: the rules about a manifest that need no disk and no policy.
//!
//! They look at the plain value, so that they can be told together with the violations of the schema. What has the wrong
//! type is passed over here; the schema has said so.

use std::collections::HashSet;
use std::path::{Component, Path};

use serde_json::{Map, Value};

use super::finding::{Finding, code, quoted};
use super::nearest::nearest;
use super::requirement::Requirement;
use super::strict::pointer;
use super::topic;
use crate::protocol::{Permission, TrustLevel, V1_1, Version};

/// The newest format of manifests that this host reads.
pub const SCHEMA_VERSION: Version = Version { major: 1, minor: 0, patch: 0 };

/// A format that this host does not read. Then nothing else can be said about the manifest.
pub(super) fn schema_version(manifest: &Value) -> Option<Finding> {
    let version = Version::parse(manifest["schemaVersion"].as_str()?).ok()?;
    (!SCHEMA_VERSION.serves(version)).then(|| {
        let message = format!("manifests of version {version} cannot be read by this host");
        Finding::error(code::SCHEMA_VERSION, "/schemaVersion", message)
            .suggest(format!("it reads {SCHEMA_VERSION}"))
    })
}

/// Everything else.
pub(super) fn check(manifest: &Value) -> Vec<Finding> {
    let mut findings = Vec::new();
    api_version(manifest, &mut findings);
    entrypoint(&manifest["entrypoint"], &mut findings);
    environment(manifest, &mut findings);
    texts(manifest, &mut findings);
    panels(manifest, &mut findings);
    events(manifest, &mut findings);
    compatibility(manifest, &mut findings);
    signing(&manifest["signing"], &mut findings);
    findings
}

/// Whether an extension that is trusted so far may not set this variable.
pub(super) fn forbidden_variable(name: &str, trust: TrustLevel) -> bool {
    const NAMES: [&str; 13] = [
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
        "PATH",
        "HOME",
        "TMPDIR",
    ];
    let prefixed = ["SEP_", "LD_", "DYLD_"].iter().any(|prefix| name.starts_with(prefix));
    let excepted = name == "PATH" && trust == TrustLevel::FirstParty;
    (prefixed || NAMES.contains(&name)) && !excepted
}

pub(super) fn forbidden(name: &str) -> Finding {
    let path = pointer("/entrypoint/environment", name);
    let message = format!("an extension may not set {}: it changes what the program is", quoted(name));
    Finding::error(code::ENV_FORBIDDEN, path, message)
        .suggest("leave it out; pass what is needed as an argument")
}

/// Whether a relative path leaves its folder as it is written.
pub(super) fn climbs_out(path: &Path) -> bool {
    let mut depth = 0_i32;
    path.components().any(|component| {
        match component {
            Component::Normal(_) => depth += 1,
            Component::ParentDir => depth -= 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
        depth < 0
    })
}

fn api_version(manifest: &Value, findings: &mut Vec<Finding>) {
    let version = manifest["apiVersion"].as_str().and_then(|text| Version::parse(text).ok());
    if let Some(version) = version.filter(|version| !V1_1.serves(*version)) {
        let message = format!("needs protocol {version}; this host speaks up to {V1_1}");
        findings.push(Finding::block(code::API_VERSION, "/apiVersion", message));
    }
}

fn entrypoint(entrypoint: &Value, findings: &mut Vec<Finding>) {
    let escape = |path: &str, message: String| Finding::error(code::CMD_ESCAPE, path, message);
    let places = [("command", "/entrypoint/command"), ("workingDirectory", "/entrypoint/workingDirectory")];
    for (key, path) in places {
        let Some(text) = entrypoint[key].as_str() else { continue };
        // An absolute command is for the policy to allow; a folder never is.
        let policy_decides = key == "command" && text.starts_with('/');
        let alone = key == "command" && matches!(text, "." | "..");
        if text.contains('\0') {
            findings.push(escape(path, "contains a NUL".to_owned()));
        } else if !policy_decides && (alone || climbs_out(Path::new(text))) {
            let message = format!("{} is not inside the extension", quoted(text));
            findings.push(escape(path, message).suggest("name something inside the extension's folder"));
        }
    }
    for (index, arg) in list(&entrypoint["args"]).iter().enumerate() {
        if arg.as_str().is_some_and(|arg| arg.contains('\0')) {
            findings.push(escape(&format!("/entrypoint/args/{index}"), "contains a NUL".to_owned()));
        }
    }
}

fn environment(manifest: &Value, findings: &mut Vec<Finding>) {
    // With the claim here; with what is proved of it when it is admitted.
    let claim = manifest["trustLevel"].as_str().and_then(|word| TrustLevel::parse(word).ok());
    let claim = claim.unwrap_or(TrustLevel::UntrustedLocal);
    for (name, value) in members(&manifest["entrypoint"]["environment"]) {
        if forbidden_variable(name, claim) {
            findings.push(forbidden(name));
        }
        if value.as_str().is_some_and(|value| value.contains('\0')) {
            let path = pointer("/entrypoint/environment", name);
            findings.push(Finding::error(code::ENV_FORBIDDEN, path, "contains a NUL"));
        }
    }
}

fn texts(manifest: &Value, findings: &mut Vec<Finding>) {
    let mut look = |value: &Value, path: String, lines: Lines| {
        let Some(text) = value.as_str() else { return };
        if let Some(c) = text.chars().find(|c| disturbs(*c, lines)) {
            let message =
                format!("contains the character U+{:04X}, which changes how text looks", u32::from(c));
            findings.push(Finding::error(code::TEXT, path, message).suggest("remove it"));
        }
    };
    look(&manifest["name"], "/name".to_owned(), Lines::One);
    look(&manifest["description"], "/description".to_owned(), Lines::Many);
    for (index, panel) in list(&manifest["ui"]["toolPanels"]).iter().enumerate() {
        look(&panel["title"], format!("/ui/toolPanels/{index}/title"), Lines::One);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Lines {
    One,
    Many,
}

fn disturbs(c: char, lines: Lines) -> bool {
    match c {
        '\n' | '\t' => lines == Lines::One,
        '\u{2028}' | '\u{2029}' => lines == Lines::One,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200E}' | '\u{200F}' => true,
        c => c.is_control(),
    }
}

fn panels(manifest: &Value, findings: &mut Vec<Finding>) {
    let panels = list(&manifest["ui"]["toolPanels"]);
    let mut seen = HashSet::new();
    for (index, panel) in panels.iter().enumerate() {
        let Some(id) = panel["id"].as_str() else { continue };
        if !seen.insert(id) {
            let path = format!("/ui/toolPanels/{index}/id");
            let message = format!("another panel is {} already", quoted(id));
            findings.push(Finding::error(code::PANEL_DUP, path, message));
        }
    }
    if !panels.is_empty() && !declares(manifest, Permission::ToolsRegister) {
        let message = "panels are not shown without `tools.register`";
        let finding = Finding::warning(code::PANEL_PERM, "/ui/toolPanels", message);
        findings.push(finding.suggest("add `tools.register` to the permissions"));
    }
}

fn events(manifest: &Value, findings: &mut Vec<Finding>) {
    let topics = list(&manifest["events"]["subscribe"]);
    let may_hear = declares(manifest, Permission::EventsSubscribe);
    if !topics.is_empty() && !may_hear {
        let message = "no event is delivered without `events.subscribe`";
        let finding = Finding::warning(code::EVENT_PERM, "/events/subscribe", message);
        findings.push(finding.suggest("add `events.subscribe` to the permissions"));
    }
    for (index, name) in topics.iter().enumerate() {
        let Some(name) = name.as_str() else { continue };
        let path = format!("/events/subscribe/{index}");
        match topic::find(name) {
            None => findings.push(unknown_topic(name, path)),
            Some(Some(content)) if may_hear && !declares(manifest, content) => {
                let message = format!("`{name}` is not delivered without `{content}`");
                let finding = Finding::warning(code::EVENT_DATA_PERM, path, message);
                findings.push(finding.suggest(format!("add `{content}` to the permissions")));
            }
            Some(_) => {}
        }
    }
}

fn unknown_topic(name: &str, path: String) -> Finding {
    if name.starts_with("lifecycle.") {
        let message = format!("{} is always delivered and cannot be subscribed to", quoted(name));
        return Finding::warning(code::EVENT_UNKNOWN, path, message).suggest("leave it out");
    }
    let finding = Finding::warning(code::EVENT_UNKNOWN, path, format!("there is no event {}", quoted(name)));
    finding.suggest(match nearest(name, topic::known()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("there are: {}", topic::known().collect::<Vec<_>>().join(", ")),
    })
}

fn compatibility(manifest: &Value, findings: &mut Vec<Finding>) {
    let Some(text) = manifest["compatibility"]["meshchatx"].as_str() else { return };
    if let Err(bad) = Requirement::parse(text) {
        let finding = Finding::error(code::COMPAT_RANGE, "/compatibility/meshchatx", bad.to_string());
        findings.push(finding.suggest("write a requirement such as `>=4.5.0` or `>=4.5.0, <5`"));
    }
}

fn signing(signing: &Value, findings: &mut Vec<Finding>) {
    let empty = |key: &str| signing[key].as_str().is_some_and(str::is_empty);
    if signing["required"] == Value::Bool(true) && (empty("keyId") || empty("signature")) {
        let message = "the manifest says that it must be signed, and it is not";
        findings.push(Finding::block(code::SIGN_MISSING, "/signing", message).suggest("sign the extension"));
    }
}

fn declares(manifest: &Value, permission: Permission) -> bool {
    list(&manifest["permissions"]).iter().any(|declared| declared == permission.as_str())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}
