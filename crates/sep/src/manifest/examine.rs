//! Looking at one extension: from the folder to the decision whether it may run and what it may use.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outrigger_policy::Digest;
use rustix::fs::{FileType, Stat};
use serde_json::Value;

use super::admission::{Admission, SandboxLevel};
use super::check::check_value;
use super::file::{FILE_NAME, read_manifest};
use super::finding::{Finding, Severity, code, quoted};
use super::found::{Found, Home, HostFacts, Standing};
use super::key::Keyring;
use super::model::{Manifest, RuntimeMode};
use super::requirement::{HostVersion, Requirement};
use super::sign::{Verdict, verify};
use super::tree::{TREE_BOUNDS, Tree, others_can_change};
use super::trust::{Evidence, Judged, judge};
use super::{ceilings, resolve, rules, strict, topic};
use crate::config::{HostPolicy, SandboxPolicy, SignaturePolicy, UntrustedLocal};
use crate::protocol::{ExtensionId, Profile, TrustLevel};

/// Looks at the extension in one folder. Executes nothing and changes nothing.
#[must_use]
pub fn examine(dir: &Path, home: Home, policy: &HostPolicy, facts: &HostFacts) -> Found {
    let mut found = Found {
        id: dir.file_name().and_then(|name| ExtensionId::new(name.to_str()?).ok()),
        dir: dir.to_owned(),
        standing: Standing::Invalid,
        manifest: None,
        findings: Vec::new(),
        admission: None,
        digest: None,
        manifest_digest: None,
        resolved: None,
        home,
    };
    if let Err(finding) = look(&mut found, policy, facts) {
        found.findings.push(finding);
    }
    found.findings.sort();
    found.findings.dedup();
    found.standing = standing(&found.findings);
    match found.standing {
        Standing::Admitted => {}
        // What was decided about it is shown, although nobody here can run it.
        Standing::Unavailable => found.resolved = None,
        Standing::Invalid | Standing::Blocked => (found.admission, found.resolved) = (None, None),
    }
    found
}

fn standing(findings: &[Finding]) -> Standing {
    let has = |wanted: fn(&Finding) -> bool| findings.iter().any(wanted);
    if has(|finding| finding.severity == Severity::Error) {
        Standing::Invalid
    } else if has(|finding| finding.severity == Severity::Block && finding.code != code::RUNTIME) {
        Standing::Blocked
    } else if has(|finding| finding.code == code::RUNTIME) {
        Standing::Unavailable
    } else {
        Standing::Admitted
    }
}

/// Fills in what can be known. An error is what makes the rest unknowable.
fn look(found: &mut Found, policy: &HostPolicy, facts: &HostFacts) -> Result<(), Finding> {
    let dir = real_folder(&found.dir, policy, facts, &mut found.findings)?;
    let file = read_manifest(&dir.join(FILE_NAME))?;
    unsafe_file(&file.stat, facts, FILE_NAME, &mut found.findings);
    found.manifest_digest = Some(Digest::of(&file.bytes));
    let (value, findings) = strict::read(&file.bytes);
    found.findings.extend(findings);
    let Some(value) = value else { return Ok(()) };
    let checked = check_value(&value, Vec::new());
    found.findings.extend(checked.findings);
    let Some(manifest) = checked.manifest.map(Arc::new) else { return Ok(()) };
    found.manifest = Some(manifest.clone());
    if found.dir.file_name().and_then(|name| name.to_str()) != Some(manifest.id.as_str()) {
        let message = format!("the folder is not named `{}`", manifest.id);
        found
            .findings
            .push(Finding::error(code::DIR_ID, "/id", message).suggest("rename the folder or the extension"));
    }
    fits_host(&manifest, policy, facts, &mut found.findings);
    let tree = read_tree(&dir, facts, &file.bytes)?;
    if let Some((path, why)) = &tree.unsafe_entry {
        found.findings.push(Finding::error(code::PERM_UNSAFE, "", format!("{} {why}", path.display())));
    }
    found.digest = Some(tree.digest());
    admit(found, &dir, &manifest, &value, &tree, policy, facts);
    Ok(())
}

/// The folder without links, if it may be one.
fn real_folder(
    dir: &Path,
    policy: &HostPolicy,
    facts: &HostFacts,
    findings: &mut Vec<Finding>,
) -> Result<PathBuf, Finding> {
    let failed = |error: std::io::Error| {
        Finding::error(code::FILE, "", format!("{} cannot be read: {error}", dir.display()))
    };
    let stat = rustix::fs::lstat(dir).map_err(|errno| failed(errno.into()))?;
    if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink && !policy.follow_symlinks {
        let message = format!("{} is a symbolic link, and the policy does not follow links", dir.display());
        return Err(Finding::error(code::FILE, "", message)
            .suggest("copy the extension, or set `follow_symlinks = true`"));
    }
    let real = dir.canonicalize().map_err(failed)?;
    let stat = rustix::fs::stat(&real).map_err(|errno| failed(errno.into()))?;
    unsafe_file(&stat, facts, "the folder", findings);
    Ok(real)
}

fn unsafe_file(stat: &Stat, facts: &HostFacts, what: &str, findings: &mut Vec<Finding>) {
    if let Some(why) = others_can_change(stat, facts.uid) {
        let finding = Finding::error(code::PERM_UNSAFE, "", format!("{what} {why}"));
        findings.push(
            finding.suggest("give it to yourself and take the write permission from others (chmod go-w)"),
        );
    }
}

fn read_tree(dir: &Path, facts: &HostFacts, manifest: &[u8]) -> Result<Tree, Finding> {
    let tree = Tree::read(dir, facts.uid, TREE_BOUNDS)
        .map_err(|error| Finding::block(code::TREE, "", error.to_string()))?;
    // What is hashed must be what was read.
    if tree.content(Path::new(FILE_NAME)) != Some(Digest::of(manifest)) {
        return Err(Finding::block(code::TREE, "", "the manifest changed while it was read"));
    }
    Ok(tree)
}

fn fits_host(manifest: &Manifest, policy: &HostPolicy, facts: &HostFacts, findings: &mut Vec<Finding>) {
    let requirement = manifest.compatibility.host.as_deref();
    let required = requirement.and_then(|text| Requirement::parse(text).ok());
    let host = HostVersion::parse(&policy.compatible_with);
    if let Some(required) = required
        && !host.is_ok_and(|host| required.met_by(host))
    {
        let wanted = quoted(requirement.unwrap_or(""));
        let message =
            format!("needs an application {wanted}; this host is one of {}", policy.compatible_with);
        findings.push(Finding::block(code::COMPAT_HOST, "/compatibility/meshchatx", message));
    }
    let platforms = &manifest.compatibility.platforms;
    if !platforms.is_empty() && !platforms.contains(&facts.platform()) {
        let message = format!("does not run on {}, only on {}", facts.platform(), platforms.join(", "));
        findings.push(Finding::block(code::COMPAT_PLATFORM, "/compatibility/platforms", message));
    }
    if manifest.profile != facts.profile {
        let message = format!("is made for {}; this host is {}", manifest.profile, facts.profile);
        findings.push(Finding::block(code::PROFILE, "/platformProfile", message));
    }
}

fn admit(
    found: &mut Found,
    dir: &Path,
    manifest: &Manifest,
    value: &Value,
    tree: &Tree,
    policy: &HostPolicy,
    facts: &HostFacts,
) {
    let verdict = verify(value, tree, &Keyring::new(&policy.keys_dir));
    let needed = signature_needed(manifest, policy, facts);
    found.findings.extend(signature_finding(&verdict, needed));
    let evidence = Evidence { id: &manifest.id, home: found.home, tree: tree.digest(), signature: &verdict };
    let (trust, clamped) = match judge(manifest.claimed_trust, &evidence, policy) {
        Judged::Level { trust, clamped } => (trust, clamped),
        Judged::Tampered { approved } => {
            let approved: Vec<String> = approved.iter().map(ToString::to_string).collect();
            let message = format!(
                "the files are not those that the operator approved: they are {}, approved is {}",
                evidence.tree,
                approved.join(" or ")
            );
            let finding = Finding::block(code::TAMPERED, "", message);
            found.findings.push(finding.suggest("look at what changed; approve it again if it is meant"));
            return;
        }
    };
    if let Some(why) = &clamped {
        found.findings.push(Finding::warning(
            code::TRUST_CLAMPED,
            "/trustLevel",
            format!("{why}; it is {trust}"),
        ));
    }
    if trust != TrustLevel::FirstParty {
        let taken =
            manifest.entrypoint.environment.keys().filter(|name| rules::forbidden_variable(name, trust));
        found.findings.extend(taken.map(|name| rules::forbidden(name)));
    }
    found.findings.extend(trust_finding(trust, policy, facts));
    let (limits, clamped_limits) = ceilings::effective(manifest, trust, facts.profile, policy);
    found.findings.extend(clamped_limits);
    // Another platform's program is not looked for; that it is another platform has been said.
    if manifest.profile == facts.profile {
        match resolve::resolve(dir, manifest, trust, policy) {
            Ok(resolved) => found.resolved = Some(resolved),
            Err(findings) => found.findings.extend(findings),
        }
    }
    let (grantable, explicit_only) = ceilings::grantable(trust);
    let events = topic::plan(manifest, &grantable);
    let sandbox = match (trust, policy.sandbox) {
        (TrustLevel::UntrustedLocal, _) | (_, SandboxPolicy::Required) => SandboxLevel::Strict,
        (_, SandboxPolicy::Auto) => SandboxLevel::Auto,
        (_, SandboxPolicy::Off) => SandboxLevel::Off,
    };
    let profile = facts.profile;
    found.admission =
        Some(Admission { trust, clamped, limits, profile, grantable, explicit_only, sandbox, events });
}

/// Who says that there must be a signature.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Needed {
    No,
    ByManifest,
    ByPolicy,
    ByPlatform,
}

fn signature_needed(manifest: &Manifest, policy: &HostPolicy, facts: &HostFacts) -> Needed {
    let packaged = manifest.android.is_some_and(|android| android.runtime == RuntimeMode::PackagedModule);
    let wants = manifest.signing.as_ref().is_some_and(|signing| signing.required);
    if policy.signatures == SignaturePolicy::Require {
        Needed::ByPolicy
    } else if facts.profile == Profile::Android && manifest.profile == Profile::Android && !packaged {
        Needed::ByPlatform
    } else if wants && policy.signatures != SignaturePolicy::Off {
        Needed::ByManifest
    } else {
        Needed::No
    }
}

fn signature_finding(verdict: &Verdict, needed: Needed) -> Option<Finding> {
    const PATH: &str = "/signing";
    let who = match needed {
        Needed::ByPolicy => "the policy runs signed extensions only",
        Needed::ByPlatform => "on a phone only signed extensions run with their own runtime",
        Needed::ByManifest | Needed::No => "the manifest says that it must be signed",
    };
    match (verdict, needed) {
        (Verdict::Valid(_), _) | (Verdict::Absent, Needed::No | Needed::ByManifest) => None,
        (Verdict::Absent, Needed::ByPolicy | Needed::ByPlatform) => {
            let finding =
                Finding::block(code::SIGN_MISSING, PATH, format!("{who}, and this one is not signed"));
            Some(finding.suggest("sign the extension"))
        }
        (Verdict::Invalid(why), _) => Some(Finding::block(code::SIGN_INVALID, PATH, why.clone())),
        (Verdict::Unverified(why), Needed::No) => Some(Finding::warning(
            code::SIGN_UNVERIFIED,
            PATH,
            format!("the signature proves nothing: {why}"),
        )),
        (Verdict::Unverified(why), Needed::ByManifest | Needed::ByPolicy | Needed::ByPlatform) => {
            let finding = Finding::block(code::SIGN_INVALID, PATH, format!("{who}, and {why}"));
            Some(finding.suggest("put the maker's public key into the keyring, if you trust it"))
        }
    }
}

fn trust_finding(trust: TrustLevel, policy: &HostPolicy, facts: &HostFacts) -> Option<Finding> {
    const PATH: &str = "/trustLevel";
    if facts.profile == Profile::Android
        && trust != TrustLevel::FirstParty
        && !policy.android.allow_third_party
    {
        let message = format!("it is {trust}, and on a phone only first_party extensions run");
        return Some(Finding::block(code::UNTRUSTED, PATH, message));
    }
    if trust == TrustLevel::UntrustedLocal && policy.untrusted_local == UntrustedLocal::Deny {
        let finding =
            Finding::block(code::UNTRUSTED, PATH, "nobody vouches for it, and such extensions do not run");
        return Some(finding.suggest(
            "approve its files in `trusted`, or set `untrusted_local = \"allow\"` to run it in a strict box",
        ));
    }
    None
}
