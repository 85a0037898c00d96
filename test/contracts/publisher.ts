import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { createCheckpoint } from '../../shared/eventlog/identity/logIdentity.ts';
import type { StoredEvent } from '../../shared/ports/eventStore.ts';
import type { Publication, Publisher } from '../../shared/publicEvents/publisher.ts';
import { toPublicEvents } from '../../shared/publicEvents/toPublicEvents.ts';
import { agentCreated } from '../support/builders/events.ts';
import { recordHistory } from '../support/builders/history.ts';

export interface PublisherFixture {
  /** Opens a publisher to the same topics as another process would. */
  open(): Publisher;
  dispose(): Promise<void>;
}

const { record } = recordHistory();
const EVENTS = [0, 1, 2].map((index) => record({ stream: `agent-agent_${index}` }, agentCreated()));
const [FIRST, SECOND] = EVENTS as [StoredEvent, StoredEvent];
const IDS = EVENTS.map(({ id }) => id);

const checkpointAt = (event: StoredEvent) =>
  createCheckpoint({ root: FIRST.id, declarations: [] }, event);
const publish = (publication: Publication, ...events: StoredEvent[]): Promise<void> =>
  publication.publish(toPublicEvents(events), checkpointAt(events.at(-1)!));

async function idsIn(publication: Publication): Promise<string[]> {
  const ids = new Set<string>();
  await publication.visitPublished((id) => ids.add(id), new AbortController().signal);
  return [...ids].toSorted();
}

/** What every adapter of the publisher port does. */
export function publisherContract(name: string, create: () => Promise<PublisherFixture>): void {
  describe(name, () => {
    let fixture: PublisherFixture;
    let one: Publisher;
    let other: Publisher;

    beforeEach(async () => {
      fixture = await create();
      [one, other] = [fixture.open(), fixture.open()];
    });
    afterEach(async () => {
      await one.close();
      await other.close();
      await fixture.dispose();
    });

    test('before the first publication there is nothing', async () => {
      expect(await one.isEmpty()).toBe(true);
      expect(await one.lost()).toBeUndefined();
      expect(await one.checkpoint()).toBeUndefined();
      const publication = await one.takeOver();
      expect(publication.checkpoint).toBeUndefined();
      expect(publication.parked()).toEqual({ count: 0, keys: [] });
      expect(await idsIn(publication)).toEqual([]);
    });

    test('what is published is there for every publisher, with its checkpoint', async () => {
      const publication = await one.takeOver();
      await publish(publication, FIRST);
      await publish(publication, ...EVENTS.slice(1));
      expect(await idsIn(publication)).toEqual(IDS.toSorted());
      expect(await other.isEmpty()).toBe(false);
      expect(await other.lost()).toBeUndefined();
      expect(await other.checkpoint()).toEqual(checkpointAt(EVENTS.at(-1)!));
    });

    test('the activity changes with a publication and a beat, and not with a take-over', async () => {
      const publication = await one.takeOver();
      await publication.beat();
      const seen = [await other.activity()];
      await publish(publication, FIRST);
      seen.push(await other.activity());
      await publication.beat();
      seen.push(await other.activity());
      expect(new Set(seen).size).toBe(3);
      await other.takeOver();
      expect(await one.activity()).toBe(seen.at(-1));
    });

    test('a take-over goes on from the checkpoint and fences the publication before it', async () => {
      const [before, idle] = [await one.takeOver(), fixture.open()];
      await publish(before, FIRST);
      const after = await other.takeOver();
      expect(after.checkpoint).toEqual(checkpointAt(FIRST));
      await expect(publish(before, SECOND)).rejects.toMatchObject({ code: 'publisher_fenced' });
      expect(await idsIn(after)).toEqual([FIRST.id]);
      const last = await idle.takeOver();
      await expect(after.beat()).rejects.toMatchObject({ code: 'publisher_fenced' });
      await publish(last, SECOND);
      expect(await other.checkpoint()).toEqual(checkpointAt(SECOND));
      await idle.close();
    });

    test('a publication that is closed, or whose publisher is, rejects', async () => {
      const refusal = { code: 'publisher_unavailable', retriable: true };
      const closed = await one.takeOver();
      await closed.close();
      await expect(publish(closed, FIRST)).rejects.toMatchObject(refusal);
      await expect(closed.beat()).rejects.toMatchObject(refusal);
      const left = await other.takeOver();
      await other.close();
      await expect(publish(left, FIRST)).rejects.toMatchObject(refusal);
      expect(await one.isEmpty()).toBe(true);
    });

    test('a visit ends when its signal aborts', async () => {
      const publication = await one.takeOver();
      await publish(publication, FIRST);
      const aborted = AbortSignal.abort(new Error('It takes too long.'));
      const visiting = publication.visitPublished(() => undefined, aborted);
      await expect(visiting).rejects.toThrow('It takes too long.');
    });
  });
}
