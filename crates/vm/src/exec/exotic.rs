//! Objects with rules of their own: String objects, typed arrays, bound functions and proxies.
//!
//! The heap answers `Exotic` where it needs help. Here that help is given for everything but proxies, whose traps are
//! prelude functions (`builtins/proxy.js`): only a proxy is still `Exotic` after these.

use super::Window;
use super::call::{Calling, MOST_LAID_OUT};
use super::frame::FrameFlags;
use super::helper::Helper;
use super::state::{Exit, Res, State};
use crate::heap::{Attrs, Class, Defined, Deleted, Descriptor, Found, Key, NO_SLOT, ObjId, Own, atoms};
use crate::value::Value;

/// Prototypes that may be passed before their number is paid for.
pub(crate) const FREE_HOPS: u32 = 16;

impl State {
    /// The own property of an object; `Own::Exotic` for a proxy.
    #[inline]
    pub(crate) fn own(&mut self, obj: ObjId, key: Key) -> Result<Own, Exit> {
        match self.heap.get_own(obj, key) {
            Own::Exotic => self.own_exotic(obj, key),
            own => Ok(own),
        }
    }

    /// The own property where the heap has answered `Exotic`.
    pub(crate) fn own_exotic(&mut self, obj: ObjId, key: Key) -> Result<Own, Exit> {
        match self.heap.class(obj) {
            Class::String => {
                let (Some(text), Some(index)) = (self.heap.string_object(obj), key.as_index()) else {
                    return Ok(Own::Absent);
                };
                self.heap.flatten(text)?;
                let unit = self.heap.str(text).get(index as usize).unwrap_or(0);
                let value = Value::string(self.heap.unit_string(unit)?);
                Ok(Own::Data { value, attrs: Attrs::ENUMERABLE, slot: NO_SLOT })
            }
            Class::TypedArray => {
                let element = match key.as_index() {
                    Some(index) => self.heap.view_get(obj, index)?,
                    None => None,
                };
                Ok(match element {
                    Some(value) => Own::Data { value, attrs: Attrs::ALL, slot: NO_SLOT },
                    None => Own::Absent,
                })
            }
            _ => Ok(Own::Exotic),
        }
    }

    /// Looks a property up along the prototype chain; `Found::Exotic` names a proxy on the way.
    #[inline]
    pub(crate) fn look_up(&mut self, start: ObjId, key: Key) -> Result<Found, Exit> {
        let mut hops = 0;
        let mut at = start;
        loop {
            let own = match self.heap.get_own(at, key) {
                Own::Exotic => {
                    let own = self.own_exotic(at, key)?;
                    // A typed array without the element does not ask its prototype.
                    if own == Own::Absent {
                        return Ok(Found::Absent);
                    }
                    own
                }
                own => own,
            };
            match own {
                Own::Data { value, .. } => return Ok(Found::Data(value)),
                Own::Accessor { get, .. } => return Ok(Found::Getter(get)),
                Own::Exotic => return Ok(Found::Exotic(at)),
                Own::Absent => match self.heap.prototype(at) {
                    Some(next) => {
                        self.hop(&mut hops)?;
                        at = next;
                    }
                    None => return Ok(Found::Absent),
                },
            }
        }
    }

    /// `[[DefineOwnProperty]]` of anything but a proxy. `Defined::Exotic`: a length or an element must be converted first.
    pub(crate) fn define(&mut self, obj: ObjId, key: Key, desc: &Descriptor) -> Result<Defined, Exit> {
        match self.heap.define_own(obj, key, desc)? {
            Defined::Exotic => {}
            defined => return Ok(defined),
        }
        match self.heap.class(obj) {
            Class::String => {
                let current = self.own_exotic(obj, key)?;
                Ok(self.heap.define_over(obj, key, desc, current)?)
            }
            Class::TypedArray => self.define_element(obj, key, desc),
            _ => Ok(Defined::Exotic),
        }
    }

    fn define_element(&mut self, obj: ObjId, key: Key, desc: &Descriptor) -> Result<Defined, Exit> {
        let there = self.own_exotic(obj, key)? != Own::Absent;
        let refused = desc.configurable == Some(false)
            || desc.enumerable == Some(false)
            || desc.writable == Some(false)
            || desc.get.is_some()
            || desc.set.is_some();
        if !there || refused {
            return Ok(Defined::No);
        }
        match (desc.value, key.as_index()) {
            (Some(value), Some(index)) if self.fits_element(obj, value) => {
                self.heap.view_set(obj, index, value);
                Ok(Defined::Yes)
            }
            (Some(_), _) => Ok(Defined::Exotic),
            (None, _) => Ok(Defined::Yes),
        }
    }

    /// Whether a value is an element of the typed array as it stands.
    pub(crate) fn fits_element(&self, view: ObjId, value: Value) -> bool {
        let big = self.heap.view_of(view).is_some_and(|v| v.kind().is_big());
        if big { value.is_bigint() } else { value.is_number() }
    }

    /// `[[Delete]]`; `Deleted::Exotic` for a proxy.
    pub(crate) fn remove(&mut self, obj: ObjId, key: Key) -> Result<Deleted, Exit> {
        match self.heap.delete_own(obj, key)? {
            Deleted::Exotic => Ok(match self.own_exotic(obj, key)? {
                Own::Absent => Deleted::Yes,
                Own::Data { .. } | Own::Accessor { .. } => Deleted::No,
                Own::Exotic => Deleted::Exotic,
            }),
            deleted => Ok(deleted),
        }
    }

    /// All own keys in order, paid for. `false`: a proxy.
    pub(crate) fn keys(&mut self, obj: ObjId, keys: &mut Vec<Key>) -> Result<bool, Exit> {
        match self.heap.class(obj) {
            Class::Proxy => return Ok(false),
            Class::TypedArray => {
                let length = self.heap.view_length(obj).unwrap_or(0);
                self.burn(u64::from(length))?;
                keys.extend((0..length).map(Key::from_raw));
            }
            _ => {}
        }
        let known = self.heap.own_keys(obj, keys);
        self.burn(keys.len() as u64)?;
        Ok(known)
    }

    /// `[[SetPrototypeOf]]` of anything but a proxy.
    pub(crate) fn set_prototype(&mut self, obj: ObjId, prototype: Option<ObjId>) -> Result<bool, Exit> {
        // Looking for a cycle walks the new chain.
        let mut hops = 0;
        let mut at = prototype;
        while let Some(next) = at {
            self.hop(&mut hops)?;
            at = self.heap.prototype(next);
        }
        Ok(self.heap.set_prototype(obj, prototype)?)
    }

    /// `[[PreventExtensions]]` of anything but a proxy.
    pub(crate) fn close(&mut self, obj: ObjId) -> Result<bool, Exit> {
        if let Some(view) = self.heap.view_of(obj)
            && self.heap.class(obj) == Class::TypedArray
            && let Some(buffer) = self.heap.buffer_of(view.buffer)
        {
            // Elements that may come and go cannot be promised to stay.
            let resizable = self.heap.buffer_max(buffer).is_some();
            if view.length.is_none() || resizable {
                return Ok(false);
            }
        }
        self.heap.prevent_extensions(obj)?;
        Ok(true)
    }

    /// Counts a step along a prototype chain: long chains cost fuel.
    #[inline]
    pub(crate) fn hop(&mut self, hops: &mut u32) -> Result<(), Exit> {
        *hops += 1;
        if *hops > FREE_HOPS { self.burn(1) } else { Ok(()) }
    }

    /// Whether `prototype` is on the value's chain; nothing if a proxy on it has a say.
    pub(crate) fn has_prototype(&mut self, v: Value, prototype: ObjId) -> Result<Option<bool>, Exit> {
        let mut hops = 0;
        let mut at = v.as_object();
        while let Some(obj) = at {
            if self.heap.class(obj) == Class::Proxy {
                return Ok(None);
            }
            self.hop(&mut hops)?;
            at = self.heap.prototype(obj);
            if at == Some(prototype) {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// The target of a proxy; null when it is revoked.
    pub(crate) fn proxy_target(&self, proxy: ObjId) -> Value {
        let fields = self.heap.slots_of(proxy).map(|s| self.heap.slots(s)).unwrap_or_default();
        fields.first().copied().unwrap_or(Value::NULL)
    }

    /// What a bound function stands for: its target, its receiver and its arguments before the given ones. They are laid out
    /// above the frame, because the registers of the call must stay as they are if it has to be made again. A chain of
    /// bound functions is walked, however long it is.
    pub(crate) fn unbind(
        &mut self,
        w: &mut Window,
        a: u8,
        argc: u32,
        calling: Calling,
    ) -> Result<Unbound, Exit> {
        let mut at = Unbound { a, argc, calling };
        while let Some(function) = w[at.a as usize].as_object()
            && self.heap.class(function) == Class::BoundFunction
        {
            at = self.unbind_one(w, at, function)?;
        }
        Ok(at)
    }

    fn unbind_one(&mut self, w: &mut Window, from: Unbound, function: ObjId) -> Result<Unbound, Exit> {
        let Unbound { a, argc, mut calling } = from;
        self.burn(1)?;
        let fields = self.heap.slots_of(function).map(|s| self.heap.slots(s).to_vec()).unwrap_or_default();
        let [target, this, list @ ..] = &fields[..] else {
            return Err(self.type_error("not a bound function"));
        };
        let at = self.above as usize;
        let first = a as usize + 2;
        let (given, bound) = (argc as usize, list.len());
        if calling.new_target.as_object() == Some(function) {
            calling.new_target = *target;
        }
        let is_list = calling.flags.has(FrameFlags::LIST);
        if is_list || at + 2 + bound + given > MOST_LAID_OUT {
            let mut all = list.to_vec();
            match w[first].as_array() {
                Some(array) if is_list => {
                    all.extend((0..argc).map(|i| self.heap.array_get(array, i).unwrap_or(Value::UNDEFINED)));
                }
                _ => all.extend_from_slice(w.get(first..first + given).unwrap_or_default()),
            }
            self.burn(all.len() as u64 / 4)?;
            w[at + 2] = Value::array(self.heap.new_array(self.realm.array_shape, &all)?);
            calling.flags = calling.flags.and(FrameFlags::LIST);
        } else {
            w.copy_within(first..first + given, at + 2 + bound);
            w[at + 2..at + 2 + bound].copy_from_slice(list);
        }
        w[at] = *target;
        w[at + 1] = *this;
        Ok(Unbound { a: self.above, argc: (bound + given) as u32, calling })
    }

    /// Calls a proxy of a function, or makes an object with one.
    pub(crate) fn call_proxy(
        &mut self,
        w: &mut Window,
        a: u8,
        argc: u32,
        proxy: ObjId,
        calling: Calling,
    ) -> Res {
        let from = a as usize + 2;
        let list = if calling.flags.has(FrameFlags::LIST) {
            w[from]
        } else {
            let given = w.get(from..from + argc as usize).unwrap_or_default();
            Value::array(self.heap.new_array(self.realm.array_shape, given)?)
        };
        let (this, proxy) = (w[a as usize + 1], Value::object(proxy));
        if calling.flags.has(FrameFlags::CONSTRUCT) {
            let args = [proxy, list, calling.new_target];
            return Err(self.enter_helper(w, Helper::ProxyConstruct, &args, calling.dst, FrameFlags::NONE));
        }
        let args = [proxy, this, list];
        let flags = calling.flags.without(FrameFlags::LIST);
        Err(self.enter_helper(w, Helper::ProxyCall, &args, calling.dst, flags))
    }

    /// The prototype for a new object, if no getter or proxy has a say.
    #[inline]
    pub(crate) fn plain_prototype(&self, new_target: Value) -> Option<ObjId> {
        match self.heap.get_own(new_target.as_object()?, Key::atom(atoms::PROTOTYPE)) {
            Own::Data { value, .. } => Some(value.as_object().unwrap_or(self.realm.object_prototype)),
            Own::Absent | Own::Accessor { .. } | Own::Exotic => None,
        }
    }

    /// `new` of a closure whose new object's prototype must be asked for.
    #[cold]
    pub(crate) fn construct_slow(&mut self, w: &mut Window, a: u8, argc: u32, calling: Calling) -> Res {
        let from = a as usize + 2;
        let list = if calling.flags.has(FrameFlags::LIST) {
            w[from]
        } else {
            let given = w.get(from..from + argc as usize).unwrap_or_default();
            Value::array(self.heap.new_array(self.realm.array_shape, given)?)
        };
        let args = [w[a as usize], list, calling.new_target];
        Err(self.enter_helper(w, Helper::ConstructSlow, &args, calling.dst, FrameFlags::NONE))
    }
}

/// A call after [`State::unbind`]: where it is laid out, and how it is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unbound {
    pub(crate) a: u8,
    pub(crate) argc: u32,
    pub(crate) calling: Calling,
}
