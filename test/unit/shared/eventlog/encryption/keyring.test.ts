import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { seal } from '../../../../support/stores/textKeys.ts';
import { expect, test } from '@jest/globals';
import {
  formatEncryptedText,
  createTextOpener,
} from '../../../../../shared/eventlog/encryption/encryptedText.ts';
import { decryptTextsInData } from '../../../../../shared/eventlog/encryption/openTexts.ts';
import { addKeyIds } from '../../../../../shared/eventlog/encryption/protectedJson.ts';
import type { StoredEvent } from '../../../../../shared/ports/eventStore.ts';
import { memoryKeys } from '../../../../support/fakes/memoryKeys.ts';

const TEXT = 'x'.repeat(300_000);
const TEXTS = 50;
type Box = ReturnType<typeof seal>;

const eventWith = (box: Box): StoredEvent =>
  // As a store reads it, out of bytes.
  ({ stream: 'session-1', data: Buffer.from(JSON.stringify({ input: box })).toString() }) as never;

test.each<[string, (keys: ReturnType<typeof memoryKeys>['keys'], box: Box) => unknown]>([
  [
    'rows',
    (keys, { box, sha256 }) =>
      createTextOpener(keys, 'session-1', [formatEncryptedText(box, sha256)]),
  ],
  ['events', (keys, box) => decryptTextsInData(keys, [eventWith(box)])],
  [
    'erased events',
    (keys, box) => {
      const ids = new Set<string>();
      addKeyIds(eventWith(box).data, ids);
      keys.evict('session-1', [...ids]);
    },
  ],
])('keys that are remembered keep none of the %s in memory that named them', async (_what, use) => {
  setFlagsFromString('--expose_gc');
  const collectGarbage = runInNewContext('gc') as () => void;
  const { keys, open } = memoryKeys();
  const remembering = open();
  const heap = (): number => {
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  const before = heap();
  for (let index = 0; index < TEXTS; index += 1)
    await use(remembering, seal(TEXT, await keys.issueKey()));
  expect(heap() - before).toBeLessThan((TEXTS * TEXT.length) / 2);
  // It is in use until here.
  remembering.evict('session-1', []);
});

test('two processes that create a key with one id at once get the same key', async () => {
  const { open } = memoryKeys();
  const id = 'k'.repeat(16);
  const [one, other] = await Promise.all([open().ensureKey(id), open().ensureKey(id)]);
  expect(one).toEqual({ id, secret: expect.any(String) });
  expect(other).toEqual(one);
});
