import { hashApiKey, claimedKeyId, mintApiKey } from '../apiKey.ts';
import { account, type AccountCommand, type AccountState } from '../domain/account/decider.ts';
import type { AccountEvent, Scope } from '../domain/account/events.ts';
import { Rejection } from '../domain/rejection.ts';
import { isTurnlogError, TurnlogError } from '../errors.ts';
import { appendEvents, headOf, NO_STREAM, type StreamHead } from '../eventlog/append.ts';
import { createConflictLimit } from '../eventlog/conflictLimit.ts';
import { createDamagedStreams, type DamagedStreams } from '../eventlog/damagedStreams.ts';
import { readPage, type StreamSource } from '../eventlog/readWhole.ts';
import { accountStream } from '../eventlog/streams.ts';
import { isoTime, type Clock, type Ids } from '../ports/clock.ts';
import type { EventStore, Position } from '../ports/eventStore.ts';
import type { Actor } from './context.ts';

const PAGE = 500;

export interface AccountCommandContext {
  store: EventStore;
  clock: Clock;
  ids: Ids;
  /** Where a damaged stream is noted, if anybody asks for them. */
  damaged?: DamagedStreams;
}

async function loadAccount(
  source: StreamSource,
  stream: string,
): Promise<{ state: AccountState; head: StreamHead }> {
  let state = account.initialState;
  let head = NO_STREAM;
  for (;;) {
    const page = await readPage(source, stream, {
      direction: 'forwards',
      from: head.revision + 1,
      limit: PAGE,
    });
    for (const { recorded, event } of page) {
      state = account.evolve(state, event as AccountEvent);
      head = headOf(recorded);
    }
    if (page.length < PAGE) {
      source.damaged.forget(stream, { from: 0, to: head.revision });
      return { state, head };
    }
  }
}

/** Load → decide → append, again when another writer came in between. Undefined when there was nothing to write. */
async function handle(
  context: AccountCommandContext,
  actor: Actor,
  command: AccountCommand,
): Promise<Position | undefined> {
  const { store, clock, ids, damaged = createDamagedStreams(() => undefined) } = context;
  const stream = accountStream(actor.account_id);
  const source = { store, damaged };
  const conflicts = createConflictLimit(source, stream);
  for (;;) {
    const { state, head } = await loadAccount(source, stream);
    const events = decideOrRefuse(command, state).map((event) => ({ id: ids.uuid(), ...event }));
    if (events.length === 0) return undefined;
    try {
      const authorship = {
        ...actor,
        causation_id: actor.request_id,
        recorded_at: isoTime(clock.now()),
      };
      return (await appendEvents(store, { stream, head }, events, authorship)).position;
    } catch (error) {
      if (!isTurnlogError(error, 'stream_conflict')) throw error;
      await conflicts.lost(head.revision);
    }
  }
}

function decideOrRefuse(command: AccountCommand, state: AccountState): AccountEvent[] {
  try {
    return account.decide(command, state);
  } catch (error) {
    if (error instanceof Rejection)
      throw new TurnlogError('invalid_request', error.message, { cause: error });
    throw error;
  }
}

/**
 * Opens the account that `actor` names.
 * Errors: `invalid_request` when it is open, `stream_damaged`, and those of EventStore.append.
 */
export const openAccount = (
  context: AccountCommandContext,
  actor: Actor,
  name: string,
): Promise<Position | undefined> => handle(context, actor, { type: 'open_account', name });

export interface KeyGrant {
  name: string;
  scopes: readonly Scope[];
  /** Milliseconds since the epoch; null for a key that does not expire. */
  expiresAt: number | null;
  /** A key that the operator chose; minted when absent. */
  apiKey?: string | undefined;
}

/**
 * Issues an API key to the actor's account. Resolves with the key itself, which can't be had again.
 * Errors: `invalid_request` for an unknown account or a key that was issued before, `stream_damaged`, and those of
 * EventStore.append.
 */
export async function issueKey(
  context: AccountCommandContext,
  actor: Actor,
  grant: KeyGrant,
): Promise<{ key_id: string; api_key: string; position: Position | undefined }> {
  const api_key = grant.apiKey ?? mintApiKey(context.ids.typeId('key'));
  const key_id = claimedKeyId(api_key);
  const key = {
    key_id,
    name: grant.name,
    hash: hashApiKey(api_key),
    scopes: [...grant.scopes],
    expires_at: grant.expiresAt === null ? null : isoTime(grant.expiresAt),
  };
  const position = await handle(context, actor, { type: 'issue_key', key });
  return { key_id, api_key, position };
}

/**
 * Revokes a key of the actor's account; a revoked one stays revoked.
 * Errors: `invalid_request` for an unknown key, `stream_damaged`, and those of EventStore.append.
 */
export const revokeKey = (
  context: AccountCommandContext,
  actor: Actor,
  key_id: string,
): Promise<Position | undefined> => handle(context, actor, { type: 'revoke_key', key_id });
