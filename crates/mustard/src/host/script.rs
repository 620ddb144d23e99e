//! A script: compiled once, its bytes kept, run many times in any child.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::outcome::CompileError;
use super::sidecar::{Program, Sidecar, SidecarError, TopLevelReturn};

/// A compiled script. Cheap to clone.
#[derive(Clone)]
pub struct Script {
    inner: Arc<Inner>,
}

struct Inner {
    source: String,
    end: TopLevelReturn,
    /// Replaced when a child of another engine has to compile it again.
    program: Mutex<Arc<Program>>,
}

impl Script {
    /// The text.
    pub fn source(&self) -> &str {
        &self.inner.source
    }

    /// The program that it became.
    pub fn program(&self) -> Arc<Program> {
        Arc::clone(&self.inner.program.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Compiles in this child.
    pub(super) async fn compile(
        sidecar: &mut Sidecar,
        source: String,
        end: TopLevelReturn,
    ) -> Result<Self, CompileError> {
        let program = sidecar.compile(&source, end).await.map_err(|error| match error {
            SidecarError::Refused(failure) => CompileError::Script(Box::new(failure.into())),
            other => CompileError::Sidecar(other),
        })?;
        let program = Mutex::new(Arc::new(program));
        Ok(Self { inner: Arc::new(Inner { source, end, program }) })
    }

    /// Compiles once more, in a child that cannot use the program or cannot be sent it.
    pub(super) async fn compile_again(&self, sidecar: &mut Sidecar) -> Result<Arc<Program>, SidecarError> {
        let program = Arc::new(sidecar.compile(&self.inner.source, self.inner.end).await?);
        *self.inner.program.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&program);
        Ok(program)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({})", self.program().id)
    }
}
