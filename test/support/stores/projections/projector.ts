import type { EmbeddedLocation } from '../../../../services/compose/logLocation.ts';
import { openThreadProver } from '../../../../services/compose/features/prover.ts';
import { randomUUID } from 'node:crypto';
import { Worker } from 'node:worker_threads';
import { openSqliteEventLog } from '../../../../infra/sqlite/eventStore/log.ts';
import { openSqliteReadModels } from '../../../../infra/sqlite/readModels/readModels.ts';
import {
  startProjectorThread,
  THREAD_LIMITS,
} from '../../../../services/followers/projector/startThread.ts';
import { parseConfig } from '../../../../shared/lib/config/config.ts';
import { createLogger } from '../../../../shared/lib/logger.ts';
import { appendEvents, headOf, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import { decodeEvent } from '../../../../shared/eventlog/codec.ts';
import type { DomainEvent } from '../../../../shared/eventlog/eventTypes.ts';
import type { EventStore, Position } from '../../../../shared/ports/eventStore.ts';
import { agentCreated, agentData, at } from '../../builders/events.ts';

interface LogLine {
  level: string;
  fields: Record<string, unknown>;
  message: string;
}

export function recordingLogger() {
  const lines: LogLine[] = [];
  const logAt = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...fields }, message });
  return { lines, logger: { info: logAt('info'), warn: logAt('warn'), error: logAt('error') } };
}

/**
 * The projector's thread over a data folder, with the workers that it started, and read models that
 * follow it.
 */
export async function startProjector(folder: string) {
  const workers: Worker[] = [];
  const { lines, logger } = recordingLogger();
  const place: EmbeddedLocation = {
    kind: 'embedded',
    dataFolder: folder,
    log: { folder },
    keysFolder: folder,
    masterKeyFile: undefined,
  };
  const log = openSqliteEventLog({ folder });
  const { threadData } = await openThreadProver(
    { config: parseConfig({}), logger: createLogger('silent') },
    place,
    log,
  );
  const spawn = (): Worker => {
    const data = threadData();
    const worker = new Worker(
      new URL('../../../../services/compose/embedded/projectorThread.ts', import.meta.url),
      {
        workerData: data,
        transferList: [data.reports],
        resourceLimits: THREAD_LIMITS,
        execArgv: [],
      },
    );
    workers.push(worker);
    return worker;
  };
  const thread = await startProjectorThread({ spawn, logger });
  const readModels = openSqliteReadModels({ folder, progress: thread.progress });
  return {
    thread,
    readModels,
    workers,
    lines,
    async close() {
      await readModels.close();
      await thread.close();
      await log.close();
    },
  };
}

export const newEvent = (event: DomainEvent) => ({ id: randomUUID(), ...event });

/** Appends events to a stream, one that does not exist yet unless its head is given. */
export async function appendTo(
  store: EventStore,
  stream: string,
  events: readonly DomainEvent[],
  head = NO_STREAM,
): Promise<Position> {
  const { position } = await appendEvents(
    store,
    { stream, head },
    {
      events: events.map(newEvent),
      authorship: {
        account_id: 'acct_1',
        key_id: 'key_1',
        request_id: 'request',
        causation_id: 'request',
        recorded_at: at(0),
      },
    },
  );
  return position;
}

/** Appends events at the end of a stream that exists. */
export async function appendMore(
  store: EventStore,
  stream: string,
  events: readonly DomainEvent[],
): Promise<Position> {
  const [last] = await store.readStream(stream, { direction: 'backwards', limit: 1 });
  return appendTo(store, stream, events, last && headOf(decodeEvent(last)));
}

export const agentId = (index: number): string => `agent_${String(index).padStart(6, '0')}`;

/** Appends agents `from` … `to - 1`, created and updated `updates` times each. */
export async function appendAgents(
  store: EventStore,
  from: number,
  to: number,
  updates = 0,
): Promise<Position> {
  const events = (): DomainEvent[] => [
    agentCreated(),
    ...Array.from({ length: updates }, (_, index): DomainEvent => ({
      type: 'agent.updated.v1',
      data: agentData({ name: `name ${index + 1}` }),
    })),
  ];
  const positions = await Promise.all(
    Array.from({ length: to - from }, (_, index) =>
      appendTo(store, `agent-${agentId(from + index)}`, events()),
    ),
  );
  return positions.toSorted().at(-1) as Position;
}
