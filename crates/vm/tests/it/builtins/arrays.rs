//! Arrays, as node has them.

use super::check;

#[test]
fn an_array_is_made_in_every_way_the_language_has() {
    check(&[
        (
            "JSON.stringify([new Array(3).length, Array(2, 3), Array('3'), Array.of(7), Array.from('añ😀'), Array.isArray([])])",
            "[3,[2,3],[\"3\"],[7],[\"a\",\"ñ\",\"😀\"],true]",
        ),
        (
            "JSON.stringify(Array.from({ length: 3, 1: 'b' }, (v, i) => [v, i]))",
            "[[null,0],[\"b\",1],[null,2]]",
        ),
        ("JSON.stringify(Array.from(new Set([1, 1, 2]), (x) => x * 2))", "[2,4]"),
        ("JSON.stringify(Array.from([1, , 3]))", "[1,null,3]"),
        ("try { new Array(-1) } catch (e) { `${e}` }", "RangeError: Invalid array length"),
        ("try { new Array(1.5) } catch (e) { `${e}` }", "RangeError: Invalid array length"),
        ("try { Array.from([1], 5) } catch (e) { `${e}` }", "TypeError: 5 is not a function"),
        ("try { Array.from(null) } catch (e) { e.name }", "TypeError"),
        (
            "class A extends Array {} const a = A.from([3, 1, 2]); `${a instanceof A} ${a.length} ${a.map((x) => x) instanceof A} ${a.filter(Boolean).constructor.name}`",
            "true 3 true A",
        ),
        (
            "class A extends Array { static get [Symbol.species]() { return Array; } } `${new A(1, 2, 3).map((x) => x).constructor.name}`",
            "Array",
        ),
        (
            "function C() { this.made = arguments.length; } const c = Array.of.call(C, 1, 2); `${c.made} ${c.length} ${c[1]} ${c instanceof C}`",
            "1 2 2 true",
        ),
        (
            "const log = []; const it = { [Symbol.iterator]() { return { next() { return { done: false, value: 1 }; }, return() { log.push('closed'); return {}; } }; } }; try { Array.from(it, () => { throw 'stop'; }); } catch (e) { log.push(e); } log.join()",
            "closed,stop",
        ),
        (
            "Object.getOwnPropertyNames(Array.prototype).length + ' ' + Object.keys(Array.prototype[Symbol.unscopables]).sort().join()",
            "40 at,copyWithin,entries,fill,find,findIndex,findLast,findLastIndex,flat,flatMap,includes,keys,toReversed,toSorted,toSpliced,values",
        ),
        ("Array.prototype.values === Array.prototype[Symbol.iterator]", "true"),
        (
            "[Array.length, Array.from.length, Array.prototype.concat.length, Array.prototype.splice.length, Array.prototype.reduce.length, Array.prototype.flat.length].join()",
            "1,1,1,2,1,0",
        ),
    ]);
}

#[test]
fn elements_move_as_they_do_elsewhere() {
    check(&[
        (
            "const a = [1, 2, 3]; JSON.stringify([a.push(4, 5), a.pop(), a.shift(), a.unshift(8, 9), a])",
            "[5,5,1,5,[8,9,2,3,4]]",
        ),
        (
            "const a = [1, 2, 3, 4, 5]; JSON.stringify([a.splice(1, 2, 'x', 'y', 'z'), a])",
            "[[2,3],[1,\"x\",\"y\",\"z\",4,5]]",
        ),
        (
            "const a = [1, 2, 3, 4, 5]; JSON.stringify([a.splice(-2), a, a.splice(), a.splice(0, -1, 'n'), a])",
            "[[4,5],[\"n\",1,2,3],[],[],[\"n\",1,2,3]]",
        ),
        (
            "const a = [1, 2, 3, 4, 5]; JSON.stringify([a.slice(1, -1), a.slice(-2), a.slice(9), a.slice(2, 1)])",
            "[[2,3,4],[4,5],[],[]]",
        ),
        (
            "JSON.stringify([1, 2, 3, 4, 5].copyWithin(0, 3)) + JSON.stringify([1, 2, 3, 4, 5].copyWithin(1, 0, 3)) + JSON.stringify([1, , 3].copyWithin(0, 1))",
            "[4,5,3,4,5][1,1,2,3,5][null,3,3]",
        ),
        (
            "JSON.stringify([[1].concat(2, [3, [4]], 'x'), [1, , 2].concat([, 5])])",
            "[[1,2,3,[4],\"x\"],[1,null,2,null,5]]",
        ),
        (
            "const o = { length: 2, 0: 'a', 1: 'b', [Symbol.isConcatSpreadable]: true }; JSON.stringify([].concat(o, 'c'))",
            "[\"a\",\"b\",\"c\"]",
        ),
        ("const a = [1, 2]; a[Symbol.isConcatSpreadable] = false; [0].concat(a).length", "2"),
        (
            "JSON.stringify([1, 2, 3].fill(7, 1)) + JSON.stringify(new Array(3).fill(0)) + JSON.stringify([1, 2, 3].fill(9, -1))",
            "[1,7,7][0,0,0][1,2,9]",
        ),
        (
            "JSON.stringify([[3, 1, 2].reverse(), [1, , 3].reverse(), [1, 2, 3].toReversed(), [1, 2, 3].with(-1, 9), [1, 2, 3].toSpliced(1, 1, 'a', 'b')])",
            "[[2,1,3],[3,null,1],[3,2,1],[1,2,9],[1,\"a\",\"b\",3]]",
        ),
        ("try { [1].with(1, 0) } catch (e) { e.name }", "RangeError"),
        (
            "JSON.stringify([[1, [2, [3, [4]]]].flat(), [1, [2, [3, [4]]]].flat(Infinity), [1, 2].flatMap((x) => [x, [x]]), [[], [1, , 2]].flat()])",
            "[[1,2,[3,[4]]],[1,2,3,4],[1,[1],2,[2]],[1,2]]",
        ),
        (
            "const o = { length: 3, 0: 'a', 2: 'c' }; Array.prototype.shift.call(o); JSON.stringify(o)",
            "{\"1\":\"c\",\"length\":2}",
        ),
        (
            "const o = {}; Array.prototype.push.call(o, 'x', 'y'); Array.prototype.unshift.call(o, 'w'); JSON.stringify(o)",
            "{\"0\":\"w\",\"1\":\"x\",\"2\":\"y\",\"length\":3}",
        ),
        (
            "const a = []; a[5] = 1; a.length = 3; `${a.length} ${5 in a} ${a.push(2)} ${JSON.stringify(a)}`",
            "3 false 4 [null,null,null,2]",
        ),
        (
            "const a = [1, 2, 3]; Object.defineProperty(a, 'length', { writable: false }); try { a.push(1) } catch (e) { `${e.name} ${a.length}` }",
            "TypeError 3",
        ),
        (
            "const a = Object.freeze([1, 2]); let r = []; for (const f of ['push', 'pop', 'shift', 'reverse', 'sort', 'fill']) try { a[f](5); } catch (e) { r.push(e.name); } r.join() + a",
            "TypeError,TypeError,TypeError,TypeError,TypeError,TypeError1,2",
        ),
        (
            "const a = [1, 2, 3, 4]; for (let i = 0; i < 100; i++) { a.push(a.shift()); a.unshift(a.pop()); } a.join()",
            "1,2,3,4",
        ),
        (
            "const q = []; let s = 0; for (let i = 0; i < 1000; i++) { q.push(i, i); s += q.shift(); } `${s} ${q.length} ${q[0]} ${q[999]}`",
            "249500 1000 500 999",
        ),
        (
            "const q = []; for (let i = 0; i < 500; i++) q.unshift(i); q.splice(100, 300, 'm'); `${q.length} ${q[0]} ${q[99]} ${q[100]} ${q[101]}`",
            "201 499 400 m 99",
        ),
    ]);
}

#[test]
fn holes_and_prototypes_shine_through() {
    check(&[
        (
            "Array.prototype[1] = 'p'; try { const a = [0, , 2]; `${a.indexOf('p')} ${a.includes('p')} ${a.join()} ${a.map((x) => x)} ${a.slice()} ${a.concat([, 1])}` } finally { delete Array.prototype[1]; }",
            "1 true 0,p,2 0,p,2 0,p,2 0,p,2,,1",
        ),
        (
            "let set = ''; Object.defineProperty(Array.prototype, 0, { configurable: true, set(v) { set += v; } }); try { const a = []; a.push(5); `${set} ${a.length} ${Object.hasOwn(a, 0)}` } finally { delete Array.prototype[0]; }",
            "5 1 false",
        ),
        (
            "Object.prototype[0] = 'o'; try { const a = [, 1]; `${a.shift()} ${a} ${a.length}` } finally { delete Object.prototype[0]; }",
            "o 1 1",
        ),
        ("[1, , 3].map((x) => x * 2).hasOwnProperty(1)", "false"),
        (
            "let n = 0; [1, , 3].forEach(() => n++); [, ,].find(() => { n += 10; }); [, 1].reduce((a, b) => { n += 100; return b; }); n",
            "22",
        ),
        (
            "[, undefined].indexOf(undefined) + ' ' + [, 1].includes(undefined) + ' ' + [NaN].indexOf(NaN) + ' ' + [NaN].includes(NaN) + ' ' + [0].includes(-0)",
            "1 true -1 true true",
        ),
        (
            "const a = [3, , 1, undefined, 2]; a.sort(); `${JSON.stringify(a)} ${4 in a} ${3 in a}`",
            "[1,2,3,null,null] false true",
        ),
        ("JSON.stringify([3, , 1].toSorted())", "[1,3,null]"),
    ]);
}

#[test]
fn callbacks_see_what_the_language_says() {
    check(&[
        (
            "const log = []; [5, 6].forEach(function (v, i, a) { log.push(v, i, a.length, this.x); }, { x: 1 }); log.join()",
            "5,0,2,1,6,1,2,1",
        ),
        (
            "const a = [1, 2, 3]; const seen = []; a.forEach((x) => { seen.push(x); if (x === 1) a.pop(); if (x === 2) a.push(9, 9); }); seen.join()",
            "1,2,9",
        ),
        (
            "JSON.stringify([[1, 2, 3].every((x) => x), [0, 1].some((x) => x), [1, 2, 3].find((x) => x > 1), [1, 2].findIndex((x) => x > 5), [1, 2, 3].findLast((x) => x < 3), [1, 2, 3].findLastIndex((x) => x < 3)])",
            "[true,true,2,-1,2,1]",
        ),
        ("[1, 2, 3].reduce((a, b) => a + b) + [1, 2, 3].reduceRight((a, b) => a + '' + b)", "6321"),
        (
            "try { [].reduce((a) => a) } catch (e) { `${e}` }",
            "TypeError: Reduce of empty array with no initial value",
        ),
        ("try { [1].map(undefined) } catch (e) { `${e}` }", "TypeError: undefined is not a function"),
        ("try { [1].forEach({}) } catch (e) { `${e}` }", "TypeError: #<Object> is not a function"),
        (
            "const p = new Proxy([1, , 3], { has(t, k) { log.push('has ' + String(k)); return k in t; }, get(t, k, r) { log.push('get ' + String(k)); return Reflect.get(t, k, r); } }); const log = []; Array.prototype.forEach.call(p, () => {}); log.join()",
            "get length,has 0,get 0,has 1,has 2,get 2",
        ),
        ("[...[1, 2].entries()].join(';') + [...['a', 'b'].keys()] + [...['a'].values()]", "0,1;1,20,1a"),
        (
            "const it = [1, 2][Symbol.iterator](); it.next(); it.next(); const end = it.next(); `${end.done} ${end.value} ${it.next().done} ${Object.prototype.toString.call(it)}`",
            "true undefined true [object Array Iterator]",
        ),
        (
            "const a = [1]; const seen = []; for (const x of a) { seen.push(x); if (x < 4) a.push(x + 1); } seen.join()",
            "1,2,3,4",
        ),
    ]);
}

#[test]
fn sorting_is_stable_and_by_text() {
    check(&[
        ("[10, 9, 1, 100, -1].sort().join()", "-1,1,10,100,9"),
        (
            "['b', undefined, 'a', null, true, 3n, 20].sort().map(String).join()",
            "20,3,a,b,null,true,undefined",
        ),
        ("[3, 1, 2].sort((a, b) => b - a).join()", "3,2,1"),
        (
            "const a = []; for (let i = 0; i < 200; i++) a.push({ k: i % 7, i }); a.sort((x, y) => x.k - y.k); let ok = true; for (let i = 1; i < 200; i++) ok &&= a[i - 1].k < a[i].k || a[i - 1].k === a[i].k && a[i - 1].i < a[i].i; ok",
            "true",
        ),
        (
            "const a = []; for (let i = 0; i < 300; i++) a.push(i * 7919 % 301); `${a.toSorted().join()}` === `${[...a].map(String).sort().join()}`",
            "true",
        ),
        (
            "const a = []; for (let i = 0; i < 1000; i++) a.push(i * 7919 % 1009); a.sort((x, y) => x - y).every((x, i) => !i || a[i - 1] <= x)",
            "true",
        ),
        ("[{ toString() { return 'z'; } }, { toString() { return 'a'; } }].sort().join()", "a,z"),
        (
            "try { [1, 2].sort(5) } catch (e) { `${e}` }",
            "TypeError: The comparison function must be either a function or undefined",
        ),
        ("try { [3, 2, 1].sort(() => { throw 'no'; }) } catch (e) { e }", "no"),
        (
            "[2, 1].sort(() => ({ valueOf() { return 1; } })).join() + [2, 1].sort(() => NaN).join() + [2, 1].sort(() => '1').join()",
            "2,12,12,1",
        ),
        (
            "const a = [5, 4, 3, 2, 1]; a.sort((x, y) => { a.length = 0; return x - y; }); a.join()",
            "1,2,3,4,5",
        ),
        (
            "['é', 'z', 'a', '\\u{10000}', '\\uffff'].sort().map((c) => c.codePointAt(0).toString(16)).join()",
            "61,7a,e9,10000,ffff",
        ),
        (
            "[1e21, 1e-7, 5e-324, 0.1, -0, Infinity, NaN].sort().join()",
            "0,0.1,1e+21,1e-7,5e-324,Infinity,NaN",
        ),
    ]);
}

#[test]
fn the_text_of_an_array() {
    check(&[
        ("[1, null, undefined, [2, [3]], 'x', true, 1n, 0.5].join('-')", "1---2,3-x-true-1-0.5"),
        ("const a = [1]; a.push(a, [a]); `${a}` + a.join('|')", "1,,1||"),
        (
            "[[], {}, [[]]].toString() + [1, 2].toString.call({ join: () => 'joined' }) + Array.prototype.toString.call({})",
            ",[object Object],joined[object Object]",
        ),
        ("[1234.5, new Date(0), [1]].toLocaleString().includes('1,234.5')", "true"),
        ("['ü', 'a', '😀'].join('•')", "ü•a•😀"),
        ("try { [Symbol()].join() } catch (e) { e.name }", "TypeError"),
        ("[,].join() + '|' + [, ,].join() + '|' + new Array(4).join('x')", "|,|xxx"),
    ]);
}

/// 810 sorts of many lengths, shapes and comparators, sensible ones and others: one number for all questions and results.
#[test]
fn a_comparator_is_asked_what_node_asks_it_in_the_same_order() {
    check(&[(
        r"const results = [];
        let seed = 7;
        const random = (n) => (seed = (seed * 16807) % 2147483647) % n;
        const shapes = [(i, n) => random(n), (i) => random(4), (i) => i, (i, n) => n - i, (i) => i % 50 + random(3),
          (i, n) => i < n / 2 ? i * 2 : (i - n / 2) * 2 + (random(20) ? 1 : 50)];
        const orders = [(x, y) => x.k - y.k, (x, y) => y.k - x.k, (x, y) => x.k > y.k, () => 1, () => -1, () => undefined,
          (x, y) => '' + (x.k - y.k), (x, y) => ({ valueOf() { return x.k - y.k; } }), (x, y) => (x.i * 7 + y.i * 13) % 5 - 2];
        for (const n of [0, 1, 2, 3, 10, 31, 32, 33, 63, 64, 65, 100, 200, 500, 1500]) for (const shape of shapes) {
          const list = [];
          for (let i = 0; i < n; i++) list.push({ i, k: shape(i, n) });
          for (const order of orders) {
            let hash = 0, calls = 0, end = 0;
            const sorted = list.toSorted((x, y) => {
              hash = (hash * 31 + x.i * 7 + y.i) % 1000000007;
              calls++;
              return order(x, y);
            });
            for (const v of sorted) end = (end * 31 + v.i) % 1000000007;
            results.push(hash ^ end ^ calls);
          }
        }
        let all = 0;
        for (const r of results) all = (all * 31 + r) % 1000000007;
        results.length + ' ' + all",
        "810 151489020",
    )]);
}
