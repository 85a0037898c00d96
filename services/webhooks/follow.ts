import { toDomainEvent } from '../../shared/eventlog/domainEvent.ts';
import type { Keyring } from '../../shared/eventlog/keyring.ts';
import { createTrail } from '../../shared/eventlog/logIdentity.ts';
import { openedEvent, openTexts } from '../../shared/eventlog/openTexts.ts';
import { belongsIn, streamKind } from '../../shared/eventlog/streams.ts';
import type {
  Checkpoint,
  EventLog,
  Position,
  StoredEvent,
} from '../../shared/ports/eventStore.ts';
import { withErasedTexts } from '../../shared/publicEvents/erasedTexts.ts';
import type { PublicEvent } from '../../shared/publicEvents/publicEvent.ts';
import { toPublicEvent } from '../../shared/publicEvents/toPublicEvent.ts';

/** How far the log was followed, and the event that is to be sent, where there is one. */
export interface Followed {
  event?: PublicEvent;
  checkpoint: Checkpoint;
}

export interface Following {
  /** Exclusive. */
  after: Checkpoint | Position;
  /** Undefined: all of them. */
  types: readonly string[] | undefined;
  /** Ends it without an error. */
  signal: AbortSignal;
}

/**
 * The public events of an account, first what is there, then live. Errors: `log_changed`,
 * `log_restored`, `position_invalid`, `store_unavailable`, and why an event can't be understood.
 */
export type FollowAccount = (accountId: string, following: Following) => AsyncIterable<Followed>;

const BATCH = 256;
const PUBLIC_KINDS = ['agent', 'session'];

/** What is not ours has no account. */
function accountOf({ metadata }: StoredEvent): unknown {
  try {
    return (JSON.parse(metadata) as { account_id?: unknown } | null)?.account_id;
  } catch {
    return undefined;
  }
}

const isPublicOf = (accountId: string) => (event: StoredEvent) =>
  PUBLIC_KINDS.includes(streamKind(event.stream)) &&
  belongsIn(event.stream, event.type) &&
  accountOf(event) === accountId;

type Keys = Pick<Keyring, 'find'>;

/** Undefined for what is not public, and for a type that a newer release has written. */
async function publicView(keys: Keys, stored: StoredEvent): Promise<PublicEvent | undefined> {
  const [readable] = await openTexts(keys, [stored]);
  const recorded = openedEvent(readable!);
  const known = toDomainEvent(recorded);
  const event = known && toPublicEvent(known, recorded);
  return event && readable!.erased ? withErasedTexts(event, JSON.parse(stored.data)) : event;
}

/** Follows the log for each webhook by itself, so that none waits for another one. */
export const followAccounts = (log: EventLog & { keys: Keys }): FollowAccount =>
  async function* follow(accountId, { after, types, signal }) {
    const trail = createTrail(log, after);
    const isWanted = isPublicOf(accountId);
    for await (const batch of log.subscribe({ after, batchSize: BATCH, signal })) {
      let from = 0;
      for (const [index, stored] of batch.events.entries()) {
        if (!isWanted(stored)) continue;
        const event = await publicView(log.keys, stored);
        if (!event || (types && !types.includes(event.type))) continue;
        const checkpoint = await trail.passed(batch.events.slice(from, index + 1));
        from = index + 1;
        yield { event, checkpoint: checkpoint! };
      }
      const checkpoint = await trail.passed(batch.events.slice(from));
      if (checkpoint && batch.events.length > 0) yield { checkpoint };
    }
  };
