// Language: optional chaining, tagged templates, computed members, getters and setters in literals, delete in chains.
const log = [];
const o = { a: { b: { c: ask(1), f() { return this.c; } } }, n: null, u: undefined, arr: [1, [2]], fn: null };
log.push(o?.a?.b?.c, o.x?.y.z.w, o.n?.[ask(0)], o.fn?.(ask(0)), o.a.b.f?.(), o?.['a']?.b.f(), o.arr?.[1]?.[0], o.u?.());
log.push(delete o?.a?.b?.c, o.a.b.c, delete o.x?.y, (o?.a).b !== undefined, o.missing?.(log.push('never')));
const tag = (s, ...v) => s.raw.join('|') + '/' + s.join('|') + '/' + v.join(); log.push(tag`a${1}b\n${ask(2)}c`, tag``, tag`\u0041${[1, 2]}`);
const same = () => (x => x)`t`; log.push(same() === same(), Object.isFrozen(same()), Array.isArray(same().raw), (x => x)`t` === (x => x)`t`);
log.push((s => String(s[0]))`\unicode`, String.raw`\n${1}\x`, `line1
line2`.length, `${{ toString: () => 'ts' + ask(3) }}`, `a${`b${`c${ask(4)}`}`}`);
const obj = { 'quoted key': 1, 42: 2, [`c${ask(5)}`]: 3, method() { return 'm'; }, async am() {}, *gm() { yield 1; }, get g() { return ask(6); }, set g(v) { this._g = v; }, 'str-get': 1, get 'q g'() { return 9; }, [Symbol.toStringTag]: 'Custom' };
log.push(Object.keys(obj).join(), obj.g, (obj.g = 5, obj._g), String(obj), obj.method.name, Object.getOwnPropertyDescriptor(obj, 'g').get.name, obj['q g']);
const dup = { a: 1, ['a']: 2, a: ask(7) }; log.push(JSON.stringify(dup)); const short = (x, y) => ({ x, y, sum() { return x + y; } }); log.push(short(1, ask(8)).sum());
const proto = { __proto__: { inherited: 'yes' }, own: 1 }; log.push(proto.inherited, Object.keys(proto).join(), ({ ['__proto__']: 1 }).hasOwnProperty('__proto__'));
class P { #x = { y: ask(9) }; static read(o) { return o?.#x?.y; } } log.push(P.read(new P()), P.read(null));
log.push(((a, b) => a?.[b]?.toFixed?.(1))({ k: 1.25 }, 'k'), [1, 2, 3]?.at?.(-1), 'abc'?.[1], (void 0)?.x, null?.[fail('never')]);
const chain = { v: 0, add(n) { this.v += n + ask(0); return this; } }; log.push(chain.add(1).add(2)?.add(3).v, chain?.['add']?.(4).v);
const counter = { n: 0, get next() { return ++this.n; } }; log.push(counter.next + counter.next * counter['next'], counter?.next);
const el = []; el[ask(-97)] = 'three'; el['1'] = 'one'; el.length = 5; log.push(el.join('-'), 3 in el, 0 in el, Object.keys(el).join());
const key = { toString: () => 'k' + ask(10) }; const byKey = { [key]: 1 }; byKey[key] += 5; log.push(JSON.stringify(byKey));
log.push(((x) => { switch (typeof x?.y) { case 'undefined': return 'none'; default: return 'some'; } })({}), (() => { })?.call?.length);
log.join('\n');
