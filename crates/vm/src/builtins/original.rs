//! Whether a built-in is still the one that the engine made: guests may have put their own in its place.

use super::number;
use crate::exec::TABLE_NATIVE;
use crate::exec::state::State;
use crate::heap::{Class, Key, ObjId, Own};
use crate::value::Value;

/// The number of the native functions that have this row in front; one that no function has if there is no such row.
/// Looking it up takes a while: keep it.
pub(crate) fn native_number(name: &str) -> i32 {
    number(|row| row == name).map_or(-1, |n| TABLE_NATIVE + n as i32)
}

impl State {
    /// Whether a value is the native function with this number: guests cannot make another.
    pub(crate) fn is_original(&self, v: Value, number: i32) -> bool {
        let native = v.as_object().filter(|&o| self.heap.class(o) == Class::NativeFunction);
        let fields = native.and_then(|o| self.heap.slots_of(o)).map(|s| self.heap.slots(s));
        fields.and_then(|f| f.first()).and_then(|v| v.as_int()) == Some(number)
    }

    /// The same for an own property, or for its getter.
    pub(crate) fn has_original(&self, object: ObjId, key: Key, number: i32) -> bool {
        match self.heap.get_own(object, key) {
            Own::Data { value, .. } => self.is_original(value, number),
            Own::Accessor { get, .. } => self.is_original(get, number),
            Own::Absent | Own::Exotic => false,
        }
    }
}
