// The kit as a child of a scripted host. `node --test sdk/node/abp.test.mjs`
//
// The children are this very file: with ABP_SCENARIO set it serves the scenario of that name.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { test } from 'node:test';
import { setTimeout as later } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { AbpError, glob, judge, raw, serve } from './abp.mjs';

const HERE = fileURLToPath(import.meta.url);
const RUN = '550e8400-e29b-41d4-a716-446655440000';
const ORDER = { id: '11111111-2222-3333-4444-555555555555', task: 'say hello' };
const VENDOR = '{ "b":1.0, "a":[1e3,\t"\\u00e4"] ,"big":123456789012345678901234567890}';

const waiting = (run, ms = 60_000) => later(ms, undefined, { signal: run.signal });

const SCENARIOS = {
  hello: async run => {
    console.log('this is for people');
    process.stdout.write('so is this\n');
    await run.message(`${run.order.task}, in ${run.order.workspace.root}`);
  },
  everything: async run => {
    await run.started('go');
    await run.delta('a');
    await run.message('ab \ud800');
    await run.toolCall({ tool_name: 'Read', tool_use_id: 'u1', input: { path: 'x', 2: [null] } });
    await run.toolResult({ tool_name: 'Read', tool_use_id: 'u1', output: 'text' });
    await run.fileChanged('a.txt', 'new');
    await run.commandExecuted({ command: 'ls', exit_code: 0, output_preview: 'a.txt' });
    await run.warning('careful');
    await run.error('hm', 'execution_tool_failed');
    await run.completed('done', { ext: { raw_message: raw(VENDOR), more: 1 } });
    run.artifact('patch', 'out.patch');
    return { usage_raw: { tokens: 3 }, verification: { harness_ok: false } };
  },
  invalid: async run => {
    for (const wrong of [() => run.delta(1), () => run.emit('thinking', {}), () => run.error('x', 'E'), () => run.toolResult({ tool_name: 'a', is_error: 1 }), () => run.commandExecuted({ command: 'a', exit_code: 0.5 }), () => run.message('a', { ext: [] }), () => run.usage({ input_tokens: -1 }), () => raw('{')]) {
      assert.throws(wrong);
    }
    assert.throws(() => run.toolCall({ tool_name: 'a', input: 1n }), /BigInt/);
    return { outcome: 'failed' };
  },
  throws: () => {
    throw new AbpError('no key', 'backend_auth_failed');
  },
  throwsOddly: () => Promise.reject(null),
  answersNonsense: () => ({ outcome: 'great' }),
  detached: async run => {
    Promise.reject(new Error('nobody waits for me'));
    await waiting(run);
  },
  exits: () => process.exit(0),
  waits: async run => {
    await run.started();
    await waiting(run);
  },
  ignoresCancel: async run => {
    await run.started();
    await waiting({ signal: undefined });
  },
  finishesAnyway: async run => {
    await run.started();
    await waiting(run).catch(() => {});
    await run.warning('cleaned up');
  },
  speaksLate: async run => {
    setTimeout(() => run.delta('too late'), 1);
  },
  asks: async run => {
    const answers = await Promise.all([run.ask({ action: 'tool', tool_name: 'Bash', input: { command: 'ls' } }), run.ask({ action: 'network', host: 'example.org' })]);
    await run.message(JSON.stringify(answers));
  },
  tool: async run => {
    await run.tool({ tool_name: 'Twice', tool_use_id: 't1', input: { n: 2 } }, ({ n }) => n * 2);
    await run.tool({ tool_name: 'Bash', input: {} }, () => assert.fail('it was denied')).catch(error => run.message(error.code));
    await run.tool({ tool_name: 'Breaks' }, () => Promise.reject(new Error('broken'))).catch(() => {});
  },
  spends: async run => {
    await run.usage({ input_tokens: 3, estimated_cost_usd: 0.5 });
    await run.usage({ input_tokens: 4, turns: 1 });
    await run.usage({ output_tokens: 10, total: true });
    await run.usage({ output_tokens: 7, total: true });
  },
  floods: async run => {
    for (let i = 0; i < 20_000; i += 1) await run.delta('x'.repeat(100));
  },
  notices: async run => {
    for (let i = 0; i < 50; i += 1) {
      const sent = run.delta('x'.repeat(100_000));
      const slow = await Promise.race([sent, later(50, 'the host is slow')]);
      if (slow) console.log(slow);
      await sent;
    }
  },
  floodsCarelessly: async run => {
    for (;;) run.delta('x'.repeat(100_000));
  },
};
const OPTIONS = { notices: { maxQueuedBytes: 1 << 18 }, ignoresCancel: { cancelGraceMs: 50 }, everything: { trace: 2 }, floodsCarelessly: { maxQueuedBytes: 1 << 20 } };

if (process.env.ABP_SCENARIO) {
  const name = process.env.ABP_SCENARIO;
  await serve({ id: 'kit', capabilities: { streaming: 'native' }, asks: name === 'asks' ? ['tool'] : undefined }, SCENARIOS[name], OPTIONS[name]);
}

/** A child with the scripted host's end of it. Every test ends it. */
class Child {
  constructor(t, scenario, args = [HERE]) {
    this.process = spawn(process.execPath, args, { env: { ...process.env, ABP_SCENARIO: scenario } });
    this.stderr = '';
    this.process.stderr.on('data', text => (this.stderr += text));
    this.process.stdin.on('error', () => {});
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
    this.exit = new Promise(resolve => this.process.on('close', resolve));
    t.after(() => this.process.kill('SIGKILL'));
  }

  say(message) {
    this.process.stdin.write(typeof message === 'string' ? `${message}\n` : `${JSON.stringify(message)}\n`);
  }

  async text() {
    const { value, done } = await this.lines.next();
    return done ? null : value;
  }

  async hear() {
    const text = await this.text();
    return text === null ? null : JSON.parse(text);
  }

  /** Everything from here to the end of the run. */
  async rest() {
    const heard = [];
    for (;;) {
      const message = await this.hear();
      heard.push(message);
      if (message === null || message.t === 'final' || message.t === 'fatal') return heard;
    }
  }

  async run(order = ORDER, extra = {}) {
    this.say({ t: 'run', id: RUN, work_order: order, ...extra });
    return this.rest();
  }

  end() {
    this.process.stdin.end();
    return this.exit;
  }
}

async function greeted(t, scenario) {
  const child = new Child(t, scenario);
  child.hello = await child.hear();
  return child;
}

const kinds = heard => heard.map(message => message?.event?.type ?? message?.t);

if (!process.env.ABP_SCENARIO) {
  test('hello is first, the run streams, the receipt is whole, and the end of input ends the process', async t => {
    const child = await greeted(t, 'hello');
    assert.deepEqual(child.hello, { t: 'hello', contract_version: 'abp/v0.1', backend: { id: 'kit', backend_version: null, adapter_version: null }, capabilities: { streaming: 'native' }, mode: 'mapped' });
    const [event, final] = await child.run();
    assert.equal(event.ref_id, RUN);
    assert.equal(event.event.text, 'say hello, in .');
    const { meta, ...rest } = final.receipt;
    assert.deepEqual([meta.run_id, meta.work_order_id, meta.contract_version], [RUN, ORDER.id, 'abp/v0.1']);
    assert.ok(Date.parse(meta.finished_at) - Date.parse(meta.started_at) === meta.duration_ms);
    const nothing = { input_tokens: null, output_tokens: null, cache_read_tokens: null, cache_write_tokens: null, request_units: null, estimated_cost_usd: null };
    assert.deepEqual(rest, { backend: child.hello.backend, capabilities: child.hello.capabilities, mode: 'mapped', usage_raw: {}, usage: nothing, artifacts: [], verification: { git_diff: null, git_status: null, harness_ok: true }, outcome: 'complete', receipt_sha256: null, trace: [] });
    assert.equal(await child.end(), 0);
    assert.match(child.stderr, /this is for people\nso is this\n/);
  });

  test('the example of the documentation is a sidecar', async t => {
    const child = new Child(t, '', [path.join(path.dirname(HERE), 'examples/abp-echo.mjs')]);
    assert.equal((await child.hear()).backend.id, 'echo');
    const heard = await child.run();
    assert.deepEqual(kinds(heard), ['run_started', 'assistant_delta', 'assistant_delta', 'assistant_message', 'run_completed', 'final']);
    assert.equal(heard.at(-1).receipt.usage.output_tokens, 2);
    assert.equal(await child.end(), 0);
  });

  test('all ten types of events, an artifact, and the beginning of the trace', async t => {
    const child = await greeted(t, 'everything');
    const heard = await child.run();
    assert.deepEqual(kinds(heard), ['run_started', 'assistant_delta', 'assistant_message', 'tool_call', 'tool_result', 'file_changed', 'command_executed', 'warning', 'error', 'run_completed', 'final']);
    assert.equal(heard[2].event.text, 'ab \ufffd');
    assert.deepEqual(heard[3].event.input, { path: 'x', 2: [null] });
    const { receipt } = heard.at(-1);
    assert.deepEqual(receipt.trace, [heard[0].event, heard[1].event]);
    assert.deepEqual([receipt.artifacts, receipt.usage_raw, receipt.verification.harness_ok], [[{ kind: 'patch', path: 'out.patch' }], { tokens: 3 }, false]);
  });

  test('what a vendor said travels byte for byte', async t => {
    const child = await greeted(t, 'everything');
    child.say({ t: 'run', id: RUN, work_order: ORDER });
    let line;
    do line = await child.text();
    while (!line.includes('run_completed'));
    assert.ok(line.endsWith(`"ext":{"raw_message":${VENDOR},"more":1}}}`), line);
  });

  test('what is not an event is refused where it is written', async t => {
    const child = await greeted(t, 'invalid');
    assert.equal((await child.run()).at(-1).receipt?.outcome, 'failed');
  });

  for (const [scenario, error, code, exit] of [
    ['throws', 'no key', 'backend_auth_failed', 0],
    ['throwsOddly', 'unknown error', 'internal', 0],
    ['answersNonsense', 'an outcome is complete, partial, failed; the handler answered "great"', 'internal', 0],
    ['detached', 'nobody waits for me', 'internal', 1],
    ['exits', 'the sidecar exited during the run', 'backend_crashed', 0],
  ]) {
    test(`a handler that ${scenario} ends its run with one fatal`, async t => {
      const child = await greeted(t, scenario);
      assert.deepEqual(await child.run(), [{ t: 'fatal', ref_id: RUN, error, error_code: code }]);
      assert.equal(await child.end(), exit);
      assert.equal(await child.hear(), null);
    });
  }

  test('pings are answered when idle and during a run, with the very number', async t => {
    const child = await greeted(t, 'waits');
    child.say('{"t":"ping","seq":18446744073709551615}');
    assert.equal(await child.text(), '{"t":"pong","seq":18446744073709551615}');
    child.say({ t: 'run', id: RUN, work_order: ORDER });
    assert.equal((await child.hear()).event.type, 'run_started');
    child.say({ t: 'ping', seq: 7 });
    assert.deepEqual(await child.hear(), { t: 'pong', seq: 7 });
  });

  for (const [scenario, types] of [['waits', ['final']], ['finishesAnyway', ['warning', 'final']]]) {
    test(`a cancelled run ends partial: ${scenario}`, async t => {
      const child = await greeted(t, scenario);
      child.say({ t: 'run', id: RUN, work_order: ORDER });
      assert.equal((await child.hear()).event.type, 'run_started');
      child.say({ t: 'cancel', ref_id: 'another', reason: 'no' });
      child.say({ t: 'cancel', ref_id: RUN, reason: 'enough' });
      const heard = await child.rest();
      assert.deepEqual(kinds(heard), types);
      assert.equal(heard.at(-1).receipt.outcome, 'partial');
      assert.equal(await child.end(), 0);
    });
  }

  test('a handler that ignores a cancel is ended with its process', async t => {
    const child = await greeted(t, 'ignoresCancel');
    child.say({ t: 'run', id: RUN, work_order: ORDER });
    await child.hear();
    child.say({ t: 'cancel', ref_id: RUN });
    const heard = await child.rest();
    assert.deepEqual(kinds(heard), ['final']);
    assert.equal(heard.at(-1).receipt.outcome, 'partial');
    assert.equal(await child.exit, 0);
    assert.match(child.stderr, /did not stop within 50 ms/);
  });

  test('several runs follow each other, and a second one at the same time is refused', async t => {
    const child = await greeted(t, 'waits');
    child.say({ t: 'run', id: RUN, work_order: ORDER });
    await child.hear();
    child.say({ t: 'run', id: 'second', work_order: ORDER });
    const refused = await child.hear();
    assert.deepEqual([refused.t, refused.ref_id, refused.error_code], ['fatal', 'second', 'protocol_unexpected_message']);
    child.say({ t: 'cancel', ref_id: RUN });
    assert.equal((await child.hear()).t, 'final');
    child.say({ t: 'run', id: 'third', work_order: {} });
    assert.equal((await child.hear()).ref_id, 'third');
  });

  test('input that is closed after the run does not end it', async t => {
    const child = await greeted(t, 'floods');
    child.process.stdin.end(`${JSON.stringify({ t: 'run', id: RUN, work_order: ORDER })}\n`);
    const heard = await child.rest();
    assert.deepEqual([heard.length, heard.at(-1).t], [20_001, 'final']);
    assert.equal(await child.exit, 0);
  });

  test('nonsense is answered when idle, logged during a run, and never deadly', async t => {
    const child = await greeted(t, 'waits');
    child.say('');
    child.say('{"t":');
    const fatal = await child.hear();
    assert.deepEqual([fatal.t, fatal.ref_id], ['fatal', null]);
    assert.match(fatal.error, /^invalid json: /);
    child.say({ t: 'run', work_order: {} });
    assert.match((await child.hear()).error, /without an id/);
    child.say({ t: 'run', id: 'x', work_order: 'tidy up' });
    assert.equal((await child.hear()).error_code, 'contract_schema_violation');
    child.say({ t: 'dance' });
    child.say({ t: 'run', id: RUN, work_order: { unknown: 1, config: null }, unknown: 2 });
    assert.equal((await child.hear()).event.type, 'run_started');
    child.say('garbage');
    child.say('[1]');
    child.say({ t: 'cancel', ref_id: RUN });
    assert.equal((await child.hear()).t, 'final');
    assert.equal(await child.end(), 0);
    assert.match(child.stderr, /type "dance" was ignored/);
  });

  test('questions go to a host that knows them', async t => {
    const child = await greeted(t, 'asks');
    assert.deepEqual(child.hello.outrigger, { version: 1, asks: ['tool'] });
    child.say({ t: 'run', id: RUN, work_order: ORDER, outrigger: { version: 1, features: ['ask'] } });
    const [first, second] = [await child.hear(), await child.hear()];
    assert.deepEqual(first, { t: 'ask', ref_id: RUN, id: 'ask-1', action: 'tool', tool_name: 'Bash', input: { command: 'ls' } });
    child.say({ t: 'answer', ref_id: RUN, id: second.id, decision: 'deny', reason: 'not today' });
    child.say({ t: 'answer', ref_id: RUN, id: first.id, decision: 'allow', reason: 'ok' });
    child.say({ t: 'answer', ref_id: RUN, id: first.id, decision: 'deny', reason: 'twice' });
    const answers = JSON.parse((await child.hear()).event.text);
    assert.deepEqual(answers, [{ allowed: true, reason: 'ok', by: 'host' }, { allowed: false, reason: 'not today', by: 'host' }]);
  });

  for (const [name, ask] of [['does not know questions', child => child.run({ policy: { require_approval_for: ['Bash'] } })], ['stops listening', async child => {
    child.say({ t: 'run', id: RUN, work_order: { policy: { require_approval_for: ['Bash'] } }, outrigger: { features: ['ask'] } });
    await child.hear();
    await child.hear();
    child.end();
    return child.rest();
  }]]) {
    test(`when the host ${name}, the policy decides and approval cannot be had`, async t => {
      const child = await greeted(t, 'asks');
      const [said] = await ask(child);
      const [bash, net] = JSON.parse(said.event.text);
      assert.deepEqual([bash.allowed, bash.by, net.allowed], [false, 'policy', true]);
      assert.match(bash.reason, /needs approval \(Bash\)/);
    });
  }

  test('a tool says what it does, and what is denied', async t => {
    const child = await greeted(t, 'tool');
    const heard = await child.run({ policy: { disallowed_tools: ['Ba*'] } });
    assert.deepEqual(kinds(heard), ['tool_call', 'tool_result', 'warning', 'tool_result', 'assistant_message', 'tool_call', 'tool_result', 'final']);
    assert.equal(heard[1].event.output, 4);
    assert.deepEqual([heard[3].event.is_error, heard[3].event.output.denied], [true, true]);
    assert.deepEqual([heard[6].event.is_error, heard[6].event.output], [true, { error: 'broken' }]);
  });

  test('what is spent is summed, and told to hosts that count', async t => {
    const child = await greeted(t, 'spends');
    const [final] = await child.run();
    assert.deepEqual(final.receipt.usage, { input_tokens: 7, output_tokens: 10, cache_read_tokens: null, cache_write_tokens: null, request_units: null, estimated_cost_usd: 0.5 });
    const heard = await child.run(ORDER, { outrigger: { version: 1, features: ['usage'] } });
    assert.deepEqual(kinds(heard), ['usage', 'usage', 'usage', 'usage', 'final']);
    assert.equal(heard[2].event.total, true);
  });

  test('an event after the end is dropped', async t => {
    const child = await greeted(t, 'speaksLate');
    assert.deepEqual(kinds(await child.run()), ['final']);
    child.say({ t: 'ping', seq: 1 });
    assert.equal((await child.hear()).t, 'pong');
    while (!child.stderr.includes('was dropped')) await later(5);
    assert.equal(await child.end(), 0);
  });

  test('a host that is slow makes the handler wait', async t => {
    const child = spawn(process.execPath, [HERE], { env: { ...process.env, ABP_SCENARIO: 'notices' } });
    t.after(() => child.kill('SIGKILL'));
    child.stdin.end(`${JSON.stringify({ t: 'run', id: RUN, work_order: ORDER })}\n`);
    let said = '';
    for await (const text of child.stderr) if ((said += text).includes('the host is slow')) break;
    let lines = 0;
    for await (const chunk of child.stdout) lines += chunk.toString().split('\n').length - 1;
    assert.equal(lines, 52);
  });

  test('a host that is gone ends the sidecar quietly', async t => {
    const child = await greeted(t, 'floods');
    child.say({ t: 'run', id: RUN, work_order: ORDER });
    await child.hear();
    child.process.stdout.destroy();
    assert.equal(await child.exit, 0);
    assert.equal(child.stderr, '');
  });

  test('a handler that does not wait for a slow host is stopped before it fills the memory', async t => {
    const child = await greeted(t, 'floodsCarelessly');
    const heard = await child.run();
    assert.match(heard.at(-1).error, /wait for a slow host/);
  });

  test('globs read a policy as widely as its author can have meant it', () => {
    const yes = ['Bash Bash', '* anything', 'mcp__*__* mcp__a__b', '**/.env .env', '**/.env a/b/.env', '*.log a/b.log', 'src/** src/a/b', '?at cat', '[a-c]at bat', '[!a-c]at rat', '{a,b}/x b/x', '**/.git/** a/.git/x', '\\* *'];
    const no = ['Bash Bashful', '**/.env a.env', '[a-c]at -at', '?at at', 'src/** lib/a', '{a,b}/x c/x', '\\* x', '**/a/b xa/b'];
    assert.deepEqual(yes.filter(row => !glob(...row.split(' '))), []);
    assert.deepEqual(no.filter(row => glob(...row.split(' '))), []);
    const start = performance.now();
    assert.equal(glob('*a'.repeat(200), 'a'.repeat(2000) + 'b'), false);
    assert.ok(performance.now() - start < 5000);
  });

  test('the policy judges tools, files and hosts, and no path leaves the workspace', t => {
    const root = mkdtempSync(path.join(tmpdir(), 'abp-kit-'));
    symlinkSync('/etc', path.join(root, 'out'));
    writeFileSync(path.join(root, 'a.txt'), '');
    const lists = { allowed_tools: [], disallowed_tools: [], deny_read: ['**/.env'], deny_write: ['secret/'], allow_network: ['*.example.org'], deny_network: ['bad.example.org'], require_approval_for: ['Bash'] };
    const ask = question => judge({ policy: lists, workspace: { root } }, question).allowed;
    const read = file_path => ask({ action: 'tool', tool_name: 'ReadFile', input: { file_path } });
    assert.deepEqual(['a.txt', 'b/c.txt', '.env', 'b/.env', '../x', '/etc/passwd', 'out/passwd', `${root}/a.txt`].map(read), [true, true, false, false, false, false, false, true]);
    assert.deepEqual([ask({ action: 'write', path: 'secret/k' }), ask({ action: 'write', path: './secret' }), ask({ action: 'read', path: 'secret/k' }), ask({ action: 'read' })], [false, false, true, false]);
    const hosts = ['a.example.org', 'bad.example.org', 'example.org', 'https://a.example.org/x', '%%'];
    assert.deepEqual(hosts.map(host => ask({ action: 'network', host })), [true, false, false, true, false]);
    assert.deepEqual([ask({ action: 'tool', tool_name: 'Bash' }), ask({ action: 'tool', tool_name: 'WebFetch', input: { url: 'https://elsewhere.net' } })], [false, false]);
  });
}
