//! Reading and writing properties, with the caches of property sites.

use super::Window;
use super::assign::{Placed, place_defined, refused, set_from};
use super::exotic::FREE_HOPS;
use super::frame::FrameFlags;
use super::helper::Helper;
use super::state::{Exit, Res, Site, State};
use crate::code::ErrorKind;
use crate::heap::{Attrs, Class, Deleted, Descriptor, Found, Key, NO_SLOT, ObjId, Own, ShapeId, atoms};
use crate::value::{Unpacked, Value};

/// Units of a name in a message.
const SHOWN: usize = 100;

/// Units of a name that are compared for one instruction.
const UNITS_COMPARED: u64 = 64;

/// `a.key` where the site's own cache has missed.
#[inline(never)]
pub(crate) fn get_prop(st: &mut State, w: &mut Window, d: u8, receiver: Value, site: u32) -> Res {
    let key = st.sites[site as usize].key;
    if let Some(array) = receiver.as_array()
        && key == Key::atom(atoms::LENGTH)
    {
        return Ok(Value::uint(st.heap.array_length(array)));
    }
    if let Some(obj) = receiver.as_object() {
        let shape = st.heap.shape(obj);
        let mut s = st.sites[site as usize];
        if s.shape != shape
            && let Some(found) = st.gets.find(shape, key)
        {
            st.sites[site as usize] = found;
            s = found;
        }
        if s.shape == shape {
            match s.holder {
                None => return Ok(st.heap.slot(obj, s.slot)),
                Some(holder) if s.epoch == st.heap.prototype_epoch() => {
                    return Ok(st.heap.slot(holder, s.slot));
                }
                Some(_) => {}
            }
        }
        fill_get(st, obj, site);
    } else if let Some(prototype) = st.prototype_of_primitive(receiver)
        && key != Key::atom(atoms::LENGTH)
        && key.as_index().is_none()
    {
        return get_of_primitive(st, w, d, receiver, prototype, site);
    }
    get(st, w, d, receiver, key)
}

/// A method of a primitive: the site remembers who has it, as it does for objects, under a shape that no object has.
fn get_of_primitive(
    st: &mut State,
    w: &mut Window,
    d: u8,
    receiver: Value,
    prototype: ObjId,
    site: u32,
) -> Res {
    let s = st.sites[site as usize];
    let (shape, epoch) = (primitive_shape(prototype), st.heap.prototype_epoch());
    if s.shape == shape
        && s.epoch == epoch
        && let Some(holder) = s.holder
    {
        return Ok(st.heap.slot(holder, s.slot));
    }
    // Once it is somebody's prototype, a change of it is noticed.
    st.heap.root_shape(Some(prototype))?;
    let mut at = Some(prototype);
    while let Some(obj) = at {
        match st.heap.get_own(obj, s.key) {
            Own::Data { slot, .. } if slot != NO_SLOT => {
                let entry = Site { key: s.key, shape, next: shape, slot, holder: Some(obj), epoch };
                st.sites[site as usize] = entry;
                break;
            }
            Own::Absent => at = st.heap.prototype(obj),
            Own::Data { .. } | Own::Accessor { .. } | Own::Exotic => break,
        }
    }
    get(st, w, d, receiver, s.key)
}

/// A number that names the primitives with this prototype among shapes. There are never that many shapes.
fn primitive_shape(prototype: ObjId) -> ShapeId {
    ShapeId::from_raw(PRIMITIVE_SHAPES | prototype.raw())
}

const PRIMITIVE_SHAPES: u32 = 1 << 31;

/// Remembers where a property was found, if that will hold for every object of the shape.
fn fill_get(st: &mut State, obj: ObjId, site: u32) {
    let key = st.sites[site as usize].key;
    if key.as_index().is_some() {
        return;
    }
    let shape = st.heap.shape(obj);
    // Classes with properties of their own making (array and string lengths) are looked at before shapes.
    let own_special = st.heap.class(obj) != Class::Object
        && matches!(st.heap.get_own(obj, key), Own::Data { slot: NO_SLOT, .. } | Own::Exotic);
    if own_special {
        return;
    }
    match st.heap.lookup_shared(shape, key) {
        Some(Some((slot, attrs))) if !attrs.has(Attrs::ACCESSOR) => {
            remember_get(st, site, Site { key, shape, next: shape, slot, holder: None, epoch: 0 });
        }
        Some(None) => {
            let Some(holder) = st.heap.shape_prototype(shape) else { return };
            let mut at = holder;
            // Not so far that looking would have to be paid for: a find that is remembered costs nothing.
            for _ in 0..FREE_HOPS {
                match st.heap.get_own(at, key) {
                    Own::Data { slot, .. } if slot != NO_SLOT => {
                        let epoch = st.heap.prototype_epoch();
                        let found = Site { key, shape, next: shape, slot, holder: Some(at), epoch };
                        return remember_get(st, site, found);
                    }
                    Own::Absent => match st.heap.prototype(at) {
                        Some(next) => at = next,
                        None => return,
                    },
                    Own::Data { .. } | Own::Accessor { .. } | Own::Exotic => return,
                }
            }
        }
        Some(Some(_)) | None => {}
    }
}

fn remember_get(st: &mut State, site: u32, found: Site) {
    st.sites[site as usize] = found;
    st.gets.remember(found);
}

/// `receiver[key]` in full.
pub(crate) fn get(st: &mut State, w: &mut Window, d: u8, receiver: Value, key: Key) -> Res {
    let start = match receiver.unpack() {
        Unpacked::Object(obj) => obj,
        Unpacked::String(s) => {
            if key == Key::atom(atoms::LENGTH) {
                return Ok(Value::uint(st.heap.string_length(s)));
            }
            if let Some(index) = key.as_index()
                && index < st.heap.string_length(s)
            {
                st.heap.flatten(s)?;
                let unit = st.heap.str(s).get(index as usize).unwrap_or(0);
                return Ok(Value::string(st.heap.unit_string(unit)?));
            }
            st.realm.string_prototype
        }
        Unpacked::Int(_) | Unpacked::Double(_) => st.realm.number_prototype,
        Unpacked::Bool(_) => st.realm.boolean_prototype,
        Unpacked::Symbol(_) => st.realm.symbol_prototype,
        Unpacked::BigInt(_) => st.realm.bigint_prototype,
        Unpacked::Undefined | Unpacked::Null | Unpacked::Hole | Unpacked::Internal(_) => {
            let name = st.key_text(key);
            let what = if receiver.is_null() { "null" } else { "undefined" };
            return Err(st.type_error(&format!("Cannot read properties of {what} (reading '{name}')")));
        }
    };
    get_from(st, w, d, start, key, receiver)
}

/// `[[Get]]` of an object for a receiver that need not be the object.
pub(crate) fn get_from(
    st: &mut State,
    w: &mut Window,
    d: u8,
    start: ObjId,
    key: Key,
    receiver: Value,
) -> Res {
    match st.look_up(start, key)? {
        Found::Absent => Ok(Value::UNDEFINED),
        Found::Data(value) => Ok(value),
        Found::Getter(getter) if getter.is_undefined() => Ok(Value::UNDEFINED),
        Found::Getter(getter) => st.call_above(w, getter, receiver, &[], d, FrameFlags::NONE),
        Found::Exotic(proxy) => {
            let key = st.heap.key_to_value(key)?;
            let args = [Value::object(proxy), key, receiver];
            Err(st.enter_helper(w, Helper::ProxyGet, &args, d, FrameFlags::NONE))
        }
    }
}

/// `a[b]` beyond dense arrays.
#[inline(never)]
pub(crate) fn get_elem(st: &mut State, w: &mut Window, d: u8, receiver: Value, key: Value) -> Res {
    if let Some((view, index)) = view_element(st, receiver, key) {
        return Ok(st.heap.view_get(view, index)?.unwrap_or(Value::UNDEFINED));
    }
    if receiver.is_nullish() {
        let what = if receiver.is_null() { "null" } else { "undefined" };
        return Err(st.type_error(&format!("Cannot read properties of {what}")));
    }
    if key.is_object() {
        return Err(st.enter_helper(w, Helper::GetElem, &[receiver, key], d, FrameFlags::NONE));
    }
    let key = st.property_key(key)?;
    get(st, w, d, receiver, key)
}

/// A typed array and the number of one of its elements.
#[inline]
fn view_element(st: &State, receiver: Value, key: Value) -> Option<(ObjId, u32)> {
    let index = u32::try_from(key.as_int()?).ok()?;
    let view = receiver.as_object().filter(|&obj| st.heap.class(obj) == Class::TypedArray)?;
    Some((view, index))
}

/// `a.key = b` where the site's own cache has missed.
#[inline(never)]
pub(crate) fn set_prop(
    st: &mut State,
    w: &mut Window,
    receiver: Value,
    site: u32,
    value: Value,
) -> Result<(), Exit> {
    let mut s = st.sites[site as usize];
    let Some(obj) = receiver.as_object() else { return set(st, w, receiver, s.key, value) };
    let shape = st.heap.shape(obj);
    if s.shape != shape
        && let Some(found) = st.sets.find(shape, s.key)
    {
        st.sites[site as usize] = found;
        s = found;
        if s.next == shape && st.heap.set_slot_if_shape(obj, shape, s.slot, value) {
            return Ok(());
        }
    }
    if s.shape == shape && s.next != shape && s.epoch == st.heap.prototype_epoch() {
        if st.heap.add_slot_if_shape(obj, shape, s.next, s.slot, value) {
            return Ok(());
        }
    } else if s.key.as_index().is_none() && st.heap.class(obj) == Class::Object {
        match st.heap.lookup_shared(shape, s.key) {
            Some(Some((slot, attrs))) if attrs.has(Attrs::WRITABLE) && !attrs.has(Attrs::ACCESSOR) => {
                let found = Site { key: s.key, shape, next: shape, slot, holder: None, epoch: 0 };
                remember_set(st, site, found);
            }
            Some(None) if st.heap.is_extensible(obj) && chain_lets_add(st, shape, s.key) => {
                if let Some(next) = st.heap.transition(shape, s.key, Attrs::ALL)? {
                    let slot = st.heap.slot_count(shape);
                    let epoch = st.heap.prototype_epoch();
                    let found = Site { key: s.key, shape, next, slot, holder: None, epoch };
                    remember_set(st, site, found);
                }
            }
            Some(_) | None => {}
        }
    }
    set(st, w, receiver, s.key, value)
}

fn remember_set(st: &mut State, site: u32, found: Site) {
    st.sites[site as usize] = found;
    st.sets.remember(found);
}

/// Whether no prototype has the key, so that assignment adds a property.
fn chain_lets_add(st: &State, shape: ShapeId, key: Key) -> bool {
    match st.heap.shape_prototype(shape) {
        None => true,
        Some(prototype) => st.heap.get(prototype, key) == Found::Absent,
    }
}

/// `receiver[key] = value` in full, in strict mode.
pub(crate) fn set(
    st: &mut State,
    w: &mut Window,
    receiver: Value,
    key: Key,
    value: Value,
) -> Result<(), Exit> {
    if receiver.is_nullish() {
        let name = st.key_text(key);
        let what = if receiver.is_null() { "null" } else { "undefined" };
        return Err(st.type_error(&format!("Cannot set properties of {what} (setting '{name}')")));
    }
    let start = receiver.as_object().or_else(|| st.prototype_of_primitive(receiver));
    set_from(st, w, start, key, value, receiver)
}

/// `a[b] = c` beyond dense arrays.
#[inline(never)]
pub(crate) fn set_elem(
    st: &mut State,
    w: &mut Window,
    receiver: Value,
    key: Value,
    value: Value,
) -> Result<(), Exit> {
    if let (Some(array), Some(i)) = (receiver.as_array(), key.as_int())
        && i >= 0
        && i as u32 == st.heap.array_length(array)
        && st.can_add_elements(array)
        && st.heap.array_push(array, value)?
    {
        // The next element of an array, where nobody up the chain has a say.
        return Ok(());
    }
    if let Some((view, index)) = view_element(st, receiver, key)
        && st.fits_element(view, value)
    {
        st.heap.view_set(view, index, value);
        return Ok(());
    }
    if key.is_object() && !receiver.is_nullish() {
        return Err(st.enter_helper(w, Helper::SetElem, &[receiver, key, value], 0, FrameFlags::DISCARD));
    }
    let key = st.property_key(key)?;
    set(st, w, receiver, key, value)
}

/// A literal's own property.
#[inline(never)]
pub(crate) fn init_prop(
    st: &mut State,
    w: &mut Window,
    obj: ObjId,
    site: u32,
    value: Value,
) -> Result<(), Exit> {
    let s = st.sites[site as usize];
    let shape = st.heap.shape(obj);
    if s.key.as_index().is_none()
        && st.heap.class(obj) == Class::Object
        && st.heap.lookup_shared(shape, s.key) == Some(None)
        && let Some(next) = st.heap.transition(shape, s.key, Attrs::ALL)?
    {
        let slot = st.heap.slot_count(shape);
        st.sites[site as usize] = Site { key: s.key, shape, next, slot, holder: None, epoch: 0 };
    }
    create(st, w, obj, s.key, value)
}

pub(crate) fn init_elem(
    st: &mut State,
    w: &mut Window,
    obj: ObjId,
    key: Value,
    value: Value,
) -> Result<(), Exit> {
    let key = st.property_key(key)?;
    create(st, w, obj, key, value)
}

/// CreateDataPropertyOrThrow.
fn create(st: &mut State, w: &mut Window, obj: ObjId, key: Key, value: Value) -> Result<(), Exit> {
    match place_defined(st, obj, key, Descriptor::data(value, Attrs::ALL))? {
        Placed::Refused(refusal) => Err(refused(st, refusal, key)),
        Placed::InvalidLength => Err(st.throw(ErrorKind::Range, "Invalid array length")),
        Placed::Done => Ok(()),
        Placed::Receiver | Placed::Setter(_) | Placed::Proxy(_) | Placed::Element(_) => {
            let key = st.heap.key_to_value(key)?;
            let args = [st.heap.object_value(obj), key, value];
            Err(st.enter_helper(w, Helper::CreateDataSlow, &args, 0, FrameFlags::DISCARD))
        }
    }
}

#[inline(never)]
pub(crate) fn delete(st: &mut State, w: &mut Window, d: u8, receiver: Value, key: Value) -> Res {
    if receiver.is_nullish() {
        return Err(st.type_error("Cannot convert undefined or null to object"));
    }
    if key.is_object() {
        return Err(st.enter_helper(w, Helper::DeleteElem, &[receiver, key], d, FrameFlags::NONE));
    }
    let key = st.property_key(key)?;
    let deleted = match (receiver.as_object(), receiver.as_string()) {
        (Some(obj), _) => st.remove(obj, key)?,
        // The characters and the length of a string cannot be deleted, of an object around it or not.
        (None, Some(s)) => {
            let own = key == Key::atom(atoms::LENGTH)
                || key.as_index().is_some_and(|index| index < st.heap.string_length(s));
            if own { Deleted::No } else { Deleted::Yes }
        }
        (None, None) => Deleted::Yes,
    };
    match deleted {
        Deleted::Yes => Ok(Value::TRUE),
        Deleted::No => {
            let name = st.key_text(key);
            Err(st.type_error(&format!("Cannot delete property '{name}' of object")))
        }
        Deleted::Exotic => {
            let key = st.heap.key_to_value(key)?;
            Err(st.enter_helper(w, Helper::ProxyDeleteStrict, &[receiver, key], d, FrameFlags::NONE))
        }
    }
}

#[inline(never)]
pub(crate) fn has(st: &mut State, w: &mut Window, d: u8, key: Value, object: Value) -> Res {
    let Some(obj) = object.as_object() else {
        return Err(st.type_error("Cannot use 'in' operator to search in a primitive value"));
    };
    if key.is_object() {
        return Err(st.enter_helper(w, Helper::In, &[key, object], d, FrameFlags::NONE));
    }
    let key = st.property_key(key)?;
    match st.look_up(obj, key)? {
        Found::Absent => Ok(Value::FALSE),
        Found::Data(_) | Found::Getter(_) => Ok(Value::TRUE),
        Found::Exotic(proxy) => {
            let key = st.heap.key_to_value(key)?;
            Err(st.enter_helper(w, Helper::ProxyHas, &[Value::object(proxy), key], d, FrameFlags::NONE))
        }
    }
}

/// A global variable through its site.
#[inline(never)]
pub(crate) fn get_global(st: &mut State, w: &mut Window, d: u8, site: u32, missing: Missing) -> Res {
    if let Some(lexical) = super::global::read(st, site) {
        return lexical;
    }
    let global = st.realm.global;
    let key = st.sites[site as usize].key;
    match st.heap.get(global, key) {
        Found::Absent if missing == Missing::Undefined => Ok(Value::UNDEFINED),
        Found::Absent => {
            let name = st.key_text(key);
            Err(st.throw(ErrorKind::Reference, &format!("{name} is not defined")))
        }
        _ => get_prop(st, w, d, Value::object(global), site),
    }
}

/// What reading an unknown global does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    Throws,
    Undefined,
}

#[inline(never)]
pub(crate) fn set_global(st: &mut State, w: &mut Window, site: u32, value: Value) -> Result<(), Exit> {
    if let Some(lexical) = super::global::write(st, site, value) {
        return lexical;
    }
    let global = st.realm.global;
    let key = st.sites[site as usize].key;
    if st.heap.get(global, key) == Found::Absent {
        let name = st.key_text(key);
        return Err(st.throw(ErrorKind::Reference, &format!("{name} is not defined")));
    }
    set_prop(st, w, Value::object(global), site, value)
}

/// A private member: data, a method, or an accessor.
#[inline(never)]
pub(crate) fn get_private(st: &mut State, w: &mut Window, d: u8, receiver: Value, name: Value) -> Res {
    match private(st, receiver, name) {
        Own::Data { value, .. } => Ok(value),
        Own::Accessor { get, .. } if !get.is_undefined() => {
            st.call_above(w, get, receiver, &[], d, FrameFlags::NONE)
        }
        Own::Accessor { .. } => Err(st.type_error("private member was defined without a getter")),
        Own::Absent | Own::Exotic => {
            Err(st.type_error("Cannot read private member from an object whose class did not declare it"))
        }
    }
}

#[inline(never)]
pub(crate) fn set_private(
    st: &mut State,
    w: &mut Window,
    receiver: Value,
    name: Value,
    value: Value,
) -> Result<(), Exit> {
    match (private(st, receiver, name), receiver.as_object()) {
        (Own::Data { slot, attrs, .. }, Some(obj)) if attrs.has(Attrs::WRITABLE) && slot != NO_SLOT => {
            st.heap.set_slot(obj, slot, value);
            Ok(())
        }
        (Own::Data { .. }, _) => Err(st.type_error("Private method is not writable")),
        (Own::Accessor { set, .. }, _) if !set.is_undefined() => {
            st.call_above(w, set, receiver, &[value], 0, FrameFlags::DISCARD).map(|_| ())
        }
        (Own::Accessor { .. }, _) => Err(st.type_error("private member was defined without a setter")),
        (Own::Absent | Own::Exotic, _) => {
            Err(st.type_error("Cannot write private member to an object whose class did not declare it"))
        }
    }
}

pub(crate) fn private(st: &State, receiver: Value, name: Value) -> Own {
    match (receiver.as_object(), name.as_symbol()) {
        (Some(obj), Some(symbol)) => st.heap.get_own(obj, Key::symbol(symbol)),
        _ => Own::Absent,
    }
}

impl State {
    /// ToPropertyKey of anything but an object.
    pub(crate) fn property_key(&mut self, v: Value) -> Result<Key, Exit> {
        if let Some(i) = v.as_int()
            && let Ok(i) = u32::try_from(i)
            && let Some(key) = Key::index(i)
        {
            return Ok(key);
        }
        // A long name must be compared with the one that is known already.
        if let Some(s) = v.as_string() {
            self.burn(u64::from(self.heap.string_length(s)) / UNITS_COMPARED)?;
        }
        if let Some(key) = self.heap.key_of_value(v)? {
            return Ok(key);
        }
        let s = self.primitive_to_string(v)?;
        Ok(self.heap.key_of_string(s)?)
    }

    /// A key for messages: the beginning of a long one.
    pub(crate) fn key_text(&mut self, key: Key) -> String {
        match self.heap.key_to_value(key).ok().and_then(Value::as_string) {
            Some(s) => self.short_text(s),
            None => "Symbol()".to_owned(),
        }
    }

    /// A string for messages: the beginning of a long one.
    pub(crate) fn short_text(&mut self, s: crate::heap::StrId) -> String {
        let mut out = String::new();
        let mut left = SHOWN;
        self.heap.each_part(s, |part| {
            let taken = part.len().min(left);
            left -= taken;
            out.push_str(&part.slice(0, taken).to_string_lossy());
        });
        if self.heap.string_length(s) as usize > SHOWN {
            out.push('…');
        }
        out
    }

    pub(crate) fn string_text(&mut self, s: crate::heap::StrId) -> String {
        let mut out = String::new();
        self.heap.each_part(s, |part| out.push_str(&part.to_string_lossy()));
        out
    }

    pub(crate) fn prototype_of_primitive(&self, v: Value) -> Option<ObjId> {
        match v.unpack() {
            Unpacked::String(_) => Some(self.realm.string_prototype),
            Unpacked::Int(_) | Unpacked::Double(_) => Some(self.realm.number_prototype),
            Unpacked::Bool(_) => Some(self.realm.boolean_prototype),
            Unpacked::Symbol(_) => Some(self.realm.symbol_prototype),
            Unpacked::BigInt(_) => Some(self.realm.bigint_prototype),
            Unpacked::Undefined
            | Unpacked::Null
            | Unpacked::Hole
            | Unpacked::Internal(_)
            | Unpacked::Object(_) => None,
        }
    }
}
