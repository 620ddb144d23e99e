//! The scripts that every test needs before itself: assertions, and whatever its front matter includes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::meta::Meta;

/// The part of the suite's host object that the language itself can play: ECMAScript 2024 detaches what it transfers.
const DETACH: &str =
    "var $262 = { detachArrayBuffer(buffer) { if (!buffer.detached) buffer.transfer(); } };\n";

/// Where the harness makes code from text, which is refused here: the file, the text, and the same written out.
const WRITTEN_OUT: &[(&str, &str, &str)] = &[
    ("fnGlobalObject.js", "Function(\"return this;\")()", "globalThis"),
    (
        "resizableArrayBufferUtils.js",
        "new Function('return class My' + type + ' extends ' + type + ' {}')()",
        "{ Uint8Array: class MyUint8Array extends Uint8Array {}, \
           Float32Array: class MyFloat32Array extends Float32Array {}, \
           BigInt64Array: class MyBigInt64Array extends BigInt64Array {} }[type]",
    ),
];

/// The folder `harness/` of a checkout; each file is read once.
pub(crate) struct Harness {
    folder: PathBuf,
    files: BTreeMap<String, String>,
}

impl Harness {
    pub(crate) fn of(checkout: &Path) -> Self {
        Self { folder: checkout.join("harness"), files: BTreeMap::new() }
    }

    /// Everything that runs before the test, in order, as one script.
    pub(crate) fn before(&mut self, meta: &Meta) -> Result<String> {
        let done = meta.has_flag("async").then_some("doneprintHandle.js");
        let own = ["assert.js", "sta.js"].into_iter().chain(done);
        let detaches = meta.includes.iter().any(|name| name == "detachArrayBuffer.js");
        let mut script = String::from(if detaches { DETACH } else { "" });
        for name in own.chain(meta.includes.iter().map(String::as_str)) {
            script.push_str(self.file(name)?);
            script.push('\n');
        }
        Ok(script)
    }

    fn file(&mut self, name: &str) -> Result<&str> {
        if !self.files.contains_key(name) {
            let mut text = std::fs::read_to_string(self.folder.join(name))
                .with_context(|| format!("reading harness/{name}"))?;
            for (_, from, to) in WRITTEN_OUT.iter().filter(|(file, ..)| *file == name) {
                text = text.replace(from, to);
            }
            self.files.insert(name.to_owned(), text);
        }
        Ok(&self.files[name])
    }
}
