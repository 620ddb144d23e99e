//! `run_script`: a program of the model in a mustard sidecar. The script can do nothing by itself; its host calls are calls of
//! the other tools, each judged like a call of the model.

mod process;
mod run;
mod value;

use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outrigger_supervise::driver::Supervisor;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use self::process::Process;
use super::arguments::Arguments;
use super::tool::{Mode, Place, Tool, Turns};
use crate::chat::{BoxFuture, ToolResult, ToolSpec};

/// The longest script, in characters.
const MAX_CODE: usize = 200_000;

/// How long a script may take with all its calls.
const WITHIN: Duration = Duration::from_secs(600);

/// Processes that are kept for the next script.
const KEPT: usize = 2;

/// The sidecars that run scripts: started when a script comes, kept for the next one.
pub(super) struct Scripts {
    supervisor: Supervisor,
    command: Vec<OsString>,
    idle: Mutex<Vec<Process>>,
}

impl Scripts {
    /// Scripts run by this command, whose first word is the program.
    pub(super) fn new(supervisor: Supervisor, command: Vec<OsString>) -> Self {
        Self { supervisor, command, idle: Mutex::new(Vec::new()) }
    }

    /// A process that is nobody else's.
    async fn take(&self) -> Result<Process, String> {
        loop {
            let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match kept {
                Some(process) if process.is_alive() => return Ok(process),
                Some(_) => {}
                None => return Process::start(&self.supervisor, &self.command).await,
            }
        }
    }

    fn keep(&self, process: Process) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < KEPT {
            idle.push(process);
        }
    }
}

impl fmt::Debug for Scripts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scripts").field("command", &self.command).finish_non_exhaustive()
    }
}

/// The tool.
pub(super) struct RunScript {
    spec: ToolSpec,
    scripts: Arc<Scripts>,
}

impl RunScript {
    pub(super) fn new(scripts: Arc<Scripts>) -> Self {
        let parameters = json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "minLength": 1, "maxLength": MAX_CODE, "description": "The program. Its value is what it returns, or that of its last expression."},
                "inputs": {"type": "object", "description": "Values that the program sees as global names."},
            },
            "required": ["code"],
            "additionalProperties": false,
        });
        let description = "Runs a JavaScript program in a sandbox, to call many tools, loop over what they answer and keep only what \
                           matters. The other tools are global functions of the same names that take one object and return the \
                           tool's data: `const page = await read_file({path: 'a.txt'}); return page.text.length`. A tool that fails \
                           throws. Calls in Promise.all run side by side. There are no modules, no files and no network but the tools; \
                           console.log is shown with the result.";
        Self { spec: super::toolbox::spec("run_script", description, &parameters), scripts }
    }
}

impl Tool for RunScript {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn mode(&self) -> Mode {
        Mode::Other
    }

    fn turns(&self) -> Turns {
        Turns::Alone
    }

    fn invoke<'a>(&'a self, arguments: &'a RawValue, at: &'a Place) -> BoxFuture<'a, ToolResult> {
        Box::pin(async move {
            let arguments = match Arguments::read(&self.spec, arguments) {
                Ok(arguments) => arguments,
                Err(refused) => return refused,
            };
            match tokio::time::timeout(WITHIN, self.run(&arguments, at)).await {
                Ok(Ok(result)) => result,
                Ok(Err(problem)) => ToolResult::failure(problem),
                Err(_) => ToolResult::failure(format!("the script took longer than {} s", WITHIN.as_secs())),
            }
        })
    }
}

impl RunScript {
    async fn run(&self, arguments: &Arguments, at: &Place) -> Result<ToolResult, String> {
        // A process that is dropped in the middle is killed: it is given back only after its last answer was read.
        let mut process = self.scripts.take().await?;
        let nothing = Map::new();
        let inputs = arguments.object("inputs").unwrap_or(&nothing);
        let ended = run::run(&mut process, arguments.string("code"), inputs, &*at.dispatch).await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(problem) => return Err(process.last_words(&problem).await),
        };
        self.scripts.keep(process);
        let run::Ended { value, log } = ended;
        let mut result = match value {
            Ok(value) => {
                let mut data = Map::new();
                data.insert("value".into(), value);
                ToolResult::success(data)
            }
            Err(error) => ToolResult::failure(error),
        };
        if !log.is_empty() {
            result = result.with("log", Value::String(log));
        }
        Ok(result)
    }
}
