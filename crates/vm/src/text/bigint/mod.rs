//! BigInt: reading, printing, arithmetic whose size is known before the work, and exact meetings with doubles.
//!
//! - [`read`] and [`print()`]: text
//! - [`arithmetic`]: operators that can grow, refused above [`MAX_BITS`] before anything is computed
//! - [`double`]: conversion to and from doubles, comparison with them
//!
//! Costs: addition and bit operations are linear in the longer operand, multiplication and division are charged as
//! the product of the lengths, radix conversion as the square of the length. The factors were measured between one
//! thousand and a hundred thousand digits; past that the library's better algorithms make them generous.

pub mod arithmetic;
pub mod double;
mod text;

pub use num_bigint::{BigInt, Sign};
pub use text::{print, print_cost, read, read_cost, read_literal};

/// The longest BigInt, in bits; the same as V8's on 64-bit machines.
pub const MAX_BITS: u64 = 1 << 30;

/// How many 64-bit limbs a value has.
pub fn limbs(value: &BigInt) -> u64 {
    value.bits().div_ceil(64)
}
