/** Types of `mustard.mjs`. */

/** What can cross between host and script. */
export type Value = undefined | null | boolean | number | string | Value[] | { [key: string]: Value };

/** A function that the script may call, by name; nested tables make dotted names (`console.log`). */
export type Handler = (...args: any[]) => unknown;
export interface Handlers {
  [name: string]: Handler | Handlers;
}

export interface Limits {
  instruction_budget?: number;
  heap_limit_bytes?: number;
  allocation_budget?: number;
  call_depth_limit?: number;
  max_outstanding_host_calls?: number;
}

export interface Program {
  readonly id: string;
  readonly bytes: Uint8Array;
}

export interface Call {
  callId: number;
  capability: string;
  args: Value[];
}

export interface Completed {
  type: 'completed';
  value: Value;
}

export interface Suspended {
  type: 'suspended';
  calls: Call[];
  capabilities: string[];
  limits: Limits;
  snapshot: Uint8Array;
  snapshotId: string;
  token: string;
  /** Everything another process with the same key needs to go on, as plain JSON. */
  save(): SavedStep;
}

export interface SavedStep {
  format: 'mustard-step/1';
  capabilities: string[];
  limits: Limits;
  calls: unknown[];
  token: string;
  snapshot_base64: string;
}

export type Step = Completed | Suspended;

export interface SidecarOptions {
  command?: string[];
  key?: Uint8Array | string;
  plain?: boolean;
  maxFrameBytes?: number;
  maxResponseBytes?: number;
}

export interface StartOptions {
  inputs?: { [name: string]: Value };
  capabilities?: string[] | Handlers;
  limits?: Limits;
  deadlineMs?: number;
  seed?: number | bigint;
  nowMs?: number;
  lenientReturn?: boolean;
}

export interface RunOptions extends Omit<StartOptions, 'capabilities'> {
  capabilities?: Handlers;
  timeoutMs?: number;
  signal?: AbortSignal;
  retries?: number;
  fanout?: 'asTheyCome' | 'together';
}

export interface ResumeOptions {
  answer?: Value;
  answers?: ({ callId: number; value: Value } | { callId: number; error: unknown })[];
  cancel?: boolean;
  deadlineMs?: number;
  nowMs?: number;
}

export interface Frame {
  function: string;
  line: number;
  column: number;
}

export interface Inspection {
  bytes: number;
  calls: Call[];
  capabilities: string[];
  instructionsUsed: number;
  heapBytes: number;
  frames: Frame[];
}

export class MustardError extends Error {
  kind: 'Parse' | 'Validation' | 'Runtime' | 'Limit' | 'Serialization' | 'Protocol' | 'Sidecar';
  code: string;
  guestName?: string;
  line?: number;
  column?: number;
  sourceLine?: string;
  frames?: Frame[];
  errorCode?: string;
  details?: Value;
}

export class Mustard {
  constructor(options?: SidecarOptions);
  compile(source: string, options?: { lenientReturn?: boolean }): Promise<Program>;
  run(script: string | Program, options?: RunOptions): Promise<Value>;
  start(script: string | Program, options?: StartOptions): Promise<Step>;
  resume(step: Suspended | SavedStep | string, options?: ResumeOptions): Promise<Step>;
  finish(step: Suspended | SavedStep | string, options?: RunOptions): Promise<Value>;
  inspect(step: Suspended | SavedStep | string): Promise<Inspection>;
  about(): Promise<{ [name: string]: unknown }>;
  close(options?: { graceMs?: number }): Promise<void>;
}

export function run(script: string | Program, options?: RunOptions & { sidecar?: SidecarOptions }): Promise<Value>;
export function read(tagged: unknown): Value;
export function write(value: Value): string;
