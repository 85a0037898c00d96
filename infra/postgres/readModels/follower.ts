import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import type { Position } from '../../../shared/ports/eventStore.ts';
import { createPositionWaiters } from '../../../shared/projections/positionWaiters.ts';
import { connect } from '../connection.ts';
import { sqlState } from '../failures.ts';
import { readersLock } from '../locks.ts';
import { CHANNEL, ROW, VERSION } from './copies.ts';

const STATEMENT_MS = 2000;
/** How often the connection is tried: one that has died without a word would never tell anything again. */
const HEARTBEAT_MS = 2000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2000;

export interface CopyState {
  generation: number;
  position: Position | undefined;
  complete: boolean;
}

/** SQLSTATEs of what is missing before the first projector has started: a schema, a table. */
const isMissing = (error: unknown): boolean => ['3F000', '42P01'].includes(sqlState(error) ?? '');

/** What the live copy's row says; undefined before there is one. Errors: what pg throws. */
export async function readState(query: Client['query']): Promise<CopyState | undefined> {
  try {
    const { rows } = await query<{ generation: number; position: Position | null; complete: boolean }>(`SELECT generation, position, complete FROM ${ROW}`, [VERSION, 'live']);
    return rows[0] && { ...rows[0], position: rows[0].position ?? undefined };
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/**
 * Follows the checkpoint of the live copy on one connection of its own: told by the server with each commit, and read once
 * after every (re)connection, because what was told meanwhile is lost. While it is not connected, waits run into their limit.
 */
export function createFollower(databaseUrl: string) {
  const closing = new AbortController();
  const waiters = createPositionWaiters();
  let state: CopyState | undefined;

  function know(news: CopyState | undefined): void {
    state = news;
    if (news?.position === undefined) waiters.reset();
    else waiters.pass(news.position);
  }

  function hear(payload: string, client: Client): void {
    if (payload !== '') waiters.pass(payload as Position);
    else void look(client).catch(() => undefined);
  }

  async function look(client: Client): Promise<void> {
    know(await readState(client.query.bind(client) as Client['query']));
  }

  /** One connection, until it breaks or the follower is closed. Errors: what pg throws. */
  async function follow(onConnected: () => void): Promise<void> {
    const { client, ended, close } = await connect(databaseUrl, { statementMs: STATEMENT_MS });
    try {
      client.on('notification', ({ payload = '' }) => hear(payload, client));
      await client.query(`SELECT pg_advisory_lock_shared(${readersLock(VERSION)})`);
      await client.query(`LISTEN ${CHANNEL}`);
      await look(client);
      onConnected();
      const over = AbortSignal.any([ended, closing.signal]);
      while (!over.aborted) {
        await sleep(HEARTBEAT_MS, undefined, { signal: over, ref: false }).catch(() => undefined);
        if (!over.aborted) await client.query('SELECT');
      }
    } finally {
      await close();
    }
  }

  async function followForEver(): Promise<void> {
    let pause = FIRST_PAUSE_MS;
    while (!closing.signal.aborted) {
      await follow(() => (pause = FIRST_PAUSE_MS)).catch(() => undefined);
      if (closing.signal.aborted) return;
      await sleep(pause * (0.5 + Math.random() / 2), undefined, { signal: closing.signal, ref: false }).catch(() => undefined);
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
  }

  const following = followForEver();

  return {
    /** What was last known of the live copy. */
    state: () => state,
    know,
    waitUntilPassed: (position: Position, timeoutMs: number): Promise<boolean> => (closing.signal.aborted ? Promise.resolve(false) : waiters.wait(position, timeoutMs)),
    async close(): Promise<void> {
      closing.abort();
      waiters.close();
      await following;
    },
  };
}

export type Follower = ReturnType<typeof createFollower>;
