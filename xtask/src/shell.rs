//! The one place of xtask that starts programs and that knows where the workspace is.

use anyhow::{Context as _, Result, bail};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};

/// A command line that can be shown exactly as a person would type it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    env: Vec<(String, String)>,
    program: String,
    args: Vec<String>,
}

impl Line {
    pub(crate) fn new<S: AsRef<str>>(program: &str, args: impl IntoIterator<Item = S>) -> Line {
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned()).collect();
        Line { env: Vec::new(), program: program.to_owned(), args }
    }

    /// `cargo …`, by the very cargo that started us, shown as plain `cargo`.
    pub(crate) fn cargo<S: AsRef<str>>(args: impl IntoIterator<Item = S>) -> Line {
        Line::new("cargo", args)
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Line {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs in `folder` with our terminal as its output and nothing as its input.
    pub(crate) fn run(&self, folder: &Path) -> Result<ExitStatus> {
        self.command(folder).status().with_context(|| format!("cannot start `{self}`"))
    }

    /// As [`Line::run`], for a program that prints to people while we print to a program.
    pub(crate) fn run_aside(&self, folder: &Path) -> Result<ExitStatus> {
        let status = self.command(folder).stdout(std::io::stderr()).status();
        status.with_context(|| format!("cannot start `{self}`"))
    }

    /// Runs in `folder` and keeps what it prints.
    pub(crate) fn capture(&self, folder: &Path) -> Result<Output> {
        self.command(folder).output().with_context(|| format!("cannot start `{self}`"))
    }

    /// Like [`Line::capture`], for a program whose failure is ours.
    pub(crate) fn stdout(&self, folder: &Path) -> Result<String> {
        let output = self.capture(folder)?;
        if !output.status.success() {
            bail!(
                "`{self}` ended with {}:\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        String::from_utf8(output.stdout)
            .with_context(|| format!("`{self}` printed something that is not UTF-8"))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a developer's tool, not the product: nothing to supervise"
    )]
    fn command(&self, folder: &Path) -> Command {
        let own_cargo = std::env::var("CARGO").ok().filter(|_| self.program == "cargo");
        let mut command = Command::new(own_cargo.as_deref().unwrap_or(&self.program));
        command.args(&self.args).current_dir(folder).stdin(Stdio::null());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{name}={} ", quoted(value))?;
        }
        f.write_str(&self.program)?;
        self.args.iter().try_for_each(|arg| write!(f, " {}", quoted(arg)))
    }
}

/// Whether `program` can be found on the search path.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The folder that holds the root manifest, wherever we were started.
pub(crate) fn workspace_root() -> Result<PathBuf> {
    // Cargo tells a program that it runs where its package is; the workspace is one above.
    let package = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    if let Some(root) = package.as_deref().and_then(Path::parent).filter(|root| is_root(root)) {
        return Ok(root.to_owned());
    }
    let here = std::env::current_dir().context("cannot tell the current folder")?;
    match here.ancestors().find(|folder| is_root(folder)) {
        Some(root) => Ok(root.to_owned()),
        None => bail!("{} is not inside the workspace", here.display()),
    }
}

fn is_root(folder: &Path) -> bool {
    folder.join("xtask/Cargo.toml").is_file()
        && std::fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]"))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:@+,%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_shown_as_a_person_would_type_it() {
        let line = Line::cargo(["doc", "--config", "a b", "it's"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(line.to_string(), r"RUSTDOCFLAGS='-D warnings' cargo doc --config 'a b' 'it'\''s'");
    }

    #[test]
    fn the_workspace_is_found_from_inside_of_it() {
        let root = workspace_root().unwrap();
        assert!(root.join("crates").is_dir());
    }

    #[test]
    fn a_program_that_fails_is_named_with_what_it_said() {
        let line = Line::new("sh", ["-c", "echo broken >&2; exit 3"]);
        let error = line.stdout(Path::new("/")).unwrap_err().to_string();
        assert!(error.contains("exit status: 3") && error.contains("broken"), "{error}");
    }
}
