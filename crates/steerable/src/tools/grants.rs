//! What calls may touch: folders, hosts, commands. Grants only ever shrink.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use outrigger_policy::{GlobError, Host, HostPattern, UnknownPort};

/// What the calls of a turn may touch.
#[derive(Clone, Debug)]
pub struct Grants {
    /// Folders that may be read.
    pub read_roots: Vec<PathBuf>,
    /// Folders that may be written, and read too: what one has written one may look at.
    pub write_roots: Vec<PathBuf>,
    /// Hosts that may be fetched from.
    pub hosts: Hosts,
    /// Whether commands may be run.
    pub commands: Commands,
}

/// What somebody says about grants. A member that is `None` says nothing.
#[derive(Clone, Debug, Default)]
pub struct Stated {
    /// Folders that may be read.
    pub read_roots: Option<Vec<PathBuf>>,
    /// Folders that may be written.
    pub write_roots: Option<Vec<PathBuf>>,
    /// Hosts that may be fetched from.
    pub hosts: Option<Hosts>,
    /// Whether commands may be run.
    pub commands: Option<Commands>,
}

/// Whether commands may be run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Commands {
    /// No.
    Deny,
    /// Each one after somebody was asked.
    Ask,
    /// Yes.
    Allow,
}

impl Commands {
    /// The word in flags and params.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }

    /// What a word says.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Deny, Self::Ask, Self::Allow].into_iter().find(|commands| commands.word() == word)
    }
}

impl Grants {
    /// Nothing at all.
    #[must_use]
    pub fn none() -> Self {
        Self {
            read_roots: Vec::new(),
            write_roots: Vec::new(),
            hosts: Hosts::none(),
            commands: Commands::Deny,
        }
    }

    /// What the flags and a turn come to: where both speak, only what both allow; where nobody speaks, nothing.
    #[must_use]
    pub fn settle(flags: &Stated, turn: &Stated) -> Self {
        let roots = |flags: &Option<Vec<PathBuf>>, turn: &Option<Vec<PathBuf>>| {
            let both = both(flags.as_ref(), turn.as_ref(), |flags, turn| common(flags, turn));
            both.unwrap_or_default().iter().map(|root| absolute(root)).collect()
        };
        Self {
            read_roots: roots(&flags.read_roots, &turn.read_roots),
            write_roots: roots(&flags.write_roots, &turn.write_roots),
            hosts: both(flags.hosts.as_ref(), turn.hosts.as_ref(), Hosts::and).unwrap_or_else(Hosts::none),
            commands: both(flags.commands.as_ref(), turn.commands.as_ref(), |a, b| *a.min(b))
                .unwrap_or(Commands::Deny),
        }
    }

    /// What both allow.
    #[must_use]
    pub fn within(&self, ceiling: &Self) -> Self {
        Self {
            read_roots: common(&ceiling.read_roots, &self.read_roots),
            write_roots: common(&ceiling.write_roots, &self.write_roots),
            hosts: ceiling.hosts.and(&self.hosts),
            commands: ceiling.commands.min(self.commands),
        }
    }

    /// Every folder that may be read, each once.
    #[must_use]
    pub fn readable(&self) -> Vec<&Path> {
        let mut roots: Vec<&Path> = Vec::new();
        for root in self.read_roots.iter().chain(&self.write_roots) {
            if !roots.contains(&root.as_path()) {
                roots.push(root);
            }
        }
        roots
    }

    /// The folder that relative paths start from, the same for every tool.
    #[must_use]
    pub fn base(&self) -> Option<&Path> {
        self.readable().first().copied()
    }
}

/// Hosts by patterns. What was narrowed keeps the patterns of every layer, and each of them must agree: the
/// intersection of two globs is not a glob.
#[derive(Clone, Debug)]
pub struct Hosts {
    layers: Vec<Vec<HostPattern>>,
}

impl Hosts {
    /// No host.
    #[must_use]
    pub fn none() -> Self {
        Self { layers: vec![Vec::new()] }
    }

    /// Hosts by patterns such as `example.org`, `*.example.org`, `127.0.0.1:8080`.
    ///
    /// # Errors
    /// The first pattern that is none, and why.
    pub fn new(patterns: &[impl AsRef<str>]) -> Result<Self, (String, GlobError)> {
        let compile = |pattern: &str| HostPattern::new(pattern).map_err(|error| (pattern.to_owned(), error));
        let layer: Result<Vec<_>, _> = patterns.iter().map(|pattern| compile(pattern.as_ref())).collect();
        Ok(Self { layers: vec![layer?] })
    }

    /// Whether nothing can match.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.layers.iter().any(Vec::is_empty)
    }

    /// Whether `host`, whose port is known, may be fetched from.
    #[must_use]
    pub fn allows(&self, host: &Host) -> bool {
        let agrees = |layer: &Vec<HostPattern>| {
            layer.iter().any(|pattern| pattern.matches(host, UnknownPort::Differs))
        };
        self.layers.iter().all(agrees)
    }

    /// Whether this very address is granted by its number, not by a wildcard or a name that leads to it.
    #[must_use]
    pub fn names_address(&self, address: IpAddr, port: u16) -> bool {
        let shown = address.to_canonical().to_string();
        self.names_exactly(&shown, port)
    }

    /// Whether `localhost` is granted by that name.
    #[must_use]
    pub fn names_localhost(&self, port: u16) -> bool {
        self.names_exactly("localhost", port)
    }

    /// What both allow.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { layers: self.layers.iter().chain(&other.layers).cloned().collect() }
    }

    /// The patterns as they were written, for messages.
    #[must_use]
    pub fn patterns(&self) -> Vec<&str> {
        self.layers.iter().flatten().map(HostPattern::pattern).collect()
    }

    fn names_exactly(&self, name: &str, port: u16) -> bool {
        let is_it = |pattern: &HostPattern| {
            let written = Host::parse(pattern.pattern());
            written.is_ok_and(|host| host.name() == name && host.port().is_none_or(|granted| granted == port))
        };
        self.layers.iter().all(|layer| layer.iter().any(is_it))
    }
}

/// What two voices come to.
fn both<T: Clone>(flags: Option<&T>, turn: Option<&T>, and: impl Fn(&T, &T) -> T) -> Option<T> {
    match (flags, turn) {
        (Some(flags), Some(turn)) => Some(and(flags, turn)),
        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
        (None, None) => None,
    }
}

/// A root as it is written, but from the top: children may run somewhere else than we do.
fn absolute(root: &Path) -> PathBuf {
    std::path::absolute(root).unwrap_or_else(|_| root.to_owned())
}

/// The folders that are in both sets of trees. Links are resolved first, so that a link cannot lead out of the ceiling.
fn common(ceiling: &[PathBuf], asked: &[PathBuf]) -> Vec<PathBuf> {
    let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| absolute(path));
    let ceiling: Vec<PathBuf> = ceiling.iter().map(real).collect();
    let mut found: Vec<PathBuf> = Vec::new();
    for asked in asked.iter().map(real) {
        // A path that is not there yet and goes through `..` could be anywhere once it is.
        let tangled = asked.components().any(|part| part == std::path::Component::ParentDir);
        for ceiling in ceiling.iter().filter(|_| !tangled) {
            let inner = match (asked.starts_with(ceiling), ceiling.starts_with(&asked)) {
                (true, _) => &asked,
                (false, true) => ceiling,
                (false, false) => continue,
            };
            if !found.contains(inner) {
                found.push(inner.clone());
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(list: &[&str]) -> Vec<PathBuf> {
        list.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn folders_of_a_turn_never_exceed_those_of_the_flags() {
        let table: [(&[&str], &[&str], &[&str]); 6] = [
            (&["/srv/a"], &["/srv/a/b"], &["/srv/a/b"]),
            (&["/srv/a"], &["/srv"], &["/srv/a"]),
            (&["/srv/a"], &["/srv/ab"], &[]),
            (&["/srv/a"], &["/srv/a/../b"], &[]),
            (&["/srv/a", "/srv/b"], &["/srv"], &["/srv/a", "/srv/b"]),
            (&[], &["/srv"], &[]),
        ];
        for (ceiling, asked, expected) in table {
            assert_eq!(common(&paths(ceiling), &paths(asked)), paths(expected), "{ceiling:?} {asked:?}");
        }
    }

    #[test]
    fn a_link_in_the_ceiling_that_leads_out_of_it_grants_nothing() {
        let outside = tempfile::tempdir().unwrap();
        let root = tempfile::tempdir().unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(outside.path(), &link).unwrap();
        assert_eq!(common(&[root.path().to_owned()], &[link]), Vec::<PathBuf>::new());
    }

    #[test]
    fn where_only_one_speaks_its_word_holds_and_where_nobody_does_there_is_nothing() {
        let flags =
            Stated { read_roots: Some(paths(&["/srv"])), commands: Some(Commands::Ask), ..Stated::default() };
        let turn = Stated {
            write_roots: Some(paths(&["/tmp/x"])),
            commands: Some(Commands::Allow),
            ..Stated::default()
        };
        let grants = Grants::settle(&flags, &turn);
        assert_eq!(grants.read_roots, paths(&["/srv"]));
        assert_eq!(grants.write_roots, paths(&["/tmp/x"]));
        assert_eq!(grants.commands, Commands::Ask);
        assert!(grants.hosts.is_empty());
        assert_eq!(grants.base(), Some(Path::new("/srv")));
    }

    #[test]
    fn a_root_from_here_becomes_a_root_from_the_top() {
        let flags = Stated { read_roots: Some(paths(&[".", "./src"])), ..Stated::default() };
        let here = std::env::current_dir().unwrap();
        assert_eq!(Grants::settle(&flags, &Stated::default()).read_roots, [here.clone(), here.join("src")]);
        let turn = Stated { read_roots: Some(paths(&["src"])), ..Stated::default() };
        let here = std::fs::canonicalize(here).unwrap();
        assert_eq!(Grants::settle(&flags, &turn).read_roots, [here.join("src")]);
    }

    #[test]
    fn a_host_must_be_granted_by_every_layer() {
        let host = |text: &str| Host::parse(text).unwrap();
        let wide = Hosts::new(&["*.example.org", "127.0.0.1"]).unwrap();
        let narrow = Hosts::new(&["a.example.org", "b.org", "127.0.0.1:80"]).unwrap();
        let both = wide.and(&narrow);
        assert!(both.allows(&host("a.example.org:443")));
        assert!(!both.allows(&host("b.example.org:443")));
        assert!(!both.allows(&host("b.org:443")));
        assert!(both.allows(&host("127.0.0.1:80")));
        assert!(!both.allows(&host("127.0.0.1:81")));
        assert!(!both.and(&Hosts::none()).allows(&host("a.example.org:443")));
        assert!(both.and(&Hosts::none()).is_empty());
    }

    #[test]
    fn an_address_is_named_by_its_number_only() {
        let address = |text: &str| text.parse::<IpAddr>().unwrap();
        let hosts = Hosts::new(&["*", "10.0.0.1:80", "[::1]", "localhost:1"]).unwrap();
        assert!(hosts.names_address(address("10.0.0.1"), 80));
        assert!(hosts.names_address(address("::ffff:10.0.0.1"), 80));
        assert!(!hosts.names_address(address("10.0.0.1"), 81));
        assert!(!hosts.names_address(address("10.0.0.2"), 80));
        assert!(hosts.names_address(address("::1"), 9));
        assert!(hosts.names_localhost(1));
        assert!(!hosts.names_localhost(2));
    }
}
