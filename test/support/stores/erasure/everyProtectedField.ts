/**
 * The suite for erasures: nothing that an event schema declares as protected text is left anywhere
 * after the erasure of its stream. Schemas, streams and tables of a new feature take part by
 * themselves.
 */
import { randomUUID } from 'node:crypto';
import { expect, test } from '@jest/globals';
import type { DomainEvent } from '../../../../shared/eventlog/eventTypes.ts';
import { appendEvents, NO_STREAM } from '../../../../shared/eventlog/append.ts';
import {
  discloseEvents,
  decryptTextsInData,
} from '../../../../shared/eventlog/encryption/openTexts.ts';
import { addKeyIds } from '../../../../shared/eventlog/encryption/protectedJson.ts';
import {
  withTextsForRows,
  type ProtectedStore,
} from '../../../../shared/eventlog/encryption/protectedStore.ts';
import { commitEventTexts } from '../../../../shared/eventlog/encryption/sealTexts.ts';
import { createDamagedStreams } from '../../../../shared/eventlog/reading/damagedStreams.ts';
import { eraseStream } from '../../../../shared/erasure/eraseStream.ts';
import { FEATURE_STREAMS } from '../../../../shared/features.ts';
import type { Checkpoint, StoredEvent } from '../../../../shared/ports/eventStore.ts';
import type { ProjectionStore } from '../../../../shared/ports/readModels.ts';
import { toCloudEvent } from '../../../../shared/publicEvents/cloudEvent.ts';
import { toPublicEvents } from '../../../../shared/publicEvents/toPublicEvents.ts';
import { createTurnTokenizer } from '../../../../shared/search/turnTokens.ts';
import { TYPES_WITH_TEXTS, withMarkedTexts } from '../../builders/markedTexts.ts';
import { historyOf, kindOf } from '../../builders/projectionRecord.ts';
import { newMarker } from './holding.ts';

/** A log, the read models that follow it, and all places where these keep data. */
export interface ErasedStores {
  log: () => ProtectedStore;
  projection: () => ProjectionStore;
  /** Files and tables, except those of the log, with the text in them. */
  placesHolding: (text: string) => Promise<string[]>;
  /** Whether a file of the log or its keys holds the text. */
  logHolds: (text: string) => Promise<boolean>;
  /** Releases what the stores delay, as the documentation says of erasures. */
  settle: () => Promise<void>;
  close: () => Promise<void>;
}

const ERASABLE_KINDS: string[] = FEATURE_STREAMS.flatMap((stream) =>
  'erasure' in stream ? [stream.kind] : [],
);

interface Written {
  stream: string;
  /** The texts by field. A field of several events has one each. */
  texts: Map<string, string>;
}

async function write(log: ProtectedStore, stream: string, events: DomainEvent[]): Promise<void> {
  const { events: sealed, key } = await commitEventTexts(
    log.keys,
    undefined,
    events.map((event) => ({ id: randomUUID(), ...event })),
  );
  const authorship = {
    account_id: stream.startsWith('account-') ? stream.slice('account-'.length) : 'acct_1',
    key_id: 'key_1',
    request_id: 'request',
    causation_id: 'request',
    recorded_at: '2026-01-01T00:00:00.000Z',
  };
  await appendEvents(log, { stream, head: NO_STREAM }, { events: sealed, authorship, key });
}

/** A stream for each event type with texts, and a text of its own in each of their fields. */
async function writeEveryText(log: ProtectedStore, base: string): Promise<Written[]> {
  const streams: Written[] = [];
  for (const [index, type] of TYPES_WITH_TEXTS.entries()) {
    const texts = new Map<string, string>();
    const textFor = (field: string): string => {
      const text = `${base}-${index}-${texts.size}`;
      texts.set(`${field} ${texts.size}`, text);
      // JSON, because some texts are parsed.
      return JSON.stringify(text);
    };
    const history = JSON.parse(
      JSON.stringify(historyOf(type)).replaceAll('key_1', `key_${index}`),
    ) as DomainEvent[];
    const events = history.filter((event) => !event.type.endsWith('.erased.v1'));
    const stream = `${kindOf(type)}-id_${index}`;
    await write(
      log,
      stream,
      events.map((event) => withMarkedTexts(event, textFor)),
    );
    streams.push({ stream, texts });
  }
  return streams;
}

/** Projects what is new in the log, and indexes the words of turns. */
async function follow({ log, projection }: ErasedStores, after?: Checkpoint): Promise<Checkpoint> {
  const { keys } = log();
  const { signal } = new AbortController();
  let reached = after;
  const followed = withTextsForRows(log(), keys).subscribe({ after, batchSize: 50, signal });
  for await (const { events, checkpoint, position, caughtUp } of followed) {
    reached = checkpoint;
    if (events.length > 0)
      expect(
        await projection().apply(events, { position: position!, checkpoint: checkpoint! }),
      ).toEqual([]);
    if (caughtUp) break;
  }
  for (;;) {
    const turns = await projection().unindexed();
    if (turns.length === 0) return reached!;
    const tokensOf = createTurnTokenizer(keys);
    const indexed = [];
    for (const turn of turns) indexed.push({ ...turn, tokens: (await tokensOf(turn)) ?? [] });
    await projection().index(indexed);
  }
}

async function eventsOf(log: ProtectedStore, stream: string): Promise<StoredEvent[]> {
  return log.readStream(stream, { direction: 'forwards', limit: 100 });
}

/** What readers of a stream get: its events as audits and exports have them, and its messages. */
async function readersOf(log: ProtectedStore, stream: string): Promise<string> {
  const events = await eventsOf(log, stream);
  const messages = toPublicEvents(await decryptTextsInData(log.keys, events)).map((event) =>
    toCloudEvent(event, 'test'),
  );
  return JSON.stringify([await discloseEvents(log.keys, events), messages]);
}

/** Defines the test for a pair of stores. */
export function testEveryProtectedField(name: string, open: () => Promise<ErasedStores>): void {
  test('every event type with protected texts is of a kind of stream that can be erased', () => {
    expect(TYPES_WITH_TEXTS.filter((type) => !ERASABLE_KINDS.includes(kindOf(type)))).toEqual([]);
  });

  test(`${name}: no text that a schema declares as protected is left after its erasure`, async () => {
    const stores = await open();
    try {
      const base = newMarker();
      const streams = await writeEveryText(stores.log(), base);
      let checkpoint = await follow(stores);

      // They are there: in the log for its readers, and some in rows and messages.
      const boxes = new Set<string>();
      for (const { stream, texts } of streams) {
        const read = await readersOf(stores.log(), stream);
        for (const [field, text] of texts)
          expect([field, read.includes(text)]).toEqual([field, true]);
        for (const { data } of await eventsOf(stores.log(), stream)) addKeyIds(data, boxes);
      }
      const texts = streams.flatMap((written) => [...written.texts.values()]);
      expect(texts.length).toBeGreaterThan(30);
      expect(await stores.placesHolding(base)).not.toEqual([]);
      expect(await stores.logHolds(base)).toBe(false);
      // The texts of sessions, replays and webhooks are encrypted in rows.
      const encrypted = [];
      for (const id of boxes)
        if ((await stores.placesHolding(`${id}.`)).length > 0) encrypted.push(id);
      expect(encrypted).not.toEqual([]);

      const context = {
        store: stores.log(),
        damaged: createDamagedStreams(() => undefined),
        clock: { now: () => Date.UTC(2026, 1, 1) },
        ids: { uuid: randomUUID, typeId: (prefix: string) => prefix },
        minimumIsOver: true,
      };
      for (const { stream } of streams) await eraseStream(context, stream, { reason: 'request' });
      checkpoint = await follow(stores, checkpoint);
      await stores.settle();

      expect(await stores.placesHolding(base)).toEqual([]);
      expect(await stores.logHolds(base)).toBe(false);
      const left = [];
      for (const id of encrypted) left.push(...(await stores.placesHolding(`${id}.`)));
      expect(left).toEqual([]);
      for (const { stream } of streams)
        expect([stream, (await readersOf(stores.log(), stream)).includes(base)]).toEqual([
          stream,
          false,
        ]);
      expect(checkpoint).toBeDefined();
    } finally {
      await stores.close();
    }
  }, 120_000);
}
