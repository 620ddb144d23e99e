//! Map, Set and their weak kin.

use super::check;

#[test]
fn maps_keep_their_order_and_tell_keys_apart_by_value() {
    check(&[
        (
            "const m = new Map([[1, 'a'], ['1', 'b'], [NaN, 'c']]); m.set(-0, 'z'); [...m.keys()].map(k => typeof k + Object.is(k, -0)).join() + m.get(NaN) + m.get(0)",
            "numberfalse,stringfalse,numberfalse,numberfalsecz",
        ),
        (
            "const m = new Map(); m.set(1n, 'big').set(1, 'small'); m.get(10n - 9n) + m.get(1.0) + m.size",
            "bigsmall2",
        ),
        (
            "const m = new Map([['a' + 'b'.repeat(40), 1]]); m.get('a' + 'b'.repeat(39) + 'b') + m.has('ab')",
            "1",
        ),
        (
            "const m = new Map([[1, 1], [2, 2], [3, 3]]); m.delete(2); m.set(2, 9); JSON.stringify([...m])",
            "[[1,1],[3,3],[2,9]]",
        ),
        ("const m = new Map([[1, 1]]); m.clear() + '' + m.size + m.delete(1)", "undefined0false"),
        (
            "JSON.stringify([...Map.groupBy([1, 2, 3, 4], n => n % 2 ? 'odd' : 'even')])",
            r#"[["odd",[1,3]],["even",[2,4]]]"#,
        ),
        (
            "Object.prototype.toString.call(new Map) + Object.prototype.toString.call(new Map().values()) + Map.length + Map.name",
            "[object Map][object Map Iterator]0Map",
        ),
        (
            "Map.prototype.entries === Map.prototype[Symbol.iterator] && Set.prototype.keys === Set.prototype.values && Map[Symbol.species] === Map",
            "true",
        ),
    ]);
}

#[test]
fn what_changes_during_a_walk_is_seen_or_not_as_the_language_says() {
    check(&[
        (
            "const m = new Map([[1, 1]]), seen = []; for (const [k] of m) { seen.push(k); if (k < 5) { m.delete(k); m.set(k + 1, 0); } } seen.join()",
            "1,2,3,4,5",
        ),
        (
            "const s = new Set([1, 2, 3]), seen = []; s.forEach(v => { seen.push(v); s.delete(v); if (seen.length < 6) s.add(v); }); seen.join()",
            "1,2,3,1,2,3,1,2",
        ),
        (
            "const m = new Map([[1, 1], [2, 2]]), it = m.keys(); it.next(); m.clear(); m.set(7, 7); JSON.stringify([...it]) + JSON.stringify(it.next())",
            r#"[7]{"done":true}"#,
        ),
        (
            "const m = new Map([[1, 1]]), it = m.values(); [...it]; m.set(2, 2); JSON.stringify(it.next())",
            r#"{"done":true}"#,
        ),
    ]);
}

#[test]
fn constructors_use_what_a_guest_put_in_their_way() {
    check(&[
        ("class M extends Map { set(k, v) { return super.set(k, v * 2); } } new M([[1, 2]]).get(1)", "4"),
        (
            "let closed = 0; const it = { [Symbol.iterator]() { return { next: () => ({ value: 1, done: false }), return() { closed++; return {}; } }; } }; try { new Map(it); } catch (e) { e.constructor.name + closed }",
            "TypeError1",
        ),
        (
            "const add = Set.prototype.add; let n = 0; Set.prototype.add = function (v) { n++; return add.call(this, v); }; new Set([1, 1, 2]).size + ' ' + n",
            "2 3",
        ),
        ("try { Map(); } catch (e) { e.message }", "Constructor Map requires 'new'"),
        ("try { new Map([1]); } catch (e) { e.constructor.name }", "TypeError"),
        ("try { Map.prototype.get.call(new Set, 1); } catch (e) { e.constructor.name }", "TypeError"),
        ("try { Map.prototype.size; } catch (e) { e.constructor.name }", "TypeError"),
        ("Reflect.construct(Map, [], Array) instanceof Array", "true"),
    ]);
}

#[test]
fn sets_have_their_algebra() {
    check(&[
        (
            "const a = new Set([1, 2, 3]), b = new Set([3, 4]); [[...a.union(b)], [...a.intersection(b)], [...a.difference(b)], [...a.symmetricDifference(b)]].map(x => x.join('')).join()",
            "1234,3,12,124",
        ),
        (
            "new Set([1]).isSubsetOf(new Set([1, 2])) + ',' + new Set([1, 2]).isSupersetOf(new Set([1])) + ',' + new Set([1]).isDisjointFrom(new Set([2]))",
            "true,true,true",
        ),
        (
            "[...new Set([1, 2, 3]).intersection({ size: 1, has: () => true, keys: () => [3, 9].values() })].join()",
            "3",
        ),
        ("try { new Set([1]).union([1]); } catch (e) { e.constructor.name }", "TypeError"),
        (
            "try { new Set([1]).union({ size: -1, has() {}, keys() {} }); } catch (e) { e.constructor.name }",
            "RangeError",
        ),
    ]);
}

#[test]
fn weak_tables_hold_objects_and_symbols_that_nobody_can_make_again() {
    check(&[
        (
            "const k = {}, s = Symbol('s'), w = new WeakMap([[k, 1]]); w.set(s, 2); w.get(k) + w.get(s) + String(w.has({})) + w.delete(k) + w.has(k)",
            "3falsetruefalse",
        ),
        (
            "try { new WeakMap().set(Symbol.for('x'), 1); } catch (e) { e.message }",
            "Invalid value used as weak map key",
        ),
        ("try { new WeakSet().add(1); } catch (e) { e.message }", "Invalid value used in weak set"),
        ("const o = {}; new WeakRef(o).deref() === o", "true"),
        (
            "const r = new FinalizationRegistry(() => {}), t = {}; r.register({}, 1, t); [r.unregister(t), r.unregister(t)].join()",
            "true,false",
        ),
        (
            "try { const o = {}; new FinalizationRegistry(() => {}).register(o, o); } catch (e) { e.constructor.name }",
            "TypeError",
        ),
    ]);
}

#[test]
fn stepping_over_deleted_entries_is_paid_for() {
    let source = "const m = new Map(); for (let i = 0; i < 100000; i++) m.set(i, i); \
                  for (let i = 1; i < 70000; i++) m.delete(i); \
                  for (let i = 0; i < ROUNDS; i++) { const it = m.keys(); it.next(); it.next(); } m.size";
    let rounds = |n: u32| super::eval(&source.replace("ROUNDS", &n.to_string()));
    assert_eq!(rounds(100), "30001");
    assert_eq!(rounds(20_000), "limit instruction budget exhausted");
}

#[test]
fn plain_arrays_and_tampered_ones_make_the_same_tables() {
    check(&[
        ("new Set([1, 2, 1, NaN, NaN, 0, -0]).size", "4"),
        ("JSON.stringify([...new Map([['a', 1], ['b', 2], ['a', 3]])])", r#"[["a",3],["b",2]]"#),
        ("new Set([1, , 2]).has(undefined)", "true"),
        ("new Map([[1]]).has(1) + '' + new Map([[1]]).get(1)", "trueundefined"),
        ("new Map([[1, 2], { 0: 3, 1: 4 }]).get(3)", "4"),
        (
            "let n = 0; const values = Array.prototype[Symbol.iterator]; \
             Array.prototype[Symbol.iterator] = function () { n++; return values.call(this); }; new Set([1]).size + n",
            "2",
        ),
        ("class S extends Set { add(v) { return super.add(v + 1); } } [...new S([1, 2])].join()", "2,3"),
    ]);
}
