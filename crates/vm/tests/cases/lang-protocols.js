// Language: symbols and the protocols behind syntax: iterator, hasInstance, toPrimitive, species, isConcatSpreadable, match.
const log = [];
const s1 = Symbol('one'), s2 = Symbol.for('shared'); log.push(String(s1), s1.description, Symbol.keyFor(s2), Symbol.for('shared') === s2, Symbol.keyFor(s1), typeof s1);
const o = { [s1]: 1, plain: 2, [Symbol('hidden')]: 3 }; log.push(Object.keys(o).join(), Object.getOwnPropertySymbols(o).length, JSON.stringify(o), o[s1]);
class Even { static [Symbol.hasInstance](n) { return (n + ask(0)) % 2 === 0; } } log.push(2 instanceof Even, 3 instanceof Even);
const range = { from: 1, to: 3, [Symbol.iterator]() { let i = this.from, to = this.to; return { next: () => i <= to ? { value: i++ + ask(0), done: false } : { value: undefined, done: true } }; } };
log.push([...range].join(), Math.max(...range), Array.from(range, x => x * 2).join(), new Set(range).size, Object.fromEntries([['a', 1]].values()).a);
class Money { constructor(n) { this.n = n; } [Symbol.toPrimitive](hint) { return hint === 'number' ? this.n + ask(0) : `$${this.n}`; } get [Symbol.toStringTag]() { return 'Money'; } }
log.push(+new Money(5), `${new Money(5)}`, new Money(5) + '', new Money(3) * 2, Object.prototype.toString.call(new Money(1)));
class Arr extends Array { static get [Symbol.species]() { return Array; } } const arr = Arr.of(1, 2, ask(1)); log.push(arr instanceof Arr, arr.map(x => x) instanceof Arr, arr.filter(Boolean).constructor === Array);
const spreadable = { length: 2, 0: 'x', 1: ask(2), [Symbol.isConcatSpreadable]: true }; log.push([0].concat(spreadable, [[1]]).length, [0].concat(spreadable).join());
const notSpread = Object.assign([1, 2], { [Symbol.isConcatSpreadable]: false }); log.push([0].concat(notSpread).length);
const matcher = { [Symbol.match](str) { return `m:${str}${ask(3)}`; }, [Symbol.replace](str, r) { return `r:${str}:${r}`; }, [Symbol.split](str) { return [str, ask(4)]; }, [Symbol.search]: str => str.length + ask(5) };
log.push('abc'.match(matcher), 'abc'.replace(matcher, 'z'), 'abc'.split(matcher).join(), 'abc'.search(matcher));
const thenable = { get then() { log.push('then read'); return undefined; } }; Promise.resolve(thenable);
const withReturn = { [Symbol.iterator]() { return { i: 0, next() { return { value: this.i++, done: this.i > 9 }; }, return(v) { log.push('return', ask(6)); return { value: v, done: true }; } }; } };
for (const v of withReturn) { if (v === 2) break; } const [w1, w2] = withReturn; log.push(w1 + w2); try { for (const v of withReturn) throw new Error('stop'); } catch (e) { log.push(e.message); }
const proxyIter = new Proxy([ask(7), 2], {}); log.push([...proxyIter].join(), Array.isArray(proxyIter));
const attempt = f => { try { return f(); } catch (e) { return e.name; } };
log.push(attempt(() => [...5]), attempt(() => new Symbol()), attempt(() => `${Symbol()}`), attempt(() => Symbol() + 1), attempt(() => [...{ [Symbol.iterator]: () => 1 }]), attempt(() => { for (const x of { [Symbol.iterator]() { return { next: () => 1 }; } }); }));
log.push(Object(s1) == s1, Object(s1) === s1, s1.toString(), Symbol.iterator.toString(), Symbol.prototype[Symbol.toStringTag], [][Symbol.unscopables].flat === undefined);
const keyOrder = { z: 1, [s1]: 2, 3: 3, a: 4, 1: 5 }; log.push(Reflect.ownKeys(keyOrder).map(String).join());
const length = { get length() { return ask(-98); }, 0: 'p', 1: 'q' }; log.push(Array.prototype.join.call(length, '+'), Array.from(length).join());
log.join('\n');
