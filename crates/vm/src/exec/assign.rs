//! Assignment: OrdinarySet as far as it goes without guest code, and who must be asked where it does not.

use super::Window;
use super::frame::FrameFlags;
use super::helper::Helper;
use super::state::{Exit, State};
use crate::code::ErrorKind;
use crate::heap::{Attrs, Class, Defined, Descriptor, Key, NO_SLOT, ObjId, Own};
use crate::value::Value;

/// `[[Set]]` of an object for a receiver that need not be the object; a refusal throws.
pub(crate) fn set_from(
    st: &mut State,
    w: &mut Window,
    start: Option<ObjId>,
    key: Key,
    value: Value,
    receiver: Value,
) -> Result<(), Exit> {
    let (helper, about) = match place(st, start, key, value, receiver)? {
        Placed::Done => return Ok(()),
        Placed::Refused(refusal) => return Err(refused(st, refusal, key)),
        Placed::InvalidLength => return Err(st.throw(ErrorKind::Range, "Invalid array length")),
        Placed::Setter(setter) => {
            return st.call_above(w, setter, receiver, &[value], 0, FrameFlags::DISCARD).map(|_| ());
        }
        Placed::Proxy(proxy) => (Helper::ProxyAssign, Value::object(proxy)),
        Placed::Element(view) => (Helper::SetViewElement, Value::object(view)),
        Placed::Receiver => (Helper::AssignOnReceiver, Value::UNDEFINED),
    };
    let key = st.heap.key_to_value(key)?;
    Err(st.enter_helper(w, helper, &[about, key, value, receiver], 0, FrameFlags::DISCARD))
}

/// What became of an assignment without guest code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Placed {
    /// The value is stored.
    Done,
    /// It cannot be.
    Refused(Refusal),
    /// An array length that is none.
    InvalidLength,
    /// This setter must be called with the receiver.
    Setter(Value),
    /// This proxy of the chain decides.
    Proxy(ObjId),
    /// An element of this typed array, from a value that must be converted first.
    Element(ObjId),
    /// The receiver must be asked: it is a proxy, or has a length to be converted.
    Receiver,
}

/// Why an assignment is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    ReadOnly,
    NoSetter,
    NotExtensible,
    Primitive,
}

/// OrdinarySet, as far as it goes without guest code.
pub(crate) fn place(
    st: &mut State,
    start: Option<ObjId>,
    key: Key,
    value: Value,
    receiver: Value,
) -> Result<Placed, Exit> {
    let target = receiver.as_object();
    let mut hops = 0;
    let mut at = start;
    while let Some(obj) = at {
        let own = match st.heap.get_own(obj, key) {
            Own::Exotic => match place_exotic(st, obj, key, value, target)? {
                Ok(own) => own,
                Err(placed) => return Ok(placed),
            },
            own => own,
        };
        match own {
            Own::Data { attrs, slot, .. } => {
                if !attrs.has(Attrs::WRITABLE) {
                    return Ok(Placed::Refused(Refusal::ReadOnly));
                }
                if Some(obj) == target {
                    if slot != NO_SLOT {
                        st.heap.set_slot(obj, slot, value);
                        return Ok(Placed::Done);
                    }
                    return place_defined(st, obj, key, Descriptor::value(value));
                }
                break;
            }
            Own::Accessor { set, .. } if set.is_undefined() => {
                return Ok(Placed::Refused(Refusal::NoSetter));
            }
            Own::Accessor { set, .. } => return Ok(Placed::Setter(set)),
            Own::Exotic => return Ok(Placed::Proxy(obj)),
            Own::Absent => {
                st.hop(&mut hops)?;
                at = st.heap.prototype(obj);
            }
        }
    }
    let Some(obj) = target else { return Ok(Placed::Refused(Refusal::Primitive)) };
    match st.own(obj, key)? {
        Own::Absent => {
            if let Some(array) = receiver.as_array()
                && key.as_index() == Some(st.heap.array_length(array))
                && st.heap.is_extensible(obj)
                && st.heap.array_push(array, value)?
            {
                return Ok(Placed::Done);
            }
            place_defined(st, obj, key, Descriptor::data(value, Attrs::ALL))
        }
        Own::Data { attrs, .. } if attrs.has(Attrs::WRITABLE) => {
            place_defined(st, obj, key, Descriptor::value(value))
        }
        Own::Data { .. } | Own::Accessor { .. } => Ok(Placed::Refused(Refusal::ReadOnly)),
        Own::Exotic => Ok(Placed::Receiver),
    }
}

/// The property of an exotic object on the way of an assignment, or what became of it there.
fn place_exotic(
    st: &mut State,
    obj: ObjId,
    key: Key,
    value: Value,
    target: Option<ObjId>,
) -> Result<Result<Own, Placed>, Exit> {
    let own = st.own_exotic(obj, key)?;
    if st.heap.class(obj) != Class::TypedArray {
        return Ok(Ok(own));
    }
    if Some(obj) != target {
        // Elements that are not there swallow what is assigned to them.
        return Ok(if own == Own::Absent { Err(Placed::Done) } else { Ok(own) });
    }
    if !st.fits_element(obj, value) {
        return Ok(Err(Placed::Element(obj)));
    }
    if let Some(index) = key.as_index() {
        st.heap.view_set(obj, index, value);
    }
    Ok(Err(Placed::Done))
}

pub(crate) fn place_defined(st: &mut State, obj: ObjId, key: Key, desc: Descriptor) -> Result<Placed, Exit> {
    Ok(match st.define(obj, key, &desc)? {
        Defined::Yes => Placed::Done,
        Defined::No if desc.writable.is_none() => Placed::Refused(Refusal::ReadOnly),
        Defined::No => Placed::Refused(Refusal::NotExtensible),
        Defined::InvalidLength => Placed::InvalidLength,
        Defined::Exotic => Placed::Receiver,
    })
}

#[cold]
pub(crate) fn refused(st: &mut State, refusal: Refusal, key: Key) -> Exit {
    let name = st.key_text(key);
    let message = match refusal {
        Refusal::ReadOnly => format!("Cannot assign to read only property '{name}' of object"),
        Refusal::NoSetter => format!("Cannot set property {name} of object which has only a getter"),
        Refusal::NotExtensible => format!("Cannot add property {name}, object is not extensible"),
        Refusal::Primitive => format!("Cannot create property '{name}' on a primitive value"),
    };
    st.type_error(&message)
}
