import { TurnlogError } from '../../../shared/lib/errors/turnlogError.ts';
import type { Checkpoint } from '../../../shared/ports/eventStore.ts';
import type { PublicEvent } from '../../../shared/publicEvents/publicEvent.ts';
import type { Publisher } from '../../../shared/publicEvents/publisher.ts';

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

  /** A publisher that counts its own take-overs. */
  function createPublisher(): { publisher: Publisher; takeOvers: { count: number } } {
    const takeOvers = { count: 0 };
    const publisher: Publisher = {
      async takeOver() {
        takeOvers.count += 1;
        const owner = (state.owner += 1);
        const requireOwner = (): void => {
          if (owner !== state.owner) throw publisherError('publisher_fenced', 'fenced');
          if (state.isFailing) throw publisherError('publisher_unavailable', 'It fails.');
        };
        return {
          checkpoint: state.checkpoint,
          async publish(events, checkpoint) {
            requireOwner();
            const failure = state.failures.shift();
            if (failure && !failure.afterCommit) throw publisherError(failure.code);
            state.published.push(...events);
            state.checkpoint = checkpoint;
            state.activity += 1;
            if (failure) throw publisherError(failure.code);
          },
          async beat() {
            requireOwner();
            state.beats += 1;
            state.activity += 1;
          },
          visitPublished: async (visit) => state.published.forEach(({ id }) => visit(id)),
          parked: () => ({ count: 0, keys: [] }),
          close: async () => undefined,
        };
      },
      checkpoint: async () => state.checkpoint,
      lost: async () => state.lost,
      activity: async () => String(state.activity),
      isEmpty: async () => state.published.length === 0,
      close: async () => undefined,
    };
    return { publisher, takeOvers };
  }

  return { state, createPublisher };
}
