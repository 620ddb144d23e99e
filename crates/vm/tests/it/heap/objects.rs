//! Objects against a list of properties and a literal reading of the specification.

use super::Rig;
use outrigger_vm::heap::{
    Assigned, Attrs, Defined, Deleted, Descriptor, Found, Heap, Key, KeyKind, ObjId, Own, Pace, SymbolKind,
};
use outrigger_vm::value::Value;
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq)]
struct Prop {
    value: Option<Value>,
    get: Value,
    set: Value,
    attrs: Attrs,
}

/// The naive model: properties in order of creation.
#[derive(Default)]
struct Model {
    props: Vec<(Key, Prop)>,
    closed: bool,
}

impl Model {
    fn find(&mut self, key: Key) -> Option<&mut Prop> {
        self.props.iter_mut().find(|(k, _)| *k == key).map(|(_, p)| p)
    }

    fn define(&mut self, key: Key, d: &Descriptor) -> Defined {
        let accessor = d.get.is_some() || d.set.is_some();
        let data = d.value.is_some() || d.writable.is_some();
        let bit = |given: Option<bool>, a: Attrs, old: Attrs| match given {
            Some(true) => a,
            Some(false) => Attrs::NONE,
            None if old.has(a) => a,
            None => Attrs::NONE,
        };
        let merge = |old: Attrs| {
            bit(d.writable, Attrs::WRITABLE, old).and(bit(d.enumerable, Attrs::ENUMERABLE, old)).and(bit(
                d.configurable,
                Attrs::CONFIGURABLE,
                old,
            ))
        };
        let closed = self.closed;
        let Some(current) = self.find(key) else {
            if closed {
                return Defined::No;
            }
            let undefined = Value::UNDEFINED;
            let prop = if accessor {
                Prop {
                    value: None,
                    get: d.get.unwrap_or(undefined),
                    set: d.set.unwrap_or(undefined),
                    attrs: merge(Attrs::NONE).without(Attrs::WRITABLE).and(Attrs::ACCESSOR),
                }
            } else {
                let value = Some(d.value.unwrap_or(undefined));
                Prop { value, get: undefined, set: undefined, attrs: merge(Attrs::NONE) }
            };
            self.props.push((key, prop));
            return Defined::Yes;
        };
        let is_data = current.value.is_some();
        if !current.attrs.has(Attrs::CONFIGURABLE) {
            if d.configurable == Some(true) {
                return Defined::No;
            }
            if d.enumerable.is_some_and(|e| e != current.attrs.has(Attrs::ENUMERABLE)) {
                return Defined::No;
            }
            if (data && !is_data) || (accessor && is_data) {
                return Defined::No;
            }
            if !is_data
                && (d.get.is_some_and(|g| g != current.get) || d.set.is_some_and(|s| s != current.set))
            {
                return Defined::No;
            }
            if is_data
                && !current.attrs.has(Attrs::WRITABLE)
                && (d.writable == Some(true) || d.value.is_some_and(|v| Some(v) != current.value))
            {
                return Defined::No;
            }
        }
        if accessor {
            let keep = |given: Option<Value>, old: Value| {
                given.unwrap_or(if is_data { Value::UNDEFINED } else { old })
            };
            let attrs = merge(current.attrs).without(Attrs::WRITABLE).and(Attrs::ACCESSOR);
            *current =
                Prop { value: None, get: keep(d.get, current.get), set: keep(d.set, current.set), attrs };
        } else if data && !is_data {
            let attrs = merge(current.attrs.without(Attrs::WRITABLE)).without(Attrs::ACCESSOR);
            let value = Some(d.value.unwrap_or(Value::UNDEFINED));
            *current = Prop { value, get: Value::UNDEFINED, set: Value::UNDEFINED, attrs };
        } else {
            current.attrs =
                if is_data { merge(current.attrs) } else { merge(current.attrs).and(Attrs::ACCESSOR) };
            if let Some(value) = d.value {
                current.value = Some(value);
            }
        }
        Defined::Yes
    }

    fn delete(&mut self, key: Key) -> Deleted {
        match self.find(key) {
            Some(p) if !p.attrs.has(Attrs::CONFIGURABLE) => Deleted::No,
            _ => {
                self.props.retain(|(k, _)| *k != key);
                Deleted::Yes
            }
        }
    }

    fn keys(&self, heap: &Heap) -> Vec<Key> {
        let all = || self.props.iter().map(|(k, _)| *k);
        let mut indices: Vec<Key> = all().filter(|k| heap.array_index(*k).is_some()).collect();
        indices.sort_by_key(|k| heap.array_index(*k));
        let names = all().filter(|k| heap.array_index(*k).is_none() && k.as_symbol().is_none());
        let symbols = all().filter(|k| k.as_symbol().is_some());
        indices.into_iter().chain(names).chain(symbols).collect()
    }
}

#[derive(Clone, Debug)]
enum Op {
    Define(usize, Descriptor),
    Add(usize, i32),
    Delete(usize),
    Close,
}

fn descriptor() -> impl Strategy<Value = Descriptor> {
    let flag = || proptest::option::of(any::<bool>());
    let value = || proptest::option::of((0..3).prop_map(Value::int));
    (value(), flag(), flag(), flag(), value(), value(), any::<bool>()).prop_map(
        |(v, w, e, c, g, s, accessor)| {
            if accessor {
                Descriptor { get: g, set: s, enumerable: e, configurable: c, ..Descriptor::EMPTY }
            } else {
                Descriptor { value: v, writable: w, enumerable: e, configurable: c, ..Descriptor::EMPTY }
            }
        },
    )
}

fn op(keys: usize) -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => (0..keys, descriptor()).prop_map(|(k, d)| Op::Define(k, d)),
        6 => (0..keys, any::<i32>()).prop_map(|(k, v)| Op::Add(k, v)),
        4 => (0..keys).prop_map(Op::Delete),
        1 => Just(Op::Close),
    ]
}

const KEYS: usize = 22;

fn make_keys(rig: &mut Rig) -> Vec<Key> {
    let names =
        ["a", "b", "c", "length", "0", "7", "100000", "2147483647", "2147483648", "4294967294", "4294967295"];
    let mut keys: Vec<Key> = names.iter().map(|n| rig.name(n)).collect();
    keys.extend((0..8).map(|n| rig.name(&format!("longer property name {n}"))));
    for _ in keys.len()..KEYS {
        let symbol = rig.run(|heap| heap.new_symbol(SymbolKind::Unique, None));
        rig.roots.push(Value::symbol(symbol));
        keys.push(Key::symbol(symbol));
    }
    keys
}

fn check(rig: &Rig, obj: ObjId, model: &mut Model, keys: &[Key]) {
    for &key in keys {
        let expected = match model.find(key) {
            None => Own::Absent,
            Some(Prop { value: Some(value), attrs, .. }) => {
                Own::Data { value: *value, attrs: *attrs, slot: 0 }
            }
            Some(Prop { get, set, attrs, .. }) => Own::Accessor { get: *get, set: *set, attrs: *attrs },
        };
        let actual = match rig.heap.get_own(obj, key) {
            Own::Data { value, attrs, .. } => Own::Data { value, attrs, slot: 0 },
            other => other,
        };
        assert_eq!(actual, expected, "{key:?}");
    }
    let mut listed = Vec::new();
    assert!(rig.heap.own_keys(obj, &mut listed));
    assert_eq!(listed, model.keys(&rig.heap));
    assert_eq!(rig.heap.is_extensible(obj), !model.closed);
    rig.check_accounts();
}

fn replay(pace: Pace, ops: &[Op]) {
    let mut rig = Rig::new(pace);
    let keys = make_keys(&mut rig);
    // Two objects take the same path, so that the second meets transitions that exist.
    for _ in 0..2 {
        let obj = rig.object();
        let mut model = Model::default();
        for op in ops {
            match op {
                Op::Define(k, d) => {
                    let done = rig.run(|heap| heap.define_own(obj, keys[*k], d));
                    assert_eq!(done, model.define(keys[*k], d), "{op:?}");
                }
                Op::Add(k, v) => {
                    let d = Descriptor::data(Value::int(*v), Attrs::ALL);
                    let done = rig.run(|heap| heap.define_own(obj, keys[*k], &d));
                    assert_eq!(done, model.define(keys[*k], &d), "{op:?}");
                }
                Op::Delete(k) => {
                    let done = rig.run(|heap| heap.delete_own(obj, keys[*k]));
                    assert_eq!(done, model.delete(keys[*k]), "{op:?}");
                }
                Op::Close => {
                    rig.run(|heap| heap.prevent_extensions(obj));
                    model.closed = true;
                }
            }
            check(&rig, obj, &mut model, &keys);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_object_behaves_like_a_list_of_properties(ops in proptest::collection::vec(op(KEYS), 0..60)) {
        replay(Pace::Adaptive, &ops);
    }

    #[test]
    fn an_object_survives_a_collection_before_every_allocation(ops in proptest::collection::vec(op(KEYS), 0..25)) {
        replay(Pace::Torture, &ops);
    }
}

#[test]
fn a_thousand_properties_come_and_go_in_order() {
    let mut rig = Rig::new(Pace::Adaptive);
    let obj = rig.object();
    let keys: Vec<Key> = (0..1000).map(|n| rig.name(&format!("k{n}"))).collect();
    for (n, &key) in keys.iter().enumerate() {
        rig.run(|heap| heap.add_property(obj, key, Attrs::ALL, Value::int(n as i32)));
    }
    for (n, &key) in keys.iter().enumerate().filter(|(n, _)| n % 10 != 0) {
        assert_eq!(rig.heap.get(obj, key), Found::Data(Value::int(n as i32)));
        assert_eq!(rig.run(|heap| heap.delete_own(obj, key)), Deleted::Yes);
    }
    let mut listed = Vec::new();
    assert!(rig.heap.own_keys(obj, &mut listed));
    assert_eq!(listed, keys.iter().copied().step_by(10).collect::<Vec<_>>());
    for (n, &key) in keys.iter().enumerate().step_by(10) {
        assert_eq!(rig.heap.get(obj, key), Found::Data(Value::int(n as i32)));
    }
    rig.check_accounts();
}

#[test]
fn objects_made_the_same_way_share_a_shape() {
    let mut rig = Rig::new(Pace::Adaptive);
    let (x, y) = (rig.name("x"), rig.name("y"));
    let (a, b, c) = (rig.object(), rig.object(), rig.object());
    for obj in [a, b] {
        rig.run(|heap| heap.add_property(obj, x, Attrs::ALL, Value::int(1)));
        rig.run(|heap| heap.add_property(obj, y, Attrs::ALL, Value::int(2)));
    }
    rig.run(|heap| heap.add_property(c, y, Attrs::ALL, Value::int(2)));
    rig.run(|heap| heap.add_property(c, x, Attrs::ALL, Value::int(1)));
    assert_eq!(rig.heap.shape(a), rig.heap.shape(b));
    assert_ne!(rig.heap.shape(a), rig.heap.shape(c));
    assert_eq!(rig.heap.lookup(rig.heap.shape(a), y), Some((1, Attrs::ALL)));
    assert_eq!(rig.heap.lookup(rig.heap.shape(c), y), Some((0, Attrs::ALL)));
    assert_eq!(rig.heap.slot_if_shape(a, rig.heap.shape(b), 1), Some(Value::int(2)));
}

#[test]
fn deleting_the_last_property_goes_back_to_the_shared_shape() {
    let mut rig = Rig::new(Pace::Adaptive);
    let (x, y) = (rig.name("x"), rig.name("y"));
    let (a, b) = (rig.object(), rig.object());
    rig.run(|heap| heap.add_property(a, x, Attrs::ALL, Value::int(1)));
    rig.run(|heap| heap.add_property(b, x, Attrs::ALL, Value::int(1)));
    rig.run(|heap| heap.add_property(b, y, Attrs::ALL, Value::int(1)));
    rig.run(|heap| heap.delete_own(b, y));
    assert_eq!(rig.heap.shape(a), rig.heap.shape(b));
    rig.run(|heap| heap.delete_own(b, x));
    assert_eq!(rig.heap.get_own(b, x), Own::Absent);
}

#[test]
fn a_method_cache_learns_of_changes_to_prototypes_and_only_those() {
    let mut rig = Rig::new(Pace::Adaptive);
    let (x, m) = (rig.name("x"), rig.name("m"));
    let proto = rig.object();
    rig.run(|heap| heap.add_property(proto, m, Attrs::ALL, Value::int(1)));
    let child = rig.object();
    assert!(rig.run(|heap| heap.set_prototype(child, Some(proto))));
    let before = rig.heap.prototype_epoch();
    rig.run(|heap| heap.add_property(child, x, Attrs::ALL, Value::int(1)));
    assert_eq!(rig.heap.prototype_epoch(), before, "the receiver is no prototype");
    assert_eq!(rig.heap.get(child, m), Found::Data(Value::int(1)));
    rig.run(|heap| heap.add_property(proto, x, Attrs::ALL, Value::int(1)));
    let after_add = rig.heap.prototype_epoch();
    assert_ne!(after_add, before);
    rig.run(|heap| heap.delete_own(proto, m));
    assert_ne!(rig.heap.prototype_epoch(), after_add);
    assert_eq!(rig.heap.get(child, m), Found::Absent);
}

#[test]
fn nobody_becomes_their_own_ancestor() {
    let mut rig = Rig::new(Pace::Adaptive);
    let chain: Vec<ObjId> = (0..2000).map(|_| rig.object()).collect();
    for pair in chain.windows(2) {
        assert!(rig.run(|heap| heap.set_prototype(pair[0], Some(pair[1]))));
    }
    assert!(!rig.run(|heap| heap.set_prototype(chain[1999], Some(chain[0]))));
    assert!(!rig.run(|heap| heap.set_prototype(chain[5], Some(chain[5]))));
    assert!(rig.run(|heap| heap.set_prototype(chain[0], None)));
    assert!(rig.run(|heap| heap.set_prototype(chain[1999], Some(chain[0]))));
}

#[test]
fn private_names_are_not_listed_and_ignore_closure() {
    let mut rig = Rig::new(Pace::Adaptive);
    let obj = rig.object();
    let secret = rig.run(|heap| heap.new_symbol(SymbolKind::Private, None));
    rig.run(|heap| heap.prevent_extensions(obj));
    let d = Descriptor::data(Value::TRUE, Attrs::WRITABLE);
    assert_eq!(rig.run(|heap| heap.define_own(obj, Key::symbol(secret), &d)), Defined::Yes);
    let mut keys = Vec::new();
    assert!(rig.heap.own_keys(obj, &mut keys));
    assert_eq!(keys, []);
    assert_eq!(rig.heap.get(obj, Key::symbol(secret)), Found::Data(Value::TRUE));
}

#[test]
fn a_guest_that_makes_up_keys_cannot_grow_the_shape_tree_for_ever() {
    let mut rig = Rig::new(Pace::Adaptive);
    for n in 0..200_000 {
        let obj = rig.run(|heap| {
            let shape = heap.root_shape(None)?;
            heap.new_object(shape)
        });
        let key = rig.run(|heap| {
            let id = heap.new_string(&format!("made up {n}"))?;
            heap.key_of_string(id)
        });
        // Neither the object nor the key is kept: both die with the next collection.
        rig.keys = vec![key];
        rig.roots = vec![Value::object(obj)];
        rig.run(|heap| heap.add_property(obj, key, Attrs::ALL, Value::NULL));
    }
    rig.collect().expect("within limits");
    assert!(rig.heap.records() < 1000, "{} records", rig.heap.records());
    assert!(rig.heap.bytes() < 200_000, "{} bytes", rig.heap.bytes());
}

#[test]
fn keys_spell_indices_only_canonically() {
    let mut rig = Rig::new(Pace::Adaptive);
    for (text, index) in [
        ("0", Some(0)),
        ("00", None),
        ("01", None),
        ("-0", None),
        ("4294967294", Some(4294967294)),
        ("4294967295", None),
        ("99999999999", None),
        ("1.5", None),
        ("", None),
        ("2147483648", Some(2147483648)),
    ] {
        let key = rig.name(text);
        assert_eq!(rig.heap.array_index(key), index, "{text:?}");
        let small = matches!(key.kind(), KeyKind::Index(_));
        assert_eq!(small, index.is_some_and(|i| i <= Key::MAX_INDEX), "{text:?}");
        let back = rig.run(|heap| heap.key_to_value(key));
        let id = back.as_string().expect("a name");
        assert!(rig.heap.str(id).is_ascii(text));
    }
}

#[test]
fn an_assignment_asks_the_whole_chain_before_it_adds() {
    let mut rig = Rig::new(Pace::Adaptive);
    let [fixed, free, set, get, own] = ["fixed", "free", "set", "get", "own"].map(|name| rig.name(name));
    let (proto, child) = (rig.object(), rig.object());
    let function = Value::object(rig.object());
    rig.run(|heap| heap.add_property(proto, fixed, Attrs::NONE, Value::int(1)));
    rig.run(|heap| heap.add_property(proto, free, Attrs::ALL, Value::int(1)));
    rig.run(|heap| heap.add_accessor(proto, set, Attrs::ALL, Value::UNDEFINED, function));
    rig.run(|heap| heap.add_accessor(proto, get, Attrs::ALL, function, Value::UNDEFINED));
    assert!(rig.run(|heap| heap.set_prototype(child, Some(proto))));
    let mut assign = |key| rig.run(|heap| heap.assign(child, key, Value::int(2)));
    assert_eq!(assign(fixed), Assigned::Refused);
    assert_eq!(assign(free), Assigned::Yes);
    assert_eq!(assign(set), Assigned::Setter(function));
    assert_eq!(assign(get), Assigned::Refused);
    assert_eq!(assign(own), Assigned::Yes);
    assert_eq!(rig.heap.get(proto, free), Found::Data(Value::int(1)));
    assert_eq!(rig.heap.get(child, free), Found::Data(Value::int(2)));
    rig.run(|heap| heap.prevent_extensions(child));
    assert_eq!(rig.run(|heap| heap.assign(child, own, Value::int(3))), Assigned::Yes);
    let other = rig.name("other");
    assert_eq!(rig.run(|heap| heap.assign(child, other, Value::int(3))), Assigned::Refused);
}

#[test]
fn an_object_can_go_back_to_a_shape_that_nobody_else_has() {
    let mut rig = Rig::new(Pace::Adaptive);
    let [x, y, z] = ["x", "y", "z"].map(|name| rig.name(name));
    let obj = rig.object();
    rig.run(|heap| heap.add_property(obj, x, Attrs::ALL, Value::int(1)));
    rig.run(|heap| heap.add_property(obj, y, Attrs::ALL, Value::int(2)));
    rig.collect().expect("within limits");
    // Would take the ids of shapes that were freed by mistake.
    let other = rig.object();
    rig.run(|heap| heap.add_property(other, z, Attrs::ALL, Value::int(3)));
    rig.run(|heap| heap.delete_own(obj, y));
    let mut keys = Vec::new();
    assert!(rig.heap.own_keys(obj, &mut keys));
    assert_eq!(keys, [x]);
    assert_eq!(rig.heap.get(obj, x), Found::Data(Value::int(1)));
}

#[test]
fn shapes_are_shared_up_to_128_properties_and_one_more_makes_a_dictionary() {
    let mut rig = Rig::new(Pace::Adaptive);
    let obj = rig.object();
    for n in 0..128 {
        let key = rig.name(&format!("k{n}"));
        rig.run(|heap| heap.add_property(obj, key, Attrs::ALL, Value::int(n)));
    }
    assert!(!rig.heap.is_dictionary(rig.heap.shape(obj)));
    let key = rig.name("one more");
    rig.run(|heap| heap.add_property(obj, key, Attrs::ALL, Value::NULL));
    assert!(rig.heap.is_dictionary(rig.heap.shape(obj)));
    assert_eq!(rig.heap.lookup_shared(rig.heap.shape(obj), key), None, "nobody may cache it");
    assert_eq!(rig.heap.get(obj, key), Found::Data(Value::NULL));
}

#[test]
fn a_shape_has_1024_children_and_one_more_object_makes_a_dictionary() {
    let mut rig = Rig::new(Pace::Adaptive);
    for n in 0..=1024 {
        let key = rig.name(&format!("k{n}"));
        let obj = rig.object();
        rig.run(|heap| heap.add_property(obj, key, Attrs::ALL, Value::int(n)));
        assert_eq!(rig.heap.is_dictionary(rig.heap.shape(obj)), n == 1024);
        assert_eq!(rig.heap.get(obj, key), Found::Data(Value::int(n)));
    }
}

#[test]
fn an_object_used_as_a_queue_stays_small() {
    let mut rig = Rig::new(Pace::Adaptive);
    let obj = rig.object();
    let before = rig.heap.bytes();
    for n in 0..20_000u32 {
        let key = Key::index(n).expect("small");
        rig.run(|heap| heap.add_property(obj, key, Attrs::ALL, Value::NULL));
        if let Some(old) = n.checked_sub(10).and_then(Key::index) {
            assert_eq!(rig.run(|heap| heap.delete_own(obj, old)), Deleted::Yes);
        }
    }
    rig.collect().expect("within limits");
    assert!(rig.heap.bytes() < before + 4000, "{}", rig.heap.bytes() - before);
    let mut keys = Vec::new();
    assert!(rig.heap.own_keys(obj, &mut keys));
    assert_eq!(keys, (19_990..20_000).filter_map(Key::index).collect::<Vec<_>>());
}

#[test]
fn a_cached_addition_to_a_prototype_is_refused_so_that_method_caches_learn_of_it() {
    let mut rig = Rig::new(Pace::Adaptive);
    let x = rig.name("x");
    let (plain, proto, child) = (rig.object(), rig.object(), rig.object());
    let from = rig.heap.shape(plain);
    let to = rig.run(|heap| heap.transition(from, x, Attrs::ALL)).expect("a shared shape");
    assert!(rig.run(|heap| heap.set_prototype(child, Some(proto))));
    assert!(rig.heap.add_slot_if_shape(plain, from, to, 0, Value::int(1)));
    assert!(!rig.heap.add_slot_if_shape(proto, from, to, 0, Value::int(1)));
    assert_eq!(rig.heap.get(plain, x), Found::Data(Value::int(1)));
    assert_eq!(rig.heap.get(child, x), Found::Absent);
}

#[test]
fn redefining_a_fixed_value_uses_same_value() {
    let mut rig = Rig::new(Pace::Adaptive);
    let obj = rig.object();
    let (nan, zero) = (rig.name("nan"), rig.name("zero"));
    rig.run(|heap| heap.add_property(obj, nan, Attrs::NONE, Value::NAN));
    rig.run(|heap| heap.add_property(obj, zero, Attrs::NONE, Value::ZERO));
    let mut define = |key, value| rig.run(|heap| heap.define_own(obj, key, &Descriptor::value(value)));
    assert_eq!(define(nan, Value::NAN), Defined::Yes);
    assert_eq!(define(zero, Value::ZERO), Defined::Yes);
    assert_eq!(define(zero, Value::number(-0.0)), Defined::No);
}
