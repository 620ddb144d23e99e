// The real Claude Code under a scripted host, against a model server on loopback. CLAUDE_COMMAND names the program.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { readLines } from '../abp.mjs';

const HERE = path.dirname(fileURLToPath(import.meta.url));
const RUN = '550e8400-e29b-41d4-a716-446655440000';
let model;
let port;

before(async () => {
  assert.ok(process.env.CLAUDE_COMMAND, 'CLAUDE_COMMAND must name the claude program');
  model = spawn('python3', [path.join(HERE, '../../../fakes/anthropic.py')], { stdio: ['pipe', 'pipe', 'inherit'] });
  port = await new Promise(resolve => readLines(model.stdout, line => resolve(JSON.parse(line).port)));
});
after(() => model?.kill());

/** Runs one order and answers everything that was said. `react` may answer as the host. */
async function run(t, order, react = () => {}, offer = { version: 1, features: ['ask', 'usage'] }) {
  const root = mkdtempSync(path.join(tmpdir(), 'abp-claude-'));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const env = {
    PATH: process.env.PATH,
    HOME: root,
    TMPDIR: root,
    CLAUDE_COMMAND: process.env.CLAUDE_COMMAND,
    CLAUDE_CONFIG_DIR: path.join(root, '.claude'),
    ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`,
    ANTHROPIC_API_KEY: 'none',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_AUTOUPDATER: '1',
    CLAUDE_CODE_MAX_RETRIES: '0',
  };
  const child = spawn(process.execPath, [path.join(HERE, 'abp-claude.mjs')], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  t.after(() => child.kill('SIGKILL'));
  let stderr = '';
  child.stderr.on('data', text => (stderr += text));
  const say = message => child.stdin.write(`${JSON.stringify(message)}\n`);
  const heard = [];
  const lines = readLines(child.stdout, line => {
    const message = JSON.parse(line);
    heard.push({ ...message, line });
    if (message.t === 'hello') say({ t: 'run', id: RUN, work_order: { workspace: { root }, ...order }, outrigger: offer });
    if (message.t === 'final' || message.t === 'fatal') child.stdin.end();
    react(message, say, root);
  });
  await lines;
  const end = heard.at(-1);
  return { root, heard, end, stderr, types: heard.filter(({ t }) => t === 'event').map(({ event }) => event.type) };
}

const allow = decision => (message, say) => {
  if (message.t === 'ask') say({ t: 'answer', ref_id: RUN, id: message.id, decision, reason: `the host says ${decision}` });
};
const write = root => ({ task: `{{use Write ${JSON.stringify({ file_path: path.join(root, 'made.txt'), content: 'x' })}}}` });

test('what the model says is streamed, and the receipt counts it', async t => {
  const { types, end, heard, stderr } = await run(t, { task: '{{say hello out there}}' });
  assert.equal(end.receipt?.outcome, 'complete', JSON.stringify(end) + stderr);
  assert.deepEqual([types[0], types.at(-1)], ['run_started', 'run_completed']);
  const text = type => heard.filter(({ event }) => event?.type === type).map(({ event }) => event.text).join('');
  assert.equal(text('assistant_delta'), 'hello out there');
  assert.equal(text('assistant_message'), 'hello out there');
  assert.deepEqual([end.receipt.usage.input_tokens, end.receipt.usage.output_tokens], [25, 12]);
  assert.ok(types.includes('usage'));
});

for (const decision of ['allow', 'deny']) {
  test(`a tool is asked for before it is used: ${decision}`, async t => {
    const made = mkdtempSync(path.join(tmpdir(), 'abp-claude-made-'));
    t.after(() => rmSync(made, { recursive: true, force: true }));
    const { types, heard, end, stderr } = await run(t, { ...write(made), workspace: { root: made } }, allow(decision));
    const ask = heard.find(({ t }) => t === 'ask');
    assert.equal(ask?.tool_name, 'Write', JSON.stringify(end) + stderr);
    assert.equal(ask.input.content, 'x');
    assert.equal(existsSync(path.join(made, 'made.txt')), decision === 'allow');
    const result = heard.find(({ event }) => event?.type === 'tool_result').event;
    assert.equal(result.is_error, decision === 'deny');
    assert.equal(types.includes('file_changed'), decision === 'allow');
    assert.equal(end.receipt.outcome, 'complete');
  });
}

test('a tool that the program would use without asking is asked for all the same', async t => {
  const { heard, end } = await run(t, { task: `{{use Read ${JSON.stringify({ file_path: fileURLToPath(import.meta.url) })}}}` }, allow('deny'));
  assert.equal(heard.find(({ t }) => t === 'ask')?.tool_name, 'Read', JSON.stringify(end));
  const result = heard.find(({ event }) => event?.type === 'tool_result').event;
  assert.equal(result.is_error, true);
  assert.match(String(result.output), /the host says deny$/);
});

test('a cancel interrupts the model, and the run ends partial', async t => {
  const { end } = await run(t, { task: '{{trickle 600}}' }, (message, say) => {
    if (message.event?.type === 'assistant_delta') say({ t: 'cancel', ref_id: RUN, reason: 'enough' });
  });
  assert.equal(end.receipt?.outcome, 'partial', JSON.stringify(end));
});

test('a model that refuses makes the run fail with its reason', async t => {
  const { end, heard } = await run(t, { task: '{{status 401}}' });
  assert.equal(end.receipt?.outcome, 'failed', JSON.stringify(end));
  assert.ok(heard.some(({ event }) => event?.type === 'error'));
});

test('passthrough carries the very lines of the program', async t => {
  const { heard, end } = await run(t, { config: { vendor: { abp: { mode: 'passthrough', request: { prompt: '{{say raw}}' } } } } });
  assert.equal(end.receipt?.mode, 'passthrough', JSON.stringify(end));
  const kinds = heard.flatMap(({ event }) => event?.ext?.raw_message?.type ?? []);
  assert.ok(['system', 'stream_event', 'assistant', 'result'].every(kind => kinds.includes(kind)), kinds.join());
});

test('a program that is not there is said so', async t => {
  const before = process.env.CLAUDE_COMMAND;
  process.env.CLAUDE_COMMAND = '/nowhere/claude';
  t.after(() => (process.env.CLAUDE_COMMAND = before));
  const { end } = await run(t, { task: 'x' });
  assert.deepEqual([end.t, end.error_code], ['fatal', 'backend_not_found']);
});
