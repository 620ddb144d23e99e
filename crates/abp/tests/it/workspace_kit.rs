//! What every test of workspaces needs: a source, a place for stages, and a shell that plays user and agent.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use outrigger_abp::workspace::{
    AgentRepository, ChangeKind, Changes, Limits, Mode, PrepareError, Prepared, Request, StageName, Terms,
    prepare,
};

pub(crate) use crate::host_kit::{supervisor, trial};

/// A source and a place for its copies.
pub(crate) struct Bench {
    place: tempfile::TempDir,
    pub(crate) request: Request,
    pub(crate) terms: Terms,
}

impl Bench {
    /// A source that this script makes.
    pub(crate) fn new(script: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let source = place.path().join("source");
        fs::create_dir(&source).unwrap();
        sh(&source, script);
        let request = Request { root: source, mode: Mode::Staged, include: Vec::new(), exclude: Vec::new() };
        let terms = Terms {
            stages: place.path().join("stages"),
            name: StageName::new("run-1").unwrap(),
            repository: AgentRepository::Make,
            limits: Limits::usual(),
        };
        Self { place, request, terms }
    }

    pub(crate) fn in_place(mut self) -> Self {
        self.request.mode = Mode::InPlace;
        self
    }

    pub(crate) fn named(mut self, name: StageName) -> Self {
        self.terms.name = name;
        self
    }

    pub(crate) fn source(&self) -> PathBuf {
        self.request.root.clone()
    }

    pub(crate) fn place(&self) -> &Path {
        self.place.path()
    }

    pub(crate) async fn prepare(&self) -> Prepared {
        self.try_prepare().await.unwrap()
    }

    pub(crate) async fn try_prepare(&self) -> Result<Prepared, PrepareError> {
        prepare(&supervisor(), &self.request, &self.terms).await
    }

    /// Prepares, lets an agent run this script in the workspace, and says what changed.
    pub(crate) async fn run(&self, agent: &str) -> (Prepared, Changes) {
        let prepared = self.prepare().await;
        sh(prepared.root(), agent);
        let changes = prepared.finish().await.unwrap();
        (prepared, changes)
    }
}

/// Runs a script, which must succeed, and gives what it said.
pub(crate) fn sh(cwd: &Path, script: &str) -> String {
    #[expect(clippy::disallowed_methods, reason = "a test that plays user and agent")]
    let mut command = std::process::Command::new("/bin/sh");
    let quiet = "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=u GIT_AUTHOR_EMAIL=u@u \
                 GIT_COMMITTER_NAME=u GIT_COMMITTER_EMAIL=u@u; init() { git init -q -b main . && git add -A && \
                 git commit -q -m first --allow-empty; }; ";
    let output = command.args(["-euc", &format!("{quiet}{script}")]).current_dir(cwd).output().unwrap();
    assert!(output.status.success(), "{script}\n{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Everything in a folder but `.git` at its top, one line each: what it is, its mode if it is executable, its content.
pub(crate) fn shape(root: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    walk(root, root, &mut lines);
    lines.sort();
    lines
}

fn walk(root: &Path, folder: &Path, lines: &mut Vec<String>) {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        let name =
            String::from_utf8_lossy(path.strip_prefix(root).unwrap().as_os_str().as_bytes()).into_owned();
        if name == ".git" {
            continue;
        }
        let facts = fs::symlink_metadata(&path).unwrap();
        let kind = facts.file_type();
        if kind.is_dir() {
            lines.push(format!("{name}/"));
            walk(root, &path, lines);
        } else if kind.is_symlink() {
            lines.push(format!("{name} -> {}", fs::read_link(&path).unwrap().display()));
        } else if kind.is_fifo() || kind.is_socket() {
            lines.push(format!("{name} is special"));
        } else {
            let executable = if facts.permissions().mode() & 0o100 == 0 { "" } else { "*" };
            let content = fs::read(&path).unwrap();
            let content: String = String::from_utf8_lossy(&content).chars().take(40).collect();
            lines.push(format!("{name}{executable} = {}", content.trim_end()));
        }
    }
}

/// The changed files, one line each.
pub(crate) fn told(changes: &Changes) -> Vec<String> {
    let line = |kind: &ChangeKind, path: &str| match kind {
        ChangeKind::Added => format!("added {path}"),
        ChangeKind::Modified => format!("modified {path}"),
        ChangeKind::Deleted => format!("deleted {path}"),
        ChangeKind::Renamed { from } => format!("renamed {from} to {path}"),
        ChangeKind::Mode => format!("mode {path}"),
        ChangeKind::Type => format!("type {path}"),
    };
    changes.files.iter().map(|file| line(&file.kind, &file.path.to_string())).collect()
}

/// What was left out, one line each.
pub(crate) fn left_out(list: &[outrigger_abp::workspace::LeftOut]) -> Vec<String> {
    let mut lines: Vec<_> =
        list.iter().map(|left_out| format!("{:?} {}", left_out.why, left_out.path)).collect();
    lines.sort();
    lines
}

/// A name of bytes.
pub(crate) fn name(bytes: &[u8]) -> &OsStr {
    OsStr::from_bytes(bytes)
}
