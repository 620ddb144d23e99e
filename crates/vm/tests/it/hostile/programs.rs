//! The table: what each program tries, and how it may end.

/// One attempt.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) source: fn() -> String,
    /// What the outcome may start with.
    pub(super) ends: &'static [&'static str],
}

const LIMIT: &[&str] = &["limit"];
const FUEL: &[&str] = &["limit instruction"];
const DEPTH: &[&str] = &["limit call depth"];
const FINE: &[&str] = &["value ok"];
const RANGE: &[&str] = &["threw RangeError"];
const TYPE: &[&str] = &["threw TypeError"];
const RANGE_OR_LIMIT: &[&str] = &["threw RangeError", "limit"];
const FINE_OR_LIMIT: &[&str] = &["value ok", "limit"];
const REFUSED: &[&str] = &["refused"];
const FINE_OR_REFUSED: &[&str] = &["value", "refused"];

macro_rules! programs {
    ($($name:literal, $ends:expr, $source:expr;)*) => {
        pub(super) const PROGRAMS: &[Program] =
            &[$(Program { name: $name, ends: $ends, source: || String::from($source) }),*];
    };
}

/// `open` so many times, then the core, then `close` as often.
fn nested(open: &str, core: &str, close: &str, times: usize) -> String {
    format!("{}{core}{}", open.repeat(times), close.repeat(times))
}

const DEEP: &str = "let deep = []; for (let i = 0; i < 100000; i++) deep = [deep];";
const DEEP_OBJECT: &str = "let deep = {}; for (let i = 0; i < 100000; i++) deep = { deep };";

programs! {
    // -- time ------------------------------------------------------------------------------------------------------
    "an endless loop", FUEL, "for (;;);";
    "an endless loop that catches everything", FUEL, "for (;;) { try { for (;;); } catch {} finally { continue; } }";
    "a catastrophic pattern", FUEL, "/(a+)+b/.test('a'.repeat(40))";
    "a catastrophic pattern with a backreference", FUEL, "/(.*)(.*)(.*)(.*)\\1\\2\\3\\4x/.test('ab'.repeat(300))";
    "nested repetitions when compiled", &["value", "limit", "threw SyntaxError", "refused"],
        "/((((a{100}){100}){100}){100}){100}/.test('a')";
    "a pattern of a million", &["value", "limit", "threw SyntaxError"], "new RegExp('a{1000000}').test('a')";
    "zero-width matches everywhere", FINE_OR_LIMIT, "'x'.repeat(1e5).replace(/(?:)/g, 'y').length > 1 ? 'ok' : 'no'";
    "zero-width matches one by one", FINE_OR_LIMIT,
        "let n = 0; for (const m of 'x'.repeat(1e5).matchAll(/(?:)/g)) n++; n === 100001 ? 'ok' : n";
    "endless microtasks", FUEL, "(function f() { Promise.resolve().then(f); })(); await new Promise(() => {});";
    "a thenable that answers itself", LIMIT, "const t = { then(r) { r(t); } }; await t;";
    "a thenable that answers a new one", LIMIT, "const make = () => ({ then(r) { r(make()); } }); await make();";
    "an endless iterator spread", LIMIT, "[...{ [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }]";
    "an endless generator into an array", LIMIT, "Array.from((function* () { for (;;) yield 1; })())";
    "an array-like of all lengths", RANGE_OR_LIMIT, "Array.from({ length: 2 ** 53 })";
    "a search through nothing", LIMIT, "[].indexOf.call({ length: 2 ** 53 - 1 }, 1)";
    "reversing nothing", LIMIT, "[].reverse.call({ length: 2 ** 53 - 1 })";
    "sorting with a comparator that lies", FINE,
        "let n = 0; const a = []; for (let i = 0; i < 5000; i++) a.push(i % 7); a.sort(() => n++ % 3 - 1); a.length === 5000 ? 'ok' : a.length";
    "asking the host for ever", &["asked"], "for (;;) ask(1);";

    // -- memory ----------------------------------------------------------------------------------------------------
    "a long repetition", RANGE_OR_LIMIT, "'ab'.repeat(2 ** 30)";
    "a long repetition that fits a string", LIMIT, "'ab'.repeat(2 ** 27).length";
    "a long padding", RANGE_OR_LIMIT, "'a'.padStart(2 ** 30, 'xy')";
    "doubling a string", RANGE_OR_LIMIT, "let s = 'ab'; for (;;) s += s;";
    "doubling a string and reading it", RANGE_OR_LIMIT, "let s = 'ab'; for (;;) { s += s; s.charCodeAt(1); }";
    "appending for ever", LIMIT, "let s = ''; for (;;) s += 'abcdefgh';";
    "prepending for ever", LIMIT, "let s = ''; for (;;) s = 'abcdefgh' + s;";
    "an array of the largest length", FINE, "Array(2 ** 32 - 1).length === 4294967295 ? 'ok' : 'no'";
    "a length too large", RANGE, "[].length = 2 ** 32";
    "filling a long array", LIMIT, "const a = []; a.length = 2 ** 32 - 1; a.fill(0);";
    "joining a long array", RANGE_OR_LIMIT, "Array(2 ** 31).join('xyz')";
    "joining a long array of nothing", LIMIT, "Array(2 ** 32 - 1).join('').length";
    "sorting a long array", LIMIT, "const a = Array(2 ** 32 - 1); a[5] = 1; a.sort().length";
    "pushing for ever", LIMIT, "const a = []; for (;;) a.push({});";
    "unshifting for ever", LIMIT, "const a = []; for (;;) a.unshift(1);";
    "concatenating an array to itself", RANGE_OR_LIMIT, "let a = [1]; for (;;) a = a.concat(a);";
    "keys for ever", LIMIT, "const o = {}; for (let i = 0; ; i++) o['k' + i] = i;";
    "symbols for ever", LIMIT, "const o = {}; for (;;) o[Symbol()] = 1;";
    "registered symbols for ever", LIMIT, "for (let i = 0; ; i++) Symbol.for('k' + i);";
    "a map for ever", LIMIT, "const m = new Map(); for (let i = 0; ; i++) m.set(i, i);";
    "a map that changes for ever", FUEL, "const m = new Map(); for (let i = 0; ; i++) { m.set(i, i); m.delete(i - 100); }";
    "a set while it is walked", LIMIT, "const s = new Set([0]); for (const v of s) s.add(v + 1);";
    "weak tables in a chain", FINE_OR_LIMIT,
        "const w = new WeakMap(); let first = {}, k = first; for (let i = 0; i < 50000; i++) { const n = {}; w.set(k, n); k = n; } for (let i = 0; i < 1e6; i++) ({}); 'ok'";
    "closures for ever", LIMIT, "let f = () => 0; for (;;) { const g = f; f = () => g; }";
    "a buffer too large", RANGE_OR_LIMIT, "new ArrayBuffer(2 ** 40)";
    "a buffer that is large", RANGE_OR_LIMIT, "new Uint8Array(2 ** 31 - 1)";
    "buffers for ever", RANGE_OR_LIMIT, "const a = []; for (;;) a.push(new Uint8Array(1 << 16));";
    "a power of BigInts", RANGE_OR_LIMIT, "2n ** (2n ** 40n)";
    "squaring a BigInt", RANGE_OR_LIMIT, "let n = 3n; for (;;) n *= n;";
    "shifting a BigInt", RANGE_OR_LIMIT, "1n << (1n << 40n)";
    "a BigInt as text", RANGE_OR_LIMIT, "(3n ** 2000000n).toString().length";
    "garbage at the edge of the limit", FINE_OR_LIMIT,
        "const keep = []; for (let i = 0; i < 150000; i++) keep.push({ i }); for (let i = 0; i < 2e6; i++) ({ i }); 'ok'";
    "promises that nobody settles", LIMIT, "const a = []; for (;;) a.push(new Promise(() => {}));";
    "reactions on one promise", LIMIT, "const p = new Promise(() => {}); for (;;) p.then(() => 1);";
    "errors with stacks for ever", LIMIT, "const a = []; for (;;) a.push(new Error('x'));";
    "all of a million promises", FINE_OR_LIMIT, "await Promise.all(Array.from({ length: 1e6 }, () => 1)); 'ok'";
    "a clone that grows", FINE_OR_LIMIT, "let a = [1]; for (let i = 0; i < 30; i++) a = [structuredClone(a), a]; 'ok'";
    "a replacement that grows", RANGE_OR_LIMIT, "let s = 'x'; for (;;) s = s.replaceAll('x', 'xx');";
    "text that grows when split", RANGE_OR_LIMIT, "const a = 'x'.repeat(1e6).split(''); for (;;) a.push(...a);";
    "JSON that grows", RANGE_OR_LIMIT, "let s = 'x'; for (;;) s = JSON.stringify([s, s]);";

    // -- depth -----------------------------------------------------------------------------------------------------
    "recursion", DEPTH, "(function f() { f(); })()";
    "recursion that catches", DEPTH, "(function f() { try { f(); } catch { f(); } finally { f(); } })()";
    "recursion through a getter", DEPTH, "const o = { get x() { return this.x; } }; o.x";
    "recursion through valueOf", DEPTH, "const o = { valueOf() { return +this; } }; +o";
    "recursion through a proxy", DEPTH, "const h = {}; const p = new Proxy({}, h); Object.setPrototypeOf(h, p); p.x";
    "recursion through toString", DEPTH, "const o = { toString() { return `${this}`; } }; `${o}`";
    "recursion through new", DEPTH, "class A { constructor() { new A(); } } new A()";
    "recursion through iteration", DEPTH, "const it = { [Symbol.iterator]() { return [...it]; } }; [...it]";
    "recursion through toJSON", DEPTH, "const o = { toJSON() { return JSON.stringify(this); } }; JSON.stringify(o)";
    "recursion through sort", DEPTH, "(function f() { [1, 2].sort(f); })()";
    "a deep array as text", RANGE_OR_LIMIT, format!("{DEEP} String(deep)");
    "a deep array as JSON", &["value [[[", "threw RangeError", "limit"], format!("{DEEP} JSON.stringify(deep)");
    "a deep object as JSON", &["value {\"deep\"", "threw RangeError", "limit"], format!("{DEEP_OBJECT} JSON.stringify(deep)");
    "a deep array cloned", FINE_OR_LIMIT, format!("{DEEP} structuredClone(deep); 'ok'");
    "a deep object cloned", FINE_OR_LIMIT, format!("{DEEP_OBJECT} structuredClone(deep); 'ok'");
    "a deep array flattened", FINE_OR_LIMIT, format!("{DEEP} deep.flat(Infinity).length === 0 ? 'ok' : 'no'");
    "deep JSON", &["value ok", "limit", "threw"], "JSON.parse('['.repeat(100000) + ']'.repeat(100000)); 'ok'";
    "deep JSON of objects", &["value ok", "limit", "threw"],
        "JSON.parse('{\"a\":'.repeat(100000) + '1' + '}'.repeat(100000)); 'ok'";
    "deep JSON with a reviver", &["value ok", "limit", "threw"],
        "JSON.parse('['.repeat(100000) + ']'.repeat(100000), (k, v) => v); 'ok'";
    "a circle as JSON", TYPE, "const a = []; a.push(a); JSON.stringify(a)";
    "a circle as text", FINE, "const a = [1]; a.push(a); String(a) === '1,' ? 'ok' : String(a)";
    "a circle cloned", FINE, "const a = []; a.push(a); const b = structuredClone(a); b[0] === b && b !== a ? 'ok' : 'no'";
    "a long chain of prototypes", FINE_OR_LIMIT,
        "let o = {}; for (let i = 0; i < 100000; i++) o = Object.create(o); o.x === undefined ? 'ok' : 'no'";
    "a long chain of prototypes, asked often", LIMIT,
        "let o = {}; for (let i = 0; i < 20000; i++) o = Object.create(o); for (let i = 0; ; i++) o['x' + i];";
    "a circle of prototypes", TYPE, "const a = {}; const b = Object.create(a); Object.setPrototypeOf(a, b)";
    "a long chain of proxies", &["limit", "value"], "let p = {}; for (let i = 0; i < 100000; i++) p = new Proxy(p, {}); `${p.x}`";
    "a long chain of bound functions", &["limit", "value ok"],
        "let f = () => 'ok'; for (let i = 0; i < 100000; i++) f = f.bind(null); f()";
    "a long chain of proxies called", &["limit", "value ok"],
        "let f = () => 'ok'; for (let i = 0; i < 100000; i++) f = new Proxy(f, {}); f()";
    "a rope that leans left", FINE_OR_LIMIT, "let s = 'a'; for (let i = 0; i < 200000; i++) s = s + 'bc'; s.indexOf('d') === -1 ? 'ok' : 'no'";
    "a rope that leans right", FINE_OR_LIMIT, "let s = 'a'; for (let i = 0; i < 200000; i++) s = 'bc' + s; s.indexOf('d') === -1 ? 'ok' : 'no'";
    "promises in a long chain", FINE_OR_LIMIT, "let p = Promise.resolve('ok'); for (let i = 0; i < 50000; i++) p = p.then(x => x); await p";
    "promises inside each other", FINE_OR_LIMIT, "let p = Promise.resolve('ok'); for (let i = 0; i < 50000; i++) { const q = p; p = new Promise(r => r(q)); } await p";
    "a generator inside each other", LIMIT, "function* g(n) { yield* g(n + 1); } g(0).next()";
    "a list in a list in a list, freed", FINE_OR_LIMIT, format!("{DEEP} deep = null; for (let i = 0; i < 1e6; i++) ({{}}); 'ok'");

    // -- source ----------------------------------------------------------------------------------------------------
    "sixty thousand terms", &["value 60000", "refused"], (0..60_000).map(|_| "1").collect::<Vec<_>>().join("+");
    "sixty thousand strings", FINE_OR_REFUSED, (0..60_000).map(|_| "'a'").collect::<Vec<_>>().join("+");
    "sixty thousand names", REFUSED_OR_REFERENCE, (0..60_000).map(|_| "a").collect::<Vec<_>>().join("+");
    "sixty thousand commas", FINE_OR_REFUSED, (0..60_000).map(|_| "0").collect::<Vec<_>>().join(",");
    "sixty thousand conditions", FINE_OR_REFUSED, format!("{}0", "1&&".repeat(60_000));
    "a literal of ten thousand elements", &["value 10000", "refused"], format!("[{}].length", "1,".repeat(10_000));
    "a literal of ten thousand keys", &["value 10000", "refused"],
        format!("Object.keys({{{}}}).length", (0..10_000).map(|i| format!("k{i}:1,")).collect::<String>());
    "ten thousand arguments", &["value 10000", "refused"],
        format!("(function () {{ return arguments.length; }})({})", vec!["1"; 10_000].join(","));
    "ten thousand parameters", FINE_OR_REFUSED,
        format!("(function ({}) {{ return 1; }})()", (0..10_000).map(|i| format!("p{i}")).collect::<Vec<_>>().join(","));
    "ten thousand variables", FINE_OR_REFUSED,
        format!("{} v9999", (0..10_000).map(|i| format!("let v{i}={i};")).collect::<String>());
    "ten thousand cases", &["value 9999", "refused"],
        format!("let r; switch (9999) {{ {} }} r", (0..10_000).map(|i| format!("case {i}: r={i}; break;")).collect::<String>());
    "ten thousand functions", FINE_OR_REFUSED, (0..10_000).map(|i| format!("function f{i}(){{return {i}}}")).collect::<String>() + "f9999()";
    "ten thousand members of a class", FINE_OR_REFUSED,
        format!("class A {{ {} }} new A().f9999", (0..10_000).map(|i| format!("f{i}={i};")).collect::<String>());
    "ten thousand links", &["threw TypeError", "refused"], format!("({{}}){}", ".a".repeat(10_000));
    "ten thousand optional links", FINE_OR_REFUSED, format!("({{}}){}", "?.a".repeat(10_000));
    "ten thousand calls", &["threw TypeError", "refused"], format!("(0){}", "()".repeat(10_000));
    "deep parentheses", FINE_OR_REFUSED, nested("(", "1", ")", 10_000);
    "deep arrays", FINE_OR_REFUSED, nested("[", "", "]", 10_000);
    "deep objects", FINE_OR_REFUSED, format!("({})", nested("{a:", "1", "}", 10_000));
    "deep blocks", FINE_OR_REFUSED, nested("{", "1", "}", 10_000);
    "deep functions", FINE_OR_REFUSED, nested("(function(){", "", "})", 10_000);
    "deep arrows", FINE_OR_REFUSED, format!("{}1", "a=>".repeat(10_000));
    "deep classes", FINE_OR_REFUSED, nested("(class{m(){", "", "}})", 10_000);
    "deep templates", FINE_OR_REFUSED, nested("`${", "1", "}`", 10_000);
    "deep conditionals", FINE_OR_REFUSED, format!("{}1", "1?1:".repeat(10_000));
    "deep conditionals on the other side", FINE_OR_REFUSED, format!("{}1{}", "1?".repeat(10_000), ":1".repeat(10_000));
    "deep negations", FINE_OR_REFUSED, format!("{}1", "!".repeat(10_000));
    "deep powers", FINE_OR_REFUSED, format!("{}1", "1**".repeat(10_000));
    "deep assignments", FINE_OR_REFUSED, format!("let a; {}1", "a=".repeat(10_000));
    "deep patterns", &["value", "refused", "threw TypeError"], format!("let {} = 1", nested("[", "a", "]", 10_000));
    "deep object patterns", &["value", "refused", "threw TypeError"], format!("let {} = 1", nested("{a:", "a", "}", 10_000));
    "deep loops", FINE_OR_REFUSED, format!("{};", "while(0)".repeat(10_000));
    "deep conditions", FINE_OR_REFUSED, format!("{};", "if(1)".repeat(10_000));
    "deep labels", FINE_OR_REFUSED, (0..10_000).map(|i| format!("l{i}:")).collect::<String>() + ";";
    "deep tries", FINE_OR_REFUSED, nested("try{", "", "}finally{}", 10_000);
    "deep switches", FINE_OR_REFUSED, nested("switch(1){case 1:", "", "}", 10_000);
    "deep news", &["refused", "threw TypeError"], format!("{}1", "new ".repeat(10_000));
    "deep awaits", FINE_OR_REFUSED, format!("{}1", "await ".repeat(10_000));
    "deep spreads", &["value", "refused", "threw TypeError"], nested("[...", "[]", "]", 10_000);
    "deep optional calls", FINE_OR_REFUSED, nested("(0,()=>1)?.(", "1", ")", 10_000);
    "deep groups in a pattern", &["value", "refused", "threw SyntaxError"], format!("/{}/.test('')", nested("(", "a", ")", 10_000));
    "deep lookaheads in a pattern", &["value", "refused", "threw SyntaxError"], format!("/{}/.test('')", nested("(?=", "a", ")", 10_000));
    "deep classes in a pattern", &["value", "refused", "threw SyntaxError"], format!("/{}/v.test('')", nested("[", "a", "]", 10_000));
    "a source of one unfinished string", REFUSED, format!("'{}", "a".repeat(1_000_000));
    "a source of nothing but opening braces", REFUSED, "{".repeat(100_000);

    // -- escape ----------------------------------------------------------------------------------------------------
    "the function constructor by way of a function", &["threw"], "(() => 0).constructor('return 1')()";
    "the function constructor by way of everything", &["threw"], "[].constructor.constructor('return globalThis')()";
    "the generator function constructor", &["threw"], "(function* () {}).constructor('yield 1')()";
    "the async function constructor", &["threw"], "(async () => 0).constructor('return 1')()";
    "eval", &["refused", "threw"], "eval('1')";
    "eval by another name", &["refused", "threw"], "(0, globalThis['ev' + 'al'])('1')";
    "prototypes that iterate differently", FINE,
        "Array.prototype[Symbol.iterator] = function* () { yield 'x'; }; const [a] = [1]; a === 'x' && [...[1, 2]].length === 1 ? 'ok' : a";
    "prototypes that push differently", FINE,
        "Array.prototype.push = () => { throw 1; }; [3, 1, 2].map(x => x).sort().join() === '1,2,3' ? 'ok' : 'no'";
    "setters on the prototypes of everything", FINE,
        "for (let i = 0; i < 10; i++) Object.defineProperty(Object.prototype, i, { set() { throw 1; }, get() { return 7; }, configurable: true }); [3, 1, 2].map(x => x).filter(x => x).concat([1]).join() === '3,1,2,1' ? 'ok' : 'no'";
    "a then on the prototype of everything", FINE_OR_LIMIT,
        "Object.defineProperty(Object.prototype, 'then', { get() { return undefined; }, configurable: true }); (await (async () => ({}))()) && 'ok'";
    "descriptors from the prototype of everything", &["value", "threw TypeError"],
        "Object.prototype.get = () => 5; const o = {}; Object.defineProperty(o, 'x', { value: 1 }); o.x";
    "globals that are replaced", FINE,
        "globalThis.Array = globalThis.Object = globalThis.Promise = undefined; (await (async () => [1, 2].map(x => x * 2).join())()) === '2,4' ? 'ok' : 'no'";
    "a species that lies", &["value", "threw", "limit"],
        "class A extends Array { static get [Symbol.species]() { return function () { return {}; }; } } new A(1, 2, 3).map(x => x).length";
    "a length that lies", FINE_OR_LIMIT, "let n = 0; [].slice.call({ get length() { return n++ ? 1e9 : 3; } }); 'ok'";
    "an array that shrinks while it is sorted", &["value", "threw"],
        "const a = []; for (let i = 0; i < 100; i++) a.push(i); a.sort((x, y) => { a.length = 0; return y - x; }); a.length";
    "an array that shrinks while it is mapped", &["value"], "const a = [1, 2, 3, 4]; a.map(x => { a.length = 1; return x; }).length";
    "a buffer that is detached while it is filled", &["value", "threw TypeError"],
        "const b = new ArrayBuffer(8, { maxByteLength: 64 }); const t = new Uint8Array(b); t.fill({ valueOf() { b.resize(0); return 1; } }); t.length";
    "an iterator that never returns properly", &["value", "threw", "limit"],
        "const it = { [Symbol.iterator]: () => ({ next: () => ({ value: 1, done: false }), return: () => { throw 2; } }) }; for (const x of it) break;";
}

const REFUSED_OR_REFERENCE: &[&str] = &["refused", "threw ReferenceError"];
