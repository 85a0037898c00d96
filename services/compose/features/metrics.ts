import type { Tool } from '../../../infra/tools/tool.ts';
import type { CallOutcome, Metrics, RunOutcome } from '../../../shared/health/metrics.ts';
import { resumeTask } from '../../../shared/lib/concurrency/eventLoopWatchdog.ts';
import type { ChatModels } from '../../../shared/ports/chatModel.ts';
import type { EventStore } from '../../../shared/ports/eventStore.ts';
import type { ToolGroup } from '../../../shared/ports/toolGroup.ts';

/**
 * Awaits a call and observes its outcome and its duration in seconds. Then the task of the caller
 * continues.
 */
async function observed<Result>(
  observe: (outcome: CallOutcome, seconds: number) => void,
  call: () => Promise<Result>,
  { signal, isFailure }: { signal?: AbortSignal; isFailure?: (result: Result) => boolean } = {},
): Promise<Result> {
  const startedAt = performance.now();
  const end = (outcome: CallOutcome): void =>
    observe(outcome, (performance.now() - startedAt) / 1_000);
  try {
    const result = await call();
    resumeTask();
    end(isFailure?.(result) ? 'failure' : 'success');
    return result;
  } catch (error) {
    end(signal?.aborted ? 'given_up' : 'failure');
    throw error;
  }
}

/** The types of the events that end a turn, in any version. */
const TURN_END = /^session\.turn_(completed|failed|interrupted)\.v\d+$/;

/** Observes appends and the ends of turns among their events, and names tasks that read streams. */
export const observeStore = <Store extends EventStore>(store: Store, metrics: Metrics): Store => ({
  ...store,
  append: async (stream, expected, events) => {
    const append = () => store.append(stream, expected, events);
    const result = await observed(metrics.observeAppend, append);
    for (const { type } of events) {
      const outcome = TURN_END.exec(type)?.[1] as RunOutcome | undefined;
      if (outcome) metrics.countRun(outcome);
    }
    return result;
  },
  readStream: async (stream, options) => {
    const events = await store.readStream(stream, options);
    resumeTask();
    return events;
  },
});

/** Observes the calls of configured models. */
export const observeModels = (models: ChatModels, metrics: Metrics): ChatModels => ({
  ...models,
  complete: (modelId, request, signal, caller) => {
    const call = () => models.complete(modelId, request, signal, caller);
    if (!models.find(modelId)) return call();
    return observed(metrics.observeModelCall.bind(metrics, modelId), call, { signal });
  },
});

/** Observes the calls of a built-in tool. */
export const observeTool = (tool: Tool, metrics: Metrics): Tool => ({
  ...tool,
  run: (args, calling) =>
    observed(
      metrics.observeToolCall.bind(metrics, tool.name),
      () => tool.run(args, calling),
      calling,
    ),
});

/** Observes the calls of a tool server, whose tools' names are the server's choice. */
export const observeToolGroup = <Group extends ToolGroup>(
  group: Group,
  metrics: Metrics,
): Group => ({
  ...group,
  call: (tool, args, calling) =>
    observed(
      metrics.observeToolCall.bind(metrics, group.name),
      () => group.call(tool, args, calling),
      { signal: calling.signal, isFailure: ({ is_error }) => is_error },
    ),
});
