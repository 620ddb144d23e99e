//! The box of a run: what of its policy the kernel can enforce, and what it cannot.
//!
//! Landlock works by folders and knows no host names. So the box keeps a child in its root, makes the root read-only where
//! nothing may be written, and takes the network away where no host may be reached. A denial *inside* the root
//! (`**/.env`) cannot be expressed, and neither can a list of hosts; these are returned, so that the receipt says
//! `observed` about them. The system's runtime (`/usr`, parts of `/etc`) stays readable, or nothing would start.

use std::path::{Path, PathBuf};

use outrigger_supervise::sandbox::{Level, Limits, Network, Request};
use serde::Serialize;

use crate::protocol::PolicyProfile;

/// What the caller adds to the box.
#[derive(Clone, Debug)]
pub struct Extras {
    /// Files and folders that the child needs to read: an interpreter, its packages.
    pub read: Vec<PathBuf>,
    /// Files and folders that the child needs to write: a cache, a folder for temporary files.
    pub write: Vec<PathBuf>,
    /// Resource limits.
    pub limits: Limits,
}

/// A box, and what it does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoxPlan {
    /// What to ask of the supervisor.
    pub request: Request,
    /// The entries of the policy that it does not cover.
    pub not_expressed: Vec<Unexpressed>,
}

/// An entry of a policy that a box does not cover.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unexpressed {
    /// Of which list.
    pub list: &'static str,
    /// The entry.
    pub pattern: String,
    /// Why not.
    pub why: &'static str,
}

const INSIDE: &str = "the kernel can close whole folders, not files inside an open one";
const WRITE_ONLY: &str = "a folder that may be written can also be read";
const BY_NAME: &str = "the kernel does not know hosts by their names";

impl BoxPlan {
    /// Whether every entry of the list is covered.
    #[must_use]
    pub fn covers(&self, list: &str) -> bool {
        self.not_expressed.iter().all(|entry| entry.list != list)
    }
}

/// The strict box for a run in `root` under `profile`.
#[must_use]
pub fn plan(profile: &PolicyProfile, root: &Path, extras: &Extras) -> BoxPlan {
    let mut request = Request::new(Level::Strict, extras.limits);
    request.read.clone_from(&extras.read);
    request.write.clone_from(&extras.write);
    let mut not_expressed = Vec::new();
    let mut leave = |list, patterns: &[String], why| {
        let entry = |pattern: &String| Unexpressed { list, pattern: pattern.clone(), why };
        not_expressed.extend(patterns.iter().map(entry));
    };

    let no_reading = profile.deny_read.iter().any(|pattern| is_everything(pattern));
    let no_writing = profile.deny_write.iter().any(|pattern| is_everything(pattern));
    match (no_reading, no_writing) {
        (true, true) => {}
        (false, true) => {
            request.read.push(root.to_owned());
            leave("deny_read", &profile.deny_read, INSIDE);
        }
        (true, false) => {
            request.write.push(root.to_owned());
            leave("deny_read", &profile.deny_read, WRITE_ONLY);
            leave("deny_write", &profile.deny_write, INSIDE);
        }
        (false, false) => {
            request.write.push(root.to_owned());
            leave("deny_read", &profile.deny_read, INSIDE);
            leave("deny_write", &profile.deny_write, INSIDE);
        }
    }

    let offline = profile.deny_network.iter().any(|pattern| is_every_host(pattern));
    request.network = if offline { Network::Deny } else { Network::Allow };
    if !offline {
        leave("deny_network", &profile.deny_network, BY_NAME);
        leave("allow_network", &profile.allow_network, BY_NAME);
    }
    BoxPlan { request, not_expressed }
}

/// Whether a pattern of files is every file: `**`, `**/*`, `*` (which crosses folders in a list of denials).
fn is_everything(pattern: &str) -> bool {
    let mut pattern = pattern;
    while let Some(rest) = ["./", "/", "**/"].iter().find_map(|prefix| pattern.strip_prefix(prefix)) {
        pattern = rest;
    }
    matches!(pattern, "*" | "**")
}

/// Whether a pattern of hosts is every host.
fn is_every_host(pattern: &str) -> bool {
    !pattern.is_empty() && pattern.chars().all(|c| c == '*')
}

/// The policy of a run whose work order brings none: what the original command line uses.
#[must_use]
pub fn default_profile() -> PolicyProfile {
    let list = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
    PolicyProfile {
        allowed_tools: Vec::new(),
        disallowed_tools: list(&["KillBash", "NotebookEdit", "mcp__*__*"]),
        deny_read: list(&["**/.env", "**/.env.*", "**/.git/**", "**/id_rsa", "**/id_ed25519"]),
        deny_write: list(&["**/.git/**"]),
        allow_network: Vec::new(),
        deny_network: Vec::new(),
        require_approval_for: list(&["Bash", "Write", "Edit"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_policy::{Glob, Reading};

    fn lists(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    fn extras() -> Extras {
        let path = |text: &str| vec![PathBuf::from(text)];
        Extras { read: path("/opt/node"), write: path("/var/cache/x"), limits: Limits::as_the_host() }
    }

    fn planned(profile: &PolicyProfile) -> (Vec<String>, Vec<String>, Network, Vec<String>) {
        let BoxPlan { request, not_expressed } = plan(profile, Path::new("/work"), &extras());
        assert_eq!(request.level, Level::Strict);
        let paths = |list: &[PathBuf]| list.iter().map(|path| path.display().to_string()).collect();
        let left = not_expressed.iter().map(|entry| format!("{} {}", entry.list, entry.pattern)).collect();
        (paths(&request.read), paths(&request.write), request.network, left)
    }

    #[test]
    fn a_box_is_as_much_of_the_policy_as_the_kernel_can_enforce() {
        let free = PolicyProfile::unrestricted();
        type Row = (
            PolicyProfile,
            &'static [&'static str],
            &'static [&'static str],
            Network,
            &'static [&'static str],
        );
        let table: [Row; 6] = [
            (free.clone(), &["/opt/node"], &["/var/cache/x", "/work"], Network::Allow, &[]),
            (
                PolicyProfile { deny_write: lists(&["**"]), deny_read: lists(&["**/.env"]), ..free.clone() },
                &["/opt/node", "/work"],
                &["/var/cache/x"],
                Network::Allow,
                &["deny_read **/.env"],
            ),
            (
                PolicyProfile { deny_write: lists(&["src/"]), deny_read: lists(&["./**/*"]), ..free.clone() },
                &["/opt/node"],
                &["/var/cache/x", "/work"],
                Network::Allow,
                &["deny_read ./**/*", "deny_write src/"],
            ),
            (
                PolicyProfile { deny_write: lists(&["*"]), deny_read: lists(&["**/*"]), ..free.clone() },
                &["/opt/node"],
                &["/var/cache/x"],
                Network::Allow,
                &[],
            ),
            (
                PolicyProfile {
                    deny_network: lists(&["*"]),
                    allow_network: lists(&["a.org"]),
                    ..free.clone()
                },
                &["/opt/node"],
                &["/var/cache/x", "/work"],
                Network::Deny,
                &[],
            ),
            (
                PolicyProfile { deny_network: lists(&["*.a.org"]), allow_network: lists(&["a.org"]), ..free },
                &["/opt/node"],
                &["/var/cache/x", "/work"],
                Network::Allow,
                &["deny_network *.a.org", "allow_network a.org"],
            ),
        ];
        for (profile, read, write, network, left) in table {
            let expected = (lists(read), lists(write), network, lists(left));
            assert_eq!(planned(&profile), expected, "{profile:?}");
        }
    }

    #[test]
    fn what_counts_as_everything_really_is_everything_to_the_policy() {
        for pattern in ["", "**/", "*/**", "src/**", "*.rs", "?", "**/x/**"] {
            assert!(!is_everything(pattern), "{pattern}");
        }
        for pattern in ["*", "**", "**/*", "/**", "./**", "**/**/*", ".//*"] {
            assert!(is_everything(pattern), "{pattern}");
            let profile = PolicyProfile { deny_write: lists(&[pattern]), ..PolicyProfile::unrestricted() };
            let policy = profile.compile().unwrap();
            let subject = outrigger_policy::Subject::new("agent");
            for path in ["a", ".a", "a/b", "a/b/c.d"] {
                assert!(!policy.check_write(&subject, path).is_allowed(), "{pattern} {path}");
            }
        }
        assert!(Glob::new("*", Reading::Name).unwrap().matches("example.org"));
    }

    #[test]
    fn the_default_policy_compiles_and_protects_secrets_and_history() {
        let policy = default_profile().compile().unwrap();
        let subject = outrigger_policy::Subject::new("agent");
        for path in [".env", "a/.env.local", ".git/config", "a/id_rsa"] {
            assert!(!policy.check_read(&subject, path).is_allowed(), "{path}");
        }
        assert!(policy.check_read(&subject, "src/main.rs").is_allowed());
        assert!(!policy.check_write(&subject, ".git/HEAD").is_allowed());
        for (tool, code) in
            [("Bash", "needs_approval"), ("mcp__a__b", "deny_listed"), ("Read", "unrestricted")]
        {
            assert_eq!(policy.check_tool(&subject, tool).reason.code(), code, "{tool}");
        }
    }
}
