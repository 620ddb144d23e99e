//! The workspace as a value: its files in memory and its packages as cargo describes them.

use crate::shell::Line;
use anyhow::{Context as _, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub(super) struct Project {
    /// By path from the root, with forward slashes. Files that are not text are here, empty.
    files: BTreeMap<String, String>,
    pub(super) packages: Vec<Package>,
}

/// A workspace member, reduced to what the rules look at.
#[derive(Clone, Debug)]
pub(super) struct Package {
    pub(super) name: String,
    /// The path of its manifest from the root.
    pub(super) manifest: String,
    pub(super) dependencies: Vec<Dependency>,
    pub(super) features: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Dependency {
    pub(super) name: String,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Build,
    Dev,
}

impl Project {
    pub(super) fn read(root: &Path) -> Result<Project> {
        let metadata = Line::cargo(["metadata", "--format-version=1", "--no-deps"]).stdout(root)?;
        let metadata = serde_json::from_str(&metadata).context("cargo metadata is not JSON")?;
        let mut files = BTreeMap::new();
        for path in list(root)? {
            // A file that is listed and gone is being deleted; one that is not text has no lines to judge.
            let Ok(bytes) = fs::read(root.join(&path)) else { continue };
            files.insert(path, String::from_utf8(bytes).unwrap_or_default());
        }
        Ok(Project { files, packages: packages(&metadata)? })
    }

    /// Every file, as (path, text).
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The Rust files that people write: not recorded snapshots, not the inputs of tests.
    pub(super) fn rust(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs") && !is_data(path))
    }

    pub(super) fn markdown(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".md") && !is_data(path))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether `path` is a file or a folder that holds one.
    pub(super) fn has(&self, path: &str) -> bool {
        let folder = format!("{}/", path.trim_end_matches('/'));
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.range(folder.clone()..).next().is_some_and(|(file, _)| file.starts_with(&folder))
    }
}

/// Whether the file is the input of a test and not part of the text of the project.
fn is_data(path: &str) -> bool {
    path.split('/').any(|part| matches!(part, "snapshots" | "cases" | "testdata" | "corpus"))
}

/// What git tracks and what it would track, so that a new file is judged before it is committed. Without git
/// (an unpacked archive) it is every file outside of build folders.
fn list(root: &Path) -> Result<Vec<String>> {
    let git = Line::new("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]);
    if let Ok(listed) = git.stdout(root) {
        return Ok(listed.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect());
    }
    let mut found = Vec::new();
    walk(root, "", &mut found).with_context(|| format!("cannot list {}", root.display()))?;
    Ok(found)
}

fn walk(root: &Path, folder: &str, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_dir() && !matches!(name.as_str(), "target" | ".git" | "node_modules" | "artifacts") {
            walk(root, &path, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let root = metadata["workspace_root"].as_str().context("cargo metadata names no workspace root")?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    packages.iter().map(|package| read_package(root, package)).collect()
}

fn read_package(root: &str, package: &Value) -> Result<Package> {
    let text = |value: &Value| value.as_str().map(str::to_owned).context("cargo metadata lacks a name");
    let manifest = text(&package["manifest_path"])?;
    let manifest = manifest.strip_prefix(root).unwrap_or(&manifest).trim_start_matches('/').to_owned();
    let mut dependencies = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let kind = match dependency["kind"].as_str() {
            Some("dev") => Kind::Dev,
            Some("build") => Kind::Build,
            Some(_) | None => Kind::Normal,
        };
        dependencies.push(Dependency { name: text(&dependency["name"])?, kind });
    }
    let features = package["features"].as_object().into_iter().flat_map(|map| map.keys().cloned()).collect();
    Ok(Package { name: text(&package["name"])?, manifest, dependencies, features })
}

#[cfg(test)]
impl Project {
    /// A project that consists of these files and has no packages.
    pub(super) fn of(files: &[(&str, &str)]) -> Project {
        let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        Project { files, packages: Vec::new() }
    }

    /// Adds a package with normal dependencies on `names`.
    pub(super) fn with(mut self, name: &str, manifest: &str, names: &[&str]) -> Project {
        let normal = |name: &&str| Dependency { name: (*name).to_owned(), kind: Kind::Normal };
        self.packages.push(Package {
            name: name.to_owned(),
            manifest: manifest.to_owned(),
            dependencies: names.iter().map(normal).collect(),
            features: Vec::new(),
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn cargo_metadata_is_reduced_to_what_the_rules_look_at() {
        let metadata = json!({"workspace_root": "/w", "packages": [{
            "name": "outrigger-policy", "manifest_path": "/w/crates/policy/Cargo.toml", "features": {"f": []},
            "dependencies": [{"name": "serde", "kind": null}, {"name": "insta", "kind": "dev"},
                             {"name": "cc", "kind": "build"}]}]});
        let packages = packages(&metadata).unwrap();
        let [package] = &packages[..] else { panic!("{packages:?}") };
        assert_eq!(
            (package.name.as_str(), package.manifest.as_str()),
            ("outrigger-policy", "crates/policy/Cargo.toml")
        );
        assert_eq!(package.features, ["f"]);
        let kinds: Vec<_> = package.dependencies.iter().map(|d| (d.name.as_str(), d.kind)).collect();
        assert_eq!(kinds, [("serde", Kind::Normal), ("insta", Kind::Dev), ("cc", Kind::Build)]);
    }

    #[test]
    fn an_unpacked_archive_is_walked_without_its_build_folders() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a.rs", "b/c.md", "target/x.rs", "b/node_modules/y.js"] {
            fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
            fs::write(root.path().join(path), "").unwrap();
        }
        let mut found = Vec::new();
        walk(root.path(), "", &mut found).unwrap();
        found.sort();
        assert_eq!(found, ["a.rs", "b/c.md"]);
    }

    #[test]
    fn a_folder_exists_when_it_holds_a_file() {
        let project = Project::of(&[("docs/a.md", ""), ("docs-old/b.md", "")]);
        assert!(project.has("docs") && project.has("docs/") && project.has("docs/a.md") && project.has(""));
        assert!(!project.has("doc") && !project.has("docs/b.md"));
    }
}
