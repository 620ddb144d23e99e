// Language: async functions, await in every place, top-level order of microtasks, async generators, for await.
(async () => {
  const log = [];
  const order = []; const p = Promise.resolve().then(() => order.push('micro')); order.push('sync'); await p; log.push(order.join());
  async function f(x) { order.push('in'); const v = await ask(x); order.push('out'); return v + 1; }
  const r = f(1); order.push('after'); log.push(await r, order.join());
  log.push(await (async () => { try { await fail('no'); } catch (e) { return 'caught ' + e.message; } finally { order.push(await ask(2)); } })(), order.at(-1));
  const [a, b = await ask(3)] = [await ask(4)]; log.push(a, b);
  log.push(`${await ask(5)}-${await 6}`, (await ask(7)) + (await ask(8)), [await ask(9), ...(await Promise.all([ask(10), 11]))].join());
  class C { async m() { return await ask(this.v ?? 12); } static async s() { return 's'; } async *g() { yield await ask(13); yield* [14, ask(15)]; } }
  log.push(await new C().m(), await C.s()); for await (const v of new C().g()) log.push('g' + v);
  async function* pipe(xs) { for await (const x of xs) { if (x % 2) yield x * 2; } }
  async function* source() { try { for (let i = 0; ; i++) yield i + (await ask(0)) - 100; } finally { log.push('source closed'); } }
  for await (const v of pipe(source())) { log.push('v' + v); if (v > 5) break; }
  const ag = source(); log.push(JSON.stringify(await ag.next()), JSON.stringify(await ag.return(9)), JSON.stringify(await ag.next()));
  const seq = []; await Promise.all([1, 2].map(async i => { seq.push('a' + i); await null; seq.push('b' + i); await ask(i); seq.push('c' + i); })); log.push(seq.join());
  const t = []; Promise.resolve().then(() => t.push(1)).then(() => t.push(3)); (async () => { await null; t.push(2); await null; t.push(4); })(); for (let i = 0; i < 5; i++) await null; log.push(t.join());
  log.push(await (async (x = 16) => x)(), await (async x => { if (x) return ask(17); })(1), String(await (async () => {})()));
  try { await (async () => { throw new RangeError('r'); })(); } catch (e) { log.push(e.name); }
  const results = []; for (const x of [1, 2, 3]) results.push(await ask(x)); log.push(results.join());
  const thenable = { then(ok) { ask(18).then(ok); } }; log.push(await thenable, await Promise.resolve(thenable));
  label: for (const i of [0, 1, 2]) { for await (const j of [ask(0), 1]) { if (j === 1) continue label; if (i === 2) break label; log.push('l' + i + j); } }
  log.push(typeof f, Object.prototype.toString.call(f), Object.prototype.toString.call(ag), f.length);
  return log.join('\n');
})();
