//! Promises, their combinators and the order of what they cause.

use crate::eval::logged;

/// Runs each body, lets the microtasks drain, and compares what it logged.
fn check(cases: &[(&str, &str)]) {
    for (body, expected) in cases {
        let body = format!("{body}; for (let i = 0; i < 20; i++) await null");
        assert_eq!(logged(&body), *expected, "{body}");
    }
}

#[test]
fn reactions_run_in_the_order_of_the_language() {
    check(&[
        (
            "Promise.resolve(1).then(x => { p('a' + x); return Promise.resolve(5); }).then(x => p('b' + x)); Promise.reject(3).catch(e => p('c' + e)).finally(() => p('fin'));",
            "a1 c3 fin b5",
        ),
        (
            "Promise.resolve({ then(f) { p('then'); f(1); } }).then(x => p('x' + x)); p('sync'); Promise.resolve().then(() => p('first'));",
            "sync then first x1",
        ),
        (
            "new Promise(r => r({ get then() { p('get'); return undefined; } })).then(() => p('got')); p('after');",
            "get after got",
        ),
        ("new Promise(r => r({ get then() { throw 4; } })).catch(e => p('t' + e));", "t4"),
        (
            "Promise.resolve(1).then(() => ({ get then() { p('late'); } })).then(() => p('done')); Promise.resolve(2).then(() => p('other'));",
            "late other done",
        ),
        (
            "const q = Promise.resolve(); q.then(() => p(1)); q.then(() => p(2)).then(() => p(4)); q.then(() => p(3));",
            "1 2 3 4",
        ),
        (
            "(async () => { await null; p('async'); return 1; })().then(p); Promise.resolve().then(() => p(0)).then(() => p(2));",
            "async 0 1 2",
        ),
    ]);
}

#[test]
fn combinators_wait_for_what_they_should() {
    check(&[
        (
            "Promise.all([1, Promise.resolve(2), { then(f) { f(3); } }]).then(v => p('all ' + v)); Promise.all([]).then(v => p('none ' + v.length));",
            "none 0 all 1,2,3",
        ),
        ("Promise.all([Promise.reject(1), Promise.reject(2)]).catch(e => p('no ' + e));", "no 1"),
        (
            "Promise.any([Promise.reject(1), Promise.reject(2)]).catch(e => p(e.name + e.message + e.errors)); Promise.any([Promise.reject(1), 5]).then(p);",
            "AggregateErrorAll promises were rejected1,2 5",
        ),
        (
            "Promise.allSettled([1, Promise.reject(2)]).then(v => p(JSON.stringify(v)));",
            r#"[{"status":"fulfilled","value":1},{"status":"rejected","reason":2}]"#,
        ),
        ("Promise.race([new Promise(() => {}), Promise.resolve('r')]).then(p);", "r"),
        (
            "Promise.all({ [Symbol.iterator]() { return { next() { throw 'broken'; } }; } }).catch(p);",
            "broken",
        ),
    ]);
}

#[test]
fn subclasses_and_species_are_respected() {
    check(&[
        (
            "class P extends Promise {} const q = new P(r => r(7)); p(q instanceof P); p(q.then(x => x) instanceof P); q.then(x => p('p' + x)); p(P.resolve(q) === q); p(Promise.resolve(q) === q); p(P.all([]) instanceof P);",
            "true true true false true p7",
        ),
        (
            "class P extends Promise { static get [Symbol.species]() { return Promise; } } p(new P(r => r()).then() instanceof P);",
            "false",
        ),
        (
            "const q = Promise.resolve(1); q.constructor = function (f) { f(v => p('resolved ' + v), () => {}); }; q.constructor[Symbol.species] = q.constructor; q.then(x => x + 1);",
            "resolved 2",
        ),
        (
            "try { Promise.resolve.call(1); } catch (e) { p(e.constructor.name); } try { new Promise(); } catch (e) { p(e.constructor.name); } try { Promise(() => {}); } catch (e) { p(e.constructor.name); }",
            "TypeError TypeError TypeError",
        ),
        (
            "const q = new Promise(r => { res = r; }); var res; res(q); q.catch(e => p(e.message));",
            "Chaining cycle detected for promise #<Promise>",
        ),
        (
            "p(Promise.length + Promise.name + Promise.all.length + Promise.prototype.then.length + Promise.prototype.finally.length); new Promise((a, b) => p(a.length + b.length + a.name + b.name));",
            "1Promise121 2",
        ),
        (
            "new Promise((resolve, reject) => { resolve(1); reject(2); throw 3; }).then(p, () => p('rejected'));",
            "1",
        ),
    ]);
}
