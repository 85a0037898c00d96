import type { Client } from 'pg';
import { createBackOff } from '../../shared/backOff.ts';
import { LIMITS } from '../../shared/limits.ts';
import { pauseAtMost } from '../../shared/pause.ts';
import type { TurnListener, TurnSignals } from '../../shared/ports/turnSignals.ts';
import { connect } from './connection.ts';

/** Whoever may connect may notify: what is heard is a hint, and no more. */
const CHANNEL = 'turnlog_turns';
const NOTIFY = 'SELECT pg_notify($1, session) FROM unnest($2::text[]) AS session';
const STATEMENT_MS = 2000;
/**
 * How often the connection is tried: one that has died without a word would never tell anything
 * again.
 */
const HEARTBEAT_MS = 2000;
const PAUSES = { firstMs: 50, longestMs: 2000, spread: [0.5, 1] } as const;

/**
 * Signals by LISTEN and NOTIFY, on one connection of their own. What is told while it is not
 * connected waits, up to a bound; what is beyond it, or on its way when it breaks, is lost.
 */
export function openTurnSignals(databaseUrl: string): TurnSignals {
  const closing = new AbortController();
  let listener: TurnListener | undefined;
  let client: Client | undefined;
  /** Sessions that are still to be told, each once. */
  const pending = new Set<string>();
  let telling = false;

  /** Tells all there is, again and again while more comes. What a broken connection loses is lost. */
  async function tellPending(): Promise<void> {
    if (telling) return;
    telling = true;
    try {
      for (;;) {
        if (!client || pending.size === 0) return;
        const sessions = [...pending];
        pending.clear();
        await client.query(NOTIFY, [CHANNEL, sessions]);
      }
    } catch {
      // Whoever waits for it looks by itself.
    } finally {
      telling = false;
    }
  }

  /** One connection, until it breaks or the signals are closed. Errors: what pg throws. */
  async function hold(onConnected: () => void): Promise<void> {
    const connection = await connect(databaseUrl, {
      name: 'turnlog signals',
      statementMs: STATEMENT_MS,
    });
    try {
      connection.client.on('notification', ({ payload = '' }) => listener?.onTold(payload));
      await connection.client.query(`LISTEN ${CHANNEL}`);
      client = connection.client;
      listener?.onMissed();
      onConnected();
      void tellPending();
      const over = AbortSignal.any([connection.ended, closing.signal]);
      while (!over.aborted) {
        await pauseAtMost(HEARTBEAT_MS, { signal: over, ref: false });
        if (!over.aborted) await connection.client.query('SELECT');
      }
    } finally {
      client = undefined;
      await connection.close();
    }
  }

  async function holdForEver(): Promise<void> {
    const { signal } = closing;
    const pauses = createBackOff(PAUSES);
    while (!signal.aborted) {
      await hold(pauses.reset).catch(() => undefined);
      if (!signal.aborted) await pauseAtMost(pauses.next(), { signal, ref: false });
    }
  }

  const holding = holdForEver();

  return {
    tell(sessionId) {
      if (pending.size >= LIMITS.turn.signals) return;
      pending.add(sessionId);
      void tellPending();
    },
    listen(added) {
      listener = added;
    },
    connected: () => client !== undefined,
    async close() {
      closing.abort();
      await holding;
    },
  };
}
