import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import type { Publication, Publisher } from '../../../shared/publicEvents/publisher.ts';

type FailureCode = 'publisher_fenced' | 'publisher_unavailable';

export const publisherError = (code: FailureCode, message = 'failed'): TurnlogError =>
  new TurnlogError(code, message, { retriable: code === 'publisher_unavailable' });

/**
 * Topics in memory with transactions and fencing, shared by any number of publishers. `failures`
 * are the next publications to fail; `isFailing` fails everything.
 */
export function createMemoryTopics() {
  const state = {
    published: [] as PublicEvent[],
    checkpoint: undefined as Checkpoint | undefined,
    /** A number for each take-over; the last one may publish. */
    owner: 0,
    beats: 0,
    activity: 0,
    lost: undefined as string | undefined,
    failures: [] as { code: FailureCode; afterCommit: boolean }[],
    isFailing: false,
  };

  function requireReachable(): void {
    if (state.isFailing) throw publisherError('publisher_unavailable', 'It fails.');
  }

  /** A call that fails while everything does. */
  const call = async <Result>(answer: () => Result): Promise<Result> => {
    requireReachable();
    return answer();
  };

  /** A session that nothing but `close` may be called of once it is closed, fenced or a call fails. */
  function openSession(): Publication {
    const owner = (state.owner += 1);
    let hasEnded = false;
    const useSession = async <Result>(use: () => Result): Promise<Result> => {
      if (hasEnded) throw publisherError('publisher_unavailable', 'The session has ended.');
      try {
        requireReachable();
        return use();
      } catch (error) {
        hasEnded = true;
        throw error;
      }
    };
    const requireOwner = (): void => {
      if (owner !== state.owner) throw publisherError('publisher_fenced', 'fenced');
    };
    return {
      checkpoint: state.checkpoint,
      publish: (events, checkpoint) =>
        useSession(() => {
          requireOwner();
          const failure = state.failures.shift();
          if (failure && !failure.afterCommit) throw publisherError(failure.code);
          state.published.push(...events);
          state.checkpoint = checkpoint;
          state.activity += 1;
          if (failure) throw publisherError(failure.code);
        }),
      beat: () =>
        useSession(() => {
          requireOwner();
          state.beats += 1;
          state.activity += 1;
        }),
      visitPublished: (visit, signal) =>
        useSession(() => {
          signal.throwIfAborted();
          for (const { id } of state.published) visit(id);
        }),
      parked: () => ({ count: 0, keys: [] }),
      close: async () => void (hasEnded = true),
    };
  }

  /** A publisher that counts its own take-overs. */
  function createPublisher(): { publisher: Publisher; takeOvers: { count: number } } {
    const takeOvers = { count: 0 };
    const sessions: Publication[] = [];
    const publisher: Publisher = {
      async takeOver() {
        takeOvers.count += 1;
        requireReachable();
        const session = openSession();
        sessions.push(session);
        return session;
      },
      checkpoint: () => call(() => state.checkpoint),
      lost: () => call(() => state.lost),
      activity: () => call(() => String(state.activity)),
      isEmpty: () => call(() => state.published.length === 0),
      async close() {
        for (const session of sessions) await session.close();
      },
    };
    return { publisher, takeOvers };
  }

  return { state, createPublisher };
}
