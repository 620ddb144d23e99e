// Language: functions, default and rest parameters, arguments, this, new.target, arrows, recursion, closures.
const log = [];
function f(a, b = a + ask(1), ...c) { return [a, b, c.length, arguments.length, f.length].join(); }
log.push(f(1), f(1, 2), f(1, undefined, 3, 4), f());
const order = []; const g = (a = order.push('a'), { b = order.push('b') } = {}, [c = order.push('c')] = []) => order.join() + a + b + c;
log.push(g(), g(ask(0)), g(1, { b: 2 }, [3]));
function N() { return new.target === N ? 'new' : typeof new.target; }
log.push(typeof new N(), N());
function T() { const arrow = () => [this?.v, arguments[0], new.target === undefined]; return arrow(); }
log.push(T.call({ v: ask(2) }, 'x').join(), String(T()[0]));
log.push((function () { return typeof this; })(), (function () { return this === undefined; })());
const fact = function self(n) { return n < 2 ? 1 : n * self(n - 1); }; log.push(fact(10), fact.name, (() => {}).name, (class {}).name);
const counter = (() => { let n = ask(3); return { inc: () => ++n, get n() { return n; } }; })(); counter.inc(); log.push(counter.n);
log.push(((a, b) => a + b).length, ((...r) => r).length, ((a, b = 1, c) => 0).length);
log.push([1, 2, 3].map((x, i, all) => x * i + all.length + ask(i)).join());
function h(a) { a = ask(9); return arguments[0] + a; } log.push(h(1));
log.push((function () { return Array.prototype.slice.call(arguments, 1).join(); })(1, 2, ask(4)));
const compose = (...fs) => x => fs.reduceRight((v, fn) => fn(v), x); log.push(compose(x => x + 1, x => x * 2, ask)(1));
log.push(f.call(null, 1, 2), f.apply(null, [1, ask(5)]), f.bind(null, 7)(8), f.bind(null, 7).name);
const attempt = fn => { try { return fn(); } catch (e) { return e.name; } };
log.push(attempt(() => new (() => {})()), attempt(() => (void 0)()), attempt(() => f.caller));
log.push((function (a, [b, { c }] = [1, { c: ask(6) }]) { return a + b + c; })(1));
log.join('\n');
