import type { ErrorCode } from '../lib/errors/turnlogError.ts';
import type { Health } from './health.ts';

/** An answered HTTP request. */
export interface ObservedRequest {
  /** The route as the operator knows it; undefined when no route matched. */
  route: { method: string; path: string } | undefined;
  status: number;
  /** The error code of a failed request. */
  code: ErrorCode | undefined;
  seconds: number;
}

/** `given_up` when the caller aborted the call. */
export type CallOutcome = 'success' | 'failure' | 'given_up';

/** The end of a turn, as it is recorded. */
export type RunOutcome = 'completed' | 'failed' | 'interrupted';

/** Whether most of a long step was the garbage collector's. */
type StepCause = 'code' | 'garbage_collection';

/** A format that Prometheus reads. */
export type MetricsFormat = 'text' | 'openmetrics';

/**
 * The metrics of a process. No label has a value that a client chooses: models and tool servers are
 * those of the configuration.
 */
export interface Metrics {
  /** Adds the series of requests, so that those that do not occur are 0. */
  expectRequests(known: {
    routes: readonly { method: string; path: string }[];
    errorCodes: readonly string[];
  }): void;
  observeRequest(request: ObservedRequest): void;
  observeAppend(outcome: CallOutcome, seconds: number): void;
  countRun(outcome: RunOutcome): void;
  observeModelCall(model: string, outcome: CallOutcome, seconds: number): void;
  /** `tool` is the name of a built-in tool, or of a server (`mcp:files`). */
  observeToolCall(tool: string, outcome: CallOutcome, seconds: number): void;
  observeLoopDelay(seconds: number): void;
  countLongStep(cause: StepCause): void;
  /** Renders all metrics, those of the health among them unless it is unknown. */
  render(format: MetricsFormat, health: Health | undefined): Promise<string>;
}
