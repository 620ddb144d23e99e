//! One conversation: what is switched on, what is kept, and an answer to each request.

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use outrigger_vm::code::Program;
use outrigger_vm::exec::TopLevelReturn;
use outrigger_vm::snapshot::KnownPrograms;

use super::claim::unknown;
use super::keep::{Budgets, Compiled, Keep};
use super::problem::Problem;
use super::world::World;
use crate::protocol::feature::{Feature, Features, MAX_REQUEST, MAX_REQUEST_CEILING, VERSION};
use crate::protocol::ids::{Digest, ProgramId};
use crate::protocol::request::{Compile, Hello, Method, Request, RequestError, Start};
use crate::protocol::response::{Code, Greeting, Profile, Reply, Response, SidecarLimits};

/// Bytes of programs that need not be read again out of every snapshot that they are in: some thirty small ones.
const KNOWN: usize = 16 << 20;

/// What the process around a session is, for `hello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The file system layer of the box, in words.
    pub landlock: String,
    /// The system call layer of the box, in words.
    pub seccomp: String,
}

/// One conversation.
pub(super) struct Session<W> {
    pub(super) world: W,
    pub(super) features: Features,
    pub(super) kept: Keep,
    /// Programs out of snapshots that came as bytes.
    pub(super) known: KnownPrograms,
    max_request: u64,
    surroundings: Surroundings,
}

/// What came of a request, and its blob.
pub(super) struct Done {
    pub(super) reply: Reply,
    pub(super) blob: Rc<Vec<u8>>,
    pub(super) profile: Option<Profile>,
}

impl Done {
    pub(super) fn plain(reply: Reply) -> Done {
        Done { reply, blob: Rc::default(), profile: None }
    }
}

impl<W: World> Session<W> {
    pub(super) fn new(world: W, budgets: Budgets, surroundings: Surroundings) -> Session<W> {
        Session {
            world,
            features: Features::NONE,
            kept: Keep::new(budgets),
            known: KnownPrograms::within(KNOWN),
            max_request: MAX_REQUEST,
            surroundings,
        }
    }

    /// The most bytes that the next request may have.
    pub(super) fn max_request(&self) -> u64 {
        self.max_request
    }

    /// Answers a message. `Err`: it cannot be answered, and the conversation is over.
    pub(super) fn answer(
        &mut self,
        message: Result<Request<'_>, RequestError>,
    ) -> Result<(Response, Rc<Vec<u8>>), String> {
        let (id, done) = match message {
            Ok(request) => (request.id, self.guarded(request)),
            Err(error) => Problem::request(error).map(|(id, problem)| (id, Err(problem)))?,
        };
        Ok(match done {
            Ok(Done { reply, blob, profile }) => (Response { id, outcome: Ok(reply), profile }, blob),
            Err(problem) => {
                let outcome = Err(problem.failure(self.features));
                (Response { id, outcome, profile: None }, Rc::default())
            }
        })
    }

    /// A fault of the engine costs the run that met it and nobody else.
    fn guarded(&mut self, request: Request<'_>) -> Result<Done, Problem> {
        // What is kept is whole between any two calls, and a machine that is being run is not kept.
        catch_unwind(AssertUnwindSafe(|| self.fulfil(request))).unwrap_or_else(|_| Err(Problem::internal()))
    }

    fn fulfil(&mut self, Request { method, blob, .. }: Request<'_>) -> Result<Done, Problem> {
        match method {
            Method::Compile(compile) => self.compile(&compile),
            Method::Start(start) => self.start(start, &blob),
            Method::Resume(resume) => self.resume(resume, &blob),
            Method::Hello(hello) => self.hello(&hello),
            Method::Release(release) => Ok(Done::plain(Reply::Released(self.kept.release(&release)))),
            Method::Inspect(claim) => self.inspect(&claim, &blob),
        }
    }

    fn compile(&mut self, compile: &Compile<'_>) -> Result<Done, Problem> {
        let top_level_return =
            if compile.lenient_return { TopLevelReturn::Allowed } else { TopLevelReturn::Refused };
        // The rules are part of what is compiled: the same text by other rules is another program.
        let rules: &[u8] = if compile.lenient_return { b"lenient:" } else { b"strict:" };
        let source = Digest::of(&[rules, compile.source.as_bytes()].concat());
        let compiled = match self.kept.program_of(&source) {
            Some(compiled) => compiled,
            None => {
                let problem = |error| Problem::load(&error, &compile.source);
                let program = Program::compile_with(&compile.source, top_level_return).map_err(problem)?;
                let bytes = program.to_bytes().map_err(problem)?;
                let id = ProgramId::of(&bytes);
                let compiled = Compiled { id, program: Arc::new(program), bytes: Rc::new(bytes) };
                self.kept.keep_program(&compiled);
                self.kept.keep_source(source, id);
                compiled
            }
        };
        Ok(Done { reply: Reply::Program(compiled.id), blob: compiled.bytes, profile: None })
    }

    /// The program that a start is about. Bytes are always measured against the id beside them, also if the id is known.
    pub(super) fn program(&mut self, start: &Start<'_>, blob: &[u8]) -> Result<Arc<Program>, Problem> {
        if blob.is_empty() {
            let Some(claimed) = &start.program_id else {
                let message = "start requires program bytes or program_id";
                return Err(Problem::protocol(Code::MISSING, message));
            };
            let known = ProgramId::parse(claimed).and_then(|id| self.kept.program(&id));
            let send = "the program bytes";
            return known
                .map(|compiled| compiled.program)
                .ok_or_else(|| unknown(Code::UNKNOWN_PROGRAM, "program_id", claimed, send));
        }
        let id = ProgramId::of(blob);
        if start.program_id.as_deref().is_some_and(|claimed| claimed != id.hex().as_str()) {
            return Err(Problem::protocol(Code::ID_MISMATCH, "program_id did not match program bytes"));
        }
        if let Some(compiled) = self.kept.program(&id) {
            return Ok(compiled.program);
        }
        let program = Arc::new(Program::from_bytes(blob).map_err(|error| Problem::program(&error))?);
        let bytes = Rc::new(Cow::Borrowed(blob).into_owned());
        self.kept.keep_program(&Compiled { id, program: Arc::clone(&program), bytes });
        Ok(program)
    }

    fn hello(&mut self, hello: &Hello) -> Result<Done, Problem> {
        let engine = outrigger_vm::snapshot::fingerprint().map_err(|_| Problem::internal())?;
        self.features = Features::named(hello.features.iter().map(String::as_str));
        self.max_request = match hello.max_frame_bytes {
            Some(asked) => asked.min(MAX_REQUEST_CEILING),
            None => MAX_REQUEST,
        };
        let names = |features: &mut dyn Iterator<Item = Feature>| {
            features.map(|feature| feature.name().to_owned()).collect()
        };
        let Budgets { program_bytes, snapshot_bytes, policies, .. } = self.kept.budgets;
        Ok(Done::plain(Reply::Hello(Greeting {
            name: "outrigger-mustard".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            protocol_versions: vec![VERSION],
            engine: format!("{engine:016x}"),
            features: names(&mut Feature::ALL.into_iter()),
            enabled: names(&mut self.features.iter()),
            limits: SidecarLimits {
                max_frame_bytes: self.max_request,
                max_frame_bytes_ceiling: MAX_REQUEST_CEILING,
                program_cache_bytes: program_bytes as u64,
                snapshot_cache_bytes: snapshot_bytes as u64,
                policy_cache_entries: policies as u64,
            },
            landlock: self.surroundings.landlock.clone(),
            seccomp: self.surroundings.seccomp.clone(),
        })))
    }
}
