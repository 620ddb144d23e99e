// The kit against a real sidecar: MUSTARD_SIDECAR names it. `node --test sdk/node/`

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { Mustard, MustardError, read, run, write } from './mustard.mjs';

/** A client that is closed at the end of its test. */
function open(t, options) {
  const mustard = new Mustard(options);
  t.after(() => mustard.close());
  return mustard;
}

const later = (ms, value) => new Promise(resolve => setTimeout(() => resolve(value), ms));

test('a script runs against sync and async functions', async t => {
  const mustard = open(t);
  const value = await mustard.run('const u = load_user(id); u.orders.length + twice(u.id);', {
    inputs: { id: 7 },
    capabilities: { load_user: async id => ({ id, orders: ['a', 'b'] }), twice: n => n * 2 },
  });
  assert.equal(value, 16);
});

test('one line is enough', async () => {
  assert.equal(await run('6 * 7'), 42);
});

test('every kind of value crosses both ways', async t => {
  const mustard = open(t);
  const value = [undefined, null, true, 'ä\u{1F600}', 1.5, -0, NaN, Infinity, -Infinity, [], {}, { a: { b: [1] } }];
  const back = await mustard.run('echo(value)', { inputs: { value }, capabilities: { echo: v => v } });
  assert.deepStrictEqual(back, value);
  const holes = await mustard.run('[1, , 3]');
  assert.equal(1 in holes, false);
  const proto = read(JSON.parse('{"Object":{"__proto__":{"Number":{"Finite":1.0}}}}'));
  assert.equal(Object.getPrototypeOf(proto), Object.prototype);
  assert.equal(Object.keys(proto)[0], '__proto__');
});

test('what cannot cross says so', () => {
  const loop = {};
  loop.self = loop;
  assert.throws(() => write(1n), /bigint cannot cross/);
  assert.throws(() => write(new Map()), /Map cannot cross/);
  assert.throws(() => write(loop), /contains itself/);
  assert.throws(() => write('\ud800'), /surrogate/);
  let deep = 0;
  for (let i = 0; i < 200; i += 1) deep = [deep];
  assert.throws(() => write(deep), /deeper than 128/);
});

test('calls that wait together run in parallel', async t => {
  const mustard = open(t);
  let now = 0;
  let most = 0;
  const slow = async n => {
    now += 1;
    most = Math.max(most, now);
    await later(20);
    now -= 1;
    return n * n;
  };
  const script = 'const all = await Promise.all([1,2,3,4,5].map(n => slow(n))); all.join();';
  assert.equal(await mustard.run(script, { capabilities: { slow } }), '1,4,9,16,25');
  assert.equal(most, 5);
});

test('a race is won by the first answer, not by the slowest', async t => {
  const mustard = open(t);
  let finish;
  const never = new Promise(resolve => (finish = resolve));
  const script = 'const first = await Promise.race([never(), quick()]); report(first); 0;';
  const reported = [];
  const report = value => {
    reported.push(value);
    finish();
  };
  await mustard.run(script, { capabilities: { never: () => never, quick: () => 'quick', report } });
  assert.deepEqual(reported, ['quick']);
});

test('what a function throws is an error of the script', async t => {
  const mustard = open(t);
  const fail = () => {
    throw Object.assign(new RangeError('too far'), { code: 'E_FAR', details: { by: 3 } });
  };
  const script = 'let seen; try { fail() } catch (e) { seen = [e.name, e.message, e.code, e.details.by, e instanceof Error] } seen;';
  assert.deepEqual(await mustard.run(script, { capabilities: { fail } }), ['RangeError', 'too far', 'E_FAR', 3, true]);
});

test('an error of a function that nobody catches keeps its code and its details', async t => {
  const mustard = open(t);
  const fail = () => {
    throw Object.assign(new RangeError('too far'), { code: 'E_FAR', details: { by: 3, seen: [null, 'x'] } });
  };
  const error = await mustard.run('fail()', { capabilities: { fail } }).catch(e => e);
  assert.equal(error.guestName, 'RangeError');
  assert.equal(error.errorCode, 'E_FAR');
  assert.deepEqual(error.details, { by: 3, seen: [null, 'x'] });
});

test('an uncaught error says where', async t => {
  const mustard = open(t);
  const script = 'function inner() {\n  return null.x;\n}\ninner();';
  const error = await mustard.run(script).catch(e => e);
  assert.ok(error instanceof MustardError);
  assert.equal(error.kind, 'Runtime');
  assert.equal(error.guestName, 'TypeError');
  assert.equal(error.line, 2);
  assert.equal(error.sourceLine.trim(), 'return null.x;');
  assert.equal(error.frames[0].function, 'inner');
  const parse = await mustard.run('let = ;').catch(e => e);
  assert.equal(parse.code, 'parse');
  assert.equal(parse.line, 1);
});

test('limits hold and the next run is not disturbed', async t => {
  const mustard = open(t);
  const error = await mustard.run('while (true) {}', { limits: { instruction_budget: 10_000 } }).catch(e => e);
  assert.equal(error.code, 'limit_instructions');
  const late = await mustard.run('while (true) {}', { limits: { instruction_budget: 1e12 }, deadlineMs: 30 }).catch(e => e);
  assert.equal(late.code, 'limit_deadline');
  assert.equal(await mustard.run('1 + 1'), 2);
});

test('a run that takes too long is killed, and the next one gets a new sidecar', async t => {
  const mustard = open(t);
  const endless = { limits: { instruction_budget: 1e15 }, timeoutMs: 100 };
  const error = await mustard.run('while (true) {}', endless).catch(e => e);
  assert.equal(error.code, 'timeout');
  assert.equal(await mustard.run('1 + 1'), 2);
  const controller = new AbortController();
  setTimeout(() => controller.abort(), 50);
  const aborted = await mustard.run('while (true) {}', { limits: { instruction_budget: 1e15 }, signal: controller.signal }).catch(e => e);
  assert.equal(aborted.code, 'aborted');
});

test('the sidecar dies in the middle; the run goes on and nothing is called twice', async t => {
  const mustard = open(t);
  const calls = [];
  const script = 'let sum = 0; for (let i = 1; i <= 5; i += 1) { sum += step(i); } sum;';
  const step = async n => {
    calls.push(n);
    if (n === 3) process.kill(await pidOf(mustard), 'SIGKILL');
    return n * 10;
  };
  assert.equal(await mustard.run(script, { capabilities: { step } }), 150);
  assert.deepEqual(calls, [1, 2, 3, 4, 5]);
});

test('a step is kept as JSON and goes on in another process with the same key', async t => {
  const key = 'a key of ours';
  const first = new Mustard({ key });
  const step = await first.start('const who = approve("deploy"); `approved by ${who}`;', { capabilities: ['approve'] });
  assert.deepEqual(step.calls, [{ callId: 1, capability: 'approve', args: ['deploy'] }]);
  const kept = JSON.stringify(step.save());
  await first.close();

  const second = open(t, { key });
  const seen = await second.inspect(kept);
  assert.deepEqual(seen.capabilities, ['approve']);
  assert.equal(seen.calls[0].args[0], 'deploy');
  const done = await second.resume(kept, { answer: 'Ada' });
  assert.deepEqual(done, { type: 'completed', value: 'approved by Ada' });
  assert.equal(await second.finish(kept, { capabilities: { approve: () => 'Bob' } }), 'approved by Bob');
  const cancelled = await second.resume(kept, { cancel: true }).catch(e => e);
  assert.equal(cancelled.code, 'cancelled');

  const stranger = open(t);
  await assert.rejects(stranger.resume(kept, { answer: 1 }), { code: 'unauthenticated' });
  const forged = JSON.parse(kept);
  forged.snapshot_base64 = Buffer.from('nonsense').toString('base64');
  await assert.rejects(second.resume(forged, { answer: 1 }), { code: 'unauthenticated' });
});

test('answers come in any order', async t => {
  const mustard = open(t);
  const step = await mustard.start('const all = await Promise.all([a(), b()]); all.join();', { capabilities: ['a', 'b'] });
  assert.deepEqual(step.calls.map(call => call.capability), ['a', 'b']);
  const [a, b] = step.calls;
  const half = await mustard.resume(step, { answers: [{ callId: b.callId, value: 'B' }] });
  assert.deepEqual(half.calls.map(call => call.capability), ['a']);
  const done = await mustard.resume(half, { answers: [{ callId: a.callId, value: 'A' }] });
  assert.equal(done.value, 'A,B');
});

test('the same seed and clock give the same run', async t => {
  const mustard = open(t);
  const world = { seed: 42n, nowMs: 1_700_000_000_000 };
  const once = await mustard.run('[Math.random(), Date.now()]', world);
  assert.deepEqual(await mustard.run('[Math.random(), Date.now()]', world), once);
  assert.equal(once[1], 1_700_000_000_000);
});

test('the top level may return when asked for', async t => {
  const mustard = open(t);
  assert.equal(await mustard.run('if (true) { return 5; } 6;', { lenientReturn: true }), 5);
});

test('large values cross by agreement', async t => {
  const mustard = open(t);
  const text = 'x'.repeat(3 << 20);
  const value = await mustard.run('text.length', { inputs: { text }, limits: { heap_limit_bytes: 64 << 20 } });
  assert.equal(value, text.length);
  const small = open(t, { maxFrameBytes: 1000 });
  await assert.rejects(small.run('text.length', { inputs: { text } }), { code: 'too_large' });
});

test('version 2 alone is enough', async t => {
  const mustard = open(t, { plain: true });
  const script = 'const all = await Promise.all([1, 2, 3].map(n => twice(n))); all.join();';
  assert.equal(await mustard.run(script, { capabilities: { twice: n => n * 2 } }), '2,4,6');
});

test('a sidecar that is not one is named with its last words', async t => {
  const missing = open(t, { command: ['/nowhere/mustard-sidecar'] });
  await assert.rejects(missing.run('1'), /could not be started.*\/nowhere\/mustard-sidecar/s);
  const dying = open(t, { command: [process.execPath, '-e', 'console.error("out of cheese"); process.exit(3)'] });
  await assert.rejects(dying.run('1'), /exit code 3; it said: out of cheese/);
  const babbling = open(t, { command: [process.execPath, '-e', 'process.stdout.write("HTTP/1.1 200 OK\\r\\n\\r\\n"); setInterval(() => {}, 1000)'] });
  await assert.rejects(babbling.run('1'), /the sidecar sent a response of/);
});

test('a program that forgets to close still ends, and its sidecar with it', async () => {
  const script = `import { Mustard } from ${JSON.stringify(new URL('./mustard.mjs', import.meta.url).href)};
    const mustard = new Mustard();
    console.log(await mustard.run('6 * 7'));`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { timeout: 20_000 });
  assert.equal(stdout.trim(), '42');
});

test('nested tables make dotted names', async t => {
  const mustard = open(t);
  const lines = [];
  await mustard.run('console.log("hello", 1);', { capabilities: { console: { log: (...args) => void lines.push(args) } } });
  assert.deepEqual(lines, [['hello', 1]]);
});

/** The process of a client's sidecar: the newest child of this one. */
async function pidOf(mustard) {
  await mustard.about();
  const { stdout } = await promisify(execFile)('ps', ['-o', 'pid=,comm=', '--ppid', String(process.pid)]);
  const rows = stdout.trim().split('\n').map(row => row.trim().split(/\s+/));
  const [pid] = rows.filter(([, name]) => name !== 'ps').at(-1);
  return Number(pid);
}
