//! Writes the folder of an extension: its manifest, and its program if it brings one.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use serde_json::{Value, json};

use super::fault;
use crate::protocol::{ExtensionId, Permission, Slot, TrustLevel, V1_0, Version};

/// Which of the extensions that ship.
#[derive(Clone, Debug)]
pub enum Kind {
    /// The one that answers messages.
    Autoreply,
    /// The one that answers messages, in Python: to be read and changed.
    AutoreplyPython,
    /// The one that misbehaves, with this script.
    Fault(Vec<fault::Step>),
}

/// Everything that the manifest of an extension says, to be changed before it is written.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Who it is; also the name of the folder.
    pub id: ExtensionId,
    /// What people call it.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Its version.
    pub version: String,
    /// The lowest protocol it can work with.
    pub api_version: Version,
    /// How far it wants to be trusted.
    pub trust: TrustLevel,
    /// What it wants to be allowed to do.
    pub permissions: Vec<Permission>,
    /// What it wants to hear about.
    pub events: Vec<String>,
    /// From start to ready, in milliseconds.
    pub startup_ms: u32,
    /// How often it is asked how it is, in milliseconds.
    pub heartbeat_ms: u32,
    /// How often in a row it may fail to answer.
    pub missed: u32,
    /// The longest frame, requests a second, requests at the same time.
    pub limits: (u32, u32, u32),
    /// The panels that are there before it runs: id, title, slot.
    pub panels: Vec<(String, String, Slot)>,
    /// Arguments after those that the program needs to be this extension.
    pub args: Vec<String>,
    /// Files beside the manifest: name and text.
    pub files: Vec<(&'static str, &'static str)>,
}

/// The program that an extension runs.
#[derive(Clone, Copy, Debug)]
pub enum Program<'a> {
    /// A file that is put into the folder, and the arguments that make it the extension.
    Own {
        /// The file. It is linked if that can be done, and copied otherwise.
        file: &'a Path,
        /// The arguments.
        args: &'a [&'a str],
    },
    /// A command as the manifest says it, and the arguments that make it the extension. Nothing is put into the folder.
    Command {
        /// The command.
        command: &'a str,
        /// The arguments.
        args: &'a [&'a str],
    },
}

impl Program<'static> {
    /// The interpreter for a `main.py` in the folder. It must not write there: what is in the folder is what was approved.
    pub const PYTHON: Self = Self::Command { command: "python3", args: &["-B", "main.py"] };
}

/// The kit and the program, beside each other.
const PYTHON_FILES: [(&str, &str); 2] = [
    ("main.py", include_str!("../../../../sdk/python/examples/sep_autoreply/main.py")),
    ("outrigger_sep.py", include_str!("../../../../sdk/python/outrigger_sep.py")),
];

/// Why the folder could not be written.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// There is one already.
    #[error("`{0}` is there already")]
    Exists(PathBuf),
    /// Something could not be written.
    #[error("failed to write `{path}`: {error}")]
    Write {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Writes the folder of one of the extensions that ship into `root`, and says where it is.
pub fn install(kind: &Kind, root: &Path, program: Program<'_>) -> Result<PathBuf, InstallError> {
    Draft::new(kind).install(root, program)
}

/// The name of the program in the folder.
const PROGRAM: &str = "extension";

impl Draft {
    /// The manifest of one of the extensions that ship.
    #[must_use]
    pub fn new(kind: &Kind) -> Self {
        match kind {
            Kind::Autoreply => Self::autoreply(),
            Kind::AutoreplyPython => Self::autoreply_python(),
            Kind::Fault(script) => Self::fault("org.outrigger.fault", script),
        }
    }

    /// The extension that answers messages.
    #[must_use]
    pub fn autoreply() -> Self {
        let base = Self::bare("org.outrigger.autoreply");
        Self {
            name: "Auto-reply".to_owned(),
            description: "Answers messages while you are away, and counts them.".to_owned(),
            permissions: Permission::ALL.to_vec(),
            events: ["message.received", "contact.changed", "peer.online"].map(str::to_owned).to_vec(),
            panels: vec![("stats".to_owned(), "Auto-reply".to_owned(), Slot::Primary)],
            ..base
        }
    }

    /// The extension that answers messages, in Python. Its program is [`Program::PYTHON`].
    #[must_use]
    pub fn autoreply_python() -> Self {
        let base = Self::autoreply();
        let id = Self::bare("org.outrigger.autoreply-python").id;
        Self { id, name: "Auto-reply (Python)".to_owned(), files: PYTHON_FILES.to_vec(), ..base }
    }

    /// The extension that misbehaves, under this id and with this script.
    ///
    /// # Panics
    /// When the id is not one.
    #[must_use]
    pub fn fault(id: &str, script: &[fault::Step]) -> Self {
        let base = Self::bare(id);
        Self {
            name: "Fault".to_owned(),
            description: "Misbehaves as its script says, to show that a host is not impressed.".to_owned(),
            permissions: Permission::ALL.to_vec(),
            events: ["message.received", "message.sent", "peer.online"].map(str::to_owned).to_vec(),
            args: vec![fault::argument(script)],
            ..base
        }
    }

    /// An extension that wants nothing.
    ///
    /// # Panics
    /// When the id is not one.
    #[must_use]
    pub fn bare(id: &str) -> Self {
        Self {
            id: ExtensionId::new(id).unwrap_or_else(|bad| panic!("{bad}")),
            name: id.to_owned(),
            description: String::new(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            api_version: V1_0,
            trust: TrustLevel::TrustedThirdParty,
            permissions: Vec::new(),
            events: Vec::new(),
            startup_ms: 10_000,
            heartbeat_ms: 5_000,
            missed: 3,
            limits: (64 * 1024, 100, 8),
            panels: Vec::new(),
            args: Vec::new(),
            files: Vec::new(),
        }
    }

    /// The manifest, as JSON.
    #[must_use]
    pub fn manifest(&self, program: Program<'_>) -> Value {
        let (command, args) = match program {
            Program::Own { args, .. } => (format!("./{PROGRAM}"), args),
            Program::Command { command, args } => (command.to_owned(), args),
        };
        let args: Vec<&str> = args.iter().copied().chain(self.args.iter().map(String::as_str)).collect();
        let panels: Vec<Value> = self
            .panels
            .iter()
            .map(|(id, title, slot)| json!({"id": id, "title": title, "slot": slot}))
            .collect();
        let (max_request_bytes, per_second, at_once) = self.limits;
        json!({
            "schemaVersion": "1.0.0",
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "version": self.version,
            "apiVersion": self.api_version,
            "trustLevel": self.trust,
            "entrypoint": {"command": command, "args": args},
            "permissions": self.permissions,
            "events": {"subscribe": self.events},
            "health": {
                "startupTimeoutMs": self.startup_ms,
                "heartbeatIntervalMs": self.heartbeat_ms,
                "unhealthyAfterMissedHeartbeats": self.missed,
            },
            "limits": {
                "maxRequestBytes": max_request_bytes,
                "maxRequestsPerSecond": per_second,
                "maxConcurrentRequests": at_once,
            },
            "ui": {"toolPanels": panels},
        })
    }

    /// Writes the folder into `root`, and says where it is. Nobody but its owner may write to anything in it.
    pub fn install(&self, root: &Path, program: Program<'_>) -> Result<PathBuf, InstallError> {
        let folder = root.join(self.id.as_str());
        match fs::create_dir(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(InstallError::Exists(folder));
            }
            Err(error) => return Err(InstallError::Write { path: folder, error }),
        }
        let owner_only = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        at(&folder, owner_only(&folder, 0o755))?;
        if let Program::Own { file, .. } = program {
            let inside = folder.join(PROGRAM);
            if fs::hard_link(file, &inside).is_err() {
                at(&inside, fs::copy(file, &inside).and_then(|_| owner_only(&inside, 0o755)))?;
            }
        }
        for (name, text) in &self.files {
            let path = folder.join(name);
            at(&path, fs::write(&path, text).and_then(|()| owner_only(&path, 0o644)))?;
        }
        let path = folder.join("sep_manifest.json");
        let text = format!("{:#}\n", self.manifest(program));
        at(&path, fs::write(&path, text).and_then(|()| owner_only(&path, 0o644)))?;
        Ok(folder)
    }
}

fn at(path: &Path, written: io::Result<()>) -> Result<(), InstallError> {
    written.map_err(|error| InstallError::Write { path: path.to_owned(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_has_a_manifest_and_a_program_and_is_not_written_twice() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join("program");
        fs::write(&file, "#!/bin/true\n").expect("room");
        let program = Program::Own { file: &file, args: &["__extension", "autoreply"] };
        let folder = install(&Kind::Autoreply, root.path(), program).expect("written");
        assert_eq!(folder, root.path().join("org.outrigger.autoreply"));
        assert!(folder.join("extension").is_file());
        let manifest: Value =
            serde_json::from_slice(&fs::read(folder.join("sep_manifest.json")).expect("there"))
                .expect("JSON");
        assert_eq!(
            manifest["entrypoint"],
            json!({"command": "./extension", "args": ["__extension", "autoreply"]})
        );
        assert_eq!(manifest["permissions"].as_array().map(Vec::len), Some(6));
        assert!(matches!(
            install(&Kind::Autoreply, root.path(), program),
            Err(InstallError::Exists(there)) if there == folder
        ));
    }

    #[test]
    fn the_folder_for_python_is_the_example_with_its_kit() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = install(&Kind::AutoreplyPython, root.path(), Program::PYTHON).expect("written");
        assert!(folder.join("outrigger_sep.py").is_file());
        let read = |path: PathBuf| -> Value {
            serde_json::from_slice(&fs::read(path).expect("there")).expect("JSON")
        };
        let mut shipped = read(
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .join("../../sdk/python/examples/sep_autoreply/sep_manifest.json"),
        );
        let mut written = read(folder.join("sep_manifest.json"));
        for manifest in [&mut shipped, &mut written] {
            // Python starts more slowly; the order of permissions means nothing.
            manifest["health"]["startupTimeoutMs"] = Value::Null;
            let permissions = manifest["permissions"].as_array_mut().expect("a list");
            permissions.sort_by_key(Value::to_string);
        }
        assert_eq!(written, shipped);
    }

    #[test]
    fn a_script_travels_as_the_last_argument() {
        let script = [fault::Step::Exit { code: 3 }];
        let draft = Draft::new(&Kind::Fault(script.to_vec()));
        let manifest = draft.manifest(Program::Command { command: "python3", args: &["main.py"] });
        assert_eq!(manifest["entrypoint"]["args"], json!(["main.py", r#"[{"do":"exit","code":3}]"#]));
    }
}
