//! One question, one decision: a tool call, a file, a host, by the policy of the work order.

use outrigger_policy::{Action, Decision, Policy, PolicyProfile, ProfileError, Reason, Subject};

use super::address::{Address, address};
use super::names::{Access, access};
use super::place::Root;
use super::reach::{Unread, reach};

/// The policy of one run, ready to be asked about what a child wrote.
#[derive(Debug)]
pub struct Judge {
    policy: Policy,
    root: Root,
    subject: Subject,
    /// Whether any rule is about hosts. Without one, an address is nobody's business, not even a strange one.
    hosts_matter: bool,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// May it be made?
    pub decision: Decision,
    /// What of its input was not looked at.
    pub unread: Option<Unread>,
}

impl Judge {
    /// Judges by `profile`, for `subject`, about files in `root`.
    pub fn new(profile: &PolicyProfile, root: Root, subject: &str) -> Result<Judge, ProfileError> {
        let hosts_matter = !(profile.allow_network.is_empty() && profile.deny_network.is_empty());
        Ok(Judge { policy: profile.compile()?, root, subject: Subject::new(subject), hosts_matter })
    }

    /// May the tool be called with this input? The most severe answer about the tool and everything it reaches for.
    #[must_use]
    pub fn tool(&self, name: &str, input: &str) -> Judgement {
        let mut decision = self.policy.check_tool(&self.subject, name);
        let reach = reach(input);
        let access = access(name);
        for path in &reach.paths {
            decision = decision.and(match access {
                Access::Read => self.read(path),
                Access::Write => self.write(path),
                Access::Both => self.read(path).and(self.write(path)),
            });
        }
        for address in &reach.addresses {
            decision = decision.and(self.network(address));
        }
        Judgement { decision, unread: reach.unread }
    }

    /// May the tool be called, whatever its input is?
    #[must_use]
    pub fn tool_name(&self, name: &str) -> Decision {
        self.policy.check_tool(&self.subject, name)
    }

    /// May the file be read?
    #[must_use]
    pub fn read(&self, path: &str) -> Decision {
        self.file(path, Action::Read, Policy::check_read)
    }

    /// May the file be written?
    #[must_use]
    pub fn write(&self, path: &str) -> Decision {
        self.file(path, Action::Write, Policy::check_write)
    }

    /// May the host be talked to? It may be given as a URL.
    #[must_use]
    pub fn network(&self, written: &str) -> Decision {
        let decide = |reason| Decision::new(reason, None, &self.subject, Action::Connect, written);
        match address(written) {
            Address::Local => decide(Reason::Unrestricted),
            Address::Host(_) if !self.hosts_matter => decide(Reason::Unrestricted),
            // It is resolved in another spelling (`xn--…`), which no rule here would see.
            Address::Host(host) if !host.is_ascii() => decide(Reason::HostInvalid),
            Address::Host(host) => self.policy.check_network(&self.subject, &host),
        }
    }

    fn file(&self, path: &str, action: Action, check: fn(&Policy, &Subject, &str) -> Decision) -> Decision {
        match self.root.locate(path) {
            Err(reason) => Decision::new(reason, None, &self.subject, action, path),
            Ok(place) if place.named == place.real => check(&self.policy, &self.subject, &place.named),
            Ok(place) => {
                let named = check(&self.policy, &self.subject, &place.named);
                named.and(check(&self.policy, &self.subject, &place.real))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn lists(entries: &[&str]) -> Vec<String> {
        entries.iter().map(|entry| (*entry).to_owned()).collect()
    }

    fn judge(profile: &PolicyProfile) -> (tempfile::TempDir, Judge) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("secret")).unwrap();
        symlink("secret", folder.path().join("ok")).unwrap();
        symlink("/etc", folder.path().join("out")).unwrap();
        let judge = Judge::new(profile, Root::open(folder.path()).unwrap(), "agent").unwrap();
        (folder, judge)
    }

    #[test]
    fn a_call_is_judged_by_its_tool_and_by_everything_it_reaches_for() {
        let profile = PolicyProfile {
            allowed_tools: lists(&["Read", "Write", "Web*", "Copy", "Bash"]),
            disallowed_tools: lists(&["WebSearch"]),
            deny_read: lists(&["secret/**", "**/.env"]),
            deny_write: lists(&["**/.git/**"]),
            allow_network: lists(&["*.example.org", "example.org:443"]),
            deny_network: lists(&["bad.example.org"]),
            require_approval_for: lists(&["Bash"]),
        };
        let (_folder, judge) = judge(&profile);
        let table = [
            ("Read", r#"{"file_path":"src/x"}"#, "allow_listed"),
            ("Read", r#"{"file_path":"a/.env"}"#, "deny_listed"),
            ("Read", r#"{"file_path":".git/config"}"#, "allow_listed"),
            ("Write", r#"{"file_path":".git/config"}"#, "deny_listed"),
            ("Write", r#"{"file_path":"a/.env"}"#, "allow_listed"),
            ("Copy", r#"{"path":"a/.env"}"#, "deny_listed"),
            ("Copy", r#"{"path":".git/config"}"#, "deny_listed"),
            ("Read", r#"{"file_path":"secret/key"}"#, "deny_listed"),
            ("Read", r#"{"file_path":"ok/key"}"#, "deny_listed"),
            ("Read", r#"{"file_path":"x/../secret/key"}"#, "deny_listed"),
            ("Read", r#"{"file_path":"out/passwd"}"#, "path_escapes"),
            ("Read", r#"{"file_path":"../x"}"#, "path_escapes"),
            ("Read", r#"{"paths":["src/x","/etc/passwd"]}"#, "path_escapes"),
            ("Read", r#"{"path":"a\u0000b"}"#, "path_invalid"),
            ("Edit", r#"{"path":"src/x"}"#, "not_allow_listed"),
            ("WebSearch", "{}", "deny_listed"),
            ("WebFetch", r#"{"url":"https://example.org/x"}"#, "allow_listed"),
            ("WebFetch", r#"{"url":"http://example.org/x"}"#, "not_allow_listed"),
            ("WebFetch", r#"{"url":"https://a.example.org/x"}"#, "allow_listed"),
            ("WebFetch", r#"{"url":"https://BAD.example.org./x"}"#, "deny_listed"),
            ("WebFetch", r#"{"url":"https://a.example.org@evil.net/x"}"#, "not_allow_listed"),
            ("WebFetch", r#"{"url":"https://b\u00fccher.example.org/"}"#, "host_invalid"),
            ("WebFetch", r#"{"url":"https://[::1]/"}"#, "not_allow_listed"),
            ("WebFetch", r#"{"url":"not a host"}"#, "host_invalid"),
            ("WebFetch", r#"{"url":"file:///etc/passwd"}"#, "path_escapes"),
            ("Bash", r#"{"command":"cat /etc/passwd"}"#, "needs_approval"),
            ("Bash", r#"{"command":"ls","cwd":"/"}"#, "path_escapes"),
            ("", "{}", "tool_invalid"),
        ];
        for (tool, input, code) in table {
            let judgement = judge.tool(tool, input);
            assert_eq!(judgement.decision.reason.code(), code, "{tool} {input}");
            assert_eq!(judgement.unread, None);
        }
    }

    #[test]
    fn without_rules_about_hosts_no_address_is_refused_and_paths_still_stay_inside() {
        let (_folder, judge) = judge(&PolicyProfile::unrestricted());
        for host in ["not a host", "https://bücher.example/", "https://", "127.0.0.1"] {
            assert!(judge.network(host).is_allowed(), "{host}");
        }
        assert_eq!(judge.read("/etc/passwd").reason.code(), "path_escapes");
        assert_eq!(judge.write("out/passwd").reason.code(), "path_escapes");
        assert!(judge.tool("Anything", "null").decision.is_allowed());
    }

    #[test]
    fn of_an_input_that_is_too_long_only_the_tool_is_judged_and_that_is_said() {
        let (_folder, judge) = judge(&PolicyProfile::unrestricted());
        let input = format!(r#"{{"path":"/etc/passwd","content":"{}"}}"#, "x".repeat(4 << 20));
        let judgement = judge.tool("Write", &input);
        assert!(judgement.decision.is_allowed());
        assert_eq!(judgement.unread, Some(Unread::TooLong { bytes: input.len() }));
    }

    #[test]
    fn a_refusal_explains_itself() {
        let profile = PolicyProfile { deny_read: lists(&["**/.env"]), ..PolicyProfile::unrestricted() };
        let (_folder, judge) = judge(&profile);
        let decision = judge.tool("Read", r#"{"file_path":"a/.env"}"#).decision;
        assert_eq!(
            decision.explain(),
            "agent may not read `a/.env`: it is on the list of what is denied (deny_read has `**/.env`)"
        );
    }
}
