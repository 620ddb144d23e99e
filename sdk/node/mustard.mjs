/**
 * Runs sandboxed scripts in a mustard sidecar against a table of functions. One file, no dependencies, Node 18 or newer.
 *
 *   import { Mustard } from './mustard.mjs';
 *
 *   const mustard = new Mustard();
 *   const total = await mustard.run('const u = load_user(id); u.orders.length;', {
 *     inputs: { id: 7 },
 *     capabilities: { load_user: async id => ({ id, orders: [1, 2] }) },
 *   });
 *   await mustard.close();
 *
 * The script runs in a child process that holds no privileges. Every call of a capability stops the script into a
 * snapshot; the function runs here. So a run can also be stopped at a call, kept, and taken up later, by another process
 * on another machine: see `start` and `resume`.
 */

import { spawn } from 'node:child_process';
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** What is asked of the sidecar beyond version 2 of the protocol. */
const FEATURES = ['batch', 'deadline', 'world', 'error_detail', 'return', 'inspect', 'release'];

/** The limit of a request that every sidecar has, in bytes. */
const VERSION_2_FRAME = 1_048_576;

/** How much of the child's standard error is kept for messages. */
const STDERR_KEPT = 4096;

/** How deep a value may be nested. */
const DEEPEST = 128;

/** Everything that can go wrong. `code` is for programs, `message` for people. */
export class MustardError extends Error {
  constructor(message, fields = {}) {
    super(message);
    this.name = 'MustardError';
    /** `Parse`, `Validation`, `Runtime`, `Limit`, `Serialization`, `Protocol`, or `Sidecar` for the process itself. */
    this.kind = 'Sidecar';
    /** A stable word, such as `runtime`, `limit_heap`, `unknown_snapshot`, `died`, `timeout`, `aborted`, `used`. */
    this.code = 'internal';
    Object.assign(this, fields);
  }
}

/** A client of one sidecar. The child is started when it is needed and again after it died. */
export class Mustard {
  #options;
  #child = null;
  #programs = new Map();
  #closed = false;
  #turn = Promise.resolve();

  /**
   * @param {object} [options]
   * @param {string[]} [options.command] the sidecar; by default `$MUSTARD_SIDECAR`, else `outrigger sidecar mustard`
   * @param {Uint8Array|string} [options.key] signs snapshots; give your own to resume what another process kept
   * @param {boolean} [options.plain] speak version 2 only, as the original sidecar does
   * @param {number} [options.maxFrameBytes] the largest request, if the sidecar agrees (default 64 MiB)
   * @param {number} [options.maxResponseBytes] the largest response that is accepted (default 256 MiB)
   */
  constructor(options = {}) {
    const command = options.command ?? defaultCommand();
    if (!Array.isArray(command) || command.length === 0 || !command.every(part => typeof part === 'string')) {
      throw new TypeError('options.command must be an array of strings: the program and its arguments');
    }
    this.#options = {
      command,
      key: Buffer.from(options.key ?? randomBytes(32)),
      plain: options.plain ?? false,
      maxFrameBytes: options.maxFrameBytes ?? 64 << 20,
      maxResponseBytes: options.maxResponseBytes ?? 256 << 20,
    };
  }

  /** Compiles a script. What comes back can be run many times, also by another process. */
  async compile(source, { lenientReturn = false } = {}) {
    const key = `${lenientReturn ? 'r' : '-'}${source}`;
    const known = this.#programs.get(key);
    if (known) return known;
    const header = { method: 'compile', source: String(source) };
    if (lenientReturn) header.lenient_return = true;
    const { result, blob } = await this.#request(header);
    const program = Object.freeze({ id: result.program_id, bytes: blob });
    if (this.#programs.size >= 256) this.#programs.delete(this.#programs.keys().next().value);
    this.#programs.set(key, program);
    return program;
  }

  /**
   * Runs a script to its end and answers its value. Calls that wait at the same time are answered in parallel. If the
   * sidecar dies, the run goes on from its last snapshot in a new one, and no function is called twice.
   *
   * @param {string|{id: string, bytes: Uint8Array}} script
   * @param {object} [options]
   * @param {object} [options.inputs] global variables
   * @param {object} [options.capabilities] name → function, sync or async
   * @param {object} [options.limits] instruction_budget, heap_limit_bytes, allocation_budget, call_depth_limit, max_outstanding_host_calls
   * @param {number} [options.deadlineMs] how long one step may compute; kept by the sidecar
   * @param {number} [options.timeoutMs] how long the whole run may take; then the sidecar is killed
   * @param {AbortSignal} [options.signal] stops the run; the sidecar is killed
   * @param {number|bigint} [options.seed] of `Math.random`
   * @param {number} [options.nowMs] what the clock says
   * @param {number} [options.retries] new sidecars that one step may use (default 2)
   * @param {'asTheyCome'|'together'} [options.fanout] when answers of parallel calls are sent
   */
  async run(script, options = {}) {
    const table = handlers(options.capabilities ?? {});
    const stop = new Stop(options.signal, options.timeoutMs);
    try {
      const step = await this.#retrying(options, stop, () =>
        this.#start(script, { ...options, capabilities: [...table.keys()] }, stop));
      return await this.#drive(step, table, options, stop);
    } finally {
      stop.done();
    }
  }

  /** Starts a script and stops at its first call: `{ type: 'completed', value }` or a suspended step to keep. */
  async start(script, options = {}) {
    const capabilities = options.capabilities ?? [];
    const names = Array.isArray(capabilities) ? capabilities : Object.keys(capabilities);
    return this.#start(script, { ...options, capabilities: names }, null);
  }

  /**
   * Goes on with a suspended step, or with what its `save()` gave. `answer` is for its first call; `answers` (an array of
   * `{ callId, value }` or `{ callId, error }`) for any of them. Nothing here is single-use: keep count of what you resumed.
   */
  async resume(step, { answer, answers, cancel = false, deadlineMs, nowMs } = {}) {
    const from = this.#opened(step);
    const payload = cancel ? { type: 'cancelled' } : this.#payload(from, answer, answers);
    return this.#resume(from, payload, { deadlineMs, nowMs }, null);
  }

  /** Goes on with a suspended step to its end, answering every call with a function of the table. */
  async finish(step, options = {}) {
    const table = handlers(options.capabilities ?? {});
    const stop = new Stop(options.signal, options.timeoutMs);
    try {
      return await this.#drive(this.#opened(step), table, options, stop);
    } finally {
      stop.done();
    }
  }

  /** What a kept step waits for, how big it is, and what it may do. Runs nothing. */
  async inspect(step) {
    const from = this.#opened(step);
    const { result } = await this.#request({ method: 'inspect', snapshot_id: from.snapshotId, policy: this.#policy(from) }, from.snapshot);
    return {
      bytes: result.bytes,
      calls: result.calls.map(readCall),
      capabilities: result.capabilities,
      instructionsUsed: result.instructions_used,
      heapBytes: result.heap_bytes,
      frames: result.frames,
    };
  }

  /** Says hello and answers what the sidecar is and can do. */
  async about() {
    const child = await this.#ready();
    return child.about;
  }

  /** Lets the sidecar finish what it was asked and end. Kills it if it takes longer than `graceMs`. */
  async close({ graceMs = 2000 } = {}) {
    this.#closed = true;
    const child = this.#child;
    this.#child = null;
    if (child) await child.close(graceMs);
  }

  async [Symbol.asyncDispose ?? Symbol.for('asyncDispose')]() {
    await this.close();
  }

  async #start(script, options, stop) {
    const program = typeof script === 'string' ? await this.compile(script, options) : script;
    const header = {
      method: 'start',
      program_id: program.id,
      options: { inputs: {}, capabilities: options.capabilities, limits: options.limits ?? {} },
    };
    const inputs = Object.entries(options.inputs ?? {});
    const fields = inputs.map(([name, value]) => `${JSON.stringify(name)}:${write(value)}`);
    if (options.seed !== undefined) header.options.seed = new Raw(integer(options.seed, 'seed'));
    if (options.nowMs !== undefined) header.options.now_ms = options.nowMs;
    if (options.deadlineMs !== undefined) header.deadline_ms = options.deadlineMs;
    header.options.inputs = new Raw(`{${fields.join(',')}}`);
    const response = await this.#request(header, null, stop, child => child.knows(program.id) ? null : program.bytes);
    return this.#step(response, options.capabilities, options.limits ?? {});
  }

  async #resume(from, payload, { deadlineMs, nowMs }, stop) {
    const header = { method: 'resume', snapshot_id: from.snapshotId, policy: this.#policy(from), payload: new Raw(payload instanceof Raw ? payload.text : JSON.stringify(payload)) };
    if (deadlineMs !== undefined) header.deadline_ms = deadlineMs;
    if (nowMs !== undefined) header.now_ms = nowMs;
    const response = await this.#request(header, null, stop, child => child.holds(from.snapshotId) ? null : from.snapshot);
    return this.#step(response, from.capabilities, from.limits);
  }

  /** Answers every call until the script is done. */
  async #drive(first, table, options, stop) {
    let step = first;
    const running = new Map();
    const settled = [];
    let wake = () => {};
    while (step.type === 'suspended') {
      for (const call of step.calls) {
        if (running.has(call.callId)) continue;
        const answering = answerOf(table, call).then(payload => {
          settled.push({ callId: call.callId, payload });
          wake();
        });
        running.set(call.callId, answering);
      }
      if (options.fanout === 'together' || this.#options.plain) {
        await stop.or(Promise.all(running.values()));
      } else {
        while (settled.length === 0) await stop.or(new Promise(resolve => (wake = resolve)));
        // Others that are done by now go along: one snapshot instead of many.
        await stop.or(new Promise(resolve => setImmediate(resolve)));
      }
      const answers = settled.splice(0);
      for (const { callId } of answers) running.delete(callId);
      const payload = this.#options.plain ? new Raw(answers[0].payload) : answersPayload(answers);
      const from = step;
      step = await this.#retrying(options, stop, () => this.#resume(from, payload, options, stop));
    }
    return step.value;
  }

  /** Does a step again in a new sidecar if the old one died. What the script computed by then is lost, nothing else. */
  async #retrying(options, stop, work) {
    for (let left = options.retries ?? 2; ; left -= 1) {
      try {
        return await work();
      } catch (error) {
        if (error.code !== 'died' || left <= 0 || stop.stopped) throw stop.reason ?? error;
      }
    }
  }

  #step({ result, blob }, capabilities, limits) {
    const { step } = result;
    if (step.type === 'completed') return { type: 'completed', value: read(step.value) };
    const calls = (step.calls ?? [{ call_id: 0, capability: step.capability, args: step.args }]).map(readCall);
    const snapshotId = sha256(blob);
    this.#child?.keeps(snapshotId);
    const token = this.#token(snapshotId);
    const suspended = { type: 'suspended', calls, capabilities, limits, snapshot: blob, snapshotId, token };
    Object.defineProperty(suspended, 'save', { value: () => save(suspended), enumerable: false });
    return suspended;
  }

  /** A step as it came, or as it was kept. */
  #opened(step) {
    if (step?.type === 'suspended' && step.snapshot instanceof Uint8Array) return step;
    const kept = typeof step === 'string' ? JSON.parse(step) : step;
    if (kept?.format !== 'mustard-step/1') {
      throw new TypeError('a suspended step is needed, or what its save() gave (format mustard-step/1)');
    }
    const snapshot = Buffer.from(kept.snapshot_base64, 'base64');
    const snapshotId = sha256(snapshot);
    const expected = Buffer.from(this.#token(snapshotId));
    const given = Buffer.from(String(kept.token));
    if (expected.length !== given.length || !timingSafeEqual(expected, given)) {
      throw new MustardError('the kept step was changed, or was signed with another key', { kind: 'Serialization', code: 'unauthenticated' });
    }
    return {
      type: 'suspended',
      calls: kept.calls.map(readCall),
      capabilities: kept.capabilities,
      limits: kept.limits,
      snapshot,
      snapshotId,
      token: kept.token,
    };
  }

  #payload(from, answer, answers) {
    if (answers === undefined) {
      if (from.calls.length > 1 && !this.#options.plain) {
        return answersPayload([{ callId: from.calls[0].callId, payload: valuePayload(answer) }]);
      }
      return new Raw(valuePayload(answer));
    }
    const rows = answers.map(({ callId, value, error }) => ({
      callId,
      payload: error === undefined ? valuePayload(value) : errorPayload(error),
    }));
    return answersPayload(rows);
  }

  #policy(from) {
    const { key } = this.#options;
    return {
      capabilities: from.capabilities,
      limits: from.limits,
      snapshot_id: from.snapshotId,
      snapshot_key_base64: key.toString('base64'),
      snapshot_key_digest: sha256(key),
      snapshot_token: from.token,
    };
  }

  #token(snapshotId) {
    return createHmac('sha256', this.#options.key).update(snapshotId).digest('hex');
  }

  async #ready() {
    if (this.#closed) throw new MustardError('this client is closed', { code: 'closed' });
    this.#child ??= new Child(this.#options);
    const child = this.#child;
    try {
      await child.greeted;
    } catch (error) {
      if (this.#child === child) this.#child = null;
      throw error;
    }
    return child;
  }

  /** One request and its answer. `bytes` says what to send along, once the child is known. */
  async #request(header, blob = null, stop = null, bytes = () => blob) {
    const mine = this.#turn.then(async () => {
      stop?.check();
      const child = await this.#ready();
      const onStop = () => child.kill();
      stop?.on(onStop);
      try {
        let response = await child.request(header, bytes(child));
        if (!response.ok && isUnknown(response.error)) response = await child.request(header, bytes(FORGETFUL));
        if (!response.ok) throw failure(response);
        if (header.program_id) child.learns(header.program_id);
        return response;
      } catch (error) {
        if (error.code === 'died' && this.#child === child) this.#child = null;
        throw stop?.reason ?? error;
      } finally {
        stop?.off(onStop);
      }
    });
    this.#turn = mine.catch(() => {});
    return mine;
  }
}

/** A child that knows nothing, so that bytes are sent. */
const FORGETFUL = { knows: () => false, holds: () => false };

/** Runs one script in a sidecar of its own. */
export async function run(script, options = {}) {
  const mustard = new Mustard(options.sidecar);
  try {
    return await mustard.run(script, options);
  } finally {
    await mustard.close();
  }
}

/** What ends a run from outside: a signal, or time. */
class Stop {
  reason = null;
  #listeners = new Set();
  #timer = null;
  #signal;
  #aborted = () => this.#stop(new MustardError('the run was aborted', { code: 'aborted', cause: this.#signal.reason }));

  constructor(signal, timeoutMs) {
    this.#signal = signal;
    if (signal?.aborted) this.#aborted();
    signal?.addEventListener('abort', this.#aborted, { once: true });
    if (timeoutMs !== undefined) {
      const late = () => this.#stop(new MustardError(`the run took longer than ${timeoutMs} ms`, { code: 'timeout' }));
      this.#timer = setTimeout(late, timeoutMs);
    }
  }

  get stopped() {
    return this.reason !== null;
  }

  check() {
    if (this.reason) throw this.reason;
  }

  on(listener) {
    this.#listeners.add(listener);
  }

  off(listener) {
    this.#listeners.delete(listener);
  }

  /** The work, or the reason to stop, whichever comes first. */
  async or(work) {
    this.check();
    let listener;
    const stopped = new Promise((_, reject) => this.on((listener = () => reject(this.reason))));
    try {
      return await Promise.race([work, stopped]);
    } finally {
      this.off(listener);
    }
  }

  done() {
    clearTimeout(this.#timer);
    this.#signal?.removeEventListener('abort', this.#aborted);
  }

  #stop(reason) {
    this.reason ??= reason;
    for (const listener of [...this.#listeners]) listener();
  }
}

/** One sidecar process. Requests are answered in order. */
class Child {
  #process;
  #waiting = [];
  #chunks = [];
  #held = 0;
  #stderr = '';
  #dead = null;
  #exited;
  #nextId = 1;
  #limit = VERSION_2_FRAME;
  #maxResponse;
  #programs = new Set();
  #snapshots = new Set();
  about = null;

  constructor({ command, plain, maxFrameBytes, maxResponseBytes }) {
    this.#maxResponse = maxResponseBytes;
    const [program, ...args] = command;
    this.#process = spawn(program, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    this.#process.stdout.on('data', chunk => this.#receive(chunk));
    this.#process.stderr.on('data', chunk => (this.#stderr = (this.#stderr + chunk).slice(-STDERR_KEPT)));
    // A child that died with requests in the pipe: its exit says more than EPIPE.
    this.#process.stdin.on('error', () => {});
    this.#exited = new Promise(resolve => {
      this.#process.on('error', error => {
        this.#die(`could not be started: ${error.message}; is \`${program}\` installed? Set MUSTARD_SIDECAR or options.command`);
        resolve();
      });
      this.#process.on('close', (code, signal) => {
        const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`;
        const said = this.#stderr.trim();
        this.#die(said ? `${how}; it said: ${said}` : how);
        resolve();
      });
    });
    // The child must not keep this program alive while nothing is asked of it.
    this.#rest();
    this.greeted = plain ? Promise.resolve() : this.#greet(maxFrameBytes);
    this.greeted.catch(() => {});
  }

  async #greet(maxFrameBytes) {
    const response = await this.request({ method: 'hello', features: FEATURES, max_frame_bytes: maxFrameBytes });
    if (!response.ok) throw failure(response);
    this.about = response.result;
    this.#limit = response.result.limits.max_frame_bytes;
  }

  /** Writes a request; the promise is its response. */
  request(fields, blob = null) {
    if (this.#dead) return Promise.reject(this.#dead);
    const id = this.#nextId++;
    const header = Buffer.from(json({ protocol_version: 2, id, ...fields }));
    const body = blob ?? Buffer.alloc(0);
    const size = header.length + body.length;
    if (size > this.#limit) {
      const message = `the request has ${size} bytes; the sidecar takes ${this.#limit}`;
      return Promise.reject(new MustardError(message, { kind: 'Protocol', code: 'too_large' }));
    }
    const lengths = Buffer.alloc(8);
    lengths.writeUInt32LE(header.length, 0);
    lengths.writeUInt32LE(body.length, 4);
    this.#process.stdin.write(Buffer.concat([lengths, header, body]));
    this.#wake();
    return new Promise((resolve, reject) => this.#waiting.push({ id, resolve, reject }));
  }

  knows(program) {
    return this.#programs.has(program);
  }

  learns(program) {
    remember(this.#programs, program);
  }

  holds(snapshot) {
    return this.#snapshots.has(snapshot);
  }

  keeps(snapshot) {
    remember(this.#snapshots, snapshot);
  }

  kill() {
    this.#process.kill('SIGKILL');
  }

  async close(graceMs) {
    this.#process.ref();
    this.#process.stdin.end();
    const timer = setTimeout(() => this.kill(), graceMs);
    await this.#exited;
    clearTimeout(timer);
  }

  #receive(chunk) {
    this.#chunks.push(chunk);
    this.#held += chunk.length;
    while (this.#held >= 8) {
      const lengths = this.#peek(8);
      const headerLength = lengths.readUInt32LE(0);
      const total = 8 + headerLength + lengths.readUInt32LE(4);
      if (total > this.#maxResponse) return this.#garbage(`a response of ${total} bytes; at most ${this.#maxResponse} are accepted`);
      if (this.#held < total) return;
      const frame = this.#peek(total);
      this.#chunks = this.#held > total ? [this.#chunks[0].subarray(total)] : [];
      this.#held -= total;
      this.#answer(frame.subarray(8, 8 + headerLength), frame.subarray(8 + headerLength));
    }
  }

  /** The first bytes, in one piece. */
  #peek(count) {
    if (this.#chunks[0].length < count) this.#chunks = [Buffer.concat(this.#chunks)];
    return this.#chunks[0].subarray(0, count);
  }

  #answer(header, blob) {
    const waiting = this.#waiting.shift();
    let response;
    try {
      response = JSON.parse(header);
    } catch {
      return this.#garbage('a header that is not JSON', waiting);
    }
    if (!waiting || response.id !== waiting.id) return this.#garbage(`an answer nobody asked for (id ${response.id})`, waiting);
    if (this.#waiting.length === 0) this.#rest();
    // A copy: the frame shares memory with whatever came after it.
    waiting.resolve({ ...response, blob: Buffer.from(blob) });
  }

  #garbage(what, waiting) {
    if (waiting) this.#waiting.unshift(waiting);
    this.#die(`sent ${what}`);
    this.kill();
  }

  #die(how) {
    this.#dead ??= new MustardError(`the sidecar ${how}`, { code: 'died' });
    for (const { reject } of this.#waiting.splice(0)) reject(this.#dead);
  }

  #handles() {
    return [this.#process, this.#process.stdin, this.#process.stdout, this.#process.stderr];
  }

  #wake() {
    for (const handle of this.#handles()) handle?.ref?.();
  }

  #rest() {
    for (const handle of this.#handles()) handle?.unref?.();
  }
}

/** JSON text that is already written. */
class Raw {
  constructor(text) {
    this.text = text;
  }
}

/** JSON of a header, whose members may be written already. */
function json(value) {
  if (value instanceof Raw) return value.text;
  if (Array.isArray(value)) return `[${value.map(json).join(',')}]`;
  if (value !== null && typeof value === 'object') {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${json(member)}`).join(',')}}`;
  }
  return JSON.stringify(value);
}

/** A value as the wire's tagged JSON. */
export function write(value, depth = 0, path = new Set()) {
  if (depth > DEEPEST) throw new TypeError(`a value is nested deeper than ${DEEPEST} levels`);
  switch (typeof value) {
    case 'undefined':
      return '"Undefined"';
    case 'boolean':
      return `{"Bool":${value}}`;
    case 'string':
      if (/[\ud800-\udfff]/.test(value) && !wellFormed(value)) throw new TypeError('a string with half a surrogate pair cannot cross');
      return `{"String":${JSON.stringify(value)}}`;
    case 'number':
      return `{"Number":${writeNumber(value)}}`;
    case 'object':
      break;
    default:
      throw new TypeError(`a ${typeof value} cannot cross to the script`);
  }
  if (value === null) return '"Null"';
  if (path.has(value)) throw new TypeError('a value that contains itself cannot cross to the script');
  path.add(value);
  let text;
  if (Array.isArray(value)) {
    const elements = Array.from(value, (element, index) => (index in value ? write(element, depth + 1, path) : '"Hole"'));
    text = `{"Array":[${elements.join(',')}]}`;
  } else {
    const prototype = Object.getPrototypeOf(value);
    if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
      throw new TypeError(`a ${value.constructor?.name ?? 'special object'} cannot cross to the script; send plain objects and arrays`);
    }
    const members = Object.entries(value).map(([key, member]) => `${JSON.stringify(key)}:${write(member, depth + 1, path)}`);
    text = `{"Object":{${members.join(',')}}}`;
  }
  path.delete(value);
  return text;
}

function writeNumber(value) {
  if (Number.isNaN(value)) return '"NaN"';
  if (value === Infinity) return '"Infinity"';
  if (value === -Infinity) return '"NegInfinity"';
  if (Object.is(value, -0)) return '"NegZero"';
  return `{"Finite":${JSON.stringify(value)}}`;
}

function wellFormed(text) {
  return !/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/.test(text);
}

/** A value from the wire's tagged JSON. */
export function read(tagged) {
  if (tagged === 'Undefined' || tagged === 'Hole') return undefined;
  if (tagged === 'Null') return null;
  if (tagged === null || typeof tagged !== 'object') throw unreadable(tagged);
  const [[tag, inner] = []] = Object.entries(tagged);
  switch (tag) {
    case 'Undefined':
      return undefined;
    case 'Null':
      return null;
    case 'Bool':
    case 'String':
      return inner;
    case 'Number':
      return readNumber(inner);
    case 'Array': {
      const array = new Array(inner.length);
      inner.forEach((element, index) => {
        if (element !== 'Hole') array[index] = read(element);
      });
      return array;
    }
    case 'Object': {
      const object = {};
      for (const [key, member] of Object.entries(inner)) {
        const value = read(member);
        // A plain assignment of `__proto__` would change the prototype.
        if (key === '__proto__') Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
        else object[key] = value;
      }
      return object;
    }
    default:
      throw unreadable(tagged);
  }
}

function readNumber(inner) {
  const name = typeof inner === 'string' ? inner : Object.keys(inner)[0];
  switch (name) {
    case 'Finite':
      return inner.Finite;
    case 'NaN':
      return NaN;
    case 'Infinity':
      return Infinity;
    case 'NegInfinity':
      return -Infinity;
    case 'NegZero':
      return -0;
    default:
      throw unreadable(inner);
  }
}

function unreadable(tagged) {
  return new MustardError(`the sidecar sent a value that is none: ${JSON.stringify(tagged)?.slice(0, 80)}`, { kind: 'Protocol', code: 'shape' });
}

function readCall({ call_id, capability, args }) {
  return { callId: call_id, capability, args: args.map(read) };
}

function valuePayload(value) {
  return `{"type":"value","value":${write(value)}}`;
}

/** Whatever was thrown, as an error of the guest: its name, message, code and details, never its stack. */
function errorPayload(thrown) {
  const error = thrown instanceof Error || (thrown !== null && typeof thrown === 'object') ? thrown : { message: String(thrown) };
  const fields = [`"name":${JSON.stringify(String(error.name ?? 'Error'))}`, `"message":${JSON.stringify(String(error.message ?? ''))}`];
  if (error.code !== undefined) fields.push(`"code":${JSON.stringify(String(error.code))}`);
  if (error.details !== undefined) fields.push(`"details":${write(error.details)}`);
  return `{"type":"error","error":{${fields.join(',')}}}`;
}

function answersPayload(answers) {
  const rows = answers.map(({ callId, payload }) => `{"call_id":${callId},"payload":${payload}}`);
  return new Raw(`{"type":"answers","answers":[${rows.join(',')}]}`);
}

/** What a function of the table answers, as a payload. Never rejects: the script gets the error. */
async function answerOf(table, { capability, args }) {
  const handler = table.get(capability);
  try {
    if (!handler) throw new Error(`no function for the capability \`${capability}\``);
    return valuePayload(await handler(...args));
  } catch (error) {
    try {
      return errorPayload(error);
    } catch (unwritable) {
      return errorPayload(new TypeError(`${capability} failed with details that cannot cross: ${unwritable.message}`));
    }
  }
}

/** The table of functions. Nested objects make dotted names: `{ console: { log } }` grants `console.log`. */
function handlers(capabilities, prefix = '', table = new Map()) {
  for (const [name, handler] of Object.entries(capabilities)) {
    if (typeof handler === 'function') table.set(prefix + name, handler);
    else if (handler !== null && typeof handler === 'object') handlers(handler, `${prefix}${name}.`, table);
    else throw new TypeError(`the capability \`${prefix}${name}\` is not a function`);
  }
  return table;
}

/** A step as JSON: everything that another process needs to go on, if it has the key. */
function save({ calls, capabilities, limits, snapshot, token }) {
  const written = calls.map(({ callId, capability, args }) => ({ call_id: callId, capability, args: args.map(arg => JSON.parse(write(arg))) }));
  return { format: 'mustard-step/1', capabilities, limits, calls: written, token, snapshot_base64: Buffer.from(snapshot).toString('base64') };
}

function failure({ error, error_detail: detail }) {
  const [, kind] = /^(Parse|Validation|Runtime|Limit|Serialization): /.exec(error) ?? [null, 'Protocol'];
  const fields = { kind: detail?.kind ?? kind, code: detail?.code ?? kind.toLowerCase() };
  if (detail) {
    const { name, line, column, source_line: sourceLine, frames, error_code: errorCode, details } = detail;
    Object.assign(fields, { guestName: name, line, column, sourceLine, frames, errorCode });
    if (details !== undefined && details !== null) fields.details = read(details);
  }
  return new MustardError(error, fields);
}

function isUnknown(error) {
  return /^unknown (program|snapshot)_id /.test(error);
}

function remember(set, id) {
  if (set.size >= 1024) set.delete(set.values().next().value);
  set.add(id);
}

function integer(value, name) {
  if (typeof value === 'bigint' || Number.isSafeInteger(value)) {
    if (value >= 0 && value < 2n ** 64n) return String(value);
  }
  throw new TypeError(`${name} must be an integer from 0 to 2^64 - 1`);
}

function sha256(bytes) {
  return createHash('sha256').update(bytes).digest('hex');
}

function defaultCommand() {
  const { MUSTARD_SIDECAR: path } = process.env;
  return path ? [path] : ['outrigger', 'sidecar', 'mustard'];
}
