// Host calls in the middle of every protocol of regular expressions: conversions, an exec of one's own, species.
const log = [];
log.push('k1=v1;k2=v2'.replace(/(?<k>\w+)=(?<v>\w+)/g, (m, k, v, at, s, g) => g.v + ask(at) + k));
log.push('a.b.c'.replace(/\./g, { toString() { return '<' + ask(1) + '$&>'; } }));
const stepping = /\d/g;
stepping.lastIndex = { valueOf() { return ask(-98); } };
log.push(stepping.exec('1234').index, stepping.lastIndex);
class Asking extends RegExp {
  exec(s) { const m = super.exec(s); if (m !== null) m[0] += ask(m.index); return m; }
  get flags() { ask(0); return super.flags; }
}
log.push('xaya'.replace(new Asking('a', 'g'), '[$&]'), 'xaya'.match(new Asking('a', 'g')).join(), 'xaya'.search(new Asking('y')));
log.push([...'xaya'.matchAll(new Asking('a', 'g'))].map(m => m[0] + m.index).join(), new Asking('q').test('abc'));
class Cutting extends RegExp { static get [Symbol.species]() { ask(3); return RegExp; } }
log.push('a1b2c3'.split(new Cutting('\\d'), { valueOf() { return ask(-98); } }).join());
const names = { index: 0, 0: 'k', length: 1, groups: { get n() { return ask(7); } } };
const odd = /k/;
odd.exec = () => (ask(1), names);
log.push('kz'.replace(odd, '$<n>!$<n>'));
log.push(RegExp({ [Symbol.match]: true, get source() { return 'a' + ask(0); }, flags: 'i', constructor: null }).source);
const held = /(a+)(b)?/gy;
let m;
while ((m = held.exec('aabaaa')) !== null) log.push(m[1].length + ask(held.lastIndex) + String(m[2]));
log.push(['b10', 'a9', 'b9'].sort((x, y) => x.localeCompare(y, 'en', { numeric: ask(0) === 100 })).join());
log.push(String.raw({ raw: { length: 3, get 0() { return ask(1); }, 1: 'y', 2: 'z' } }, '-', { toString() { return '+' + ask(2); } }));
log.push((1234.5678).toFixed({ valueOf() { return ask(-98); } }), parseInt({ toString() { return '1f' + ask(0); } }, 16), BigInt.asUintN(ask(-92), { valueOf() { return 257n + BigInt(ask(0)); } }));
log.join('\n');
