/**
 * Makes a program an abp sidecar: a handler gets a work order and says what it does, as it does it. One file, no
 * dependencies, Node 18 or newer.
 *
 *   import { serve } from './abp.mjs';
 *
 *   await serve({ id: 'echo', capabilities: { streaming: 'native' } }, async run => {
 *     await run.delta('you said: ');
 *     await run.delta(run.order.task);
 *   });
 *
 * Names follow one rule: what travels is spelled as the protocol spells it (`tool_name`, `input_tokens`); what is only
 * called here is camelCase. Every event leaves at once. Whatever the handler does, the run ends with one `final` or one
 * `fatal`.
 *
 * Nothing but the protocol may be on standard output, so `console.log` and `process.stdout.write` go to standard error from
 * the moment `serve` is called. Programs that you start yourself must not inherit standard output.
 *
 * Pings are answered by the event loop. A handler that computes without ever awaiting blocks it, and a host that pings will
 * take it for stalled: use a worker thread for such work.
 */

import { realpathSync } from 'node:fs';
import path from 'node:path';

export const CONTRACT_VERSION = 'abp/v0.1';

/** The codes that a `fatal` or an `error` event may carry. Hosts of the original refuse a line with any other. */
export const ERROR_CODES = Object.freeze(`protocol_invalid_envelope protocol_handshake_failed protocol_missing_ref_id
  protocol_unexpected_message protocol_version_mismatch mapping_unsupported_capability mapping_dialect_mismatch
  mapping_lossy_conversion mapping_unmappable_tool backend_not_found backend_unavailable backend_timeout backend_rate_limited
  backend_auth_failed backend_model_not_found backend_crashed backend_content_filtered backend_context_length
  execution_tool_failed execution_workspace_error execution_permission_denied contract_version_mismatch
  contract_schema_violation contract_invalid_receipt capability_unsupported capability_emulation_failed policy_denied
  policy_invalid workspace_init_failed workspace_staging_failed ir_lowering_failed ir_invalid receipt_hash_mismatch
  receipt_chain_broken receipt_store_failed dialect_unknown dialect_mapping_failed config_invalid rate_limit_exceeded
  circuit_breaker_open stream_closed validation_failed sidecar_spawn_failed internal`.split(/\s+/));

const OUTCOMES = ['complete', 'partial', 'failed'];
const COUNTS = ['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens', 'request_units'];
/** Where a run keeps what its handler does not need. */
const END = Symbol('end');

/** The id of an order that has none; hosts of the original need one in a receipt. */
const NO_ID = '00000000-0000-0000-0000-000000000000';

/** An error that says which code the `fatal` gets. */
export class AbpError extends Error {
  constructor(message, code = 'internal') {
    super(message);
    this.name = 'AbpError';
    this.code = code;
  }
}

/** JSON text that travels as it is, without being read and written again: `ext: { raw_message: raw(line) }`. */
export function raw(text) {
  return new Raw(text);
}

class Raw {
  constructor(text) {
    JSON.parse(text);
    // Between two tokens a line break means nothing, and in a line it would end it.
    this.text = text.replace(/[\r\n]/g, ' ');
  }
}

/**
 * Serves runs until the host has gone, then ends the process.
 *
 * @param {object} identity `id`, `backend_version`?, `adapter_version`?, `capabilities`?, `mode`? (`mapped` or `passthrough`),
 *   `asks`? (the actions this sidecar never does without asking: `tool`, `read`, `write`, `network`)
 * @param {(run: Run) => Promise<object|void>|object|void} handler may answer `{ outcome?, usage_raw?, artifacts?, verification? }`
 * @param {object} [options]
 * @param {number} [options.trace] how many events the receipt repeats (default 0: the host has seen them all)
 * @param {number} [options.cancelGraceMs] how long a handler may go on after a cancel before the run is ended without it (default 5000)
 * @param {number} [options.maxQueuedBytes] how much may wait for a slow host when events are not awaited (default 64 MiB)
 */
export async function serve(identity, handler, options = {}) {
  const sidecar = new Sidecar(readIdentity(identity), handler, {
    trace: options.trace ?? 0,
    cancelGraceMs: options.cancelGraceMs ?? 5000,
    maxQueuedBytes: options.maxQueuedBytes ?? 64 << 20,
  });
  await sidecar.serve();
  // Whatever the handler left running would keep the process alive, and there is nobody left to work for.
  process.exit(process.exitCode ?? 0);
}

class Sidecar {
  #identity;
  #handler;
  #options;
  #out;
  #run = null;
  #ended = Promise.resolve();
  #reading = true;

  constructor(identity, handler, options) {
    this.#identity = identity;
    this.#handler = handler;
    this.#options = options;
    this.#out = new Output(options.maxQueuedBytes);
  }

  async serve() {
    process.on('uncaughtException', error => this.#crash(error));
    process.on('unhandledRejection', error => this.#crash(error));
    process.on('exit', () => this.#run?.[END].abandoned('the sidecar exited during the run'));
    const { id, backend_version, adapter_version, capabilities, mode, asks } = this.#identity;
    const hello = { t: 'hello', contract_version: CONTRACT_VERSION, backend: { id, backend_version, adapter_version }, capabilities, mode };
    if (asks) hello.outrigger = { version: 1, asks };
    await this.#out.line(stringify(hello));
    await readLines(process.stdin, line => this.#receive(line));
    this.#reading = false;
    this.#run?.[END].hostIsSilent();
    await this.#ended;
    await this.#out.flushed();
  }

  #receive(line) {
    let message;
    try {
      message = JSON.parse(line);
    } catch (error) {
      return this.#refuse(`invalid json: ${error.message}`);
    }
    switch (message?.t) {
      case 'run':
        return this.#start(message);
      case 'ping':
        return this.#pong(message, line);
      case 'cancel':
        if (this.#run && message.ref_id === this.#run.id) this.#run[END].cancel(message.reason ?? 'cancelled');
        else log(`a cancel for ${show(message.ref_id)}, which is not under way`);
        return;
      case 'answer':
        if (!this.#run?.[END].answer(message)) log(`an answer to ${show(message.id)}, which was not asked`);
        return;
      default:
        log(`a message of type ${show(message?.t)} was ignored`);
    }
  }

  /** Says that a line could not be understood. During a run only in the log: a fatal without an id would end that run. */
  #refuse(error) {
    if (this.#run) log(error);
    else this.#out.reply(stringify({ t: 'fatal', ref_id: null, error, error_code: 'protocol_invalid_envelope' }));
  }

  #pong({ seq }, line) {
    if (typeof seq !== 'number') return log('a ping without a seq was ignored');
    // Beyond 2^53 a number is not what was sent; its digits are.
    const digits = Number.isSafeInteger(seq) ? seq : /"seq"\s*:\s*(\d+)/.exec(line)?.[1];
    if (digits !== undefined) this.#out.reply(`{"t":"pong","seq":${digits}}`);
  }

  #start({ id, work_order: order, outrigger }) {
    if (typeof id !== 'string') return this.#refuse('a run without an id');
    const fatal = (error, error_code) => this.#out.reply(stringify({ t: 'fatal', ref_id: id, error, error_code }));
    if (this.#run) return fatal(`run ${this.#run.id} is under way, and there is one at a time`, 'protocol_unexpected_message');
    if (!isObject(order)) return fatal('the run has no work_order', 'contract_schema_violation');
    const offers = this.#reading && Array.isArray(outrigger?.features) ? outrigger.features : [];
    const run = new Run(id, wholeOrder(order), new Set(offers), this.#identity, this.#out, this.#options);
    this.#run = run;
    this.#ended = this.#work(run);
  }

  async #work(run) {
    const late = Symbol('late');
    const finished = (async () => this.#handler(run))();
    finished.catch(() => {});
    try {
      const result = await Promise.race([finished, run[END].overdue(this.#options.cancelGraceMs, late)]);
      if (result === late) {
        log(`the handler did not stop within ${this.#options.cancelGraceMs} ms of the cancel; the sidecar ends`);
        run[END].final({});
        await this.#out.flushed();
        process.exit(0);
      }
      run[END].final(result ?? {});
    } catch (error) {
      if (run.signal.aborted && (error === run.signal.reason || error?.name === 'AbortError')) run[END].final({});
      else run[END].fatal(error);
    }
    this.#run = null;
  }

  async #crash(error) {
    log(error?.stack ?? error);
    this.#run?.[END].fatal(error);
    await this.#out.flushed();
    process.exit(1);
  }
}

/** One work order under way: what is to be done, and how to say what is done. */
class Run {
  #out;
  #end;
  #usage = new Usage();
  #asks = 0;

  constructor(id, order, offers, identity, out, options) {
    /** The id of the run. */
    this.id = id;
    /** The work order; what the host left out is empty. */
    this.order = order;
    const { vendor } = order.config;
    /** `passthrough` when the order says so (`config.vendor.abp.mode`), else the identity's. */
    this.mode = [vendor.abp?.mode, vendor['abp.mode'], identity.mode].find(mode => mode === 'passthrough' || mode === 'mapped');
    /** The extensions that the host knows: `ask`, `usage`. */
    this.offers = offers;
    this.#out = out;
    this.#end = new End(this, identity, this.#usage, out, options);
  }

  /** Aborted when the host cancels; its reason is an error with the host's words. */
  get signal() {
    return this.#end.signal;
  }

  get [END]() {
    return this.#end;
  }

  started(message = 'started', extra) {
    return this.emit('run_started', { message }, extra);
  }

  completed(message = 'completed', extra) {
    return this.emit('run_completed', { message }, extra);
  }

  warning(message, extra) {
    return this.emit('warning', { message }, extra);
  }

  /** Something went wrong that does not end the run. */
  error(message, error_code, extra) {
    return this.emit('error', error_code === undefined ? { message } : { message, error_code }, extra);
  }

  delta(text, extra) {
    return this.emit('assistant_delta', { text }, extra);
  }

  message(text, extra) {
    return this.emit('assistant_message', { text }, extra);
  }

  toolCall({ tool_name, tool_use_id = null, parent_tool_use_id = null, input = {} }, extra) {
    return this.emit('tool_call', { tool_name, tool_use_id, parent_tool_use_id, input }, extra);
  }

  toolResult({ tool_name, tool_use_id = null, output = null, is_error = false }, extra) {
    return this.emit('tool_result', { tool_name, tool_use_id, output, is_error }, extra);
  }

  fileChanged(path, summary = '', extra) {
    return this.emit('file_changed', { path, summary }, extra);
  }

  commandExecuted({ command, exit_code = null, output_preview = null }, extra) {
    return this.emit('command_executed', { command, exit_code, output_preview }, extra);
  }

  /**
   * Sends an event. It is on its way when this returns; what is returned is a promise that waits while the host is slow, so
   * awaiting it is what keeps memory small. `extra` is `{ ext?, ts? }`; `input`, `output` and `ext.raw_message` may be `raw(text)`.
   */
  emit(type, members, { ext, ts } = {}) {
    checkEvent(type, members);
    const stamp = ts === undefined ? new Date().toISOString() : String(ts);
    const fields = { ts: stamp, type, ...members };
    const parts = Object.entries(fields).map(([name, value]) => `${JSON.stringify(name)}:${stringify(value, name)}`);
    if (ext !== undefined && ext !== null) parts.push(`"ext":${extension(ext)}`);
    return this.#end.event(`{${parts.join(',')}}`);
  }

  /**
   * Counts what was spent: `input_tokens`, `output_tokens`, `cache_read_tokens`, `cache_write_tokens`, `request_units`,
   * `estimated_cost_usd`, `turns`; with `total: true` the numbers are sums so far. It goes into the receipt, and to the host at
   * once if that knows the extension.
   */
  usage(report) {
    this.#usage.add(report);
    if (!this.offers.has('usage')) return Promise.resolve();
    return this.#end.event(stringify({ ts: new Date().toISOString(), type: 'usage', ...report }));
  }

  /** Adds a file to the receipt; its path is relative to the root of the workspace. */
  artifact(kind, path) {
    requireText(kind, 'kind');
    requireText(path, 'path');
    this.#end.artifacts.push({ kind, path });
  }

  /**
   * Asks before doing: `{ action: 'tool'|'read'|'write'|'network', tool_name?, input?, path?, host?, tool_use_id? }`. The host answers
   * if it can; else the policy of the work order does, and what needs a person's approval is denied.
   *
   * @returns {Promise<{ allowed: boolean, reason: string, by: 'host'|'policy' }>}
   */
  async ask(question) {
    if (!['tool', 'read', 'write', 'network'].includes(question?.action)) throw new TypeError('an action is tool, read, write or network');
    if (this.signal.aborted) return { allowed: false, reason: this.signal.reason.message, by: 'policy' };
    const local = () => ({ ...judge(this.order, question), by: 'policy' });
    if (!this.offers.has('ask')) return local();
    const id = `ask-${(this.#asks += 1)}`;
    return this.#end.ask(id, { t: 'ask', ref_id: this.id, id, ...question }, local);
  }

  /**
   * Does `work` as a tool call: asks first, then says what is called and what came out. A denial is said too, and thrown as an
   * `AbpError` with the code `policy_denied`.
   */
  async tool({ tool_name, tool_use_id = null, parent_tool_use_id = null, input = {} }, work) {
    const { allowed, reason } = await this.ask({ action: 'tool', tool_name, input: input instanceof Raw ? JSON.parse(input.text) : input, tool_use_id });
    if (!allowed) {
      await this.warning(`${tool_name} was denied: ${reason}`);
      await this.toolResult({ tool_name, tool_use_id, output: { denied: true, reason }, is_error: true });
      throw new AbpError(`${tool_name} was denied: ${reason}`, 'policy_denied');
    }
    await this.toolCall({ tool_name, tool_use_id, parent_tool_use_id, input });
    try {
      const output = await work(input);
      await this.toolResult({ tool_name, tool_use_id, output: output ?? null });
      return output;
    } catch (error) {
      await this.toolResult({ tool_name, tool_use_id, output: { error: textOf(error) }, is_error: true });
      throw error;
    }
  }
}

/** The half of a run that its handler does not see: how it is cancelled, answered and ended, once. */
class End {
  #run;
  #identity;
  #usage;
  #out;
  #options;
  #startedAt = new Date();
  #abort = new AbortController();
  #asked = new Map();
  #trace = [];
  #open = true;

  constructor(run, identity, usage, out, options) {
    this.#run = run;
    this.#identity = identity;
    this.#usage = usage;
    this.#out = out;
    this.#options = options;
    this.artifacts = [];
  }

  get signal() {
    return this.#abort.signal;
  }

  event(text) {
    if (!this.#open) {
      log(`an event after the end of run ${this.#run.id} was dropped: ${text.slice(0, 200)}`);
      return Promise.resolve();
    }
    if (this.#trace.length < this.#options.trace) this.#trace.push(text);
    return this.#out.line(`{"t":"event","ref_id":${stringify(this.#run.id)},"event":${text}}`);
  }

  ask(id, message, local) {
    return new Promise(resolve => {
      this.#out.line(stringify(message));
      this.#asked.set(id, { resolve, local });
    });
  }

  answer({ ref_id, id, decision, reason }) {
    const waiting = this.#asked.get(id);
    if (!waiting || ref_id !== this.#run.id) return false;
    this.#asked.delete(id);
    waiting.resolve({ allowed: decision === 'allow', reason: String(reason ?? decision), by: 'host' });
    return true;
  }

  /** The host has closed our input: nobody will answer any more, so the policy does. */
  hostIsSilent() {
    this.#run.offers.delete('ask');
    for (const { resolve, local } of this.#asked.values()) resolve(local());
    this.#asked.clear();
  }

  cancel(reason) {
    const error = new Error(String(reason));
    error.name = 'AbortError';
    this.#abort.abort(error);
    for (const { resolve } of this.#asked.values()) resolve({ allowed: false, reason: error.message, by: 'policy' });
    this.#asked.clear();
  }

  /** Resolves some time after a cancel. */
  overdue(ms, value) {
    return new Promise(resolve => {
      this.signal.addEventListener('abort', () => setTimeout(resolve, ms, value).unref(), { once: true });
    });
  }

  final(result) {
    if (!this.#open) return;
    let receipt;
    try {
      receipt = this.#receipt(result);
    } catch (error) {
      return this.fatal(error);
    }
    this.#open = false;
    this.#out.must(`{"t":"final","ref_id":${stringify(this.#run.id)},"receipt":${receipt}}`);
  }

  fatal(thrown) {
    if (!this.#open) return;
    this.#open = false;
    this.#out.must(this.#fatalText(thrown));
  }

  /** The process ends now, so this one write cannot wait. */
  abandoned(why) {
    if (!this.#open) return;
    this.#open = false;
    this.#out.last(this.#fatalText(new AbpError(why, 'backend_crashed')));
  }

  #fatalText(thrown) {
    const error_code = ERROR_CODES.includes(thrown?.code) ? thrown.code : 'internal';
    return stringify({ t: 'fatal', ref_id: this.#run.id, error: textOf(thrown), error_code });
  }

  #receipt(result) {
    if (!isObject(result)) throw new TypeError('a handler answers with nothing or with an object');
    const outcome = result.outcome ?? (this.signal.aborted ? 'partial' : 'complete');
    if (!OUTCOMES.includes(outcome)) throw new TypeError(`an outcome is ${OUTCOMES.join(', ')}; the handler answered ${show(outcome)}`);
    const { id, backend_version, adapter_version, capabilities } = this.#identity;
    const finishedAt = new Date();
    const head = {
      meta: {
        run_id: this.#run.id,
        work_order_id: this.#run.order.id,
        contract_version: CONTRACT_VERSION,
        started_at: this.#startedAt.toISOString(),
        finished_at: finishedAt.toISOString(),
        duration_ms: Math.max(0, finishedAt - this.#startedAt),
      },
      backend: { id, backend_version, adapter_version },
      capabilities,
      mode: this.#run.mode,
      usage_raw: result.usage_raw ?? {},
      usage: this.#usage.sums(),
      artifacts: [...this.artifacts, ...(result.artifacts ?? [])],
      verification: { git_diff: null, git_status: null, harness_ok: true, ...result.verification },
      outcome,
      receipt_sha256: null,
    };
    // The events of the trace are text already; they go in as they went out.
    return `${stringify(head).slice(0, -1)},"trace":[${this.#trace.join(',')}]}`;
  }
}

/** What was spent so far. What nobody counted stays unknown. */
class Usage {
  #sums = Object.fromEntries([...COUNTS, 'estimated_cost_usd'].map(name => [name, null]));

  add(report) {
    if (!isObject(report)) throw new TypeError('usage is an object of numbers');
    for (const name of [...COUNTS, 'turns']) {
      const count = report[name] ?? 0;
      if (!Number.isSafeInteger(count) || count < 0) throw new TypeError(`${name} must be a whole number from 0`);
    }
    const cost = report.estimated_cost_usd ?? 0;
    if (typeof cost !== 'number' || !Number.isFinite(cost) || cost < 0) throw new TypeError('estimated_cost_usd must be a number from 0');
    for (const name of Object.keys(this.#sums)) {
      if (report[name] === undefined || report[name] === null) continue;
      const before = this.#sums[name] ?? 0;
      this.#sums[name] = report.total === true ? Math.max(before, report[name]) : before + report[name];
    }
  }

  sums() {
    return { ...this.#sums };
  }
}

/** Standard output, kept for the protocol alone. */
class Output {
  #write;
  #drained = null;
  #limit;

  constructor(limit) {
    this.#limit = limit;
    this.#write = process.stdout.write.bind(process.stdout);
    process.stdout.write = process.stderr.write.bind(process.stderr);
    process.stdout.on('error', error => {
      // The host has gone, and with it the reason to be here.
      if (error.code === 'EPIPE') process.exit(0);
      log(`standard output failed: ${error.message}`);
      process.exit(1);
    });
    process.stderr.on('error', () => {});
  }

  /** Sends a line at once. The promise waits while much is under way. Throws when so much is that nobody can have waited. */
  line(text) {
    const waiting = process.stdout.writableLength;
    if (waiting > this.#limit) throw new AbpError(`${waiting} bytes wait for a slow host; await what emits events`, 'stream_closed');
    return this.must(text);
  }

  /** Sends a line that answers one of the host: not to a host that sends and does not listen. */
  reply(text) {
    if (process.stdout.writableLength <= this.#limit) this.must(text);
    else log('the host does not listen; it gets no answer');
  }

  /** Sends a line whatever waits: the end of a run. */
  must(text) {
    if (this.#write(`${text}\n`)) return Promise.resolve();
    this.#drained ??= new Promise(resolve => {
      process.stdout.once('drain', () => {
        this.#drained = null;
        resolve();
      });
    });
    return this.#drained;
  }

  flushed() {
    return new Promise(resolve => this.#write('', resolve));
  }

  last(text) {
    // On a pipe that takes it this is written before `write` returns; behind a queue it could only be half a line.
    if (process.stdout.writableLength === 0) this.#write(`${text}\n`);
  }
}

/** The longest line that is read, in bytes. */
const MAX_LINE = 64 << 20;

/**
 * Calls `receive` with every line of a stream, and resolves at its end. Blank lines are skipped. Unlike `node:readline` it takes
 * only a newline for the end of a line, which matters for JSON: U+2028 is an ordinary character there.
 */
export function readLines(stream, receive) {
  const decoder = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });
  let held = [];
  let size = 0;
  const line = bytes => {
    const text = decoder.decode(bytes).trim();
    if (text !== '') receive(text);
  };
  return new Promise(resolve => {
    stream.on('data', chunk => {
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        const piece = chunk.subarray(start, end);
        line(held.length === 0 ? piece : Buffer.concat([...held, piece]));
        held = [];
        size = 0;
        start = end + 1;
      }
      if (start < chunk.length) held.push(chunk.subarray(start));
      size += chunk.length - start;
      if (size > MAX_LINE) {
        log(`a line of more than ${MAX_LINE} bytes`);
        stream.destroy();
        resolve();
      }
    });
    stream.on('end', () => {
      if (held.length > 0) line(Buffer.concat(held));
      resolve();
    });
    stream.on('error', () => resolve());
  });
}

const TEXT = {
  run_started: ['message'],
  run_completed: ['message'],
  warning: ['message'],
  error: ['message'],
  assistant_delta: ['text'],
  assistant_message: ['text'],
  tool_call: ['tool_name'],
  tool_result: ['tool_name'],
  file_changed: ['path', 'summary'],
  command_executed: ['command'],
};
const OPTIONAL_TEXT = ['tool_use_id', 'parent_tool_use_id', 'output_preview'];

function checkEvent(type, members) {
  const texts = TEXT[type];
  if (!texts) throw new TypeError(`${show(type)} is not a type of event; there are ${Object.keys(TEXT).join(', ')}`);
  for (const name of texts) requireText(members[name], `${type}.${name}`);
  for (const name of OPTIONAL_TEXT) if (members[name] !== undefined && members[name] !== null) requireText(members[name], `${type}.${name}`);
  if (type === 'tool_result' && typeof members.is_error !== 'boolean') throw new TypeError('tool_result.is_error must be a boolean');
  const { exit_code: code, error_code: errorCode } = members;
  if (code !== undefined && code !== null && !(Number.isInteger(code) && Math.abs(code) < 2 ** 31)) throw new TypeError('command_executed.exit_code must be a whole number');
  if (errorCode !== undefined && !ERROR_CODES.includes(errorCode)) throw new TypeError(`${show(errorCode)} is not a code of the contract`);
}

function requireText(value, name) {
  if (typeof value !== 'string') throw new TypeError(`${name} must be a string, not ${show(value)}`);
}

/** The `ext` of an event, whose members may be written already. */
function extension(ext) {
  if (!isObject(ext)) throw new TypeError('ext must be an object');
  const members = Object.entries(ext).filter(([, value]) => value !== undefined);
  return `{${members.map(([name, value]) => `${JSON.stringify(name)}:${stringify(value, `ext.${name}`)}`).join(',')}}`;
}

/** JSON that every reader takes: half a surrogate pair becomes U+FFFD. */
function stringify(value, name = 'value') {
  if (value instanceof Raw) return value.text;
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`${name} cannot be written as JSON`);
  if (!text.includes('\\ud')) return text;
  return text.replace(/(\\\\)|\\ud[89a-f][0-9a-f]{2}/g, (_, backslash) => backslash ?? '\\ufffd');
}

function readIdentity({ id, backend_version = null, adapter_version = null, capabilities = {}, mode = 'mapped', asks }) {
  requireText(id, 'identity.id');
  if (id === '') throw new TypeError('identity.id must not be empty');
  if (mode !== 'mapped' && mode !== 'passthrough') throw new TypeError('identity.mode is mapped or passthrough');
  for (const [name, level] of Object.entries(capabilities)) {
    const known = ['native', 'emulated', 'unsupported'].includes(level) || typeof level?.restricted?.reason === 'string';
    if (!known) throw new TypeError(`capabilities.${name} is native, emulated, unsupported or { restricted: { reason } }`);
  }
  return { id, backend_version, adapter_version, capabilities, mode, asks };
}

/** A work order with nothing missing: hosts in the wild send partial ones. */
function wholeOrder(order) {
  const list = value => (Array.isArray(value) ? value : []);
  const record = value => (isObject(value) ? value : {});
  const workspace = record(order.workspace);
  const context = record(order.context);
  const policy = record(order.policy);
  const config = record(order.config);
  const lists = ['allowed_tools', 'disallowed_tools', 'deny_read', 'deny_write', 'allow_network', 'deny_network', 'require_approval_for'];
  return {
    ...order,
    id: order.id ?? NO_ID,
    task: String(order.task ?? ''),
    lane: order.lane ?? 'patch_first',
    workspace: { ...workspace, root: workspace.root ?? '.', mode: workspace.mode ?? 'staged', include: list(workspace.include), exclude: list(workspace.exclude) },
    context: { ...context, files: list(context.files), snippets: list(context.snippets) },
    policy: { ...policy, ...Object.fromEntries(lists.map(name => [name, list(policy[name]).map(String)])) },
    requirements: { ...record(order.requirements), required: list(order.requirements?.required) },
    config: { ...config, model: config.model ?? null, vendor: record(config.vendor), env: record(config.env), max_budget_usd: config.max_budget_usd ?? null, max_turns: config.max_turns ?? null },
  };
}

/**
 * What the policy of a work order says when there is nobody to ask. `tool` looks at the tool and at what its input names; the
 * others at their path or host. A denial says which list decided.
 */
export function judge({ policy, workspace }, { action, tool_name, input, path: file, host }) {
  const checks = {
    tool: () => judgeTool(policy, workspace, tool_name ?? '', isObject(input) ? input : {}),
    read: () => judgeFile(policy, 'deny_read', workspace, file),
    write: () => judgeFile(policy, 'deny_write', workspace, file),
    network: () => judgeHost(policy, host),
  };
  const reason = checks[action]();
  return reason === null ? { allowed: true, reason: 'nothing in the policy forbids it' } : { allowed: false, reason };
}

function judgeTool(policy, workspace, name, input) {
  const denied = found(policy.disallowed_tools, name);
  if (denied) return `${name} is in disallowed_tools (${denied})`;
  if (policy.allowed_tools.length > 0 && !found(policy.allowed_tools, name)) return `${name} is not in allowed_tools`;
  const approval = found(policy.require_approval_for, name);
  if (approval) return `${name} needs approval (${approval}), and the host has no way to give it`;
  const lower = name.toLowerCase();
  const is = words => words.some(word => lower.includes(word));
  for (const [key, value] of Object.entries(input)) {
    if (typeof value !== 'string' || !/path|file/i.test(key)) continue;
    const lists = [is(['read', 'grep', 'glob']) && 'deny_read', is(['write', 'edit', 'patch']) && 'deny_write'].filter(Boolean);
    for (const list of lists.length > 0 ? lists : [null]) {
      const reason = judgeFile(policy, list, workspace, value);
      if (reason) return reason;
    }
  }
  const url = [input.url, input.uri, input.endpoint].find(value => typeof value === 'string');
  return is(['web', 'fetch', 'http']) && url !== undefined ? judgeHost(policy, url) : null;
}

function judgeFile(policy, list, { root }, file) {
  if (typeof file !== 'string') return 'no path is named';
  const base = real(path.resolve(root));
  const inside = path.relative(base, real(path.resolve(base, file)));
  if (inside === '..' || inside.startsWith(`..${path.sep}`) || path.isAbsolute(inside)) return `${file} is outside of the workspace`;
  const denied = list && policy[list].find(pattern => coversFile(pattern, inside.split(path.sep).join('/')));
  return denied ? `${file} is in ${list} (${denied})` : null;
}

/** Whether a pattern for files covers one: `./x` and `/x` are `x` in the root, `x/` and `x/**` are the folder and all below it. */
function coversFile(written, file) {
  const pattern = written.replace(/^(\.?\/)+/, '').replace(/\/$/, '/**');
  return glob(pattern, file) || (pattern.endsWith('/**') && glob(pattern.slice(0, -3), file));
}

function judgeHost(policy, where) {
  if (typeof where !== 'string') return 'no host is named';
  let host;
  try {
    host = new URL(where.includes('://') ? where : `http://${where}`).hostname.replace(/\.$/, '');
  } catch {
    return `${where} names no host`;
  }
  const denied = found(policy.deny_network, host);
  if (denied) return `${host} is in deny_network (${denied})`;
  if (policy.allow_network.length > 0 && !found(policy.allow_network, host)) return `${host} is not in allow_network`;
  return null;
}

/** The real place of a path, of which the last parts may not exist yet. */
function real(file) {
  try {
    return realpathSync(file);
  } catch {
    const parent = path.dirname(file);
    return parent === file ? file : path.join(real(parent), path.basename(file));
  }
}

function found(patterns, text) {
  return patterns.find(pattern => glob(pattern, text));
}

/**
 * Whether a pattern covers a text: `*` is anything (also across `/`, so that a denial means the most that its author can have
 * meant), `?` one character, two stars and a slash any folders or none, `[a-z]` and `[!a-z]` one of, `{a,b}` either. Every
 * character is looked at once for every token: there is no pattern that is slow.
 */
export function glob(pattern, text) {
  const brace = /\{([^{}]*)\}/.exec(pattern);
  if (brace) return brace[1].split(',').some(choice => glob(pattern.replace(brace[0], () => choice), text));
  const tokens = pattern.match(/\*\*\/|\*+|\[!?[^\]]+\]|\\[^]|[^]/gu) ?? [];
  // A state is the token that comes next; `~at` is inside the folders of the token `at`, where only a `/` leads on.
  const enter = (states, at) => {
    while (!states.has(at)) {
      states.add(at);
      if (!tokens[at]?.startsWith('*')) return;
      at += 1;
    }
  };
  let states = new Set();
  enter(states, 0);
  for (const char of text) {
    const next = new Set();
    for (const state of states) {
      const at = state < 0 ? ~state : state;
      const token = tokens[at];
      if (token === '**/') {
        next.add(~at);
        if (char === '/') enter(next, at + 1);
      } else if (token?.startsWith('*')) {
        enter(next, at);
      } else if (token !== undefined && isOne(token, char)) {
        enter(next, at + 1);
      }
    }
    states = next;
  }
  return states.has(tokens.length);
}

function isOne(token, char) {
  if (token === '?') return true;
  if (token.length > 1 && token[0] === '\\') return token.slice(1) === char;
  if (token.length < 3 || token[0] !== '[') return token === char;
  const not = token[1] === '!';
  const set = [...token.slice(not ? 2 : 1, -1)];
  let hit = false;
  for (let at = 0; at < set.length; at += 1) {
    const isRange = set[at + 1] === '-' && at + 2 < set.length;
    hit ||= isRange ? set[at] <= char && char <= set[at + 2] : set[at] === char;
    if (isRange) at += 2;
  }
  return hit !== not;
}

function isObject(value) {
  return value !== null && typeof value === 'object' && !Array.isArray(value);
}

function textOf(thrown) {
  return String(thrown?.message || thrown || 'unknown error');
}

function show(value) {
  return JSON.stringify(value)?.slice(0, 120) ?? String(value);
}

function log(text) {
  process.stderr.write(`abp: ${text}\n`);
}
