//! Finding the real programs: said by the configuration, by the environment, on `PATH`, or where npm puts them.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Failure, FailureCode};

/// A program that we know where to look for.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// What it is called for people.
    pub title: &'static str,
    /// The variable that names it, if there is one.
    pub variable: Option<&'static str>,
    /// Its names on `PATH`, the better one first.
    pub names: &'static [&'static str],
    /// Where npm keeps it: paths below a `node_modules`.
    pub packages: &'static [&'static str],
    /// How one gets it.
    pub install: &'static str,
}

/// Claude Code.
pub const CLAUDE: Known = Known {
    title: "Claude Code",
    variable: Some("HELMOR_CLAUDE_CODE_BIN_PATH"),
    names: &["claude"],
    packages: CLAUDE_PACKAGES,
    install: "npm install -g @anthropic-ai/claude-code",
};

/// Codex.
pub const CODEX: Known = Known {
    title: "Codex",
    variable: Some("HELMOR_CODEX_BIN_PATH"),
    names: &["codex"],
    packages: CODEX_PACKAGES,
    install: "npm install -g @openai/codex",
};

/// Cursor's agent.
pub const CURSOR: Known = Known {
    title: "Cursor's agent",
    variable: Some("HELMOR_CURSOR_BIN_PATH"),
    // `agent` is also the name of other programs; the long one is only Cursor's.
    names: &["cursor-agent", "agent"],
    // The packages of these names on npm are somebody else's.
    packages: &[],
    install: "see https://cursor.com/install",
};

#[cfg(target_arch = "aarch64")]
const CLAUDE_PACKAGES: &[&str] =
    &["@anthropic-ai/claude-code-linux-arm64/claude", "@anthropic-ai/claude-code-linux-arm64-musl/claude"];
#[cfg(not(target_arch = "aarch64"))]
const CLAUDE_PACKAGES: &[&str] =
    &["@anthropic-ai/claude-code-linux-x64/claude", "@anthropic-ai/claude-code-linux-x64-musl/claude"];

#[cfg(target_arch = "aarch64")]
const CODEX_PACKAGES: &[&str] = &[
    "@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex",
    "@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/codex/codex",
];
#[cfg(not(target_arch = "aarch64"))]
const CODEX_PACKAGES: &[&str] = &[
    "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
    "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/codex/codex",
];

/// A program that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Where.
    pub path: PathBuf,
    /// By what.
    pub by: FoundBy,
}

/// What led to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The configuration names it.
    Configuration,
    /// A variable names it.
    Variable,
    /// It is on `PATH`.
    Path,
    /// npm put it there.
    Npm,
}

/// Looks for a program: what `configured` says counts before everything else, then the variable, npm's folders near `here` and
/// around the programs on `PATH`, and `PATH` itself. A place that is named and wrong is a failure, not a reason to look on.
pub fn find(known: &Known, configured: Option<&Path>, here: Option<&Path>) -> Result<Found, Failure> {
    if let Some(path) = configured {
        return named(known, path, FoundBy::Configuration, "the configuration names");
    }
    if let Some(variable) = known.variable
        && let Some(path) = std::env::var_os(variable).filter(|value| !value.is_empty())
    {
        return named(known, Path::new(&path), FoundBy::Variable, &format!("{variable} is"));
    }
    let search = std::env::var_os("PATH").unwrap_or_default();
    for name in known.names {
        if let Some(path) = on_path(&search, name) {
            // A start script of npm leads to a node process that leads to the program; without them it is one process less.
            let native = path.canonicalize().ok().and_then(|real| in_modules(known, &real));
            return Ok(match native {
                Some(path) => Found { path, by: FoundBy::Npm },
                None => Found { path, by: FoundBy::Path },
            });
        }
    }
    if let Some(path) = here.and_then(|here| in_modules(known, &here.join("here"))) {
        return Ok(Found { path, by: FoundBy::Npm });
    }
    let names = known.names.join("` or `");
    let or = known.variable.map(|variable| format!(" Or name it with {variable}.")).unwrap_or_default();
    let message = format!(
        "{} is not installed: there is no `{names}` on PATH. To install it: {}.{or}",
        known.title, known.install
    );
    Err(Failure::new(FailureCode::NotInstalled, message))
}

/// A program that somebody named.
fn named(known: &Known, path: &Path, by: FoundBy, who: &str) -> Result<Found, Failure> {
    let bare = path.components().count() == 1 && !path.is_absolute();
    let found = if bare {
        on_path(&std::env::var_os("PATH").unwrap_or_default(), path)
    } else {
        is_program(path).then(|| path.to_owned())
    };
    found.map(|path| Found { path, by }).ok_or_else(|| {
        let message =
            format!("{} cannot be started: {who} {}, which is no program", known.title, path.display());
        Failure::new(FailureCode::NotInstalled, message)
    })
}

/// The program of this name in these folders.
#[must_use]
pub fn on_path(search: &OsStr, name: impl AsRef<Path>) -> Option<PathBuf> {
    std::env::split_paths(search).map(|folder| folder.join(name.as_ref())).find(|path| is_program(path))
}

/// The program in a `node_modules` of one of the folders above `from`, as node itself looks.
fn in_modules(known: &Known, from: &Path) -> Option<PathBuf> {
    from.ancestors()
        .skip(1)
        .filter(|folder| folder.file_name() != Some(OsStr::new("node_modules")))
        .flat_map(|folder| {
            known.packages.iter().map(move |package| folder.join("node_modules").join(package))
        })
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "#!/bin/sh\n").unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn a_start_script_of_npm_leads_to_the_program_itself() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("lib/node_modules/@openai/codex/bin/codex.js");
        let native = folder.path().join("lib/node_modules").join(CODEX.packages[0]);
        program(&script);
        program(&native);
        assert_eq!(in_modules(&CODEX, &script), Some(native));
        assert_eq!(in_modules(&CLAUDE, &script), None);
    }

    #[test]
    fn what_is_not_executable_is_no_program() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("claude"), "text").unwrap();
        assert_eq!(on_path(folder.path().as_os_str(), "claude"), None);
        program(&folder.path().join("codex"));
        assert_eq!(on_path(folder.path().as_os_str(), "codex"), Some(folder.path().join("codex")));
    }

    #[test]
    fn a_configured_place_that_is_wrong_is_not_passed_over() {
        let failure = find(&CLAUDE, Some(Path::new("/nowhere/claude")), None).unwrap_err();
        assert_eq!(failure.code, FailureCode::NotInstalled);
        assert!(failure.message.contains("/nowhere/claude"), "{failure}");
    }
}
