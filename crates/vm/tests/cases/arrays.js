// A host call in the callbacks of arrays.
const log = [];
const a = [1, 2, 3, 4];
log.push(a.map(v => v * ask(v)).join(), a.filter(v => ask(v) % 2).join(), a.reduce((t, v) => t + ask(v), 0));
log.push(a.find(v => ask(v) > 102), a.findLast(v => ask(v) < 103), a.findIndex(v => ask(v) > 900), a.some(v => ask(v) > 103), a.every(v => ask(v) > 101));
log.push(a.flatMap(v => [v, ask(v)]).join(), a.reduceRight((t, v) => t + v + ask(0), ''), Array.from({ length: 3 }, (_, i) => ask(i)).join());
a.forEach((v, i, all) => { if (i === 1) all.push(9); log.push(v + ask(i)); });
log.push(a.includes({ valueOf: ask }.x), a.indexOf(ask(-99)), a.join(','), a.concat([ask(1)]).length, a.slice(ask(-99)).join());
log.push(a.splice(ask(-99), 1, ask(5)).join(), a.join(), a.with(0, ask(6)).join(), a.copyWithin(0, 2).join(), Array.of(ask(1)).fill(ask(2)).join());
log.push([[3, 1], [2]].map(x => x.toSorted((p, q) => ask(p) - ask(q)).join()).join('|'));
log.join('\n');
