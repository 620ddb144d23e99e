//! Names that live on the heap: globals, the scope of `let`, `const` and `class` that scripts share, and the variables of
//! functions that have more of them than registers.
//!
//! Shared lexical names are properties of an object that no script can reach. A name that is declared but not yet
//! initialised holds the hole; a `const` is not writable. Sites that found a name there remember its slot.

use super::state::{Exit, Res, Site, State};
use crate::code::{Declare, ErrorKind};
use crate::heap::{Attrs, Class, Descriptor, Flags, Found, Key, NO_SLOT, ObjId, Own, SlotsId, atoms};
use crate::value::Value;

/// One step of a script's declarations.
#[inline(never)]
pub(crate) fn declare(st: &mut State, step: Declare, site: u32) -> Result<(), Exit> {
    let key = st.sites[site as usize].key;
    let (global, scope) = (st.realm.global, st.realm.script_scope);
    let lexical = st.heap.get_own(scope, key) != Own::Absent;
    let own = st.heap.get_own(global, key);
    match step {
        Declare::CheckLexical => {
            let restricted = match own {
                Own::Data { attrs, .. } | Own::Accessor { attrs, .. } => !attrs.has(Attrs::CONFIGURABLE),
                Own::Absent | Own::Exotic => false,
            };
            if lexical || restricted { Err(redeclared(st, key)) } else { Ok(()) }
        }
        Declare::CheckVar if lexical => Err(redeclared(st, key)),
        Declare::CheckVar => Ok(()),
        Declare::CheckFunction => {
            let possible = match own {
                Own::Absent => st.heap.is_extensible(global),
                Own::Data { attrs, .. } => {
                    attrs.has(Attrs::CONFIGURABLE) || attrs.has(Attrs::WRITABLE.and(Attrs::ENUMERABLE))
                }
                Own::Accessor { attrs, .. } => attrs.has(Attrs::CONFIGURABLE),
                Own::Exotic => false,
            };
            if possible { Ok(()) } else { Err(refused(st, key)) }
        }
        Declare::CheckRoom if own == Own::Absent && !st.heap.is_extensible(global) => Err(refused(st, key)),
        Declare::CheckRoom => Ok(()),
        Declare::Let | Declare::Const => {
            let attrs = if step == Declare::Let { Attrs::WRITABLE } else { Attrs::NONE };
            st.heap.add_property(scope, key, attrs, Value::HOLE)?;
            // Whoever found a property of the global object under this name must look again.
            for site in st.sites.iter_mut().filter(|s| s.key == key) {
                *site = Site::new(key);
            }
            Ok(())
        }
    }
}

/// A shared `let`, `const` or `class` gets its first value.
#[inline(never)]
pub(crate) fn initialise(st: &mut State, site: u32, v: Value) {
    let key = st.sites[site as usize].key;
    let scope = st.realm.script_scope;
    if let Own::Data { slot, .. } = st.heap.get_own(scope, key)
        && slot != NO_SLOT
    {
        st.heap.set_slot(scope, slot, v);
    }
}

/// Reads a shared lexical name. Nothing if there is none.
pub(crate) fn read(st: &mut State, site: u32) -> Option<Res> {
    let s = st.sites[site as usize];
    let scope = st.realm.script_scope;
    if s.holder == Some(scope)
        && let Some(v) = st.heap.slot_if_shape(scope, s.shape, s.slot)
        && !v.is_hole()
    {
        return Some(Ok(v));
    }
    let Own::Data { value, slot, .. } = st.heap.get_own(scope, s.key) else { return None };
    if value.is_hole() {
        return Some(Err(too_early(st, s.key)));
    }
    let shape = st.heap.shape(scope);
    if slot != NO_SLOT && !st.heap.is_dictionary(shape) {
        st.sites[site as usize] = Site { shape, next: shape, slot, holder: Some(scope), ..s };
    }
    Some(Ok(value))
}

/// Whether a name can be assigned to. A proxy among the global object's prototypes counts as a yes: writing asks it.
#[inline(never)]
pub(crate) fn exists(st: &State, site: u32) -> Value {
    let key = st.sites[site as usize].key;
    let lexical = st.heap.get_own(st.realm.script_scope, key) != Own::Absent;
    Value::bool(lexical || st.heap.get(st.realm.global, key) != Found::Absent)
}

/// Assigns to a shared lexical name. Nothing if there is none.
pub(crate) fn write(st: &mut State, site: u32, v: Value) -> Option<Result<(), Exit>> {
    let key = st.sites[site as usize].key;
    let scope = st.realm.script_scope;
    let Own::Data { value, attrs, slot } = st.heap.get_own(scope, key) else { return None };
    if value.is_hole() {
        return Some(Err(too_early(st, key)));
    }
    if !attrs.has(Attrs::WRITABLE) {
        return Some(Err(st.type_error("Assignment to constant variable.")));
    }
    st.heap.set_slot(scope, slot, v);
    Some(Ok(()))
}

impl State {
    /// Makes an array of plain values unchangeable: a template object, or its `raw`.
    pub(crate) fn freeze_array(&mut self, array: ObjId) -> Result<(), Exit> {
        let fixed = Descriptor { writable: Some(false), configurable: Some(false), ..Descriptor::EMPTY };
        for i in 0..self.heap.array_length(array) {
            let key = self.heap.key_of_index(i)?;
            self.heap.define_own(array, key, &fixed)?;
        }
        let length = Descriptor { writable: Some(false), ..Descriptor::EMPTY };
        self.heap.define_own(array, Key::atom(atoms::LENGTH), &length)?;
        self.heap.prevent_extensions(array)?;
        Ok(())
    }

    /// A record for the variables of a function that has more of them than registers.
    #[inline(never)]
    pub(crate) fn new_scope_record(&mut self, count: u16) -> Res {
        let fields = vec![Value::UNDEFINED; count as usize];
        let shape = self.realm.object_shape;
        let object = self.heap.new_object_with_slots(shape, Class::Branded, Flags::NONE, &fields)?;
        Ok(Value::object(object))
    }

    fn scope_record(&self, record: Value) -> Option<SlotsId> {
        let object = record.as_object().filter(|&o| self.heap.class(o) == Class::Branded)?;
        self.heap.slots_of(object)
    }

    #[inline(never)]
    pub(crate) fn scope_value(&self, record: Value, n: u16) -> Value {
        let slots = self.scope_record(record);
        slots.and_then(|s| self.heap.slots(s).get(n as usize)).copied().unwrap_or(Value::UNDEFINED)
    }

    #[inline(never)]
    pub(crate) fn set_scope_value(&mut self, record: Value, n: u16, v: Value) {
        let slots = self.scope_record(record);
        if let Some(place) = slots.and_then(|s| self.heap.slots_mut(s).get_mut(n as usize)) {
            *place = v;
        }
    }
}

#[cold]
fn too_early(st: &mut State, key: Key) -> Exit {
    let name = st.key_text(key);
    st.throw(ErrorKind::Reference, &format!("Cannot access '{name}' before initialization"))
}

#[cold]
fn redeclared(st: &mut State, key: Key) -> Exit {
    let name = st.key_text(key);
    st.throw(ErrorKind::Syntax, &format!("Identifier '{name}' has already been declared"))
}

#[cold]
fn refused(st: &mut State, key: Key) -> Exit {
    let name = st.key_text(key);
    st.type_error(&format!("Cannot declare global '{name}'"))
}
