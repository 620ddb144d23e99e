//! Numbers: how they print, how they are read, how they convert, and the arithmetic that Rust spells differently.
//!
//! - [`mod@print`]: `Number::toString`, also in other radices
//! - [`digits`]: `toFixed`, `toExponential`, `toPrecision`
//! - [`read`]: `StringToNumber`, `parseInt`, `parseFloat`, numeric literals
//! - [`convert`]: `ToInt32` and its family
//! - [`math`]: `%`, `**` and the functions of `Math`

pub mod convert;
pub mod digits;
pub mod math;
pub mod print;
pub mod read;
