//! Programs of a grammar: bytes choose productions, so that a fuzzer can steer, and nothing in them depends on the clock,
//! on chance, on error messages or on the text of functions. So any two engines must print the same.

use crate::Choices;

/// Which built-ins may appear.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// What we have.
    Ours,
    /// What node 20 has too, in a context of its own.
    Common,
}

/// A script that calls `print` with strings only. Every loop is bounded and every statement is guarded.
pub fn program(bytes: &[u8], library: Library) -> String {
    let mut g = Generator { choices: Choices::new(bytes), library, depth: 0, names: 0, generators: 0 };
    let mut out = String::from(SHOW);
    let count = 3 + usize::from(g.choices.byte() % 10);
    for _ in 0..count {
        let statement = g.statement();
        out.push_str(&format!("try {{\n{statement}\n}} catch (e) {{ print('threw ' + show(e)); }}\n"));
    }
    out
}

/// How a value is printed: the same in every engine.
const SHOW: &str = "\
function show(v, d = 0) {
  if (typeof v === 'string') return JSON.stringify(v);
  if (typeof v === 'symbol') return 'symbol ' + String(v.description);
  if (typeof v === 'bigint') return v + 'n';
  if (Object.is(v, -0)) return '-0';
  if (typeof v === 'function') return 'function/' + v.length;
  if (typeof v !== 'object' || v === null) return String(v);
  if (v === Math || v === JSON) return 'built-in';
  if (d > 3) return '...';
  if (v instanceof Error) return v.name;
  if (Array.isArray(v)) { let s = '[', n = Math.min(v.length, 40); for (let i = 0; i < n; i++) s += (i in v ? show(v[i], d + 1) : 'hole') + ','; return s + ']' + v.length; }
  if (v instanceof Map) { let s = 'Map{'; for (const [k, x] of v) s += show(k, d + 1) + '=>' + show(x, d + 1) + ','; return s + '}'; }
  if (v instanceof Set) { let s = 'Set{'; for (const k of v) s += show(k, d + 1) + ','; return s + '}'; }
  if (v instanceof Date) return 'Date ' + v.getTime();
  if (v instanceof RegExp) return String(v);
  let s = Object.prototype.toString.call(v) + '{';
  for (const k of Reflect.ownKeys(v).slice(0, 20)) { const p = Object.getOwnPropertyDescriptor(v, k); s += (typeof k === 'symbol' ? 'symbol' : k) + (p.enumerable ? '' : '!') + ':' + ('value' in p ? show(p.value, d + 1) : 'accessor') + ','; }
  return s + '}';
}
";

struct Generator<'a> {
    choices: Choices<'a>,
    library: Library,
    depth: u32,
    names: u32,
    /// How many generator functions surround the place.
    generators: u32,
}

const ATOMS: &[&str] = &[
    "0",
    "1",
    "-1",
    "2.5",
    "NaN",
    "-0",
    "Infinity",
    "4294967296",
    "1e21",
    "'abc'",
    "''",
    "'é😀x'",
    "'10'",
    "true",
    "false",
    "null",
    "undefined",
    "10n",
    "-3n",
    "[1, 2, 3]",
    "[]",
    "[3, 1, , 2]",
    "({})",
    "({ a: 1, b: { c: 2 } })",
    "new Map([[1, 'x'], ['k', 2]])",
    "new Set([3, 1, 3])",
    "/b(.)/g",
    "/(?<n>a|b)+/u",
    "Symbol.iterator",
    "new Date(0)",
    "(x => x)",
    "(function (a, b) { return a; })",
    "class { static s = 1; f = 2; m() { return this.f; } }",
    "new Uint8Array([1, 250, 3])",
    "new Float64Array(3)",
    "Object",
    "Array",
    "Math",
    "JSON",
    "String",
    "[[1, [2]], [3]]",
    "'a,b,,c'",
    "(0, Object.create)(null)",
    "new Error('m')",
    "Object.freeze([1, 2])",
    "new Proxy([1, 2], {})",
    "new Proxy({ q: 1 }, { get: (t, k) => k === 'q' ? 9 : t[k] })",
    "(function* () { yield 1; yield 2; })()",
    "new ArrayBuffer(8)",
    "BigInt",
    "new Number(5)",
    "Object('str')",
];

const BINARY: &[&str] = &[
    "+",
    "-",
    "*",
    "/",
    "%",
    "**",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    ">>>",
    "==",
    "===",
    "!=",
    "!==",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "??",
    "in",
    "instanceof",
    ",",
];

const UNARY: &[&str] = &["-", "+", "!", "~", "typeof ", "void "];

const PROPERTIES: &[&str] = &[
    "length",
    "a",
    "b",
    "c",
    "0",
    "1",
    "size",
    "name",
    "constructor",
    "prototype",
    "source",
    "flags",
    "x",
    "lastIndex",
    "description",
];

const METHODS: &[&str] = &[
    "map",
    "filter",
    "reduce",
    "forEach",
    "sort",
    "slice",
    "splice",
    "concat",
    "join",
    "push",
    "pop",
    "shift",
    "unshift",
    "indexOf",
    "includes",
    "find",
    "findLast",
    "flat",
    "flatMap",
    "reverse",
    "fill",
    "at",
    "keys",
    "values",
    "entries",
    "toSorted",
    "with",
    "toReversed",
    "toSpliced",
    "copyWithin",
    "every",
    "some",
    "lastIndexOf",
    "charAt",
    "charCodeAt",
    "codePointAt",
    "split",
    "replace",
    "replaceAll",
    "match",
    "matchAll",
    "search",
    "trim",
    "padStart",
    "padEnd",
    "repeat",
    "substring",
    "startsWith",
    "endsWith",
    "toUpperCase",
    "normalize",
    "localeCompare",
    "get",
    "set",
    "has",
    "add",
    "delete",
    "toString",
    "valueOf",
    "toFixed",
    "toPrecision",
    "test",
    "exec",
    "next",
    "call",
    "apply",
    "bind",
    "hasOwnProperty",
    "subarray",
    "toJSON",
    "toLocaleString",
    "getTime",
    "setMonth",
];

const STATICS: &[&str] = &[
    "Object.keys",
    "Object.entries",
    "Object.assign",
    "Object.fromEntries",
    "Object.getOwnPropertyNames",
    "Object.freeze",
    "Object.isFrozen",
    "Array.from",
    "Array.of",
    "Array.isArray",
    "String",
    "Number",
    "Boolean",
    "BigInt",
    "Symbol",
    "JSON.stringify",
    "JSON.parse",
    "Math.max",
    "Math.min",
    "Math.floor",
    "Math.round",
    "Math.sign",
    "Math.hypot",
    "Number.isInteger",
    "parseInt",
    "parseFloat",
    "Reflect.ownKeys",
    "Reflect.get",
    "Reflect.set",
    "Reflect.has",
    "Reflect.construct",
    "String.fromCharCode",
    "String.raw",
    "encodeURIComponent",
    "decodeURIComponent",
    "Object.is",
    "Number",
    "Object.getOwnPropertyDescriptors",
    "Object.defineProperty",
    "Promise.resolve",
    "new Map",
    "new Set",
    "new Array",
    "new Date",
    "new RegExp",
    "new Uint8Array",
    "new Proxy",
    "Reflect.apply",
    "Reflect.defineProperty",
    "BigInt.asUintN",
];

const NEWER_METHODS: &[&str] = &["union", "isSubsetOf", "take", "drop", "toArray", "symmetricDifference"];

const NEWER_STATICS: &[&str] =
    &["Object.groupBy", "Map.groupBy", "structuredClone", "Iterator.from", "Promise.try"];

impl Generator<'_> {
    /// One of `common`, or now and then of `newer` where that is allowed.
    fn pick_from(&mut self, common: &[&'static str], newer: &[&'static str]) -> &'static str {
        match self.library == Library::Ours && self.choices.byte().is_multiple_of(16) {
            true => self.pick(newer),
            false => self.pick(common),
        }
    }

    fn pick(&mut self, options: &[&'static str]) -> &'static str {
        self.choices.pick(options)
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    /// A name that is bound on the way here, mostly.
    fn name(&mut self) -> String {
        let n = u32::from(self.choices.byte()) % (self.names + 1);
        if n == 0 { "undefined".to_owned() } else { format!("v{n}") }
    }

    fn statement(&mut self) -> String {
        self.depth += 1;
        let deep = self.depth > 5;
        let text = match self.choices.byte() % if deep { 3 } else { 18 } {
            0 => format!("print(show({}));", self.expression()),
            1 => {
                let value = self.expression();
                let name = self.new_name();
                format!("var {name} = {value}; print(show({name}));")
            }
            2 => format!("{};", self.assignment()),
            3 => format!(
                "if ({}) {{ {} }} else {{ {} }}",
                self.expression(),
                self.statement(),
                self.statement()
            ),
            4 => {
                let name = self.new_name();
                let body = self.statement();
                format!("for (let {name} = 0; {name} < 4; {name}++) {{ {body} }}")
            }
            5 => {
                let iterable = self.expression();
                let name = self.new_name();
                format!(
                    "{{ let n = 0; for (const {name} of {iterable}) {{ {} if (++n > 9) break; }} }}",
                    self.statement()
                )
            }
            6 => {
                let object = self.expression();
                let name = self.new_name();
                format!("for (const {name} in {object}) {{ {} }}", self.statement())
            }
            7 => {
                let body = self.statement();
                let name = self.new_name();
                format!(
                    "try {{ {body} throw {}; }} catch ({name}) {{ print(show({name})); }} finally {{ print('f'); {} }}",
                    self.expression(),
                    self.statement()
                )
            }
            8 => {
                let name = self.new_name();
                let (body, result) = (self.statement(), self.expression());
                format!(
                    "function {name}(a, b = 2, ...c) {{ {body} return {result}; }} print(show({name}(1, undefined, 3)));"
                )
            }
            9 => {
                self.generators += 1;
                let (body, result) = (self.statement(), self.expression());
                self.generators -= 1;
                let name = self.new_name();
                format!(
                    "function* {name}(a) {{ const r = yield a; {body} yield {result}; return r; }} print(show([...{name}(1)]));"
                )
            }
            10 => {
                let (field, method) = (self.expression(), self.expression());
                let name = self.new_name();
                format!(
                    "class {name} {{ #p = {field}; get g() {{ return this.#p; }} m(a) {{ return {method}; }} static s = 1; }} print(show(new {name}().g)); print(show(new {name}().m(2)));"
                )
            }
            11 => {
                let value = self.expression();
                let (a, b) = (self.new_name(), self.new_name());
                format!("var {{ a: {a} = 5, ...{b} }} = {value}; print(show([{a}, {b}]));")
            }
            12 => {
                let value = self.expression();
                let (a, b) = (self.new_name(), self.new_name());
                format!("var [{a}, , {b} = 7] = {value}; print(show([{a}, {b}]));")
            }
            13 => format!(
                "switch ({}) {{ case {}: {} break; default: {} }}",
                self.expression(),
                self.expression(),
                self.statement(),
                self.statement()
            ),
            14 => {
                let label = self.new_name();
                let body = self.statement();
                format!(
                    "l{label}: for (let i = 0; i < 3; i++) {{ for (;;) {{ {body} if (i) continue l{label}; break l{label}; }} }}"
                )
            }
            15 => format!("{{ {} {} }}", self.statement(), self.statement()),
            16 => format!(
                "(async () => {{ print(show(await {})); {} }})().catch(e => print('rejected ' + show(e)));",
                self.expression(),
                self.statement()
            ),
            _ => {
                let (object, value) = (self.expression(), self.expression());
                format!("print(show({object}.{} = {value}));", self.property())
            }
        };
        self.depth -= 1;
        text
    }

    fn assignment(&mut self) -> String {
        let value = self.expression();
        let operator = self.pick(&["=", "+=", "-=", "*=", "??=", "||=", "&&=", "**=", ">>>="]);
        match self.names {
            0 => value,
            _ => format!("{} {operator} {value}", self.name().replace("undefined", "v1")),
        }
    }

    fn property(&mut self) -> &'static str {
        match self.pick(PROPERTIES) {
            "0" => "a",
            "1" => "b",
            name => name,
        }
    }

    fn expression(&mut self) -> String {
        self.depth += 1;
        let text = if self.depth > 7 {
            self.atom()
        } else {
            match self.choices.byte() % 20 {
                0..=4 => self.atom(),
                5 => self.name(),
                6 | 7 => {
                    let operator = self.pick(BINARY);
                    format!("({} {operator} {})", self.expression().replace("**", "*"), self.expression())
                }
                8 => format!("({}({}))", self.pick(UNARY), self.expression()),
                9 => format!("({} ? {} : {})", self.expression(), self.expression(), self.expression()),
                10 => format!("({}).{}", self.expression(), self.property()),
                11 => format!("({})?.[{}]", self.expression(), self.expression()),
                12..=14 => {
                    let (object, method) = (self.expression(), self.pick_from(METHODS, NEWER_METHODS));
                    format!("({object}).{method}({})", self.arguments())
                }
                15 | 16 => format!("{}({})", self.pick_from(STATICS, NEWER_STATICS), self.arguments()),
                17 => format!("[{}, ...[{}], {}]", self.expression(), self.expression(), self.expression()),
                18 => format!(
                    "({{ a: {}, [{}]: {}, get c() {{ return {}; }}, ...{} }})",
                    self.expression(),
                    self.atom(),
                    self.expression(),
                    self.atom(),
                    self.atom()
                ),
                _ => format!("`<${{show({})}}>`", self.expression()),
            }
        };
        self.depth -= 1;
        text
    }

    fn arguments(&mut self) -> String {
        match self.choices.byte() % 8 {
            0 => String::new(),
            1..=3 => self.expression(),
            4 | 5 => format!("{}, {}", self.expression(), self.expression()),
            6 => format!(
                "(a, b) => {}",
                self.pick(&[
                    "a",
                    "b",
                    "a - b",
                    "a < b ? -1 : 1",
                    "a + b",
                    "[a, b]",
                    "!a",
                    "a > 1",
                    "{ throw a; }"
                ])
            ),
            _ => format!(
                "function (a) {{ return this === undefined ? a : {}; }}, {}",
                self.atom(),
                self.atom()
            ),
        }
    }

    fn atom(&mut self) -> String {
        self.pick(ATOMS).to_owned()
    }
}
