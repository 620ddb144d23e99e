//! Which program an extension is. Nothing of the host's own environment takes part in the answer.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::Access;

use super::finding::{Finding, code, quoted};
use super::model::{Manifest, RuntimeMode};
use super::rules::climbs_out;
use super::tree::hash_file;
use crate::config::{ApprovedProgram, HostPolicy};
use crate::protocol::{Profile, TrustLevel};

/// What would be started, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) program: PathBuf,
    pub(super) cwd: PathBuf,
}

const COMMAND: &str = "/entrypoint/command";
const FOLDER: &str = "/entrypoint/workingDirectory";

/// Finds the program and the folder. `dir` is the extension's folder without any links in it.
pub(super) fn resolve(
    dir: &Path,
    manifest: &Manifest,
    trust: TrustLevel,
    policy: &HostPolicy,
) -> Result<Resolved, Vec<Finding>> {
    let program = match manifest.profile {
        Profile::Desktop => desktop(dir, &manifest.entrypoint.command, trust, policy),
        Profile::Android => android(manifest, policy),
    };
    match (program, folder(dir, &manifest.entrypoint.working_directory)) {
        (Ok(program), Ok(cwd)) => Ok(Resolved { program, cwd }),
        (program, cwd) => Err([program.err(), cwd.err()].into_iter().flatten().collect()),
    }
}

fn desktop(dir: &Path, command: &str, trust: TrustLevel, policy: &HostPolicy) -> Result<PathBuf, Finding> {
    let as_path = Path::new(command);
    if as_path.is_absolute() {
        let listed = policy.approved_programs.iter().find(|one| one.path == as_path);
        let Some(listed) = listed else {
            let message =
                format!("{} is outside the extension, and the policy does not approve it", quoted(command));
            return Err(Finding::error(code::CMD_ESCAPE, COMMAND, message).suggest(
                "name something inside the extension, or have the operator list it in `approved_programs`",
            ));
        };
        return approved(listed).map_err(|(code, why)| Finding::block(code, COMMAND, why));
    }
    match command.contains('/') {
        true => inside(dir, as_path),
        false => runtime(command, trust, policy),
    }
}

fn inside(dir: &Path, command: &Path) -> Result<PathBuf, Finding> {
    let missing = |why: &str| {
        Finding::block(code::CMD_MISSING, COMMAND, format!("{} {why}", quoted(&command.to_string_lossy())))
    };
    let real = dir.join(command).canonicalize();
    let escapes = real.as_ref().map_or_else(|_| climbs_out(command), |real| !real.starts_with(dir));
    if escapes {
        let message = format!("{} leads out of the extension", quoted(&command.to_string_lossy()));
        return Err(Finding::error(code::CMD_ESCAPE, COMMAND, message));
    }
    match real {
        Ok(real) if !real.is_file() => Err(missing("is not a file")),
        Ok(real) if !executable(&real) => {
            Err(missing("may not be executed").suggest("make it executable (chmod +x)"))
        }
        Ok(real) => Ok(real),
        Err(error) => Err(missing(&format!("cannot be found: {error}"))),
    }
}

fn runtime(name: &str, trust: TrustLevel, policy: &HostPolicy) -> Result<PathBuf, Finding> {
    let listed = policy.untrusted_runtimes.iter().any(|one| one == name);
    if trust == TrustLevel::UntrustedLocal && !listed {
        let message = format!("an untrusted extension may not run {}", quoted(name));
        return Err(Finding::block(code::CMD_MISSING, COMMAND, message)
            .suggest(format!("it may run: {}", policy.untrusted_runtimes.join(", "))));
    }
    on_path(name, policy).ok_or_else(|| {
        let message = format!("there is no program {} in {}", quoted(name), policy.runtime_path);
        Finding::block(code::CMD_MISSING, COMMAND, message)
            .suggest(format!("install it, or name a file in the extension as `./{name}`"))
    })
}

fn on_path(name: &str, policy: &HostPolicy) -> Option<PathBuf> {
    let candidates = policy.runtime_path.split(':').filter(|folder| folder.starts_with('/'));
    candidates.map(|folder| Path::new(folder).join(name)).find(|path| path.is_file() && executable(path))
}

/// On a phone there is only what is packaged with the host, and what the operator approved down to the last byte.
fn android(manifest: &Manifest, policy: &HostPolicy) -> Result<PathBuf, Finding> {
    let command = &manifest.entrypoint.command;
    let unavailable = |path: &str, why: String| Finding::block(code::RUNTIME, path, why);
    let mode = manifest.android.map_or(RuntimeMode::PackagedModule, |android| android.runtime);
    match mode {
        RuntimeMode::PackagedModule => {
            let packaged = &policy.android.packaged_runtime;
            if command != packaged {
                let why = format!("{} is not the packaged runtime `{packaged}`", quoted(command));
                return Err(unavailable(COMMAND, why));
            }
            let module = manifest.entrypoint.args.first().map_or("", String::as_str);
            if !policy.android.packaged_modules.iter().any(|known| known == module) {
                let why = format!("there is no packaged module {}", quoted(module));
                return Err(unavailable("/entrypoint/args/0", why));
            }
            on_path(command, policy)
                .ok_or_else(|| unavailable(COMMAND, "the packaged runtime is not installed".to_owned()))
        }
        RuntimeMode::ApprovedRuntime => {
            let listed = policy.android.approved_runtimes.iter().find(|one| one.path == Path::new(command));
            let Some(listed) = listed else {
                return Err(unavailable(COMMAND, format!("{} is not an approved runtime", quoted(command))));
            };
            approved(listed).map_err(|(code, why)| match code {
                code::TAMPERED => Finding::block(code, COMMAND, why),
                _ => unavailable(COMMAND, why),
            })
        }
    }
}

/// A program that the operator listed, if it is there and is what they listed.
fn approved(listed: &ApprovedProgram) -> Result<PathBuf, (&'static str, String)> {
    const MAX_BYTES: u64 = 4 << 30;
    let path = &listed.path;
    if !path.is_file() || !executable(path) {
        return Err((code::CMD_MISSING, format!("{} is not a program", path.display())));
    }
    let Some(expected) = listed.sha256 else { return Ok(path.clone()) };
    let read = fs::File::open(path).and_then(|file| hash_file(file, MAX_BYTES));
    match read {
        Ok((_, content)) if content == expected => Ok(path.clone()),
        Ok((_, content)) => {
            Err((code::TAMPERED, format!("{} is not what was approved: it is {content}", path.display())))
        }
        Err(error) => Err((code::CMD_MISSING, format!("{} cannot be read: {error}", path.display()))),
    }
}

fn folder(dir: &Path, wanted: &str) -> Result<PathBuf, Finding> {
    let real = dir.join(wanted).canonicalize();
    let escapes = real.as_ref().map_or_else(|_| climbs_out(Path::new(wanted)), |real| !real.starts_with(dir));
    if escapes {
        let message = format!("{} leads out of the extension", quoted(wanted));
        return Err(Finding::error(code::CMD_ESCAPE, FOLDER, message));
    }
    match real {
        Ok(real) if real.is_dir() => Ok(real),
        _ => Err(Finding::block(code::CMD_MISSING, FOLDER, format!("there is no folder {}", quoted(wanted)))),
    }
}

fn executable(path: &Path) -> bool {
    rustix::fs::access(path, Access::EXEC_OK).is_ok()
}
