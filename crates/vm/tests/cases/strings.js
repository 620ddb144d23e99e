// Texts that are built, cut and searched across host calls; callbacks of replace.
const log = [];
let t = '';
for (let i = 0; i < 40; i++) { t += 'item' + i + (i % 7 ? ',' : '\u2192'); if (i % 10 === 0) ask(i); }
log.push(t.length, t.slice(100, 160), t.split('\u2192').length);
log.push('a1b22c333'.replace(/\d+/g, m => ask(m.length)), 'x-y'.replaceAll('-', () => ask(1)), 'aXbX'.replace('X', (m, at) => m + ask(at)));
const re = /(?<letter>[a-z])(\d)/gy;
let m;
while ((m = re.exec('a1b2c3')) !== null) log.push(m.groups.letter + ask(re.lastIndex));
log.push([...'p1q2'.matchAll(/([a-z])(\d)/g)].map(x => x[1] + ask(+x[2])).join());
log.push('a,b;c'.split({ [Symbol.split](s) { return [s.length, ask(1)]; } }).join(), 'abc'.at(ask(-101)), 'abc'.padStart(ask(-95), '*'));
const rope = 'left'.repeat(20) + ask(1) + 'right'.repeat(20);
log.push(rope.indexOf('101'), (rope + rope).length, rope.toUpperCase().slice(76, 90));
log.join('\n');
