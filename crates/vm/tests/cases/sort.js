// A host call in the comparator of sort and toSorted; the sort is stable.
const log = [];
const rows = [3, 1, 2, 1, 3].map((k, i) => ({ k, i }));
rows.sort((a, b) => ask(a.k) - ask(b.k));
log.push(rows.map(r => `${r.k}${r.i}`).join());
log.push([5, 4, 3].toSorted((a, b) => ask(a) - ask(b)).join());
try { [1, 2].sort(() => fail('no order')); } catch (e) { log.push(e.message); }
log.push([, 2, undefined, 1].sort((a, b) => ask(a) - ask(b)).length);
log.join('\n');
