#!/usr/bin/env node
// Claude Code as an abp sidecar: drives the real `claude` program and says what it does as events. Every tool call is asked for
// first (through the program's own PreToolUse hook), so what the host denies does not happen.
//
// CLAUDE_COMMAND names the program (default `claude`). Of the work order it uses `task`, `context`, `workspace.root`,
// `config.model|env|max_turns|max_budget_usd`, `config.vendor.claude.{resume,permission_mode,args}`; in passthrough mode
// `config.vendor.abp.request` is the user's message as it is, and every event carries the program's own line.

import { spawn } from 'node:child_process';
import path from 'node:path';
import { AbpError, raw, readLines, serve } from '../abp.mjs';

const native = names => Object.fromEntries(names.map(name => [name, 'native']));
const TOOLS = ['tool_read', 'tool_write', 'tool_edit', 'tool_bash', 'tool_glob', 'tool_grep', 'tool_web_search', 'tool_web_fetch'];
const CAPABILITIES = native(['streaming', ...TOOLS, 'tool_use', 'hooks_pre_tool_use', 'session_resume', 'mcp_client', 'extended_thinking', 'system_message']);

/** How long the program may take to stop after it was interrupted. */
const INTERRUPT_MS = 2000;
const STDERR_KEPT = 4096;
const PREVIEW = 2000;
const ERRORS = {
  rate_limit: 'backend_rate_limited',
  authentication_failed: 'backend_auth_failed',
  billing_error: 'backend_auth_failed',
  server_error: 'backend_unavailable',
  max_output_tokens: 'backend_context_length',
};

// Not awaited: the classes below must exist before the first run.
serve({ id: 'claude', adapter_version: '0.1.0', capabilities: CAPABILITIES, asks: ['tool'] }, async run => {
  const claude = new Claude(run);
  try {
    return await claude.work();
  } finally {
    claude.kill();
  }
});

class Claude {
  #run;
  #process;
  #stderr = '';
  #result = null;
  #error = null;
  /** The tools that were called, by id, so that a result can say whose it is. */
  #calls = new Map();
  #counted = new Set();
  /** One line after the other, so that events keep their order while the host is slow. */
  #turn = Promise.resolve();

  constructor(run) {
    this.#run = run;
    const { config, workspace } = run.order;
    const own = config.vendor.claude ?? {};
    const args = ['--output-format', 'stream-json', '--verbose', '--input-format', 'stream-json', '--include-partial-messages'];
    args.push('--permission-prompt-tool', 'stdio', '--permission-mode', own.permission_mode ?? 'default');
    if (config.model) args.push('--model', config.model);
    if (config.max_turns) args.push('--max-turns', String(config.max_turns));
    if (config.max_budget_usd) args.push('--max-budget-usd', String(config.max_budget_usd));
    if (own.resume) args.push('--resume', own.resume);
    args.push(...(own.args ?? []));
    this.#process = spawn(process.env.CLAUDE_COMMAND ?? 'claude', args, {
      cwd: path.resolve(workspace.root),
      env: { ...process.env, ...config.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#process.stdin.on('error', () => {});
    this.#process.stderr.on('data', text => (this.#stderr = (this.#stderr + text).slice(-STDERR_KEPT)));
  }

  async work() {
    const exited = new Promise((resolve, reject) => {
      this.#process.on('error', error => reject(new AbpError(`failed to start claude: ${error.message}`, 'backend_not_found')));
      this.#process.on('close', (code, signal) => resolve(code ?? signal));
    });
    this.#run.signal.addEventListener('abort', () => this.#interrupt(), { once: true });
    const hooks = { PreToolUse: [{ matcher: null, hookCallbackIds: ['before-tool'] }] };
    this.#send({ type: 'control_request', request_id: 'initialize', request: { subtype: 'initialize', hooks } });
    this.#send({ type: 'user', message: { role: 'user', content: prompt(this.#run) }, parent_tool_use_id: null });
    await readLines(this.#process.stdout, line => (this.#turn = this.#turn.then(() => this.#receive(line)).catch(error => (this.#error ??= error))));
    const exit = await exited;
    await this.#turn;
    if (this.#error) throw this.#error;
    if (!this.#result && !this.#run.signal.aborted) {
      throw new AbpError(`claude exited with ${exit} and without a result; it said: ${this.#stderr.trim() || 'nothing'}`, 'backend_crashed');
    }
    return this.#end();
  }

  kill() {
    this.#process.kill('SIGKILL');
  }

  #send(frame) {
    this.#process.stdin.write(`${JSON.stringify(frame)}\n`);
  }

  /** Its tools end with an interrupt; a signal would leave them running. */
  #interrupt() {
    this.#send({ type: 'control_request', request_id: 'stop', request: { subtype: 'interrupt' } });
    setTimeout(() => this.#process.kill('SIGTERM'), INTERRUPT_MS).unref();
  }

  async #receive(line) {
    const message = JSON.parse(line);
    if (message.type === 'control_request') return void this.#answer(message);
    if (message.type === 'control_response' || message.type === 'keep_alive' || message.type === 'control_cancel_request') return;
    const events = this.#events(message);
    if (this.#run.mode === 'passthrough') {
      // The program's own line goes along once, with the first event that it becomes.
      if (events.length === 0) events.push(['assistant_delta', { text: '' }]);
      events[0][2] = { ext: { raw_message: raw(line) } };
    }
    for (const [type, members, extra] of events) await this.#run.emit(type, members, extra);
    if (message.type === 'assistant') await this.#count(message.message);
    if (message.type === 'result') {
      this.#result = message;
      this.#process.stdin.end();
    }
  }

  #events(message) {
    switch (message.type) {
      case 'system':
        if (message.subtype === 'init') return [['run_started', { message: `claude ${message.claude_code_version ?? ''} with ${message.model}, session ${message.session_id}` }]];
        if (message.subtype === 'api_retry') return [['warning', { message: `the model did not answer (${message.error ?? message.error_status}); attempt ${message.attempt} of ${message.max_retries}` }]];
        return [];
      case 'stream_event': {
        const text = message.event?.delta?.type === 'text_delta' ? message.event.delta.text : '';
        return text ? [['assistant_delta', { text }]] : [];
      }
      case 'assistant':
        if (message.error) return [['error', { message: textOf(message.message.content), error_code: ERRORS[message.error] ?? 'backend_unavailable' }]];
        return blocks(message).flatMap(block => this.#said(block, message.parent_tool_use_id ?? null));
      case 'user':
        return blocks(message).flatMap(block => (block.type === 'tool_result' ? this.#came(block) : []));
      default:
        return [];
    }
  }

  #said(block, parent_tool_use_id) {
    if (block.type === 'text') return [['assistant_message', { text: block.text }]];
    if (block.type !== 'tool_use') return [];
    this.#calls.set(block.id, block);
    return [['tool_call', { tool_name: block.name, tool_use_id: block.id, parent_tool_use_id, input: block.input }]];
  }

  #came({ tool_use_id, content, is_error = false }) {
    const { name = 'unknown', input = {} } = this.#calls.get(tool_use_id) ?? {};
    this.#calls.delete(tool_use_id);
    const events = [['tool_result', { tool_name: name, tool_use_id, output: content ?? null, is_error: Boolean(is_error) }]];
    const file = input.file_path ?? input.notebook_path;
    if (!is_error && /Write|Edit/.test(name) && typeof file === 'string') {
      const inside = path.relative(path.resolve(this.#run.order.workspace.root), file);
      events.push(['file_changed', { path: inside, summary: name }]);
    }
    if (name === 'Bash') {
      const output_preview = textOf(content).slice(0, PREVIEW);
      events.push(['command_executed', { command: String(input.command ?? ''), exit_code: is_error ? null : 0, output_preview }]);
    }
    return events;
  }

  /** What one answer of the model cost. It comes once for each of its blocks, and counts once. */
  async #count({ id, usage }) {
    if (!usage || this.#counted.has(id)) return;
    this.#counted.add(id);
    await this.#run.usage({ ...counts(usage), turns: 1 });
  }

  /** The program asks whether a tool may be used, before it uses it. */
  async #answer({ request_id, request }) {
    const reply = response => this.#send({ type: 'control_response', response: { subtype: 'success', request_id, response } });
    const isHook = request.subtype === 'hook_callback';
    if (!isHook && request.subtype !== 'can_use_tool') {
      return this.#send({ type: 'control_response', response: { subtype: 'error', request_id, error: `${request.subtype} is not supported` } });
    }
    const { tool_name, tool_input, tool_use_id } = isHook ? request.input : { ...request, tool_input: request.input };
    const { allowed, reason } = await this.#run.ask({ action: 'tool', tool_name, input: tool_input, tool_use_id: tool_use_id ?? request.tool_use_id ?? null });
    if (!isHook) return reply(allowed ? { behavior: 'allow', updatedInput: request.input } : { behavior: 'deny', message: reason });
    const permissionDecision = allowed ? 'allow' : 'deny';
    reply({ hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision, permissionDecisionReason: reason } });
  }

  async #end() {
    const result = this.#result;
    if (!result) return { outcome: 'partial' };
    await this.#run.usage({ ...counts(result.usage ?? {}), estimated_cost_usd: result.total_cost_usd ?? 0, total: true });
    const usage_raw = { usage: result.usage, modelUsage: result.modelUsage, total_cost_usd: result.total_cost_usd, session_id: result.session_id };
    if (this.#run.signal.aborted || /^error_max_(turns|budget)/.test(result.subtype)) return { outcome: 'partial', usage_raw };
    if (result.is_error) await this.#run.error(String(result.result ?? result.errors?.join('; ') ?? result.subtype));
    else await this.#run.completed(`${result.num_turns} turns`);
    return { outcome: result.is_error ? 'failed' : 'complete', usage_raw };
  }
}

/** The task and its context, or the vendor's own request in passthrough mode. */
function prompt({ order, mode }) {
  const { vendor } = order.config;
  const request = vendor.abp?.request ?? vendor['abp.request'];
  if (mode === 'passthrough' && request !== undefined) return request?.message?.content ?? request?.prompt ?? request;
  const parts = [order.task];
  if (order.context.files.length > 0) parts.push(`Context files:\n${order.context.files.map(file => `- ${file}`).join('\n')}`);
  for (const { name, content } of order.context.snippets) parts.push(`[${name}]\n${content}`);
  return parts.join('\n\n');
}

function counts(usage) {
  const { input_tokens = 0, output_tokens = 0, cache_read_input_tokens = 0, cache_creation_input_tokens = 0 } = usage;
  return { input_tokens, output_tokens, cache_read_tokens: cache_read_input_tokens ?? 0, cache_write_tokens: cache_creation_input_tokens ?? 0 };
}

function blocks({ message }) {
  return Array.isArray(message.content) ? message.content : [{ type: 'text', text: String(message.content) }];
}

function textOf(content) {
  if (typeof content === 'string') return content;
  return (content ?? []).map(block => block.text ?? '').join('\n');
}
