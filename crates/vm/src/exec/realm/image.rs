//! The realm as bytes of the image, and back.

use super::Realm;
use crate::heap::{Key, ObjId, ShapeId};
use crate::snapshot::bytes::{Read, Reader, Writer};
use crate::value::Value;

/// What the fields of a realm are.
trait Part: Copy {
    fn write(self, w: &mut Writer);
    fn read(r: &mut Reader<'_>) -> Read<Self>;
}

macro_rules! ids {
    ($($id:ident)*) => {$(
        impl Part for $id {
            fn write(self, w: &mut Writer) {
                w.uint(u64::from(self.raw()));
            }
            fn read(r: &mut Reader<'_>) -> Read<$id> {
                Ok($id::from_raw(r.u32()?))
            }
        }
    )*};
}

ids!(ObjId ShapeId Key);

impl Part for Value {
    fn write(self, w: &mut Writer) {
        w.word(self.bits());
    }
    fn read(r: &mut Reader<'_>) -> Read<Value> {
        Ok(Value::of_image(r.word()?))
    }
}

impl<const N: usize> Part for [ObjId; N] {
    fn write(self, w: &mut Writer) {
        self.into_iter().for_each(|id| id.write(w));
    }
    fn read(r: &mut Reader<'_>) -> Read<[ObjId; N]> {
        let mut ids = [ObjId::from_raw(0); N];
        for id in &mut ids {
            *id = ObjId::read(r)?;
        }
        Ok(ids)
    }
}

/// Takes a realm apart by name, so that a new field cannot be forgotten.
macro_rules! fields {
    ($($field:ident)*) => {
        impl Realm {
            /// Appends the realm.
            pub(crate) fn write(self, w: &mut Writer) {
                let Realm { $($field),* } = self;
                $($field.write(w);)*
            }

            /// The realm that [`Realm::write`] wrote.
            pub(crate) fn read(r: &mut Reader<'_>) -> Read<Realm> {
                Ok(Realm { $($field: Part::read(r)?),* })
            }
        }
    };
}

fields! {
    prototypes global script_scope object_prototype function_prototype array_prototype string_prototype number_prototype
    boolean_prototype symbol_prototype bigint_prototype promise_prototype generator_prototype async_generator_prototype
    array_iterator_prototype error_prototypes object_shape arguments_shape array_shape function_shape constructor_shape
    generator_function_shape async_generator_function_shape async_function_shape prototype_shape result_shape
    regexp_shape match_shape array_values array_iterator_next array_constructor array_species has_instance thrower
    callee_guard fields_key
}
