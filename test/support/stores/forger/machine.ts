/** A machine whose clock can be set wrong, with the log and the read models of a real data folder. */
import { judgeClock, retentionSweepPart } from '../../../../services/compose/features/retention.ts';
import { openOperator } from '../../../../services/compose/operator/operator.ts';
import { openAccount, setRetention } from '../../../../shared/accounts/commands.ts';
import type { AccountRetention } from '../../../../shared/accounts/events.ts';
import { handle, type HandleContext } from '../../../../shared/commandHandling/handle.ts';
import { lastEventTarget } from '../../../../shared/commandHandling/targetStream.ts';
import type { Decider } from '../../../../shared/domain/decider.ts';
import {
  eraseWithReplays,
  createUpToDateReader,
} from '../../../../shared/erasure/eraseWithReplays.ts';
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
  accounts: readonly [string, ...string[]];
  /** Begins a session of the first account, or of this one, by the clock, with more data if given. */
  begin(more?: object, account?: string): Promise<string>;
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

interface MachineOptions {
  retention: AccountRetention;
  /** The true time at first. */
  start: number;
  /** How many accounts there are, one by default. */
  accounts?: number;
  /** As RETENTION_CONFIRM_PERCENT; by default no sweep asks. */
  percent?: number;
}

/** Opens a machine over these stores, with accounts of this retention. */
export async function openMachine(
  env: Record<string, string>,
  { retention, start, accounts: count = 1, percent = 100 }: MachineOptions,
): Promise<Machine> {
  const operator = await openOperator(parseConfig(env), createLogger('silent'));
  const world = { time: start, ahead: 0 };
  const clock = { now: (): number => world.time + world.ahead };
  // The operator's own judge goes by the system clock, not by that of this world.
  const { judge: _judge, ...opened } = operator;
  const context: HandleContext = { ...opened, clock };
  const actorOf = (account_id: string) => ({ account_id, key_id: 'key_1', request_id: 'test' });
  const accounts = Array.from({ length: count }, () => operator.ids.typeId('acct'));
  for (const account of accounts) {
    await openAccount(context, actorOf(account), 'Acme');
    await setRetention(context, actorOf(account), retention);
  }
  const [first = ''] = accounts;

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

  async function record(session_id: string, event: SessionEvent, account = first): Promise<void> {
    const target = lastEventTarget(sessionStream(session_id), anyEvent);
    await handle(context, actorOf(account), target, event);
  }

  return {
    world,
    context,
    accounts: [first, ...accounts.slice(1)],
    async begin(more, account) {
      const session_id = operator.ids.typeId('session');
      await record(session_id, sessionStarted(AGENT_ID, more), account);
      return session_id;
    },
    async erase(session_id) {
      await refresh();
      const dependentsAt = createUpToDateReader(readModels, 0);
      const erasing = { ...context, dependentsAt, logger: createLogger('silent') };
      await eraseWithReplays(
        erasing,
        sessionStream(session_id),
        { reason: 'request' },
        actorOf(first),
      );
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
            percent,
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
