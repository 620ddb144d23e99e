//! Extensions on disk: what is found, what is believed, and what happens to those that change.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use libtest_mimic::Trial;
use outrigger_sep::config::{
    ApprovedProgram, Proof, SandboxPolicy, SignaturePolicy, Trusted, UntrustedLocal,
};
use outrigger_sep::manifest::{
    AuthorKey, FILE_NAME, Found, Home, KeyId, LaunchError, SandboxLevel, Standing, TreeDigest, TreeError,
    check_file, examine, prepare, sign,
};
use outrigger_sep::protocol::{ExtensionId, Permission, Profile, TrustLevel};
use serde_json::json;

use crate::manifest_fixture::{
    Site, android, assert_standing, codes, desktop, install_into, set, with, write,
};

pub(crate) fn trials() -> Vec<Trial> {
    trials![
        extensions_are_found_in_order_and_a_bad_one_hides_no_other,
        what_is_not_a_plain_file_is_not_read,
        a_folder_that_is_a_link_is_not_followed_unless_the_policy_says_so,
        files_that_others_can_change_are_not_believed,
        an_id_belongs_to_the_first_that_has_it,
        a_folder_of_extensions_that_cannot_be_read_hides_no_other,
        a_claim_without_proof_is_worth_nothing,
        an_operator_vouches_for_files_and_notices_when_they_change,
        the_digest_sees_every_change,
        links_pipes_and_too_much_make_a_tree_unverifiable,
        a_signature_proves_who_made_it,
        a_wrong_signature_blocks_whatever_the_policy,
        a_key_that_nobody_knows_is_no_proof_and_no_crime,
        a_signature_that_is_required_must_be_there,
        signing_changes_nothing_but_the_signature,
        limits_are_the_smallest_of_wish_trust_and_policy,
        hosts_and_platforms_that_do_not_fit_block,
        a_command_is_inside_or_listed_or_a_runtime,
        an_untrusted_extension_runs_only_listed_runtimes,
        only_a_first_party_sets_the_path,
        what_changed_since_it_was_found_is_not_started,
        a_launch_has_only_what_the_manifest_says,
        a_phone_manifest_does_not_run_on_a_computer,
        a_phone_runs_what_is_packaged_and_what_is_approved,
        a_phone_gives_less,
    ]
}

fn id(text: &str) -> ExtensionId {
    ExtensionId::new(text).expect("an id")
}

fn key_id(text: &str) -> KeyId {
    KeyId::new(text).expect("a name")
}

/// A site where the operator approved the weather extension as it is now.
fn approved() -> Site {
    let mut site = Site::new(Profile::Desktop);
    let dir = site.install(&desktop());
    approve(&mut site, &dir);
    site
}

fn approve(site: &mut Site, dir: &Path) {
    let proof = Proof::Tree(TreeDigest::of(dir).expect("plain files"));
    site.policy.trusted = vec![Trusted { id: id("org.example.weather"), proof }];
}

fn trust_of(found: &Found) -> Option<TrustLevel> {
    found.admission.as_ref().map(|admission| admission.trust)
}

fn extensions_are_found_in_order_and_a_bad_one_hides_no_other() {
    let mut site = approved();
    let root = site.root();
    install_into(&root.join("a.broken"), &json!("not a manifest"));
    install_into(&root.join("z.other"), &with("/id", json!("z.elsewhere")));
    fs::create_dir(root.join("b.empty")).expect("a folder");
    write(&root.join("note.txt"), b"hello", 0o644);
    let second = root.with_file_name("second");
    install_into(&second.join("c.late"), &with("/id", json!("c.late")));
    site.policy.extensions_dirs.push(second.clone());
    site.policy.extensions_dirs.push(root.with_file_name("not-there"));
    site.policy.untrusted_local = UntrustedLocal::Allow;
    let all = site.discover();
    let seen: Vec<_> = all.iter().map(|found| (found.dir.clone(), found.standing)).collect();
    let expected = [
        (root.join("a.broken"), Standing::Invalid),
        (root.join("org.example.weather"), Standing::Admitted),
        (root.join("z.other"), Standing::Invalid),
        (second.join("c.late"), Standing::Admitted),
    ];
    assert_eq!(seen, expected);
    assert_eq!(codes(&all[2].findings)[0], "M-dir-id");
    assert_eq!(all[1].id, Some(id("org.example.weather")));
}

fn what_is_not_a_plain_file_is_not_read() {
    let site = Site::new(Profile::Desktop);
    let dir = site.install(&desktop());
    let manifest = dir.join(FILE_NAME);
    let elsewhere = site.folder.path().join("elsewhere.json");
    fs::rename(&manifest, &elsewhere).expect("moved");
    symlink(&elsewhere, &manifest).expect("a link");
    assert_standing(&site.only(), Standing::Invalid, &["M-file"]);
    assert_eq!(codes(&check_file(&manifest).findings), ["M-file"]);
    assert!(check_file(&elsewhere).manifest.is_some());
    fs::remove_file(&manifest).expect("removed");
    // Nobody writes into this pipe: waiting for it would never end.
    rustix::fs::mkfifoat(rustix::fs::CWD, &manifest, rustix::fs::Mode::from(0o644)).expect("a pipe");
    let found = site.only();
    assert_standing(&found, Standing::Invalid, &["M-file"]);
    assert!(found.findings[0].message.contains("is a pipe"), "{:?}", found.findings);
    fs::remove_file(&manifest).expect("removed");
    fs::create_dir(&manifest).expect("a folder");
    assert_standing(&site.only(), Standing::Invalid, &["M-file"]);
    assert_eq!(codes(&check_file(Path::new("/dev/zero")).findings), ["M-file"]);
    assert_eq!(codes(&check_file(&site.folder.path().join("nothing")).findings), ["M-file"]);
}

fn a_folder_that_is_a_link_is_not_followed_unless_the_policy_says_so() {
    let mut site = Site::new(Profile::Desktop);
    site.policy.untrusted_local = UntrustedLocal::Allow;
    let real = site.folder.path().join("work/org.example.weather");
    install_into(&real, &desktop());
    symlink(&real, site.root().join("org.example.weather")).expect("a link");
    assert_standing(&site.only(), Standing::Invalid, &["M-file"]);
    site.policy.follow_symlinks = true;
    let found = site.only();
    assert_standing(&found, Standing::Admitted, &[]);
    let launch = prepare(&found, &site.policy, &site.facts).expect("it may run");
    assert_eq!(launch.program, real.canonicalize().expect("it exists").join("bin/weather"));
}

fn files_that_others_can_change_are_not_believed() {
    let site = approved();
    let dir = site.root().join("org.example.weather");
    for (path, open, closed) in [
        (dir.clone(), 0o775, 0o755),
        (dir.clone(), 0o757, 0o755),
        (dir.join(FILE_NAME), 0o664, 0o644),
        (dir.join(FILE_NAME), 0o646, 0o644),
        (dir.join("bin/weather"), 0o777, 0o755),
        (dir.join("bin"), 0o777, 0o755),
    ] {
        fs::set_permissions(&path, fs::Permissions::from_mode(open)).expect("it is ours");
        assert_standing(&site.only(), Standing::Invalid, &["M-perm-unsafe"]);
        fs::set_permissions(&path, fs::Permissions::from_mode(closed)).expect("it is ours");
        assert_standing(&site.only(), Standing::Admitted, &[]);
    }
    // Somebody else's files, unless that is root.
    let mut facts = site.facts.clone();
    facts.uid += 4711;
    let found = examine(&dir, Home::Configured, &site.policy, &facts);
    let expected = match site.facts.uid {
        0 => Standing::Admitted,
        _ => Standing::Invalid,
    };
    assert_eq!(found.standing, expected);
}

fn an_id_belongs_to_the_first_that_has_it() {
    let mut site = approved();
    let second = site.root().with_file_name("second");
    install_into(&second.join("org.example.weather"), &desktop());
    site.policy.extensions_dirs.push(second.clone());
    let all = site.discover();
    assert_standing(&all[0], Standing::Admitted, &[]);
    assert_standing(&all[1], Standing::Invalid, &["M-dup-id"]);
    assert_eq!(all[1].id, None);
    // A manifest that cannot be used takes the id from nobody.
    write(&site.root().join("org.example.weather").join(FILE_NAME), b"{", 0o644);
    let all = site.discover();
    assert_standing(&all[0], Standing::Invalid, &["M-json"]);
    assert_standing(&all[1], Standing::Admitted, &[]);
    assert_eq!((&all[0].id, &all[1].id), (&None, &Some(id("org.example.weather"))));
    // What comes with the host comes first.
    install_into(&site.root().join("org.example.weather"), &desktop());
    site.policy.extensions_dirs.pop();
    site.policy.builtin_dir = Some(second);
    let all = site.discover();
    assert_standing(&all[0], Standing::Admitted, &[]);
    assert_eq!(trust_of(&all[0]), Some(TrustLevel::TrustedThirdParty), "a lower claim is honoured");
    assert_standing(&all[1], Standing::Invalid, &["M-dup-id"]);
}

fn a_folder_of_extensions_that_cannot_be_read_hides_no_other() {
    let mut site = approved();
    let file = site.root().with_file_name("a-file");
    write(&file, b"", 0o644);
    site.policy.extensions_dirs.insert(0, file.clone());
    let all = site.discover();
    assert_eq!((all[0].dir.clone(), codes(&all[0].findings)), (file, vec!["M-root"]));
    assert_standing(&all[1], Standing::Admitted, &[]);
}

fn a_claim_without_proof_is_worth_nothing() {
    let mut site = Site::new(Profile::Desktop);
    site.install(&with("/trustLevel", json!("first_party")));
    let found = site.only();
    assert_standing(&found, Standing::Blocked, &["M-untrusted", "M-trust-clamped"]);
    site.policy.untrusted_local = UntrustedLocal::Allow;
    let admission = site.only().admission.expect("untrusted extensions run");
    assert_eq!(admission.trust, TrustLevel::UntrustedLocal);
    assert!(admission.clamped.expect("a reason").contains("no entry of the operator vouches for it"));
    assert_eq!(admission.sandbox, SandboxLevel::Strict);
    let read_only = [Permission::MessagesRead, Permission::ContactsRead];
    assert_eq!(admission.explicit_only, read_only);
    assert!(!admission.grantable.contains(&Permission::MessagesSend));
    assert_eq!(admission.grantable.len(), 5);
    // A box is not a choice for them, it is one for others.
    site.policy.sandbox = SandboxPolicy::Off;
    assert_eq!(site.only().admission.expect("it runs").sandbox, SandboxLevel::Strict);
    let mut site = approved();
    for (policy, level) in [
        (SandboxPolicy::Off, SandboxLevel::Off),
        (SandboxPolicy::Auto, SandboxLevel::Auto),
        (SandboxPolicy::Required, SandboxLevel::Strict),
    ] {
        site.policy.sandbox = policy;
        assert_eq!(site.only().admission.expect("it runs").sandbox, level);
    }
    // The folder that comes with the host is proof.
    site.policy.builtin_dir = site.policy.extensions_dirs.pop();
    site.policy.trusted.clear();
    assert_eq!(trust_of(&site.only()), Some(TrustLevel::TrustedThirdParty));
    let dir = site.policy.builtin_dir.clone().expect("just set").join("org.example.weather");
    install_into(&dir, &with("/trustLevel", json!("first_party")));
    assert_eq!(trust_of(&site.only()), Some(TrustLevel::FirstParty));
}

fn an_operator_vouches_for_files_and_notices_when_they_change() {
    let mut site = approved();
    let found = site.only();
    assert_standing(&found, Standing::Admitted, &[]);
    assert_eq!(trust_of(&found), Some(TrustLevel::TrustedThirdParty));
    let plan = &found.admission.as_ref().expect("admitted").events;
    assert_eq!(plan.subscribed, ["message.received", "peer.online"]);
    let launch = prepare(&found, &site.policy, &site.facts).expect("it may run");
    assert_eq!(Some(launch.digest), found.digest);
    // Untrusted extensions would run; one that was approved and changed does not.
    site.policy.untrusted_local = UntrustedLocal::Allow;
    write(&found.dir.join("bin/weather"), b"#!/bin/sh\nexit 1\n", 0o755);
    let error = prepare(&found, &site.policy, &site.facts).expect_err("it was changed");
    assert!(matches!(error, LaunchError::Tampered { .. }), "{error:?}");
    assert_standing(&site.only(), Standing::Blocked, &["M-tampered"]);
    // Two versions can be approved at once.
    let changed = TreeDigest::of(&found.dir).expect("plain files");
    site.policy.trusted.push(Trusted { id: id("org.example.weather"), proof: Proof::Tree(changed) });
    assert_standing(&site.only(), Standing::Admitted, &[]);
    // The approval is for one id.
    site.policy.trusted[1].id = id("org.example.other");
    site.policy.trusted.remove(0);
    assert_eq!(trust_of(&site.only()), Some(TrustLevel::UntrustedLocal));
}

fn the_digest_sees_every_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let digest = || TreeDigest::of(folder.path()).expect("plain files");
    let empty = digest();
    write(&at("b"), b"two", 0o644);
    write(&at("a"), b"one", 0o644);
    // Of "a", then "b": name, whether it is a program, size, content.
    let expected = "477f1b2df91660d88364a402b229110262f01fd38eaade38279551bdd3f75991";
    let first = digest();
    assert_ne!(first, empty);
    assert_eq!(first.to_string(), expected);
    let differs = |change: &dyn Fn(), back: &dyn Fn()| {
        change();
        assert_ne!(digest(), first);
        back();
        assert_eq!(digest(), first);
    };
    differs(&|| write(&at("a"), b"ONE", 0o644), &|| write(&at("a"), b"one", 0o644));
    differs(&|| write(&at("a"), b"one", 0o755), &|| write(&at("a"), b"one", 0o644));
    differs(&|| write(&at(".hidden"), b"", 0o644), &|| fs::remove_file(at(".hidden")).expect("removed"));
    differs(&|| fs::rename(at("a"), at("c")).expect("moved"), &|| {
        fs::rename(at("c"), at("a")).expect("moved")
    });
    let cache = at("__pycache__");
    let add = || {
        fs::create_dir(&cache).expect("a folder");
        write(&cache.join("a.pyc"), b"x", 0o644);
    };
    differs(&add, &|| fs::remove_dir_all(&cache).expect("removed"));
}

fn links_pipes_and_too_much_make_a_tree_unverifiable() {
    let site = approved();
    let dir = site.root().join("org.example.weather");
    let stray = dir.join("bin/stray");
    symlink("weather", &stray).expect("a link");
    assert!(matches!(TreeDigest::of(&dir), Err(TreeError::Link { path }) if path == Path::new("bin/stray")));
    assert_standing(&site.only(), Standing::Blocked, &["M-tree"]);
    fs::remove_file(&stray).expect("removed");
    rustix::fs::mkfifoat(rustix::fs::CWD, &stray, rustix::fs::Mode::from(0o644)).expect("a pipe");
    assert!(matches!(TreeDigest::of(&dir), Err(TreeError::Special { .. })));
    assert_standing(&site.only(), Standing::Blocked, &["M-tree"]);
    fs::remove_file(&stray).expect("removed");
    assert_standing(&site.only(), Standing::Admitted, &[]);
    let mut deep = dir.clone();
    for _ in 0..33 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).expect("folders");
    let error = TreeDigest::of(&dir).expect_err("too deep").to_string();
    assert!(error.contains("32 folders within folders"), "{error}");
}

/// A site where the weather extension is signed by a key that the host knows as `makers`.
fn signed() -> (Site, AuthorKey) {
    let mut site = Site::new(Profile::Desktop);
    let dir = site.install(&desktop());
    let key = AuthorKey::create(&site.folder.path().join("secret")).expect("a key");
    fs::create_dir_all(&site.policy.keys_dir).expect("a folder");
    fs::rename(site.folder.path().join("secret.pub"), site.policy.keys_dir.join("makers.pub"))
        .expect("moved");
    sign(&dir, &key, &key_id("makers")).expect("signed").install().expect("written");
    site.policy.trusted =
        vec![Trusted { id: id("org.example.weather"), proof: Proof::Key(key_id("makers")) }];
    (site, key)
}

fn a_signature_proves_who_made_it() {
    let (mut site, key) = signed();
    let found = site.only();
    assert_standing(&found, Standing::Admitted, &[]);
    assert_eq!(found.findings, []);
    assert_eq!(trust_of(&found), Some(TrustLevel::TrustedThirdParty));
    assert!(prepare(&found, &site.policy, &site.facts).is_ok());
    // A key of the application's makers proves more; how much is claimed still counts.
    site.policy.first_party_keys = vec![key_id("makers")];
    assert_eq!(trust_of(&site.only()), Some(TrustLevel::TrustedThirdParty));
    install_into(&found.dir, &with("/trustLevel", json!("first_party")));
    sign(&found.dir, &key, &key_id("makers")).expect("signed").install().expect("written");
    assert_eq!(trust_of(&site.only()), Some(TrustLevel::FirstParty));
    site.policy.signatures = SignaturePolicy::Require;
    assert_eq!(trust_of(&site.only()), Some(TrustLevel::FirstParty));
    // Where signatures are off they prove nothing.
    site.policy.signatures = SignaturePolicy::Off;
    assert_standing(&site.only(), Standing::Blocked, &["M-untrusted"]);
}

fn a_wrong_signature_blocks_whatever_the_policy() {
    let (mut site, _) = signed();
    site.policy.untrusted_local = UntrustedLocal::Allow;
    let found = site.only();
    let manifest = fs::read_to_string(found.dir.join(FILE_NAME)).expect("text");
    let program = found.dir.join("bin/weather");
    type Change<'c> = (&'c str, Box<dyn Fn() + 'c>);
    let rewritten = |from: &'static str, to: &'static str| -> Box<dyn Fn()> {
        let (path, text) = (found.dir.join(FILE_NAME), manifest.replace(from, to));
        assert_ne!(text, manifest);
        Box::new(move || write(&path, text.as_bytes(), 0o644))
    };
    let changes: Vec<Change<'_>> = vec![
        ("a file", Box::new(|| write(&program, b"#!/bin/sh\nexit 1\n", 0o755))),
        ("one more file", Box::new(|| write(&found.dir.join("bin/more"), b"", 0o644))),
        ("a word of the manifest", rewritten("Weather notes", "Weather n0tes")),
        ("more permissions", rewritten("\"messages.send\",", "\"messages.send\", \"contacts.read\",")),
    ];
    for (what, change) in changes {
        change();
        for policy in SignaturePolicy::ALL {
            site.policy.signatures = *policy;
            assert_standing(&site.only(), Standing::Blocked, &["M-sign-invalid"]);
        }
        site.policy.signatures = SignaturePolicy::VerifyIfPresent;
        let error = prepare(&found, &site.policy, &site.facts).expect_err(what);
        assert!(matches!(error, LaunchError::Tampered { .. }), "{what}: {error:?}");
        install_into(&found.dir, &json!({}));
        write(&found.dir.join(FILE_NAME), manifest.as_bytes(), 0o644);
        let _ = fs::remove_file(found.dir.join("bin/more"));
        assert_standing(&site.only(), Standing::Admitted, &[]);
    }
    // What is no signature at all is a wrong one.
    for nonsense in ["x", "AAAA", "!!!!"] {
        let text = serde_json::to_string(&with(
            "/signing",
            json!({"required": false, "keyId": "makers", "signature": nonsense}),
        ));
        write(&found.dir.join(FILE_NAME), text.expect("JSON").as_bytes(), 0o644);
        assert_standing(&site.only(), Standing::Blocked, &["M-sign-invalid"]);
    }
    // Spelled in another way, the manifest says the same.
    let compact: serde_json::Value = serde_json::from_str(&manifest).expect("JSON");
    write(&found.dir.join(FILE_NAME), compact.to_string().replace("8000", "8e3").as_bytes(), 0o644);
    assert_standing(&site.only(), Standing::Admitted, &[]);
}

fn a_key_that_nobody_knows_is_no_proof_and_no_crime() {
    let (mut site, _) = signed();
    let public = site.policy.keys_dir.join("makers.pub");
    let text = fs::read(&public).expect("a key");
    site.policy.untrusted_local = UntrustedLocal::Allow;
    let unverified = |site: &Site| {
        let found = site.only();
        assert_standing(&found, Standing::Admitted, &["M-sign-unverified"]);
        assert_eq!(trust_of(&found), Some(TrustLevel::UntrustedLocal));
    };
    fs::remove_file(&public).expect("removed");
    unverified(&site);
    // A key that others could have put there, or that is none, is not known either.
    write(&public, &text, 0o666);
    unverified(&site);
    write(&public, b"not a key", 0o644);
    unverified(&site);
    write(&public, "00".repeat(32).as_bytes(), 0o644);
    unverified(&site);
    // Names that are not names of files are not looked up.
    fs::remove_file(&public).expect("removed");
    let elsewhere = site.policy.keys_dir.with_file_name("makers.pub");
    write(&elsewhere, &text, 0o644);
    let manifest = site.root().join("org.example.weather").join(FILE_NAME);
    let signed = fs::read_to_string(&manifest).expect("text");
    write(&manifest, signed.replace("\"makers\"", "\"../makers\"").as_bytes(), 0o644);
    unverified(&site);
    write(&manifest, signed.replace("\"makers\"", "\"\"").as_bytes(), 0o644);
    unverified(&site);
    // Where one is required, an unknown key is a wrong one.
    write(&manifest, signed.as_bytes(), 0o644);
    site.policy.signatures = SignaturePolicy::Require;
    assert_standing(&site.only(), Standing::Blocked, &["M-sign-invalid"]);
    site.policy.signatures = SignaturePolicy::VerifyIfPresent;
    write(&manifest, signed.replace("\"required\": false", "\"required\": true").as_bytes(), 0o644);
    assert_standing(&site.only(), Standing::Blocked, &["M-sign-invalid"]);
}

fn a_signature_that_is_required_must_be_there() {
    let mut site = approved();
    site.policy.signatures = SignaturePolicy::Require;
    assert_standing(&site.only(), Standing::Blocked, &["M-sign-missing"]);
    site.policy.signatures = SignaturePolicy::VerifyIfPresent;
    assert_standing(&site.only(), Standing::Admitted, &[]);
    let dir = site.install(&with("/signing/required", json!(true)));
    approve(&mut site, &dir);
    assert_standing(&site.only(), Standing::Blocked, &["M-sign-missing"]);
}

fn signing_changes_nothing_but_the_signature() {
    let site = Site::new(Profile::Desktop);
    let dir = site.install(&desktop());
    let key = AuthorKey::create(&site.folder.path().join("secret")).expect("a key");
    let again = AuthorKey::load(&site.folder.path().join("secret")).expect("the same");
    assert_eq!(again.public(), key.public());
    let before = fs::read_to_string(dir.join(FILE_NAME)).expect("text");
    let signed = sign(&dir, &key, &key_id("makers")).expect("signed");
    assert_eq!(fs::read_to_string(dir.join(FILE_NAME)).expect("text"), before, "nothing is written yet");
    let undone = signed.manifest.replace(&signed.signature, "").replace("\"makers\"", "\"\"");
    assert_eq!(undone, before);
    // Signing twice gives the same signature: it does not sign itself.
    signed.install().expect("written");
    assert_eq!(sign(&dir, &again, &key_id("makers")).expect("signed"), signed);
    assert_eq!(fs::read_dir(&dir).expect("a folder").count(), 2, "nothing is left over");
    // What is not right is not signed.
    write(&dir.join(FILE_NAME), b"{}", 0o644);
    let error = sign(&dir, &key, &key_id("makers")).expect_err("it has no id").to_string();
    assert!(error.contains("is missing") && error.contains("and 9 more"), "{error}");
}

fn limits_are_the_smallest_of_wish_trust_and_policy() {
    let mut site = Site::new(Profile::Desktop);
    let mut greedy = desktop();
    set(
        &mut greedy,
        "/limits",
        json!({
            "maxRequestBytes": 4_194_304, "maxRequestsPerSecond": 10_000, "maxConcurrentRequests": 1024
        }),
    );
    set(&mut greedy, "/health/startupTimeoutMs", json!(120_000));
    let dir = site.install(&greedy);
    site.policy.untrusted_local = UntrustedLocal::Allow;
    let found = site.only();
    let clamped = found.findings.iter().filter(|finding| finding.code == "M-limits-clamped");
    assert_eq!(clamped.count(), 4);
    let limits = found.admission.expect("admitted").limits;
    assert_eq!(
        (limits.max_frame_bytes, limits.requests_per_second, limits.concurrent_requests),
        (65_536, 20, 8)
    );
    assert_eq!((limits.startup.as_secs(), limits.crash_threshold, limits.sends_per_minute), (15, 3, 0));
    approve(&mut site, &dir);
    let limits = site.only().admission.expect("admitted").limits;
    assert_eq!(
        (limits.max_frame_bytes, limits.requests_per_second, limits.startup.as_secs()),
        (1 << 20, 200, 60)
    );
    // The operator's own ceiling, and a wish that is lower than it.
    let policy = "[limits.trusted_third_party]\nrequests_per_second = 500\nmax_request_bytes = 2048\n";
    let policy = outrigger_sep::config::HostPolicy::parse(policy, Path::new("/")).expect("a policy");
    site.policy.limits = policy.limits;
    let limits = site.only().admission.expect("admitted").limits;
    assert_eq!((limits.max_frame_bytes, limits.requests_per_second), (2048, 500));
    let dir = site.install(&desktop());
    approve(&mut site, &dir);
    let limits = site.only().admission.expect("admitted").limits;
    assert_eq!((limits.requests_per_second, limits.concurrent_requests), (40, 8));
}

fn hosts_and_platforms_that_do_not_fit_block() {
    let mut site = approved();
    for (version, standing) in
        [("4.5.0", Standing::Admitted), ("4.6.0-rc.1", Standing::Admitted), ("4.4.9", Standing::Blocked)]
    {
        site.policy.compatible_with = version.to_owned();
        assert_eq!(site.only().standing, standing, "{version}");
    }
    assert_eq!(codes(&site.only().findings), ["M-compat-host"]);
    site.policy.compatible_with = "4.6.0".to_owned();
    let here = site.facts.platform();
    for (platforms, standing) in
        [(json!([here]), Standing::Admitted), (json!(["windows-arm64"]), Standing::Blocked)]
    {
        let dir = site.install(&with("/compatibility/platforms", platforms));
        approve(&mut site, &dir);
        assert_eq!(site.only().standing, standing);
    }
    assert_eq!(codes(&site.only().findings), ["M-compat-platform"]);
}

fn a_command_is_inside_or_listed_or_a_runtime() {
    let mut site = Site::new(Profile::Desktop);
    let folder = site.folder.path().canonicalize().expect("it exists");
    let runtimes = folder.join("runtimes");
    fs::create_dir(&runtimes).expect("a folder");
    write(&runtimes.join("python9"), b"#!/bin/sh\n", 0o755);
    write(&runtimes.join("plain"), b"#!/bin/sh\n", 0o644);
    fs::create_dir(runtimes.join("folder")).expect("a folder");
    let tool = folder.join("tool");
    write(&tool, b"#!/bin/sh\n", 0o755);
    let shown = tool.display().to_string();
    site.policy.runtime_path = format!("/nonexistent:{}", runtimes.display());
    let look = |site: &mut Site, command: &str, wanted: Standing, code: &str| {
        let dir = site.install(&with("/entrypoint/command", json!(command)));
        write(&dir.join("bin/data"), b"", 0o644);
        approve(site, &dir);
        let found = site.only();
        assert_eq!(found.standing, wanted, "{command} {:?}", found.findings);
        assert_eq!(codes(&found.findings).first().copied().unwrap_or(""), code, "{command}");
        prepare(&found, &site.policy, &site.facts).ok().map(|launch| launch.program)
    };
    let program = look(&mut site, "./bin/weather", Standing::Admitted, "");
    assert_eq!(program, Some(site.root().join("org.example.weather/bin/weather")));
    look(&mut site, "bin/nothing", Standing::Blocked, "M-cmd-missing");
    look(&mut site, "bin/data", Standing::Blocked, "M-cmd-missing");
    look(&mut site, "./bin", Standing::Blocked, "M-cmd-missing");
    look(&mut site, "weather", Standing::Blocked, "M-cmd-missing");
    assert_eq!(look(&mut site, "python9", Standing::Admitted, ""), Some(runtimes.join("python9")));
    look(&mut site, "plain", Standing::Blocked, "M-cmd-missing");
    look(&mut site, "folder", Standing::Blocked, "M-cmd-missing");
    // The host's own PATH has a shell; the runtimes do not.
    look(&mut site, "sh", Standing::Blocked, "M-cmd-missing");
    look(&mut site, &shown, Standing::Invalid, "M-cmd-escape");
    site.policy.approved_programs = vec![ApprovedProgram { path: tool.clone(), sha256: None }];
    assert_eq!(look(&mut site, &shown, Standing::Admitted, ""), Some(tool.clone()));
    // Another spelling of the same path is not the listed one.
    let dotted = folder.join("runtimes/../tool").display().to_string();
    look(&mut site, &dotted, Standing::Invalid, "M-cmd-escape");
    site.policy.approved_programs[0].sha256 = Some(outrigger_policy::Digest::of(b"#!/bin/sh\n"));
    assert_eq!(look(&mut site, &shown, Standing::Admitted, ""), Some(tool.clone()));
    let found = site.only();
    write(&tool, b"#!/bin/sh\necho\n", 0o755);
    let error = prepare(&found, &site.policy, &site.facts).expect_err("it is another program");
    assert!(matches!(error, LaunchError::Tampered { .. }), "{error:?}");
    look(&mut site, &shown, Standing::Blocked, "M-tampered");
    fs::remove_file(&tool).expect("removed");
    look(&mut site, &shown, Standing::Blocked, "M-cmd-missing");
    // The folder it starts in.
    for (place, standing) in
        [("bin", Standing::Admitted), ("nowhere", Standing::Blocked), ("bin/weather", Standing::Blocked)]
    {
        let dir = site.install(&with("/entrypoint/workingDirectory", json!(place)));
        approve(&mut site, &dir);
        assert_eq!(site.only().standing, standing, "{place}");
    }
}

fn an_untrusted_extension_runs_only_listed_runtimes() {
    let mut site = Site::new(Profile::Desktop);
    site.policy.untrusted_local = UntrustedLocal::Allow;
    let runtimes = site.folder.path().join("runtimes");
    fs::create_dir(&runtimes).expect("a folder");
    for name in ["python3", "bash"] {
        write(&runtimes.join(name), b"#!/bin/sh\n", 0o755);
    }
    site.policy.runtime_path = runtimes.display().to_string();
    site.install(&with("/entrypoint/command", json!("python3")));
    assert_standing(&site.only(), Standing::Admitted, &[]);
    let dir = site.install(&with("/entrypoint/command", json!("bash")));
    let found = site.only();
    assert_standing(&found, Standing::Blocked, &["M-cmd-missing"]);
    approve(&mut site, &dir);
    assert_standing(&site.only(), Standing::Admitted, &[]);
}

fn only_a_first_party_sets_the_path() {
    let mut site = Site::new(Profile::Desktop);
    let mut manifest = with("/trustLevel", json!("first_party"));
    set(&mut manifest, "/entrypoint/environment/PATH", json!("/opt/bin"));
    let dir = site.install(&manifest);
    approve(&mut site, &dir);
    // It claims to be first party, but that is not what can be proved.
    assert_standing(&site.only(), Standing::Invalid, &["M-env-forbidden"]);
    site.policy.builtin_dir = site.policy.extensions_dirs.pop();
    let found = site.only();
    assert_standing(&found, Standing::Admitted, &[]);
    let launch = prepare(&found, &site.policy, &site.facts).expect("it may run");
    assert!(launch.env.contains(&("PATH".to_owned(), "/opt/bin".to_owned())));
}

fn what_changed_since_it_was_found_is_not_started() {
    let mut site = Site::new(Profile::Desktop);
    site.policy.untrusted_local = UntrustedLocal::Allow;
    let dir = site.install(&with("/trustLevel", json!("untrusted_local")));
    let found = site.only();
    assert_standing(&found, Standing::Admitted, &[]);
    // Somebody works on it: another program is fine, another manifest has to be found again.
    write(&dir.join("bin/weather"), b"#!/bin/sh\nexit 7\n", 0o755);
    let launch = prepare(&found, &site.policy, &site.facts).expect("it may run");
    assert_ne!(Some(launch.digest), found.digest);
    let mut manifest = with("/trustLevel", json!("untrusted_local"));
    set(&mut manifest, "/version", json!("0.3.2"));
    site.install(&manifest);
    let error = prepare(&found, &site.policy, &site.facts).expect_err("it is another manifest");
    assert_eq!(error, LaunchError::Changed);
    write(&dir.join(FILE_NAME), b"{", 0o644);
    let error = prepare(&found, &site.policy, &site.facts).expect_err("it is no manifest");
    assert!(matches!(&error, LaunchError::Blocked(finding) if finding.code == "M-json"), "{error:?}");
    fs::remove_dir_all(&dir).expect("removed");
    let error = prepare(&found, &site.policy, &site.facts).expect_err("it is gone");
    assert!(matches!(&error, LaunchError::Blocked(finding) if finding.code == "M-file"), "{error:?}");
    // The policy changed, the files did not: nobody tampered.
    let mut site = approved();
    let found = site.only();
    site.policy.trusted.clear();
    let error = prepare(&found, &site.policy, &site.facts).expect_err("nobody vouches for it now");
    assert_eq!(error, LaunchError::Changed);
    let blocked = site.only();
    let error = prepare(&blocked, &site.policy, &site.facts).expect_err("it was not admitted");
    assert_eq!(error, LaunchError::NotAdmitted { standing: Standing::Blocked });
}

fn a_launch_has_only_what_the_manifest_says() {
    let site = approved();
    let found = site.only();
    let launch = prepare(&found, &site.policy, &site.facts).expect("it may run");
    let dir = site.root().join("org.example.weather");
    assert_eq!(launch.program, dir.join("bin/weather"));
    assert_eq!(launch.args, ["--quiet"]);
    assert_eq!(launch.cwd, dir);
    assert_eq!(launch.env, [("WEATHER_UNITS".to_owned(), "metric".to_owned())]);
    assert_eq!(launch.runtime_path, "/usr/local/bin:/usr/bin:/bin");
    assert_eq!(launch.readable, [dir]);
}

fn a_phone_manifest_does_not_run_on_a_computer() {
    let site = Site::new(Profile::Desktop);
    site.install(&android());
    let found = site.only();
    assert_standing(&found, Standing::Blocked, &["M-profile", "M-sign-missing", "M-compat-platform"]);
    let phone = Site::new(Profile::Android);
    phone.install(&desktop());
    assert_standing(&phone.only(), Standing::Blocked, &["M-profile"]);
}

/// A phone with the runtime and the module that the weather extension needs.
fn phone() -> Site {
    let mut site = Site::new(Profile::Android);
    let runtimes = site.folder.path().canonicalize().expect("it exists").join("runtimes");
    fs::create_dir(&runtimes).expect("a folder");
    write(&runtimes.join("meshchatx-android-extension-runtime"), b"#!/bin/sh\n", 0o755);
    site.policy.runtime_path = runtimes.display().to_string();
    site.policy.android.packaged_modules = vec!["weather".to_owned()];
    site.policy.builtin_dir = site.policy.extensions_dirs.pop();
    site.policy.extensions_dirs = vec![site.folder.path().join("none")];
    "arm64".clone_into(&mut site.facts.arch);
    site
}

fn install_on(site: &Site, manifest: &serde_json::Value) {
    let root = site.policy.builtin_dir.clone().unwrap_or_else(|| site.root());
    install_into(&root.join("org.example.weather"), manifest);
}

fn a_phone_runs_what_is_packaged_and_what_is_approved() {
    let mut site = phone();
    let mut manifest = android();
    set(&mut manifest, "/signing/required", json!(false));
    install_on(&site, &manifest);
    let found = site.only();
    assert_standing(&found, Standing::Admitted, &[]);
    assert_eq!(trust_of(&found), Some(TrustLevel::FirstParty));
    // Without the module, and without the runtime, it waits; that is nobody's fault.
    site.policy.android.packaged_modules.clear();
    assert_standing(&site.only(), Standing::Unavailable, &["M-runtime"]);
    site.policy.android.packaged_modules = vec!["weather".to_owned()];
    let runtime_path = std::mem::replace(&mut site.policy.runtime_path, "/nonexistent".to_owned());
    assert_standing(&site.only(), Standing::Unavailable, &["M-runtime"]);
    site.policy.runtime_path = runtime_path;
    let mut other = manifest.clone();
    set(&mut other, "/entrypoint/command", json!("python3"));
    install_on(&site, &other);
    assert_standing(&site.only(), Standing::Unavailable, &["M-runtime"]);
    // Somebody else's extension does not run on a phone.
    let mut other = manifest.clone();
    set(&mut other, "/trustLevel", json!("trusted_third_party"));
    install_on(&site, &other);
    assert_standing(&site.only(), Standing::Blocked, &["M-untrusted"]);
    site.policy.android.allow_third_party = true;
    assert_standing(&site.only(), Standing::Admitted, &[]);
    // Another runtime must be approved to the last byte, and the extension signed.
    let tool = site.folder.path().canonicalize().expect("it exists").join("tool");
    write(&tool, b"#!/bin/sh\n", 0o755);
    set(&mut manifest, "/android/runtimeMode", json!("approved_runtime"));
    set(&mut manifest, "/entrypoint/command", json!(tool.display().to_string()));
    install_on(&site, &manifest);
    assert_standing(&site.only(), Standing::Blocked, &["M-runtime", "M-sign-missing"]);
    let sha256 = Some(outrigger_policy::Digest::of(b"#!/bin/sh\n"));
    site.policy.android.approved_runtimes = vec![ApprovedProgram { path: tool.clone(), sha256 }];
    assert_standing(&site.only(), Standing::Blocked, &["M-sign-missing"]);
    let key = AuthorKey::create(&site.folder.path().join("secret")).expect("a key");
    fs::create_dir_all(&site.policy.keys_dir).expect("a folder");
    fs::rename(site.folder.path().join("secret.pub"), site.policy.keys_dir.join("makers.pub"))
        .expect("moved");
    let dir = site.only().dir;
    sign(&dir, &key, &key_id("makers")).expect("signed").install().expect("written");
    let found = site.only();
    assert_standing(&found, Standing::Admitted, &[]);
    assert_eq!(prepare(&found, &site.policy, &site.facts).expect("it may run").program, tool);
    write(&tool, b"#!/bin/sh\nexit 1\n", 0o755);
    assert_standing(&site.only(), Standing::Blocked, &["M-tampered"]);
}

fn a_phone_gives_less() {
    let site = phone();
    let mut manifest = android();
    set(&mut manifest, "/signing/required", json!(false));
    set(
        &mut manifest,
        "/limits",
        json!({
            "maxRequestBytes": 1_048_576, "maxRequestsPerSecond": 60, "maxConcurrentRequests": 17
        }),
    );
    set(&mut manifest, "/android/maxMemoryMb", json!(257));
    set(&mut manifest, "/android/maxStartupTimeMs", json!(7000));
    install_on(&site, &manifest);
    let found = site.only();
    let clamped: Vec<_> = found.findings.iter().map(|finding| finding.path.as_str()).collect();
    let expected = [
        "/android/maxMemoryMb",
        "/health/startupTimeoutMs",
        "/limits/maxConcurrentRequests",
        "/limits/maxRequestBytes",
        "/limits/maxRequestsPerSecond",
    ];
    assert_eq!(clamped, expected);
    let limits = found.admission.expect("admitted").limits;
    assert_eq!(
        (limits.max_frame_bytes, limits.requests_per_second, limits.concurrent_requests),
        (256 << 10, 50, 16)
    );
    assert_eq!(
        (limits.event_queue, limits.event_queue_bytes, limits.memory_bytes),
        (64, 128 << 10, 256 << 20)
    );
    assert_eq!(
        (limits.startup.as_secs(), limits.event_ack.as_secs(), limits.request_timeout.as_secs()),
        (7, 5, 5)
    );
}
