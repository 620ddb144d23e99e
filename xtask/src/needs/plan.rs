//! From what is missing to what would be run. Pure: the machine is a value here.

use super::{Need, Parts, Python, What};
use crate::shell::Line;
use std::path::{Path, PathBuf};

/// What was found on this machine.
#[derive(Debug)]
pub(super) struct Machine {
    /// The needs that are not met, in the order of the table.
    pub(super) missing: Vec<Need>,
    pub(super) install: Install,
    pub(super) debian: Debian,
    /// Whether apt knows any package at all; a fresh container often does not.
    pub(super) lists: Lists,
}

/// Whether this run may change the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Install {
    Allowed,
    /// `OUTRIGGER_NO_INSTALL=1`.
    Forbidden,
}

/// How Debian packages can be installed here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Debian {
    Root,
    Sudo,
    NoApt,
    NoRights,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lists {
    Filled,
    Empty,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    Nothing,
    /// One message for everything that is missing; nothing is done by halves.
    Refuse {
        message: String,
    },
    Install(Vec<Step>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// All missing Debian packages in one go.
    Debian {
        packages: Vec<&'static str>,
        why: Vec<&'static str>,
        update_first: bool,
    },
    Npm {
        package: &'static str,
        version: &'static str,
        parts: Parts,
        why: &'static str,
    },
    Python {
        packages: Python,
        why: &'static str,
    },
}

pub(super) fn plan(machine: &Machine) -> Plan {
    if machine.missing.is_empty() {
        return Plan::Nothing;
    }
    if let Some(why) = why_not(machine) {
        return Plan::Refuse { message: refusal(&machine.missing, why) };
    }
    let mut steps = Vec::new();
    let debian = machine.missing.iter().filter_map(|need| match need.what {
        What::Debian { package, .. } => Some((package, need.needed_by)),
        What::Npm { .. } | What::Python(_) => None,
    });
    let (packages, why): (Vec<_>, Vec<_>) = debian.unzip();
    if !packages.is_empty() {
        steps.push(Step::Debian { packages, why, update_first: machine.lists == Lists::Empty });
    }
    steps.extend(machine.missing.iter().filter_map(|need| match need.what {
        What::Npm { package, version, parts } => {
            Some(Step::Npm { package, version, parts, why: need.needed_by })
        }
        What::Python(packages) => Some(Step::Python { packages, why: need.needed_by }),
        What::Debian { .. } => None,
    }));
    Plan::Install(steps)
}

/// The variables for the tests: one for each npm package and each set of Python packages of the table.
pub(super) fn environment(needs: &[Need], cache: &Path) -> Vec<(String, String)> {
    let location = |need: &Need| match need.what {
        What::Npm { package, version, .. } => {
            Some((variable(package), npm_folder(cache, package, version).to_string_lossy().into_owned()))
        }
        What::Python(packages) => {
            let variable = format!("OUTRIGGER_PY_{}", letters(packages.name));
            Some((variable, python_folder(cache, &packages).to_string_lossy().into_owned()))
        }
        What::Debian { .. } => None,
    };
    needs.iter().filter_map(location).collect()
}

/// Where a finished install lives. The version is part of the name, so an upgrade never meets an old tree.
pub(super) fn npm_folder(cache: &Path, package: &str, version: &str) -> PathBuf {
    cache.join("npm").join(format!("{package}@{version}"))
}

/// As [`npm_folder`], for Python packages. What else is in it has a version too, and changes with the table.
pub(super) fn python_folder(cache: &Path, packages: &Python) -> PathBuf {
    let version = packages.packages.first().map_or("", |(_, version)| version);
    cache.join("python").join(format!("{}@{version}", packages.name))
}

pub(super) fn apt_update(debian: Debian) -> Line {
    apt(debian, &["update"], &[])
}

pub(super) fn apt_install(debian: Debian, packages: &[&str]) -> Line {
    // Another apt at work is waited for; a question would wait for ever, as there is no input.
    let options = ["install", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"];
    apt(debian, &options, packages)
}

/// The command for `folder`, which must be empty: npm would add to what it finds.
pub(super) fn npm_install(folder: &Path, package: &str, version: &str, parts: Parts) -> Line {
    let folder = folder.to_string_lossy().into_owned();
    let mut words = vec!["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", &folder];
    words.push("--ignore-scripts");
    match parts {
        Parts::All => {}
        Parts::Required => words.push("--omit=optional"),
    }
    let pinned = format!("{package}@{version}");
    words.push(&pinned);
    Line::new("npm", words)
}

/// The command for `folder`, which must be empty. Nothing is built and nothing is added to what the table names.
pub(super) fn pip_install(folder: &Path, packages: &Python) -> Line {
    let folder = folder.to_string_lossy().into_owned();
    let options = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"];
    let mut words: Vec<String> = options.map(str::to_owned).into();
    words.extend(["--no-deps", "--only-binary=:all:", "--target", &folder].map(str::to_owned));
    words.extend(packages.packages.iter().map(|(package, version)| format!("{package}=={version}")));
    Line::new("python3", words)
}

/// The command that fails unless what is in `folder` can be used.
pub(super) fn python_proof(folder: &Path, packages: &Python) -> Line {
    Line::new("python3", ["-B", "-c", packages.proof]).env("PYTHONPATH", &folder.to_string_lossy())
}

fn apt(debian: Debian, options: &[&str], packages: &[&str]) -> Line {
    let words = options.iter().chain(packages);
    match debian {
        // `sudo` drops the environment, so the variable goes through `env`.
        Debian::Sudo => Line::new(
            "sudo",
            ["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"].iter().chain(words).copied(),
        ),
        Debian::Root | Debian::NoApt | Debian::NoRights => {
            Line::new("apt-get", words.copied()).env("DEBIAN_FRONTEND", "noninteractive")
        }
    }
}

fn why_not(machine: &Machine) -> Option<&'static str> {
    if machine.install == Install::Forbidden {
        return Some("OUTRIGGER_NO_INSTALL forbids installing it");
    }
    let needs_debian = machine.missing.iter().any(|need| matches!(need.what, What::Debian { .. }));
    match machine.debian {
        Debian::NoApt if needs_debian => Some("this system has no apt-get"),
        Debian::NoRights if needs_debian => Some("installing needs root or a sudo that asks no password"),
        Debian::Root | Debian::Sudo | Debian::NoApt | Debian::NoRights => None,
    }
}

fn refusal(missing: &[Need], why: &str) -> String {
    let mut message = format!("the tests need what this machine lacks, and {why}:\n");
    let mut debian = Vec::new();
    let mut others = 0;
    for need in missing {
        let name = match need.what {
            What::Debian { package, .. } => {
                debian.push(package);
                format!("Debian package {package}")
            }
            What::Npm { package, version, .. } => {
                others += 1;
                format!("npm package {package}@{version}")
            }
            What::Python(packages) => {
                others += 1;
                let names: Vec<String> = packages
                    .packages
                    .iter()
                    .map(|(package, version)| format!("{package}=={version}"))
                    .collect();
                format!("Python packages {}", names.join(" "))
            }
        };
        message.push_str(&format!("  {name}: needed by {}\n", need.needed_by));
    }
    message.push_str("type:\n");
    if !debian.is_empty() {
        message
            .push_str(&format!("  sudo apt-get install -y --no-install-recommends {}\n", debian.join(" ")));
    }
    if others > 0 {
        message.push_str("  env -u OUTRIGGER_NO_INSTALL cargo xtask needs\n");
    }
    message.truncate(message.trim_end().len());
    message
}

fn variable(package: &str) -> String {
    format!("OUTRIGGER_NPM_{}", letters(package.trim_start_matches('@')))
}

fn letters(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Probe, debian, npm, python};
    use super::*;

    const ZSH: Need = debian("zsh", Probe::Program("zsh"), "the completion test");
    const FONT: Need = debian("fonts-x", Probe::File("/usr/share/fonts/x"), "the screenshot test");
    const RPC: Need = npm("json-rpc-2.0", "1.8.1", Parts::All, "the peer test");

    const MESH: Python =
        Python { name: "lxmf", packages: &[("lxmf", "1.2.1"), ("rns", "1.5.7")], proof: "import LXMF" };

    fn machine(missing: &[Need]) -> Machine {
        Machine {
            missing: missing.to_vec(),
            install: Install::Allowed,
            debian: Debian::Root,
            lists: Lists::Filled,
        }
    }

    #[test]
    fn a_machine_that_has_everything_is_left_alone() {
        assert_eq!(plan(&machine(&[])), Plan::Nothing);
        let forbidden = Machine { install: Install::Forbidden, ..machine(&[]) };
        assert_eq!(plan(&forbidden), Plan::Nothing);
    }

    #[test]
    fn missing_debian_packages_are_installed_together_and_before_npm_packages() {
        let steps = vec![
            Step::Debian {
                packages: vec!["zsh", "fonts-x"],
                why: vec!["the completion test", "the screenshot test"],
                update_first: false,
            },
            Step::Npm { package: "json-rpc-2.0", version: "1.8.1", parts: Parts::All, why: "the peer test" },
        ];
        assert_eq!(plan(&machine(&[ZSH, RPC, FONT])), Plan::Install(steps));
    }

    #[test]
    fn a_fresh_container_gets_its_package_lists_first() {
        let machine = Machine { lists: Lists::Empty, ..machine(&[ZSH]) };
        let Plan::Install(steps) = plan(&machine) else { panic!("nothing planned") };
        assert!(matches!(steps[..], [Step::Debian { update_first: true, .. }]));
    }

    #[test]
    fn an_npm_package_needs_neither_root_nor_apt() {
        for debian in [Debian::NoApt, Debian::NoRights] {
            let machine = Machine { debian, ..machine(&[RPC]) };
            assert!(matches!(plan(&machine), Plan::Install(_)), "{debian:?}");
        }
    }

    #[test]
    fn without_rights_the_message_names_package_test_and_command() {
        let machine = Machine { debian: Debian::NoRights, ..machine(&[ZSH, RPC]) };
        let Plan::Refuse { message } = plan(&machine) else { panic!("not refused") };
        let expected = "the tests need what this machine lacks, and installing needs root or a sudo that asks \
             no password:\n  Debian package zsh: needed by the completion test\n  npm package json-rpc-2.0@1.8.1: \
             needed by the peer test\ntype:\n  sudo apt-get install -y --no-install-recommends zsh\n  env -u \
             OUTRIGGER_NO_INSTALL cargo xtask needs";
        assert_eq!(message, expected);
    }

    #[test]
    fn a_run_that_may_not_install_never_does() {
        let machine = Machine { install: Install::Forbidden, ..machine(&[RPC]) };
        let Plan::Refuse { message } = plan(&machine) else { panic!("not refused") };
        assert!(message.contains("OUTRIGGER_NO_INSTALL forbids"), "{message}");
    }

    #[test]
    fn commands_are_pinned_and_ask_nothing() {
        let lines = [
            apt_install(Debian::Root, &["zsh"]),
            apt_install(Debian::Sudo, &["zsh"]),
            npm_install(Path::new("/c/x"), "json-rpc-2.0", "1.8.1", Parts::All),
            npm_install(Path::new("/c/x"), "@a/b", "2.0.0", Parts::Required),
            pip_install(Path::new("/c/x"), &MESH),
            python_proof(Path::new("/c/x"), &MESH),
        ];
        let expected = [
            "DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o \
             DPkg::Lock::Timeout=120 zsh",
            "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -o \
             DPkg::Lock::Timeout=120 zsh",
            "npm install --no-audit --no-fund --loglevel=error --prefix /c/x --ignore-scripts json-rpc-2.0@1.8.1",
            "npm install --no-audit --no-fund --loglevel=error --prefix /c/x --ignore-scripts --omit=optional @a/b@2.0.0",
            "python3 -m pip install --quiet --no-input --disable-pip-version-check --no-deps --only-binary=:all: \
             --target /c/x lxmf==1.2.1 rns==1.5.7",
            "PYTHONPATH=/c/x python3 -B -c 'import LXMF'",
        ];
        assert_eq!(lines.map(|line| line.to_string()), expected);
    }

    #[test]
    fn tests_find_npm_packages_through_the_environment() {
        let scoped = npm("@openai/codex", "1.0.0", Parts::Required, "x");
        let expected = [
            ("OUTRIGGER_NPM_JSON_RPC_2_0".to_owned(), "/c/npm/json-rpc-2.0@1.8.1".to_owned()),
            ("OUTRIGGER_NPM_OPENAI_CODEX".to_owned(), "/c/npm/@openai/codex@1.0.0".to_owned()),
        ];
        assert_eq!(environment(&[ZSH, RPC, scoped], Path::new("/c")), expected);
    }

    #[test]
    fn tests_find_python_packages_through_the_environment() {
        let expected = [("OUTRIGGER_PY_LXMF".to_owned(), "/c/python/lxmf@1.2.1".to_owned())];
        assert_eq!(environment(&[ZSH, python(MESH, "x")], Path::new("/c")), expected);
    }

    #[test]
    fn python_packages_need_no_root_and_a_refusal_names_them_all() {
        let mesh = python(MESH, "the mesh test");
        let missing = Machine { debian: Debian::NoRights, ..machine(&[mesh]) };
        let steps = vec![Step::Python { packages: MESH, why: "the mesh test" }];
        assert_eq!(plan(&missing), Plan::Install(steps));
        let forbidden = Machine { install: Install::Forbidden, ..machine(&[mesh]) };
        let Plan::Refuse { message } = plan(&forbidden) else { panic!("not refused") };
        assert!(
            message.contains("Python packages lxmf==1.2.1 rns==1.5.7: needed by the mesh test"),
            "{message}"
        );
    }
}
