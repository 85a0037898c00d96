/** A machine whose clock can be set wrong, with the log and the read models of a real data folder. */
import { judgeClock, retentionSweepPart } from '../../../../services/compose/features/retention.ts';
import { openOperator } from '../../../../services/compose/operator/operator.ts';
import { openAccount, setRetention } from '../../../../shared/accounts/commands.ts';
import type { AccountRetention } from '../../../../shared/accounts/events.ts';
import { handle, type HandleContext } from '../../../../shared/commandHandling/handle.ts';
import { lastEventTarget } from '../../../../shared/commandHandling/targetStream.ts';
import type { Decider } from '../../../../shared/domain/decider.ts';
import { eraseWithReplays, readDependentsAt } from '../../../../shared/erasure/eraseWithReplays.ts';
import {
  confirmTime,
  readKeptTime,
} from '../../../../shared/erasure/retention/retentionStreams.ts';
import { sessionStream } from '../../../../shared/eventlog/streams.ts';
import { endsWithErasure } from '../../../../shared/eventlog/reading/erasureLookup.ts';
import type { RetentionHealth } from '../../../../shared/health/health.ts';
import { parseConfig } from '../../../../shared/lib/config/config.ts';
import { createLogger } from '../../../../shared/lib/logger.ts';
import type { ReadModels } from '../../../../shared/ports/readModels.ts';
import type { SessionEvent } from '../../../../shared/sessions/events.ts';
import { AGENT_ID, sessionDescribed, sessionStarted } from '../../builders/events.ts';
import { eventually } from '../../processes/operator.ts';

export interface Machine {
  /** The true time, and how far the clock is ahead of it, in milliseconds. */
  world: { time: number; ahead: number };
  context: HandleContext;
  account_id: string;
  /** Begins a session by the clock, with more data if given. */
  begin(more?: object): Promise<string>;
  /** Erases a session, as its account requests it. Throws `erasure_refused`. */
  erase(session_id: string): Promise<void>;
  /** Records another event of a session by the clock. */
  continue(session_id: string): Promise<void>;
  /** A process begins; `sweep` sweeps once, and then stops in order. */
  boot(): Promise<{ sweep: () => Promise<RetentionHealth> }>;
  /** The proven time as last recorded. */
  provenTime(): Promise<number>;
  /** An operator confirms the clock. */
  confirm(): Promise<void>;
  isErased(session_id: string): Promise<boolean>;
  close(): Promise<void>;
}

/** Records what it is given. */
const anyEvent: Decider<SessionEvent, null, SessionEvent> = {
  initialState: null,
  decide: (event) => [event],
  evolve: (state) => state,
};

const NEVER_MS = 1_000_000_000;

/** Opens a machine over these stores, with an account of this retention. */
export async function openMachine(
  env: Record<string, string>,
  retention: AccountRetention,
  start: number,
): Promise<Machine> {
  const operator = await openOperator(parseConfig(env), createLogger('silent'));
  const world = { time: start, ahead: 0 };
  const clock = { now: (): number => world.time + world.ahead };
  // The operator's own judge goes by the system clock, not by that of this world.
  const { judge: _judge, ...opened } = operator;
  const context: HandleContext = { ...opened, clock };
  const account_id = operator.ids.typeId('acct');
  const actor = { account_id, key_id: 'key_1', request_id: 'test' };
  await openAccount(context, actor, 'Acme');
  await setRetention(context, actor, retention);

  let shown: ReadModels | undefined;
  async function refresh(): Promise<ReadModels> {
    await shown?.close();
    return (shown = await operator.openReadModels());
  }
  /** Always up to date, as those of a service with a projector are. */
  const readModels = new Proxy({} as ReadModels, {
    get(_target, name: keyof ReadModels | 'then') {
      if (name === 'then') return undefined;
      if (name === 'untilShown') return () => refresh().then(() => true);
      return (...given: unknown[]) => (shown![name] as (...all: unknown[]) => unknown)(...given);
    },
  });

  async function record(session_id: string, event: SessionEvent): Promise<void> {
    await handle(context, actor, lastEventTarget(sessionStream(session_id), anyEvent), event);
  }

  return {
    world,
    context,
    account_id,
    async begin(more) {
      const session_id = operator.ids.typeId('session');
      await record(session_id, sessionStarted(AGENT_ID, more));
      return session_id;
    },
    async erase(session_id) {
      await refresh();
      const erasing = { ...context, ...readDependentsAt(readModels, 0) };
      await eraseWithReplays(erasing, sessionStream(session_id), { reason: 'request' }, actor);
    },
    continue: (session_id) => record(session_id, sessionDescribed({}, 'A title')),
    async boot() {
      const begunAt = world.time;
      const clockJudge = judgeClock(operator, {
        now: clock.now,
        monotonic: () => world.time - begunAt,
        newest: operator.store.head,
      });
      const createPart = () =>
        retentionSweepPart(
          { ...context, readModels, logger: createLogger('silent') },
          {
            ...clockJudge,
            // The clocks alone are tried: no sweep asks.
            percent: 100,
            runExclusively: (work) => work(new AbortController().signal).then(() => true),
            onErased: () => undefined,
            pauses: { firstMs: 1, nextMs: NEVER_MS },
          },
        );
      await refresh();
      await createPart().prepare!(new AbortController().signal);
      return {
        async sweep() {
          await refresh();
          const part = createPart();
          await using _upkeep = part.upkeep!();
          const { retention: health } = await eventually(
            () => part.health!(),
            ({ retention: now }) =>
              now !== undefined &&
              (now.due !== null || now.reason !== undefined) &&
              now.state !== 'sweeping',
          );
          return health!;
        },
      };
    },
    provenTime: async () => (await readKeptTime(operator))!.time,
    confirm: () => confirmTime(context, clock.now(), 'The clock is right.'),
    isErased: (session_id) => endsWithErasure(operator.store, sessionStream(session_id)),
    async close() {
      await shown?.close();
      await operator.close();
    },
  };
}
