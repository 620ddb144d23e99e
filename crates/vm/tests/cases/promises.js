// A host call in an executor, in async functions, in then callbacks, in thenables and in async generators.
(async () => {
  const log = [];
  const sum = async (...xs) => { let t = 0; for (const x of xs) t += await ask(x); return t; };
  log.push(await sum(1, 2, 3));
  log.push((await Promise.all([ask(1), sum(2), 3, Promise.resolve(ask(4))])).join());
  log.push(await new Promise((resolve, reject) => { ask(5).then(v => resolve(v + 1), reject); }));
  log.push(await ask(6).then(v => ask(v)).then(v => v * 2).finally(() => ask(7)));
  try { await fail('refused'); } catch (e) { log.push(e.message); }
  log.push(JSON.stringify(await Promise.allSettled([ask(8), fail('x').catch(e => e.message), Promise.reject(1)])));
  log.push(await { then(resolve) { ask(9).then(resolve); } });
  async function* count(n) { for (let i = 0; i < n; i++) yield await ask(i); }
  for await (const v of count(3)) log.push(v);
  for await (const v of [ask(10), 11]) log.push(v);
  log.push(await Promise.race([ask(12), new Promise(() => {})]), await Promise.any([Promise.reject(0), ask(13)]));
  return log.join('\n');
})();
