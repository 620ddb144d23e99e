//! The engine's image, made when this crate was built: with it a sidecar is ready without parsing or running anything.
//!
//! Its instructions are a table that the compiler makes, so they lie in the executable as the interpreter wants them: nothing
//! is copied, and what no script uses is never even read from the disk.

use outrigger_vm::code::{Op, packed_length, unpack};
use outrigger_vm::exec::{ImageError, install_image};
use std::sync::OnceLock;

const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/engine.code"));

static CODE: [Op; packed_length(PACKED)] = unpack(PACKED);

static TABLES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/engine.tables"));

/// Gives the engine of this process its image. The first call does; the others answer the same. If it fails the engine makes an
/// image of its own, which takes a few milliseconds and changes nothing else.
pub fn install() -> Result<(), ImageError> {
    static INSTALLED: OnceLock<Result<(), ImageError>> = OnceLock::new();
    *INSTALLED.get_or_init(|| install_image(&CODE, TABLES))
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_vm::code::WINDOW;
    use outrigger_vm::exec::prebuild;

    /// The build script was compiled with other optimisations, and ran in another process.
    #[test]
    fn the_image_of_the_build_is_the_one_that_this_program_would_make() {
        let ours = prebuild().expect("the engine works");
        assert!(ours.code == PACKED, "the instructions differ");
        assert!(ours.tables == TABLES, "the tables differ");
        assert_eq!(CODE.len(), PACKED.len() / 8 + WINDOW);
    }
}
