import { startLeaderTask } from '../../../shared/lib/concurrency/leaderTask.ts';
import { NO_ACCOUNT, yieldToEventLoop } from '../../../shared/lib/concurrency/yieldToEventLoop.ts';
import type { ReadModels } from '../../../shared/ports/readModels.ts';
import type { WebhookProgressStore } from '../../../shared/webhooks/webhookProgress.ts';
import type { WebhooksHealth } from '../../../shared/health/health.ts';
import {
  commitUntilAborted,
  loadCheckpoints,
  type WebhookCheckpoints,
} from './checkpointCommitter.ts';
import type { DeliveryContext } from './delivery.ts';
import { LIMITS } from '../../../shared/limits.ts';
import type { WebhookRow } from '../../../shared/readModels/tables.ts';
import { resolvesWithin } from '../../../shared/lib/time/resolvesWithin.ts';
import { runDeliveryTask } from './deliveryTask.ts';

/** Time allowed for messages in flight when a task stops. */
const END_MS = 2_000;
/** A search for deleted webhooks begins every `POLLS`th poll, and looks at `LOOKUPS` ids per poll. */
const POLLS = 120;
const LOOKUPS = 100;
/** Enabled webhooks read at a time. */
const PAGE_ROWS = 250;
/** Deliveries started at a time, which takes a millisecond or two. */
const STARTS = 50;
/**
 * After a poll, the next one waits this many times as long as it took, up to a limit in
 * milliseconds: a long list would otherwise occupy the process and the database most of the time.
 */
const PAUSE_PER_POLL = 20;
const LONGEST_PAUSE_MS = 5_000;

interface DeliveryTask {
  row: WebhookRow;
  /** Aborts when no further messages may be sent. */
  signal: AbortSignal;
  trouble: string | undefined;
  stop(): Promise<void>;
}

/** The deliveries to all enabled webhooks. */
interface DeliveryTasks {
  /** Starts and stops deliveries to match the read models. */
  poll(signal: AbortSignal): Promise<void>;
  count(): { enabled: number; failing: number };
  trouble(): string | undefined;
  stop(): Promise<void>;
}

type WebhookReads = Pick<ReadModels, 'listEnabledWebhooks' | 'findWebhook'>;

/** Creates a delivery task for each enabled webhook. */
function createDeliveryTasks(
  context: DeliveryContext,
  readModels: WebhookReads,
  checkpoints: WebhookCheckpoints,
): DeliveryTasks {
  const tasks = new Map<string, DeliveryTask>();
  let polls = 0;
  let nextPollAt = 0;
  let unverifiedIds: string[] = [];

  function start(row: WebhookRow): DeliveryTask {
    const { webhook_id: id, revision } = row;
    const [stopping, cutting] = [new AbortController(), new AbortController()];
    let stopped: Promise<void> | undefined;
    const task: DeliveryTask = {
      row,
      signal: stopping.signal,
      trouble: undefined,
      stop: () => (stopped ??= stop()),
    };
    const last = checkpoints.get(id);
    if (last?.revision !== revision) {
      // The webhook was changed or enabled again, so earlier failures no longer count.
      const { failing_since: _since, failing_ms: _ms, ...rest } = last ?? {};
      checkpoints.set(id, { ...rest, revision });
    }
    const running = runDeliveryTask({
      ...context,
      row,
      progress: () => checkpoints.get(id) ?? { revision },
      onProgress: (progress) => checkpoints.set(id, progress),
      onTrouble: (reason) => void (task.trouble = reason),
      async stopIfChanged() {
        if ((await readModels.findWebhook(id))?.revision !== revision) stopping.abort();
      },
      signal: stopping.signal,
      cutOff: cutting.signal,
    });
    async function stop(): Promise<void> {
      stopping.abort();
      await resolvesWithin(running, END_MS);
      cutting.abort();
      await running;
      tasks.delete(id);
    }
    return task;
  }

  /** The enabled webhooks by their ids, at most as many as receive messages. */
  async function readEnabled(pause: () => Promise<void>): Promise<Map<string, WebhookRow>> {
    const enabled = new Map<string, WebhookRow>();
    for (let after: string | undefined = ''; after !== undefined;) {
      const limit = Math.min(PAGE_ROWS, LIMITS.webhooks.enabled - enabled.size);
      const { rows, next } = await readModels.listEnabledWebhooks(after, limit);
      for (const row of rows) enabled.set(row.webhook_id, row);
      after = enabled.size < LIMITS.webhooks.enabled ? next : undefined;
      if (after !== undefined) await pause();
    }
    return enabled;
  }

  /**
   * Deletes the progress of deleted webhooks. Progress without a row stays, because the read models
   * may not have caught up with a new webhook.
   */
  async function deleteOldCheckpoints(enabled: ReadonlyMap<string, WebhookRow>): Promise<void> {
    if (polls % POLLS === 0 && unverifiedIds.length === 0) unverifiedIds = checkpoints.ids();
    for (const id of unverifiedIds.splice(0, LOOKUPS)) {
      if (enabled.has(id)) continue;
      const row = await readModels.findWebhook(id);
      if (row?.deleted) checkpoints.set(id, undefined);
    }
  }

  return {
    async poll(signal) {
      const startedAt = performance.now();
      if (startedAt < nextPollAt) return;
      let pausedMs = 0;
      const pause = async (): Promise<void> => {
        const pausedAt = performance.now();
        await yieldToEventLoop(NO_ACCOUNT);
        pausedMs += performance.now() - pausedAt;
        signal.throwIfAborted();
      };
      const enabled = await readEnabled(pause);
      // Deliveries that are stopping do not delay other webhooks. Their own webhook starts again at
      // the first poll after they have stopped, with its revision at that time.
      for (const task of tasks.values()) {
        const isOutdated = enabled.get(task.row.webhook_id)?.revision !== task.row.revision;
        if (isOutdated || task.signal.aborted) void task.stop();
      }
      let started = 0;
      for (const [id, row] of enabled) {
        if (tasks.has(id)) continue;
        tasks.set(id, start(row));
        started += 1;
        if (started % STARTS === 0) await pause();
      }
      await deleteOldCheckpoints(enabled);
      polls += 1;
      const endedAt = performance.now();
      const workedMs = endedAt - startedAt - pausedMs;
      nextPollAt = endedAt + Math.min(PAUSE_PER_POLL * workedMs, LONGEST_PAUSE_MS);
    },
    count() {
      const enabled = [...tasks.values()].filter(({ signal }) => !signal.aborted);
      const failing = enabled.filter(
        ({ row }) => checkpoints.get(row.webhook_id)?.failing_since !== undefined,
      );
      return { enabled: enabled.length, failing: failing.length };
    },
    trouble: () => [...tasks.values()].find(({ trouble }) => trouble !== undefined)?.trouble,
    async stop() {
      await Promise.all(Array.from(tasks.values(), (task) => task.stop()));
    },
  };
}

/** How often the list of enabled webhooks is read. */
const POLL_MS = 500;

export interface Webhooks {
  delivery: DeliveryContext;
  readModels: WebhookReads;
  /**
   * Why the read models can't be trusted now; undefined while they can. During a rebuild, they may
   * show a deleted webhook or an outdated address.
   */
  pausedReason: () => string | undefined;
  /**
   * Waits until no other process delivers. Resolves with undefined when the signal aborts first.
   */
  acquireLeadership: (signal: AbortSignal) => Promise<WebhookProgressStore | undefined>;
}

export interface RunningWebhooks {
  health(): WebhooksHealth;
  /** Waits for messages in flight, with a time limit. */
  close(): Promise<void>;
}

/** Delivers events to webhooks as soon as no other process does. Failed deliveries are retried. */
export function startWebhooks(webhooks: Webhooks): RunningWebhooks {
  const { delivery, readModels, acquireLeadership, pausedReason } = webhooks;
  const { logger } = delivery;
  let tasks: DeliveryTasks | undefined;

  async function begin(store: WebhookProgressStore) {
    const checkpoints = await loadCheckpoints(store);
    const ended = new AbortController();
    const started = createDeliveryTasks(delivery, readModels, checkpoints);
    const committing = commitUntilAborted(checkpoints, logger, ended.signal);
    tasks = started;
    return {
      poll: started.poll,
      async stop() {
        await started.stop();
        tasks = undefined;
        // The last commit includes the progress that the stopped tasks reported.
        ended.abort();
        await committing;
      },
    };
  }

  const leader = startLeaderTask({
    name: 'sending to webhooks',
    acquireLeadership,
    begin,
    pollMs: POLL_MS,
    pausedReason,
    logger,
  });
  return {
    health: () => ({
      state: leader.isActive() ? 'active' : 'standing_by',
      ...(tasks?.count() ?? { enabled: null, failing: null }),
      reason: leader.reason() ?? tasks?.trouble(),
    }),
    close: leader.close,
  };
}
