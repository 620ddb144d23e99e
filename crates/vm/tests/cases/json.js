// A host call in toJSON, a replacer, a getter being serialised, and a reviver.
const log = [];
log.push(JSON.stringify({ a: { toJSON(key) { return key + ask(1); } }, get b() { return ask(2); }, c: [1, { d: 2n > 1n }] }));
log.push(JSON.stringify({ a: 1, b: [2, 3] }, (k, v) => (typeof v === 'number' ? v + ask(v) : v), 2));
log.push(JSON.stringify(JSON.parse('{"a":[1,2,{"b":3}],"c":4}', (k, v) => (typeof v === 'number' ? v * ask(v) : v))));
try { JSON.stringify({ toJSON() { fail('secret'); } }); } catch (e) { log.push(e.message); }
log.join('\n');
