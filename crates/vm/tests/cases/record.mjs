// Records what node makes of the cases: `node record.mjs [name.js …]` writes name.out beside each.
// The host answers ask(n) with n + 100 and fail(text) with an Error; inside async code both are promises, as in the engine.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';

const here = fileURLToPath(new URL('.', import.meta.url));
const names = process.argv.length > 2 ? process.argv.slice(2) : readdirSync(here).filter(n => n.endsWith('.js'));
for (const name of names) {
  const source = readFileSync(here + name, 'utf8');
  const waits = source.includes('(async () =>');
  const ask = n => n + 100;
  const fail = text => { throw new Error(text); };
  const context = vm.createContext({});
  context.structuredClone = structuredClone;
  context.ask = waits ? async n => ask(n) : ask;
  context.fail = waits ? async text => fail(text) : fail;
  const result = await vm.runInContext(`'use strict';${source}`, context);
  writeFileSync(here + name.replace(/\.js$/, '.out'), String(result) + '\n');
}
