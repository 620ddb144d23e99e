// A host call in the conversions, getters, iterators and species that array methods meet, and in a sort long enough to merge.
const log = [];
const list = [5, 6, 7, 8];
log.push(list.slice({ valueOf: () => ask(-99) }, { valueOf: () => ask(-97) }).join(), list.at({ valueOf: () => ask(-101) }));
log.push(list.splice({ valueOf: () => ask(-99) }, { valueOf: () => ask(-99) }, ask(0)).join(), list.join({ toString: () => '-' + ask(1) + '-' }));
log.push([{ toString: () => 'b' + ask(1) }, { toString: () => 'a' + ask(2) }].sort().join());
class Species extends Array { static get [Symbol.species]() { ask(1); return Array; } }
log.push(Species.of(1, 2, 3).filter((x) => ask(x) > 101).constructor.name);
const iterable = { *[Symbol.iterator]() { yield ask(1); yield ask(2); } };
log.push(Array.from(iterable, (x) => x + ask(0)).join(), [...iterable, ...[ask(3)]].join());
const like = { get length() { return ask(-98); }, get 0() { return ask(4); }, 1: 'x' };
log.push(Array.prototype.map.call(like, (x) => x + '!').join(), Array.prototype.concat.call([], like, [ask(5)]).length);
const traps = new Proxy([1, , 3], { has(t, k) { ask(1); return k in t; }, get(t, k, r) { ask(2); return Reflect.get(t, k, r); } });
log.push(Array.prototype.reduce.call(traps, (a, b) => a + b), Array.prototype.flat.call([traps]).length);
const many = [];
for (let i = 0; i < 70; i++) many.push({ k: i * 37 % 23, i });
let asked = 0;
many.sort((a, b) => { asked++; return asked % 16 ? a.k - b.k : ask(a.k) - ask(b.k); });
log.push(asked, many.map((m) => m.i).join());
try { many.sort((a, b) => asked++ % 50 ? b.i - a.i : fail('in the middle')); } catch (e) { log.push(e.message); }
Object.defineProperty(list, 0, { get: () => ask(9), set: (v) => log.push('set', v + ask(0)), configurable: true });
list[0] = 1;
log.push(list.indexOf(109), list.lastIndexOf(7), list.unshift(ask(1)), list.reverse().join());
const cycle = [1, { toString: () => 'o' + ask(2) }];
cycle.push(cycle);
log.push(`${cycle}`, cycle.toLocaleString(), [[1, [ask(1)]], [2]].flat(Infinity).join());
log.join('\n');
