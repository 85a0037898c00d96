import type { MessagePort } from 'node:worker_threads';
import type { ToolResult } from '../../shared/ports/toolbox.ts';
import type { McpServer } from './server.ts';

/** Opens a connection in a thread; all that follows is sent over the port. */
export interface ThreadOpening {
  server: McpServer;
  version: string;
  port: MessagePort;
}

/** A request to the thread. Each with an `id` has one reply; `open` is the first. */
export type ThreadRequest =
  | { op: 'open'; id: number }
  | { op: 'list'; id: number }
  /** Ends a listing: `load` asks for the tools, which the thread then no longer keeps. */
  | { op: 'endList'; id: number; load: boolean }
  | { op: 'call'; id: number; tool: string; args: string }
  | { op: 'cancel'; id: number }
  | { op: 'close' };

/** Why a request failed. */
export interface Failure {
  /**
   * `lost` where it is unknown whether the server did something, `forgotten` where it did nothing because
   * it has no such session any more. The connection then takes no more calls.
   */
  kind: 'timeout' | 'refused' | 'invalid' | 'lost' | 'forgotten';
  /** For operators. It quotes nothing from the server, which may be hostile. */
  reason: string;
  /** The server's text: from a refusal, its HTTP status, or the last on its standard error. */
  quote: string;
}

/** A tool as its server describes it, within the limits. */
export interface DescribedTool {
  name: string;
  description: string;
  /** JSON. */
  schema: string;
}

/** The described tools of a list, and the reasons for refused ones. */
export interface DescribedTools {
  tools: readonly DescribedTool[];
  /** A sentence each. */
  refused: readonly string[];
}

/** A list of tools that a thread keeps. */
export interface ListSummary {
  /** Differs between lists that differ. */
  digest: string;
  /** The memory for the tools with their parsed schemas; an upper bound. */
  bytes: number;
}

/** The result of a call, and how many of its items were not valid and were replaced. */
export interface CallReply extends ToolResult {
  invalidItems: number;
}

/** The replies to `list`, `endList` and `call`; `open` has undefined. */
export type ThreadReply = ListSummary | DescribedTools | CallReply | undefined;

export type ThreadReport =
  | { id: number; reply: ThreadReply }
  | { id: number; failure: Failure }
  | { event: 'changed' }
  /**
   * The connection has ended. Requests without a reply fail when it is `lost`, and keep their outcomes
   * when the session is `forgotten`. `discardedLogs` counts log messages of the server.
   */
  | { event: 'closed'; kind: 'lost' | 'forgotten'; reason: string; discardedLogs: number };

/** The server failed a request, or could not be reached. */
export class McpFailure extends Error {
  readonly kind: Failure['kind'];
  readonly reason: string;
  readonly quote: string;
  constructor({ kind, reason, quote }: Failure) {
    super(reason);
    this.kind = kind;
    this.reason = reason;
    this.quote = quote;
  }
}
