import { parentPort } from 'node:worker_threads';
import type {
  DescribedTools,
  Failure,
  ThreadOpening,
  ThreadReply,
  ThreadReport,
  ThreadRequest,
} from '../messages.ts';
import { createMcpClient } from './client.ts';
import { describeTools, summaryOf } from './describedTools.ts';
import { openingFailure, requestFailure, resultText } from './replies.ts';

type Numbered = Extract<ThreadRequest, { op: 'open' | 'list' | 'endList' | 'call' }>;

/** Serves one connection over its port. */
function serve({ server, version, port }: ThreadOpening): void {
  const report = (what: ThreadReport): void => port.postMessage(what);
  const client = createMcpClient(server, version, {
    onChanged: () => report({ event: 'changed' }),
    onClosed: (reason, discardedLogs) =>
      report({ event: 'closed', kind: 'lost', reason, discardedLogs }),
  });
  const running = new Map<number, AbortController>();
  let listed: DescribedTools | undefined;
  /** Set once the server has forgotten the session. */
  let forgotten: Failure | undefined;

  async function perform(request: Numbered, signal: AbortSignal): Promise<ThreadReply> {
    if (request.op === 'list') {
      listed = await describeTools(server, client.listTools(signal));
      return summaryOf(listed);
    }
    if (request.op === 'endList') {
      const tools = request.load ? listed : undefined;
      listed = undefined;
      return tools;
    }
    if (request.op === 'call')
      return resultText(await client.callTool(request.tool, request.args, signal));
    await client.open(signal);
    return undefined;
  }

  async function answer(request: Numbered): Promise<void> {
    const { id, op } = request;
    if (forgotten && op === 'call') return report({ id, failure: forgotten });
    const cancelling = new AbortController();
    running.set(id, cancelling);
    try {
      report({ id, reply: await perform(request, cancelling.signal) });
    } catch (error) {
      const failure =
        op === 'open'
          ? openingFailure(error, client.lastWords())
          : requestFailure(error, client.hasSession());
      // The protocol demands a new session. The calls in flight keep their own outcomes.
      if (failure.kind === 'forgotten' && !forgotten) {
        forgotten = failure;
        report({ event: 'closed', kind: 'forgotten', reason: failure.reason, discardedLogs: 0 });
      }
      report({ id, failure });
    }
    running.delete(id);
  }

  async function close(): Promise<void> {
    for (const cancelling of running.values()) cancelling.abort(new Error('closed'));
    await client.close();
    port.close();
  }

  port.on('message', (request: ThreadRequest) => {
    if (request.op === 'close') void close();
    else if (request.op === 'cancel') running.get(request.id)?.abort(new Error('cancelled'));
    else void answer(request);
  });
}

// The library writes warnings that quote servers.
for (const level of ['debug', 'error', 'info', 'log', 'warn'] as const)
  console[level] = () => undefined;
parentPort!.on('message', (opening: ThreadOpening | 'ping') =>
  opening === 'ping' ? parentPort!.postMessage('pong') : serve(opening),
);
