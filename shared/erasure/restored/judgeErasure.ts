import { decodeEvent } from '../../eventlog/codec.ts';
import { keysNamedBy } from '../../eventlog/encryption/protectedStore.ts';
import { findChainFault, type Link } from '../../eventlog/hashChain.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { isTurnlogError } from '../../lib/errors/turnlogError.ts';
import { LIMITS } from '../../limits.ts';
import type { Position, StoredEvent } from '../../ports/eventStore.ts';
import { createOwnKeys, type OwnKeys } from '../ownKeys.ts';
import { readRetentionPolicy } from '../retention/retentionPolicy.ts';

/** The verdict on the keys of an erasure that are not destroyed. */
export interface JudgedErasure {
  stream: string;
  event_id: string;
  position: Position;
  /** Keys of the stream that the erasure destroys again. */
  destroy: string[];
  /** Keys that exist and are kept, and why. */
  keep: { key_id: string; reason: string }[];
}

export interface JudgeContext extends StreamSource {
  /** Why the transparency log does not prove the event; undefined when it does. */
  findProofFault: (event: { position: Position; hash: string }) => Promise<string | undefined>;
}

const PAGE = { direction: 'forwards', limit: 500, maxBytes: LIMITS.store.pageBytes } as const;

interface ReadStream {
  account_id: string | undefined;
  fault: string | undefined;
}

/** Reads a stream up to its erasure, with its keys, and verifies its chain. */
async function readChain(
  { store }: StreamSource,
  erasure: StoredEvent,
  keys: OwnKeys,
): Promise<ReadStream> {
  const { stream, revision: last } = erasure;
  let previous: Link | undefined;
  const read: ReadStream = { account_id: undefined, fault: undefined };

  function follow(stored: StoredEvent): void {
    if (stored.revision > last) {
      read.fault ??= `an event follows it at revision ${stored.revision}`;
      return;
    }
    const event = decodeEvent(stored);
    const fault = findChainFault(event, previous);
    if (fault !== undefined)
      read.fault ??= `the event at revision ${stored.revision} of its stream does not fit: ${fault}`;
    previous = { revision: event.revision, hash: event.metadata.hash };
    if (event.revision === 0) read.account_id = event.metadata.account_id;
  }

  try {
    for (let from = 0; ;) {
      const page = await store.readStream(stream, { ...PAGE, from });
      if (page.length === 0) return read;
      await keys.add(page);
      page.forEach(follow);
      from = page.at(-1)!.revision + 1;
    }
  } catch (error) {
    if (!(error instanceof SyntaxError) && !isTurnlogError(error, 'stream_damaged')) throw error;
    return { ...read, fault: 'its stream is damaged' };
  }
}

/** Why the account's stream does not allow an erasure. */
async function findHold(
  source: StreamSource,
  account_id: string | undefined,
): Promise<string | undefined> {
  if (account_id === undefined) return 'no event says which account it belongs to';
  try {
    const { opened, hold } = await readRetentionPolicy(source, account_id);
    if (hold.held) return `the account ${account_id} is on legal hold`;
    return opened ? undefined : `there is no account ${account_id}`;
  } catch (error) {
    if (!isTurnlogError(error, 'stream_damaged')) throw error;
    return `whether the account ${account_id} is on legal hold can't be told: its stream is damaged`;
  }
}

/**
 * Judges which keys an erasure in the log destroys again after the key store was restored. A log is
 * not believed: the stream's chain must lead to the erasure, the transparency log must contain it,
 * the keys must be the stream's own, and its account must not be on legal hold. Undefined when no
 * key is left. Throws `store_unavailable`.
 */
export async function judgeErasure(
  context: JudgeContext,
  erasure: StoredEvent,
): Promise<JudgedErasure | undefined> {
  const { stream, position, id: event_id } = erasure;
  const own = createOwnKeys(context.store.keys, stream);
  const { account_id, fault } = await readChain(context, erasure, own);
  const others = keysNamedBy(erasure).filter((id) => !own.own.has(id) && !own.doubtful.has(id));
  const states = await context.store.keys.examine(others);
  const keep = [
    ...Array.from(own.doubtful, ([key_id, reason]) => ({ key_id, reason })),
    ...others
      .filter((id) => ![undefined, 'destroyed', 'lost'].includes(states.get(id) as string))
      .map((key_id) => ({ key_id, reason: 'no text of the stream is encrypted with it' })),
  ];
  const destroy = [...own.live, ...own.lost];
  if (destroy.length + keep.length === 0) return undefined;
  const judged = { stream, event_id, position };
  const reason =
    fault ??
    (await context.findProofFault({ position, hash: decodeEvent(erasure).metadata.hash })) ??
    (await findHold(context, account_id));
  if (reason === undefined) return { ...judged, destroy, keep };
  const liveKeys = [...own.live].map((key_id) => ({ key_id, reason }));
  return liveKeys.length + keep.length === 0
    ? undefined
    : { ...judged, destroy: [], keep: [...liveKeys, ...keep] };
}
