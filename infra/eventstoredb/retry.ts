import { setTimeout as delay } from 'node:timers/promises';
import { isTurnlogError, storeUnavailable } from '../../shared/errors.ts';
import type { Connection, Connections } from './connection.ts';
import { isAccessDenied } from './serverErrors.ts';

const FIRST_PAUSE_MS = 25;
const LONGEST_PAUSE_MS = 500;

/** How long to wait before attempt n + 1, in milliseconds: doubling, bounded, and spread so that clients don't come in step. */
export const backOff = (attempt: number): number => Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** attempt) * (0.5 + Math.random() / 2);

/** The part of the deadline that one attempt may take without hearing anything. */
const ATTEMPTS_PER_DEADLINE = 4;

export interface Attempt {
  connection: Connection;
  /** To be called with every sign of life, by attempts that take many steps. */
  heard: () => void;
}

export type Retrying = <T>(attempt: (context: Attempt) => Promise<T>) => Promise<T>;

/**
 * Repeats what may be repeated until it succeeds or the deadline has passed. An attempt that hears nothing for a quarter of
 * that time ends, and so does its connection if nobody else has heard anything on it.
 * Errors: TurnlogErrors of an attempt as they are; `store_unavailable` for all others, and when the store is closed meanwhile.
 */
export function createRetrying(connections: Connections, deadlineMs: number): Retrying {
  const patienceMs = deadlineMs / ATTEMPTS_PER_DEADLINE;

  async function once<T>(attempt: (context: Attempt) => Promise<T>, timeoutMs: number): Promise<T> {
    const connection = connections.current();
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => {
        reject(new Error(`no answer within ${timeoutMs} ms`));
        // Where others were answered lately the connection is alive, and giving it up would only cost them their answers.
        if (connection.silentMs() >= patienceMs / 2) connections.replace(connection);
      }, timeoutMs);
    });
    const heard = (): void => {
      connection.heard();
      timer?.refresh();
    };
    try {
      return await Promise.race([attempt({ connection, heard }), silence]);
    } finally {
      clearTimeout(timer);
    }
  }

  return async (attempt) => {
    const deadline = Date.now() + deadlineMs;
    for (let tries = 0; ; tries += 1) {
      try {
        return await once(attempt, Math.max(1, Math.min(patienceMs, deadline - Date.now())));
      } catch (error) {
        if (isTurnlogError(error) && !error.retriable) throw error;
        if (isAccessDenied(error)) throw storeUnavailable('The event store refuses the credentials.', error);
        const pause = backOff(tries);
        if (connections.closed.aborted || Date.now() + pause >= deadline) throw storeUnavailable('The event store does not answer.', error);
        await delay(pause);
      }
    }
  };
}
