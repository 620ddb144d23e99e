//! Instructions in eight bytes each: how the image's code gets from a build script into a table of the program.
//!
//! The first byte is the instruction's number, then come its operands, low bytes first.

use super::op::{Declare, Member, Op};
use super::operands::Operands;
use super::program::WINDOW;

impl Op {
    /// The instruction in eight bytes.
    pub(crate) fn pack(mut self) -> [u8; 8] {
        let mut packer = Packer { bytes: [self.number(), 0, 0, 0, 0, 0, 0, 0], at: 1 };
        // It never stops.
        let _ = self.operands(&mut packer);
        packer.bytes
    }
}

/// How long the table of these packed instructions is, its padding included.
pub const fn packed_length(packed: &[u8]) -> usize {
    packed.len() / 8 + WINDOW
}

/// The table of these packed instructions, padded: made by the compiler, for a `static`. `N` is [`packed_length`].
pub const fn unpack<const N: usize>(packed: &[u8]) -> [Op; N] {
    let mut ops = [Op::RetUndef; N];
    let packed = packed.as_chunks::<8>().0;
    let mut at = 0;
    while at < packed.len() {
        ops[at] = match Op::unpack(packed[at]) {
            Some(op) => op,
            // Whoever makes a `static` hears of it from the compiler.
            None => panic!("these bytes are not packed instructions"),
        };
        at += 1;
    }
    ops
}

struct Packer {
    bytes: [u8; 8],
    at: usize,
}

impl Packer {
    fn put<const N: usize>(&mut self, operand: [u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(&operand);
        self.at += N;
    }
}

/// Takes the operands of an instruction one after the other.
pub(super) struct Unpacker {
    pub(super) bytes: [u8; 8],
    pub(super) at: usize,
}

impl Unpacker {
    const fn one(&mut self) -> [u8; 1] {
        self.at += 1;
        [self.bytes[self.at - 1]]
    }

    const fn two(&mut self) -> [u8; 2] {
        let ([low], [high]) = (self.one(), self.one());
        [low, high]
    }

    const fn four(&mut self) -> [u8; 4] {
        let ([a, b], [c, d]) = (self.two(), self.two());
        [a, b, c, d]
    }

    pub(super) const fn member(&mut self) -> Member {
        let [number] = self.one();
        Member::ALL[number as usize]
    }

    pub(super) const fn declare(&mut self) -> Declare {
        let [number] = self.one();
        Declare::ALL[number as usize]
    }
}

macro_rules! numbers {
    ($($type:ident $take:ident: $($kind:ident)+;)*) => {
        impl Unpacker {
            $($(pub(super) const fn $kind(&mut self) -> $type {
                $type::from_le_bytes(self.$take())
            })+)*
        }

        impl Operands for Packer {
            type Stop = std::convert::Infallible;

            $($(fn $kind(&mut self, n: &mut $type) -> Result<(), Self::Stop> {
                self.put(n.to_le_bytes());
                Ok(())
            })+)*

            fn member(&mut self, m: &mut Member) -> Result<(), Self::Stop> {
                self.put([*m as u8]);
                Ok(())
            }
            fn declare(&mut self, d: &mut Declare) -> Result<(), Self::Stop> {
                self.put([*d as u8]);
                Ok(())
            }
        }
    };
}

numbers! {
    u8 one: reg pair callee spread first arguments error;
    u16 two: captured cost;
    i16 two: short;
    u32 four: jump constant constants site function template intrinsic helper number;
    i32 four: int;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_has_its_number_in_the_first_byte() {
        for number in 0..=u8::MAX {
            let Some(op) = Op::blank(number) else { continue };
            assert_eq!(op.pack()[0], number);
            assert_eq!(Op::unpack(op.pack()), Some(op));
        }
    }

    #[test]
    fn operands_of_all_sizes_find_their_place() {
        for op in [
            Op::AddInt(1, 2, -3),
            Op::JNotLtInt(255, -32_768, 0xDEAD_BEEF),
            Op::Intrinsic(1, 2, 3, 0x0012_0034),
            Op::GetCapChecked(9, 65_535, 77),
            Op::InitMember(1, 2, 3, Member::LiteralSetter),
            Op::DeclareGlobal(Declare::Const, 12),
            Op::Loop(500, 70_000),
        ] {
            assert_eq!(Op::unpack(op.pack()), Some(op));
        }
    }

    #[test]
    fn a_table_is_padded_by_a_window() {
        const PACKED: &[u8] = &[7, 1, 2, 0, 0, 0, 0, 0];
        static TABLE: [Op; packed_length(PACKED)] = unpack(PACKED);
        assert_eq!(TABLE[0], Op::Move(1, 2));
        assert_eq!(TABLE.len(), 1 + WINDOW);
        assert!(TABLE[1..].iter().all(|op| *op == Op::RetUndef));
    }
}
