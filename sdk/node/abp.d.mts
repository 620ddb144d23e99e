/** Types of `abp.mjs`. */

export const CONTRACT_VERSION: 'abp/v0.1';
export const ERROR_CODES: readonly string[];

/** An error that says which code the `fatal` gets. */
export class AbpError extends Error {
  constructor(message: string, code?: string);
  code: string;
}

/** JSON text that travels as it is. */
export interface Raw {
  readonly text: string;
}
export function raw(text: string): Raw;

export type SupportLevel = 'native' | 'emulated' | 'unsupported' | { restricted: { reason: string } };
export type Mode = 'mapped' | 'passthrough';
export type Action = 'tool' | 'read' | 'write' | 'network';
export type Outcome = 'complete' | 'partial' | 'failed';
export type EventType =
  | 'run_started'
  | 'run_completed'
  | 'warning'
  | 'error'
  | 'assistant_delta'
  | 'assistant_message'
  | 'tool_call'
  | 'tool_result'
  | 'file_changed'
  | 'command_executed';

export interface Identity {
  id: string;
  backend_version?: string | null;
  adapter_version?: string | null;
  capabilities?: Record<string, SupportLevel>;
  mode?: Mode;
  /** The actions that this sidecar never does without asking. */
  asks?: Action[];
}

export interface PolicyProfile {
  allowed_tools: string[];
  disallowed_tools: string[];
  deny_read: string[];
  deny_write: string[];
  allow_network: string[];
  deny_network: string[];
  require_approval_for: string[];
}

/** The work order; what the host left out is empty. */
export interface WorkOrder {
  id: string;
  task: string;
  lane: string;
  workspace: { root: string; mode: string; include: string[]; exclude: string[] };
  context: { files: string[]; snippets: { name: string; content: string }[] };
  policy: PolicyProfile;
  requirements: { required: { capability: string; min_support: string }[] };
  config: {
    model: string | null;
    vendor: Record<string, any>;
    env: Record<string, string>;
    max_budget_usd: number | null;
    max_turns: number | null;
  };
  [unknown: string]: unknown;
}

export interface UsageReport {
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  cache_write_tokens?: number;
  request_units?: number;
  estimated_cost_usd?: number;
  turns?: number;
  /** The numbers are the sums so far. */
  total?: boolean;
}

export interface Question {
  action: Action;
  tool_name?: string;
  input?: unknown;
  path?: string;
  host?: string;
  tool_use_id?: string | null;
}

export interface Answer {
  allowed: boolean;
  reason: string;
  by: 'host' | 'policy';
}

export interface Extra {
  ext?: Record<string, unknown | Raw>;
  /** RFC 3339 with an offset; now, unless it is given. */
  ts?: string;
}

export interface ToolCall {
  tool_name: string;
  tool_use_id?: string | null;
  parent_tool_use_id?: string | null;
  input?: unknown | Raw;
}

export interface Result {
  outcome?: Outcome;
  usage_raw?: unknown;
  artifacts?: { kind: string; path: string }[];
  verification?: { git_diff?: string | null; git_status?: string | null; harness_ok?: boolean };
}

/** One work order under way. What emits is sent at once; the promise waits while the host is slow. */
export interface Run {
  readonly id: string;
  readonly order: WorkOrder;
  readonly mode: Mode;
  readonly offers: Set<string>;
  /** Aborted when the host cancels. */
  readonly signal: AbortSignal;
  started(message?: string, extra?: Extra): Promise<void>;
  completed(message?: string, extra?: Extra): Promise<void>;
  warning(message: string, extra?: Extra): Promise<void>;
  error(message: string, error_code?: string, extra?: Extra): Promise<void>;
  delta(text: string, extra?: Extra): Promise<void>;
  message(text: string, extra?: Extra): Promise<void>;
  toolCall(call: ToolCall, extra?: Extra): Promise<void>;
  toolResult(
    result: { tool_name: string; tool_use_id?: string | null; output?: unknown | Raw; is_error?: boolean },
    extra?: Extra,
  ): Promise<void>;
  fileChanged(path: string, summary?: string, extra?: Extra): Promise<void>;
  commandExecuted(
    command: { command: string; exit_code?: number | null; output_preview?: string | null },
    extra?: Extra,
  ): Promise<void>;
  emit(type: EventType, members: Record<string, unknown>, extra?: Extra): Promise<void>;
  usage(report: UsageReport): Promise<void>;
  artifact(kind: string, path: string): void;
  ask(question: Question): Promise<Answer>;
  /** Asks, does the work, and says what was called and what came out. */
  tool<T>(call: ToolCall, work: (input: any) => T | Promise<T>): Promise<T>;
}

export interface ServeOptions {
  /** How many events the receipt repeats (default 0). */
  trace?: number;
  /** How long a handler may go on after a cancel (default 5000). */
  cancelGraceMs?: number;
  /** How much may wait for a slow host when events are not awaited (default 64 MiB). */
  maxQueuedBytes?: number;
}

/** Serves runs until the host has gone, then ends the process. */
export function serve(
  identity: Identity,
  handler: (run: Run) => Result | void | Promise<Result | void>,
  options?: ServeOptions,
): Promise<never>;

/** What the policy of a work order says when there is nobody to ask. */
export function judge(
  order: Pick<WorkOrder, 'policy' | 'workspace'>,
  question: Question,
): { allowed: boolean; reason: string };

/** Whether a pattern covers a text. */
export function glob(pattern: string, text: string): boolean;

/** Calls `receive` with every line of a stream that is not blank, and resolves at its end. Only a newline ends a line. */
export function readLines(stream: NodeJS.ReadableStream, receive: (line: string) => void): Promise<void>;
