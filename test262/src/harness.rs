//! The scripts that every test needs before itself: assertions, and whatever its front matter includes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::meta::Meta;

/// The part of the suite's host object that the language itself can play: ECMAScript 2024 detaches what it transfers.
const DETACH: &str =
    "var $262 = { detachArrayBuffer(buffer) { if (!buffer.detached) buffer.transfer(); } };\n";

/// Lists expressions as text.
const INTRINSICS: &str = "wellKnownIntrinsicObjects.js";

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
    (INTRINSICS, "new Function(\"return \" + wkio.source)()", "wkio.make()"),
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
            let text = std::fs::read_to_string(self.folder.join(name))
                .with_context(|| format!("reading harness/{name}"))?;
            self.files.insert(name.to_owned(), written_out(name, text));
        }
        Ok(&self.files[name])
    }
}

/// A file of the harness, with what it would make from text as code.
fn written_out(name: &str, mut text: String) -> String {
    for (_, from, to) in WRITTEN_OUT.iter().filter(|(file, ..)| *file == name) {
        text = text.replace(from, to);
    }
    if name != INTRINSICS {
        return text;
    }
    let line = |line: &str| match line.trim().strip_prefix("source: ").and_then(quoted) {
        Some(expression) => format!("{line} make: () => ({expression}),\n"),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// What stands between quotes, if there is anything and it says what it means without escapes.
fn quoted(text: &str) -> Option<&str> {
    let text = text.strip_suffix(',')?;
    let inner = ['"', '\''].iter().find_map(|&quote| text.strip_prefix(quote)?.strip_suffix(quote))?;
    (!inner.is_empty() && !inner.contains('\\')).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_in_text_become_code() {
        let text = "{\n  source: 'f(\"a\")',\n},{\n  source: '',\n}\nmake(new Function(\"return \" + wkio.source)());\n";
        let out =
            "{\n  source: 'f(\"a\")', make: () => (f(\"a\")),\n},{\n  source: '',\n}\nmake(wkio.make());\n";
        assert_eq!(written_out(INTRINSICS, text.to_owned()), out);
        assert_eq!(written_out("assert.js", text.to_owned()), text);
    }
}
