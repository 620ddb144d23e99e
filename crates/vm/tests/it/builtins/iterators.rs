//! Iterator, its helpers, and what generators inherit. Node 20 has an early form of the helpers; where they differ the
//! language decides.

use super::check;

#[test]
fn helpers_are_lazy_and_chain() {
    check(&[
        (
            "function* n() { let i = 0; for (;;) yield i++; } n().filter(x => x % 2).map(x => x * x).drop(1).take(3).toArray().join()",
            "9,25,49",
        ),
        ("[1, 2].values().flatMap(x => [x, x * 10]).toArray().join()", "1,10,2,20"),
        (
            "const log = []; const it = [1, 2, 3].values().map(x => { log.push(x); return x; }); it.next(); log.join() + JSON.stringify(it.return()) + JSON.stringify(it.next())",
            r#"1{"done":true}{"done":true}"#,
        ),
        (
            "[1, 2, 3].values().reduce((a, b) => a + b) + ',' + [1, 2].values().reduce((a, b) => a + b, '') + ',' + [3, 4].values().some(x => x > 3) + [3].values().every(x => x > 3) + [5, 6].values().find(x => x > 5)",
            "6,12,truefalse6",
        ),
        ("let s = ''; [1, 2].values().forEach((x, i) => { s += x + ':' + i + ' '; }); s", "1:0 2:1 "),
        (
            "Iterator.from({ next() { return { value: this.n = (this.n || 0) + 1, done: this.n > 3 }; } }).toArray().join()",
            "1,2,3",
        ),
        (
            "Object.prototype.toString.call([].values().map(x => x)) + (Iterator.from('ab').next().value)",
            "[object Iterator Helper]a",
        ),
        (
            "class I extends Iterator {} new I() instanceof Iterator && new I()[Symbol.iterator]() instanceof I",
            "true",
        ),
    ]);
}

#[test]
fn what_is_underneath_is_closed_when_a_helper_stops_early() {
    check(&[
        (
            "let closed = 0; const under = { __proto__: Iterator.prototype, next: () => ({ value: 1, done: false }), return() { closed++; return {}; } }; under.take(1).toArray(); const it = under.map(x => x); it.next(); it.return(); under.find(x => x); try { under.map(() => { throw 1; }).next(); } catch {} closed",
            "4",
        ),
        (
            "let closed = 0; const under = { __proto__: Iterator.prototype, next: () => ({ value: 1, done: false }), return() { closed++; return {}; } }; under.map(x => x).return(); closed",
            "1",
        ),
        (
            "const it = (function* () { yield it2.next(); })(); let it2; it2 = it.map(x => x); try { it2.next(); } catch (e) { e.constructor.name }",
            "TypeError",
        ),
        ("try { new Iterator(); } catch (e) { e.constructor.name }", "TypeError"),
        ("try { [].values().take(NaN); } catch (e) { e.constructor.name }", "RangeError"),
    ]);
}

#[test]
fn generator_objects_have_the_prototypes_of_the_language() {
    check(&[
        (
            "const G = Object.getPrototypeOf(function* () {}); [G[Symbol.toStringTag], G.prototype[Symbol.toStringTag], G.constructor.name, G.prototype.constructor === G, G.prototype.next.length].join()",
            "GeneratorFunction,Generator,GeneratorFunction,true,1",
        ),
        (
            "const A = Object.getPrototypeOf(async function* () {}); [A[Symbol.toStringTag], A.prototype[Symbol.toStringTag], A.constructor.name, typeof A.prototype.throw].join()",
            "AsyncGeneratorFunction,AsyncGenerator,AsyncGeneratorFunction,function",
        ),
        (
            "const F = Object.getPrototypeOf(async () => {}); F[Symbol.toStringTag] + F.constructor.name",
            "AsyncFunctionAsyncFunction",
        ),
    ]);
}
