//! What crosses between guest and host, and on whose terms.
//!
//! # Theory of operation
//!
//! Guest and host share no memory. What one gives the other is a [`Plain`] value: undefined, null, booleans, numbers,
//! text, and arrays and objects of them. [`Vm::export`] makes one of a guest's value and [`Vm::import`] a guest's value of
//! one. Both walk with a stack of their own, pay before they work (an instruction per node and per 256 bytes of text; an
//! import also pays for its memory) and run no guest code: a getter is refused, not called.
//!
//! A machine waits for any number of [`HostCall`](crate::exec::HostCall)s at once: [`Vm::outstanding`] lists them,
//! [`Vm::answer`] settles one, in any order, and [`Vm::run`] goes on with what can go on. [`Vm::capabilities`] says which
//! functions of the host a machine still holds and [`Vm::set_limits`] puts it under other limits: with both, a host asserts
//! its policy on a machine that comes back, whether from bytes or from a shelf.
//!
//! * `plain` the values · `export`, `read` out of the heap · `import`, `build` into it · `purse` what it costs
//! * `calls` outstanding calls and their answers · `arguments` what they are given · `authority` capabilities and limits
//!
//! ```
//! use outrigger_vm::boundary::Plain;
//! use outrigger_vm::exec::{Limits, Step, Vm};
//!
//! let heap = outrigger_vm::heap::Limits { bytes: 8 << 20, records: 1 << 18 };
//! let limits = Limits { instructions: 1_000_000, call_depth: 256, host_calls: 16, heap };
//! let mut vm = Vm::new(limits, &["price"])?;
//! vm.convert_arguments();
//! vm.load("const [a, b] = await Promise.all([price('tea'), price('cake')]); ({ sum: a + b })")?;
//! assert!(matches!(vm.run(), Step::Suspended(_)));
//! let waiting: Vec<u64> = vm.outstanding().map(|call| call.id).collect();
//! assert_eq!(waiting, [1, 2]);
//! assert_eq!(vm.arguments(2)?, [Plain::String("cake".into())]);
//! for (id, price) in [(2, 3.5), (1, 2.0)] {
//!     let price = vm.import(&Plain::Number(price))?;
//!     vm.answer(id, Ok(price))?;
//! }
//! let Step::Completed(sum) = vm.run() else { panic!("both prices are known") };
//! assert_eq!(vm.export(sum)?, Plain::Object(vec![("sum".into(), Plain::Number(5.5))]));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Vm::export`]: crate::exec::Vm::export
//! [`Vm::import`]: crate::exec::Vm::import
//! [`Vm::outstanding`]: crate::exec::Vm::outstanding
//! [`Vm::answer`]: crate::exec::Vm::answer
//! [`Vm::run`]: crate::exec::Vm::run
//! [`Vm::capabilities`]: crate::exec::Vm::capabilities
//! [`Vm::set_limits`]: crate::exec::Vm::set_limits

mod arguments;
mod authority;
mod build;
mod calls;
mod export;
mod import;
mod plain;
mod purse;
mod read;

pub use calls::{ArgumentsError, UnknownCall};
pub use export::BoundaryError;
pub use import::ImportError;
pub use plain::Plain;

/// How many arrays and objects may be inside each other.
pub const NESTING: usize = 128;
