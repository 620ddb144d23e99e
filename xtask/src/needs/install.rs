//! Looks at the machine, and does to it what the plan says.

use super::plan::{self, Debian, Install, Lists, Machine, Step};
use super::{Need, Probe, Python, What};
use crate::shell::{Line, on_path};
use anyhow::{Context as _, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// `$XDG_CACHE_HOME/outrigger`, or what the standard says when that is not set.
pub(super) fn cache_folder() -> Result<PathBuf> {
    // The standard says that a relative path is to be ignored.
    let set = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let base = base.context("neither XDG_CACHE_HOME nor HOME names a folder to keep packages in")?;
    Ok(base.join("outrigger"))
}

pub(super) fn look_around(needs: &[Need], cache: &Path) -> Machine {
    let missing: Vec<Need> = needs.iter().filter(|need| !is_met(need, cache)).copied().collect();
    let forbidden =
        std::env::var("OUTRIGGER_NO_INSTALL").is_ok_and(|value| !value.is_empty() && value != "0");
    // Nothing more is asked of a machine that has everything: the second run is quick.
    let (debian, lists) =
        if missing.is_empty() { (Debian::NoRights, Lists::Filled) } else { (debian(), lists()) };
    Machine { missing, install: if forbidden { Install::Forbidden } else { Install::Allowed }, debian, lists }
}

pub(super) fn perform(steps: &[Step], machine: &Machine, cache: &Path) -> Result<()> {
    for step in steps {
        match step {
            Step::Debian { packages, why, update_first } => {
                for (package, why) in packages.iter().zip(why) {
                    eprintln!("installing Debian package {package}: needed by {why}");
                }
                install_debian(machine.debian, packages, *update_first)?;
            }
            Step::Npm { package, version, parts, why } => {
                eprintln!("installing npm package {package}@{version}: needed by {why}");
                install_npm(cache, package, version, |folder| {
                    succeed(&plan::npm_install(folder, package, version, *parts))
                })?;
            }
            Step::Python { packages, why } => {
                let names: Vec<&str> = packages.packages.iter().map(|(name, _)| *name).collect();
                eprintln!("installing Python packages {}: needed by {why}", names.join(", "));
                install_python(cache, packages)?;
            }
        }
    }
    Ok(())
}

fn is_met(need: &Need, cache: &Path) -> bool {
    match need.what {
        What::Debian { probe: Probe::Program(program), .. } => on_path(program),
        What::Debian { probe: Probe::File(file), .. } => Path::new(file).exists(),
        What::Npm { package, version, .. } => plan::npm_folder(cache, package, version).is_dir(),
        What::Python(packages) => {
            let folder = plan::python_folder(cache, &packages);
            folder.is_dir() && proves(&folder, &packages)
        }
    }
}

fn install_debian(debian: Debian, packages: &[&str], update_first: bool) -> Result<()> {
    let install = plan::apt_install(debian, packages);
    if update_first {
        succeed(&plan::apt_update(debian))?;
        return succeed(&install);
    }
    // Lists that are there may still be too old to find the files they name; then they are renewed, once.
    if succeed(&install).is_err() {
        succeed(&plan::apt_update(debian))?;
        succeed(&install)?;
    }
    Ok(())
}

fn install_npm(
    cache: &Path,
    package: &str,
    version: &str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    install_folder(&cache.join("npm"), &plan::npm_folder(cache, package, version), fill)
}

fn install_python(cache: &Path, packages: &Python) -> Result<()> {
    let target = plan::python_folder(cache, packages);
    if target.is_dir() {
        // It is whole, and this Python cannot use it: some packages are made for one version of Python.
        fs::remove_dir_all(&target).with_context(|| format!("cannot remove {}", target.display()))?;
    }
    install_folder(&cache.join("python"), &target, |folder| {
        succeed(&plan::pip_install(folder, packages))?;
        let proof = plan::python_proof(folder, packages);
        if !proves(folder, packages) {
            bail!("the packages were installed and cannot be used: `{proof}` fails");
        }
        Ok(())
    })
}

fn proves(folder: &Path, packages: &Python) -> bool {
    let output = plan::python_proof(folder, packages).capture(Path::new("/"));
    output.is_ok_and(|output| output.status.success())
}

/// Fills a folder of its own in `kind` and renames it: what has the final name is complete, however this run ends.
fn install_folder(kind: &Path, target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let shelf = target.parent().context("a package folder has a parent")?;
    let partial = kind.join(format!(".partial-{}", std::process::id()));
    fs::create_dir_all(shelf).with_context(|| format!("cannot create {}", shelf.display()))?;
    sweep(kind);
    fs::create_dir(&partial).with_context(|| format!("cannot create {}", partial.display()))?;
    let filled = fill(&partial).and_then(|()| {
        if target.is_dir() {
            return Ok(()); // Another run was faster; its tree is as good as ours.
        }
        fs::rename(&partial, target).with_context(|| format!("cannot rename to {}", target.display()))
    });
    // After the rename there is nothing left to remove, and that is no error.
    let _ = fs::remove_dir_all(&partial);
    filled
}

/// Removes what interrupted runs left. A folder whose process still lives is being filled right now.
fn sweep(shelf: &Path) {
    let Ok(entries) = fs::read_dir(shelf) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(process) = name.to_str().and_then(|name| name.strip_prefix(".partial-")) else { continue };
        let ours = process == std::process::id().to_string();
        if ours || (Path::new("/proc/self").exists() && !Path::new("/proc").join(process).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn debian() -> Debian {
    if !on_path("apt-get") {
        return Debian::NoApt;
    }
    let here = Path::new("/");
    let user = Line::new("id", ["-u"]).stdout(here).unwrap_or_default();
    if user.trim() == "0" {
        return Debian::Root;
    }
    let sudo = Line::new("sudo", ["-n", "true"]).capture(here);
    if sudo.is_ok_and(|output| output.status.success()) { Debian::Sudo } else { Debian::NoRights }
}

fn lists() -> Lists {
    let entries = fs::read_dir("/var/lib/apt/lists").into_iter().flatten().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    if names.any(|name| name.contains("_Packages")) { Lists::Filled } else { Lists::Empty }
}

fn succeed(line: &Line) -> Result<()> {
    eprintln!("  {line}");
    let status = line.run_aside(Path::new("/"))?;
    if !status.success() {
        bail!("`{line}` ended with {status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Parts, npm};
    use super::*;

    const RPC: Need = npm("@scope/rpc", "1.0.0", Parts::All, "a test");

    #[test]
    fn an_interrupted_install_is_never_taken_for_a_finished_one() {
        let cache = tempfile::tempdir().unwrap();
        let failed = install_npm(cache.path(), "@scope/rpc", "1.0.0", |folder| {
            fs::write(folder.join("half"), "").unwrap();
            bail!("the network went away")
        });
        assert_eq!(failed.unwrap_err().to_string(), "the network went away");
        assert!(!is_met(&RPC, cache.path()));

        install_npm(cache.path(), "@scope/rpc", "1.0.0", |folder| {
            assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "the new folder holds leftovers");
            Ok(fs::write(folder.join("whole"), "")?)
        })
        .unwrap();
        assert!(is_met(&RPC, cache.path()));
        assert!(plan::npm_folder(cache.path(), "@scope/rpc", "1.0.0").join("whole").is_file());
    }

    #[test]
    fn what_a_dead_run_left_is_swept_and_a_live_one_is_not_disturbed() {
        let shelf = tempfile::tempdir().unwrap();
        // Process 1 always lives; no process has a number beyond the kernel's maximum.
        for name in [".partial-1", ".partial-99999999", "kept@1.0.0"] {
            fs::create_dir(shelf.path().join(name)).unwrap();
        }
        sweep(shelf.path());
        let mut left: Vec<_> = fs::read_dir(shelf.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".partial-1", "kept@1.0.0"]);
    }

    #[test]
    fn two_runs_at_once_end_with_one_whole_tree() {
        let cache = tempfile::tempdir().unwrap();
        install_npm(cache.path(), "rpc", "1.0.0", |_| {
            let other = plan::npm_folder(cache.path(), "rpc", "1.0.0");
            fs::create_dir(&other)?;
            Ok(fs::write(other.join("theirs"), "")?)
        })
        .unwrap();
        assert!(plan::npm_folder(cache.path(), "rpc", "1.0.0").join("theirs").is_file());
        assert_eq!(fs::read_dir(cache.path().join("npm")).unwrap().count(), 1, "a partial folder was left");
    }
}
