//! Objects, functions, proxies, errors and symbols: what node makes of each script (and, in three of them, what
//! the language says where node 20 does not do it yet).

use super::{LIMITS, check, eval};
use outrigger_vm::exec::{Limits, Step, Vm};

#[test]
fn objects_list_their_properties_in_the_order_of_the_language() {
    check(&[
        ("Object.keys({b: 1, a: 2, 1: 3, 0: 4}).join()", "0,1,b,a"),
        ("Object.getOwnPropertyNames('ab').join()", "0,1,length"),
        ("Object.getOwnPropertyNames([1, 2]).join()", "0,1,length"),
        (
            "Reflect.ownKeys({b: 1, [Symbol.iterator]: 1, 2: 1, a: 1}).map(String).join()",
            "2,b,a,Symbol(Symbol.iterator)",
        ),
        ("Object.entries({x: 1, y: [2]}).join(';')", "x,1;y,2"),
        ("Object.values('héö').join('')", "héö"),
        ("Object.entries({get a() { return 7; }}).join()", "a,7"),
        ("const o = {a: 1, b: 2}; delete o.a; o.a = 3; Object.keys(o).join()", "b,a"),
        ("Object.keys(Object.defineProperty({a: 1}, 'hidden', {value: 1})).join()", "a"),
        ("Object.getOwnPropertyNames(new Error('m')).join()", "stack,message"),
        ("Object.getOwnPropertyNames(function f(a, b) {}).sort().join()", "length,name,prototype"),
        ("Object.keys(Object.assign([], {a: 1, 5: 2})).join()", "5,a"),
    ]);
}

#[test]
fn descriptors_are_read_and_written_field_by_field() {
    check(&[
        (
            "JSON.stringify(Object.getOwnPropertyDescriptor({a: 1}, 'a'))",
            r#"{"value":1,"writable":true,"enumerable":true,"configurable":true}"#,
        ),
        (
            "JSON.stringify(Object.getOwnPropertyDescriptors({a: 1, get b() { return 1; }}))",
            r#"{"a":{"value":1,"writable":true,"enumerable":true,"configurable":true},"b":{"enumerable":true,"configurable":true}}"#,
        ),
        (
            "JSON.stringify(Object.getOwnPropertyDescriptor('abc', 'length'))",
            r#"{"value":3,"writable":false,"enumerable":false,"configurable":false}"#,
        ),
        (
            "JSON.stringify(Object.getOwnPropertyDescriptor(new String('wide ☃'), 5))",
            r#"{"value":"☃","writable":false,"enumerable":true,"configurable":false}"#,
        ),
        (
            "const o = Object.defineProperty({}, 'x', {value: 1}); try { o.x = 2; } catch (e) { e instanceof TypeError }",
            "true",
        ),
        (
            "const o = Object.defineProperty({}, 'x', {get: () => 1, configurable: true}); Object.defineProperty(o, 'x', {value: 5}); JSON.stringify(Object.getOwnPropertyDescriptor(o, 'x'))",
            r#"{"value":5,"writable":false,"enumerable":false,"configurable":true}"#,
        ),
        (
            "try { Object.defineProperty(Object.freeze({a: 1}), 'a', {value: 2}) } catch (e) { e.message }",
            "Cannot redefine property: a",
        ),
        (
            "try { Object.defineProperty({}, 'x', {get() {}, value: 1}) } catch (e) { e instanceof TypeError }",
            "true",
        ),
        (
            "try { Object.defineProperty({}, 'x', {get: 1}) } catch (e) { e.message }",
            "Getter must be a function: 1",
        ),
        (
            "const log = []; Object.defineProperty({}, {toString() { log.push('key'); return 'k'; }}, {get value() { log.push('value'); return 1; }, get enumerable() { log.push('enumerable'); return 1; }}); log.join()",
            "key,enumerable,value",
        ),
        ("const a = [1, 2, 3]; Object.defineProperty(a, 'length', {value: 1}); a.join() + a.length", "11"),
        ("let n = 0; const a = []; a.length = {valueOf() { n++; return 3; }}; a.length + ',' + n", "3,2"),
        ("try { [].length = -1 } catch (e) { e.name + e.message }", "RangeErrorInvalid array length"),
        ("const a = Object.freeze([1, 2]); try { a.push(3) } catch (e) { e instanceof TypeError }", "true"),
        (
            "const a = [1, 2, 3]; Object.defineProperty(a, 1, {configurable: false}); try { a.length = 0 } catch (e) { a.length }",
            "2",
        ),
    ]);
}

#[test]
fn what_is_closed_stays_closed() {
    check(&[
        (
            "[Object.isFrozen(Object.freeze({a: 1})), Object.isSealed(Object.seal({a: 1})), Object.isFrozen(Object.seal({a: 1})), Object.isExtensible(Object.preventExtensions({}))].join()",
            "true,true,false,false",
        ),
        ("Object.isFrozen(1) && Object.isSealed('s') && !Object.isExtensible(null)", "true"),
        ("const o = Object.freeze({a: {b: 1}}); o.a.b = 2; o.a.b", "2"),
        ("try { Object.freeze({a: 1}).a = 2 } catch (e) { e.name }", "TypeError"),
        (
            "try { Object.freeze({a: 1}).b = 2 } catch (e) { e.message }",
            "Cannot add property b, object is not extensible",
        ),
        ("try { delete Object.freeze({a: 1}).a } catch (e) { e.name }", "TypeError"),
        ("try { Object.setPrototypeOf(Object.preventExtensions({}), {}) } catch (e) { e.name }", "TypeError"),
        (
            "try { const a = {}; const b = Object.create(a); Object.setPrototypeOf(a, b) } catch (e) { e.name }",
            "TypeError",
        ),
        ("try { Object.setPrototypeOf(Object.prototype, {}) } catch (e) { e.name }", "TypeError"),
        (
            "Reflect.setPrototypeOf(Object.prototype, {}) + ',' + Reflect.set(Object.freeze({a: 1}), 'a', 2)",
            "false,false",
        ),
    ]);
}

#[test]
fn static_methods_of_object_have_their_values() {
    check(&[
        (
            "JSON.stringify(Object.assign({a: 1}, null, {b: 2}, 'xy', undefined))",
            r#"{"0":"x","1":"y","a":1,"b":2}"#,
        ),
        (
            "const log = []; Object.assign({set a(v) { log.push('set ' + v); }}, {get a() { log.push('get'); return 1; }}); log.join()",
            "get,set 1",
        ),
        ("JSON.stringify(Object.fromEntries(new Map([['a', 1], ['b', 2]])))", r#"{"a":1,"b":2}"#),
        (
            "try { Object.fromEntries([1]) } catch (e) { e.message }",
            "Iterator value 1 is not an entry object",
        ),
        (
            "const g = Object.groupBy([1, 2, 3], n => n % 2 ? 'odd' : 'even'); JSON.stringify(g) + Object.getPrototypeOf(g)",
            r#"{"odd":[1,3],"even":[2]}null"#,
        ),
        ("[Object.is(NaN, NaN), Object.is(0, -0), Object.is('a', 'a')].join()", "true,false,true"),
        (
            "Object.hasOwn({a: 1}, 'a') + ',' + Object.hasOwn('abc', 1) + ',' + Object.hasOwn([], 'length')",
            "true,true,true",
        ),
        ("Object.create({a: 1}, {b: {value: 2, enumerable: true}}).a", "1"),
        ("Object.getPrototypeOf(Object.create(null)) + ''", "null"),
        (
            "try { Object.create(1) } catch (e) { e.message }",
            "Object prototype may only be an Object or null: 1",
        ),
        ("try { Object.keys(null) } catch (e) { e.message }", "Cannot convert undefined or null to object"),
        (
            "[new Object(1), new Object('s'), Object(true), Object(null)].map(o => typeof o + Object.prototype.toString.call(o)).join()",
            "object[object Number],object[object String],object[object Boolean],object[object Object]",
        ),
        (
            "class A extends Object { constructor() { super(1); } } Object.getPrototypeOf(new A()) === A.prototype && Object.keys(new A()).length",
            "0",
        ),
    ]);
}

#[test]
fn object_prototype_answers_for_everything() {
    check(&[
        (
            "[1, 's', null, undefined, [], () => 1, new Date(0), /x/, new Error(), true, Symbol(), 1n, new Map(), new Proxy([], {}), (function () { return arguments; })(), Math, JSON].map(v => Object.prototype.toString.call(v)).join()",
            "[object Number],[object String],[object Null],[object Undefined],[object Array],[object Function],[object Date],[object RegExp],[object Error],[object Boolean],[object Symbol],[object BigInt],[object Map],[object Array],[object Arguments],[object Math],[object JSON]",
        ),
        ("class A { get [Symbol.toStringTag]() { return 'Mine'; } } String(new A())", "[object Mine]"),
        (
            "[].hasOwnProperty('length') + ',' + 'abc'.hasOwnProperty(1) + ',' + ({}).hasOwnProperty.call('abc', 3)",
            "true,true,false",
        ),
        (
            "Object.prototype.isPrototypeOf.call(Array.prototype, []) + ',' + Array.prototype.isPrototypeOf(1)",
            "true,false",
        ),
        ("[1].propertyIsEnumerable(0) + ',' + [1].propertyIsEnumerable('length')", "true,false"),
        (
            "(5).toLocaleString === Object.prototype.toLocaleString || ({toString: () => 'x'}).toLocaleString()",
            "x",
        ),
        ("({__proto__: {a: 1}}).a + ',' + ({}).__proto__ === Object.prototype", "false"),
        ("const o = {}; o.__proto__ = {inherited: 1}; o.inherited + Object.keys(o).length", "1"),
        (
            "const o = {}; o.__defineGetter__('x', () => 5); o.x + ',' + typeof o.__lookupGetter__('x') + ',' + o.__lookupSetter__('x')",
            "5,function,undefined",
        ),
    ]);
}

#[test]
fn functions_can_be_called_in_every_way() {
    check(&[
        ("(function (a, b) { return this.k + a + b; }).call({k: 1}, 2, 3)", "6"),
        ("(function (a, b) { return this.k + a + b; }).apply({k: 1}, [2, 3])", "6"),
        ("(function () { return arguments.length; }).apply(null, {length: 3, 0: 1})", "3"),
        ("Math.max.apply(null, Array.from({length: 5000}, (_, i) => i))", "4999"),
        (
            "(function () { return arguments.length; }).call(...Array.from({length: 1000}, (_, i) => i))",
            "999",
        ),
        ("try { (() => 1).call.call(1) } catch (e) { e.name }", "TypeError"),
        (
            "try { (() => 1).apply(null, 1) } catch (e) { e.message }",
            "CreateListFromArrayLike called on non-object",
        ),
        (
            "const b = function f(a, b, c) { return [this.k, a, b, c].join(); }.bind({k: 0}, 1, 2); [b(3), b.name, b.length, 'prototype' in b].join()",
            "0,1,2,3,bound f,1,false",
        ),
        (
            "class A { constructor(x, y) { this.s = x + y; this.t = new.target === A; } } const B = A.bind(null, 1); const b = new B(2); [b.s, b.t, b instanceof A, b instanceof B].join()",
            "3,true,true,true",
        ),
        (
            "class A {} class B extends A.bind(null) { } try { new B() } catch (e) { e.name }",
            "threw TypeError: Class extends value does not have valid prototype property undefined",
        ),
        ("(() => 1).bind().bind().name", "bound bound "),
        (
            "const f = () => 1; Object.defineProperty(f, 'length', {value: Infinity}); f.bind(null, 1).length",
            "Infinity",
        ),
        ("let f = x => x + 1; for (let i = 0; i < 2000; i++) f = f.bind(null); f(1)", "2"),
        ("(function named(a, b) { return a; }).toString()", "function named(a, b) { return a; }"),
        ("String(class A { m() {} })", "class A { m() {} }"),
        ("const {m} = {m(a) { return a; }}; String(m)", "m(a) { return a; }"),
        (
            "String(Math.max) + String((() => 1).bind())",
            "function max() { [native code] }function () { [native code] }",
        ),
        ("try { (() => 1).toString.call({}) } catch (e) { e.name }", "TypeError"),
        (
            "const F = Object.getPrototypeOf(() => 1); Object.getOwnPropertyNames(F).includes('constructor') && typeof F",
            "function",
        ),
        ("try { (() => 1).caller } catch (e) { e.name }", "TypeError"),
        ("try { (function () { return arguments.callee; })() } catch (e) { e.name }", "TypeError"),
    ]);
}

#[test]
fn instanceof_asks_the_right_side() {
    check(&[
        ("[] instanceof Object && [] instanceof Array && !([] instanceof Map)", "true"),
        ("1 instanceof Number", "false"),
        ("({}) instanceof {[Symbol.hasInstance]: v => 'x'}", "true"),
        (
            "class Even { static [Symbol.hasInstance](n) { return n % 2 === 0; } } [1 instanceof Even, 2 instanceof Even].join()",
            "false,true",
        ),
        (
            "try { ({}) instanceof {} } catch (e) { e.message }",
            "Right-hand side of 'instanceof' is not callable",
        ),
        ("try { ({}) instanceof 1 } catch (e) { e.name }", "TypeError"),
        ("function F() {} F.prototype = 1; try { ({}) instanceof F } catch (e) { e.name }", "TypeError"),
        ("function F() {} F.prototype = 1; 1 instanceof F", "false"),
        ("const p = new Proxy({}, {getPrototypeOf: () => Array.prototype}); p instanceof Array", "true"),
        (
            "const o = Object.create(new Proxy({}, {getPrototypeOf: () => Map.prototype})); o instanceof Map",
            "true",
        ),
        ("const h = (() => 1)[Symbol.hasInstance]; h.call(Array, []) + ',' + h.call(1, [])", "true,false"),
    ]);
}

#[test]
fn errors_carry_what_they_were_given() {
    check(&[
        (
            "const e = new RangeError('m', {cause: 1}); [e.name, e.message, e.cause, 'cause' in new Error('x'), e instanceof Error, String(e)].join()",
            "RangeError,m,1,false,true,RangeError: m",
        ),
        (
            "[EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map(E => E.prototype.name + Object.getPrototypeOf(E).name + E.length).join()",
            "EvalErrorError1,RangeErrorError1,ReferenceErrorError1,SyntaxErrorError1,TypeErrorError1,URIErrorError1",
        ),
        ("new AggregateError([1, 2], 'm', {cause: 0}).errors.join() + AggregateError.length", "1,22"),
        (
            "Error('no new') instanceof Error && Object.prototype.toString.call(TypeError('x'))",
            "[object Error]",
        ),
        ("new Error({toString: () => 'converted'}).message", "converted"),
        (
            "Object.hasOwn(new Error(), 'message') + ',' + Object.hasOwn(new Error(undefined), 'message') + ',' + new Error('').message",
            "false,false,",
        ),
        (
            "JSON.stringify(Object.getOwnPropertyDescriptor(new Error('x'), 'message'))",
            r#"{"value":"x","writable":true,"enumerable":false,"configurable":true}"#,
        ),
        (
            "Error.prototype.toString.call({name: 'N', message: 'M'}) + Error.prototype.toString.call({}) + Error.prototype.toString.call({name: '', message: 'm'})",
            "N: MErrorm",
        ),
        (
            "class Mine extends TypeError { constructor(m) { super(m); this.name = 'Mine'; } } const e = new Mine('x'); [String(e), e instanceof TypeError].join()",
            "Mine: x,true",
        ),
        ("typeof new Error('x').stack", "string"),
        ("const o = {}; Error.captureStackTrace(o); typeof o.stack", "string"),
        (
            "try { null.foo } catch (e) { e.constructor === TypeError && e.message }",
            "Cannot read properties of null (reading 'foo')",
        ),
    ]);
}

#[test]
fn symbols_are_keys_with_names() {
    check(&[
        (
            "[String(Symbol('a')), Symbol('a').description, Symbol().description, Symbol.for('k') === Symbol.for('k'), Symbol.keyFor(Symbol.for('k')), Symbol.keyFor(Symbol('k'))].join()",
            "Symbol(a),a,,true,k,",
        ),
        ("try { new Symbol() } catch (e) { e.message }", "Symbol is not a constructor"),
        ("try { Symbol() + '' } catch (e) { e.message }", "Cannot convert a Symbol value to a string"),
        ("try { +Symbol() } catch (e) { e.message }", "Cannot convert a Symbol value to a number"),
        ("Object(Symbol.iterator) == Symbol.iterator", "true"),
        ("Object.getOwnPropertySymbols({[Symbol('x')]: 1, a: 1}).length", "1"),
        ("Symbol.length + Symbol.name + typeof Symbol.prototype[Symbol.toPrimitive]", "0Symbolfunction"),
        (
            "Object.getOwnPropertyNames(Symbol).sort().filter(n => n !== 'dispose' && n !== 'asyncDispose').join()",
            "asyncIterator,for,hasInstance,isConcatSpreadable,iterator,keyFor,length,match,matchAll,name,prototype,replace,search,species,split,toPrimitive,toStringTag,unscopables",
        ),
    ]);
}

#[test]
fn proxies_ask_their_handlers() {
    check(&[
        ("const p = new Proxy({a: 1}, {get: (t, k, r) => r === p ? k + t.a : 0}); p.x", "x1"),
        (
            "const log = []; const h = new Proxy({}, {get(t, name) { return (...args) => { log.push(name); return Reflect[name](...args); }; }}); const p = new Proxy({a: 1}, h); p.a; p.b = 1; 'a' in p; delete p.a; Object.keys(p); Object.getPrototypeOf(p); Object.isExtensible(p); Object.preventExtensions(p); ({...p}); JSON.stringify(p); log.join()",
            "get,set,getOwnPropertyDescriptor,defineProperty,has,deleteProperty,ownKeys,getOwnPropertyDescriptor,getPrototypeOf,isExtensible,preventExtensions,ownKeys,getOwnPropertyDescriptor,get,get,ownKeys,getOwnPropertyDescriptor,get",
        ),
        (
            "const p = new Proxy(function () { return 1; }, {}); [p(), typeof p, new p() instanceof p].join()",
            "1,function,true",
        ),
        (
            "new Proxy(class { constructor(x) { this.x = x; } }, {construct: (t, a, n) => Reflect.construct(t, [a[0] * 2], n)}).prototype !== undefined && new (new Proxy(class { constructor(x) { this.x = x; } }, {construct: (t, a, n) => Reflect.construct(t, [a[0] * 2], n)}))(4).x",
            "8",
        ),
        ("try { new (new Proxy(class {}, {construct: () => 1}))() } catch (e) { e.name }", "TypeError"),
        (
            "const {proxy, revoke} = Proxy.revocable({a: 1}, {}); const before = proxy.a; revoke(); revoke(); try { proxy.a } catch (e) { before + e.message }",
            "1Cannot perform 'get' on a proxy that has been revoked",
        ),
        (
            "const {proxy, revoke} = Proxy.revocable([], {}); revoke(); try { Array.isArray(proxy) } catch (e) { e.name + typeof proxy }",
            "TypeErrorobject",
        ),
        ("Array.isArray(new Proxy(new Proxy([], {}), {}))", "true"),
        (
            "const p = new Proxy(Object.freeze({a: 1}), {get: () => 2}); try { p.a } catch (e) { e.name }",
            "TypeError",
        ),
        (
            "const p = new Proxy(Object.freeze({a: 1}), {has: () => false}); try { 'a' in p } catch (e) { e.name }",
            "TypeError",
        ),
        (
            "const p = new Proxy(Object.freeze({a: 1}), {ownKeys: () => []}); try { Object.keys(p) } catch (e) { e.name }",
            "TypeError",
        ),
        (
            "const p = new Proxy({}, {ownKeys: () => ['a', 'a']}); try { Object.keys(p) } catch (e) { e.name }",
            "TypeError",
        ),
        (
            "const p = new Proxy({}, {getOwnPropertyDescriptor: () => ({configurable: false, value: 1})}); try { Object.getOwnPropertyDescriptor(p, 'x') } catch (e) { e.name }",
            "TypeError",
        ),
        (
            "const p = new Proxy({}, {set: () => false}); try { p.a = 1 } catch (e) { e.message }",
            "'set' on proxy: trap returned falsish for property 'a'",
        ),
        (
            "const p = new Proxy({}, {deleteProperty: () => false}); try { delete p.a } catch (e) { e.message }",
            "'deleteProperty' on proxy: trap returned falsish for property 'a'",
        ),
        (
            "const o = Object.create(new Proxy({}, {get: (t, k) => 'inherited ' + String(k), has: (t, k) => k === 'there'})); [o.x, 'there' in o, 'gone' in o].join()",
            "inherited x,true,false",
        ),
        (
            "const log = []; const o = Object.create(new Proxy({}, {set(t, k, v, r) { log.push(k + v + (r === o)); return true; }})); o.z = 5; log.join() + Object.keys(o).length",
            "z5true0",
        ),
        (
            "const p = new Proxy([1, 2, 3], {}); p.length = 1; p.push(9); JSON.stringify(p) + p.concat([1]).length",
            "[1,9]3",
        ),
        (
            "const a = new Proxy([], {defineProperty(t, k, d) { return Reflect.defineProperty(t, k, {...d, value: d.value * 2}); }}); a[0] = 4; a[0]",
            "8",
        ),
        (
            "class A { #x = 1; static has(o) { return #x in o; } } [A.has(new A()), A.has(new Proxy(new A(), {}))].join()",
            "true,false",
        ),
        (
            "class Base { constructor(o) { return o; } } class D extends Base { f = 3; } const log = []; new D(new Proxy({}, {defineProperty(t, k, d) { log.push(k + d.value); return Reflect.defineProperty(t, k, d); }})); log.join()",
            "f3",
        ),
        (
            "const f = new Proxy(function () {}, {get: (t, k) => k === 'prototype' ? Array.prototype : t[k]}); class D extends f {} new D() instanceof Array",
            "true",
        ),
        (
            "function F() {} const n = new Proxy(F, {get: (t, k) => k === 'prototype' ? Map.prototype : t[k]}); Object.getPrototypeOf(Reflect.construct(F, [], n)) === Map.prototype",
            "true",
        ),
        (
            "let s = ''; for (const k in Object.create(new Proxy({a: 1, b: 2}, {}), {c: {value: 1, enumerable: true}})) s += k; s",
            "cab",
        ),
        (
            "const p = new Proxy({get x() { return this.y; }, y: 1}, {get: (t, k, r) => k === 'y' ? 'trapped' : Reflect.get(t, k, r)}); p.x",
            "trapped",
        ),
    ]);
}

#[test]
fn reflect_is_the_same_without_throwing() {
    check(&[
        (
            "[Reflect.has({a: 1}, 'a'), Reflect.deleteProperty(Object.freeze({a: 1}), 'a'), Reflect.defineProperty(Object.freeze({}), 'a', {value: 1})].join()",
            "true,false,false",
        ),
        ("Reflect.get({get a() { return this.b; }}, 'a', {b: 7})", "7"),
        ("const r = {}; Reflect.set({set a(v) { this.b = v; }}, 'a', 5, r) + ',' + r.b", "true,5"),
        ("const r = {}; Reflect.set({a: 1}, 'a', 5, r) + JSON.stringify(r)", r#"true{"a":5}"#),
        ("Reflect.set({}, 'a', 1, 1) + ',' + Reflect.set({a: 1}, 'a', 2, Object.freeze({}))", "false,false"),
        ("Reflect.apply(Math.max, null, {length: 2, 0: 3, 1: 9})", "9"),
        ("Reflect.construct(function () { this.t = new.target === Array; }, [], Array).t", "true"),
        ("try { Reflect.construct(() => 1, []) } catch (e) { e.name }", "TypeError"),
        ("try { Reflect.ownKeys(1) } catch (e) { e.message }", "Reflect.ownKeys called on non-object"),
        ("Object.prototype.toString.call(Reflect)", "[object Reflect]"),
    ]);
}

#[test]
fn super_and_keys_are_evaluated_in_order() {
    check(&[
        (
            "const log = []; const key = n => ({toString() { log.push(n); return n; }}); const o = {a: 1}; o[key('a')] += 1; delete o[key('b')]; key('c') in o; log.join() + o.a",
            "a,b,c2",
        ),
        (
            "class A { m() { return 'A' + this.n; } get g() { return this.n; } set s(v) { this.n = v; } } class B extends A { n = 1; m() { super.s = 5; return super.m() + super.g + super['g']; } } new B().m()",
            "A555",
        ),
        (
            "const base = {x: 'old'}; const o = {__proto__: base, m() { return super[{toString() { Object.setPrototypeOf(o, {x: 'new'}); return 'x'; }}]; }}; o.m()",
            "old",
        ),
        (
            "class A {} class B extends A { set() { super.z = 3; return Object.keys(this).join(); } } new B().set()",
            "z",
        ),
        (
            "const o = {__proto__: null, m() { return super.x; }}; try { o.m() } catch (e) { e.name }",
            "TypeError",
        ),
        (
            "try { class C extends 5 {} } catch (e) { e.message }",
            "Class extends value 5 is not a constructor or null",
        ),
        ("function F() {} F.prototype = 3; try { class C extends F {} } catch (e) { e.name }", "TypeError"),
        (
            "class N extends null { static s() { return Object.getPrototypeOf(N.prototype); } } N.s() + ''",
            "null",
        ),
    ]);
}

#[test]
fn exotic_objects_keep_their_own_rules() {
    check(&[
        (
            "const s = new String('aé☃'); [s[2], s.length, 1 in s, 3 in s, Object.keys(s).join()].join()",
            "☃,3,true,false,0,1,2",
        ),
        ("const s = new String('ab'); try { s[0] = 'x' } catch (e) { e.name }", "TypeError"),
        ("const s = new String('☃'); try { delete s[0] } catch (e) { e.name }", "TypeError"),
        (
            "const s = new String('☃'); Reflect.defineProperty(s, '0', {value: '☃'}) + ',' + Reflect.defineProperty(s, '0', {value: 'x'})",
            "true,false",
        ),
        (
            "const t = new Uint8Array(2); t[0] = 257; t[5] = 1; t['-0'] = 1; t['1.5'] = 1; t.x = 1; t['1e3x'] = 2; Object.keys(t).join() + t[0] + t[5] + t['-0']",
            "0,1,x,1e3x1undefinedundefined",
        ),
        (
            "const t = new Float64Array([1.5]); t[0] = '2.5'; t[0] + ',' + ('0' in t) + ('1' in t) + ('-0' in t)",
            "2.5,truefalsefalse",
        ),
        (
            "const t = new BigInt64Array(1); t[0] = 5n; try { t[0] = 1 } catch (e) { e.name + t[0] }",
            "TypeError5",
        ),
        ("const t = new Int16Array(1); t[0] = {valueOf: () => 70000}; t[0]", "4464"),
        (
            "const t = new Uint8Array(1); [Reflect.defineProperty(t, 0, {value: 3}), t[0], Reflect.defineProperty(t, 0, {value: 3, writable: false}), Reflect.defineProperty(t, 1, {value: 1}), Reflect.deleteProperty(t, 0), Reflect.deleteProperty(t, 9)].join()",
            "true,3,false,false,false,true",
        ),
        (
            "const o = Object.create(new Uint8Array(1)); o[0] = 5; o[1] = 6; JSON.stringify(o) + o[0] + o[1]",
            r#"{"0":5}5undefined"#,
        ),
        ("(function (a) { arguments[0] = 9; return a + arguments[0] + arguments.length; })(1, 2)", "12"),
        ("(function () { return [...arguments].join() + Object.keys(arguments).join(); })(1, 2)", "1,20,1"),
    ]);
}

/// The instructions that a script costs.
fn cost(source: &str) -> u64 {
    let mut vm = Vm::new(LIMITS, &[]).expect("an empty engine fits");
    vm.load(source).expect("a valid script");
    let before = vm.fuel();
    assert!(matches!(vm.run(), Step::Completed(_)), "{source}");
    before - vm.fuel()
}

#[test]
fn every_step_along_a_long_prototype_chain_is_paid_for() {
    let chain = "let o = {}; for (let i = 0; i < 20000; i++) o = Object.create(o);";
    let making = cost(chain);
    for what in [
        "o.absent",
        "'absent' in o",
        "o[Symbol.iterator]",
        "({}) instanceof Object.assign(() => 1, {prototype: {}}) || o instanceof Map",
        "Reflect.get(o, 'absent')",
        "Object.prototype.isPrototypeOf.call({}, o)",
        "for (const k in o);",
    ] {
        let looking = cost(&format!("{chain} {what}")) - making;
        assert!((19_000..400_000).contains(&looking), "{what} costs {looking}");
    }
}

#[test]
fn a_name_of_a_million_characters_is_paid_for_and_cut_in_messages() {
    let name =
        "const name = 'x'.repeat(1e6) + 'y'; const same = 'x'.repeat(1e6) + 'y'; const o = {[name]: 1};";
    let looking = cost(&format!("{name} o[same]")) - cost(name);
    assert!((10_000..200_000).contains(&looking), "{looking}");
    let message = eval(&format!("{name} try {{ undefined[name]; }} catch (e) {{ e.message.length < 300; }}"));
    assert_eq!(message, "true");
}

#[test]
fn proxies_that_lead_to_each_other_end_with_a_limit() {
    for (script, end) in [
        (
            "const t = {}; const p = new Proxy(t, {}); Object.setPrototypeOf(t, p); p.absent",
            "limit call depth limit exceeded",
        ),
        (
            "let p = {}; for (let i = 0; i < 1e4; i++) p = new Proxy(p, {}); p.absent",
            "limit call depth limit exceeded",
        ),
        ("let p = []; for (let i = 0; i < 1e4; i++) p = new Proxy(p, {}); Array.isArray(p)", "true"),
        ("let f = () => 1; for (let i = 0; i < 1e4; i++) f = f.bind(); f()", "1"),
        ("const h = {}; h.get = new Proxy(() => 1, h); new Proxy({}, h).x", "1"),
    ] {
        assert_eq!(eval(script), end, "{script}");
    }
}

#[test]
fn a_trap_that_never_ends_is_stopped_by_the_budget() {
    let limits = Limits { instructions: 100_000, ..LIMITS };
    for script in [
        "new Proxy({}, {get() { for (;;); }}).x",
        "new Proxy({}, {ownKeys: () => ({length: 2 ** 53})}); Object.keys(new Proxy({}, {ownKeys: () => ({length: 2 ** 53, get 0() { for (;;); }})}))",
        "const o = {get x() { return this.x; }}; for (;;) Object.assign({}, {y: 1})",
    ] {
        let mut vm = Vm::new(limits, &[]).expect("an empty engine fits");
        vm.load(script).expect("a valid script");
        assert!(matches!(vm.run(), Step::Limit(_)), "{script}");
    }
}
