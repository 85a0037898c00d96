import { account, type AccountState } from '../../accounts/decider.ts';
import type { ReadableEvent } from '../../eventlog/encryption/openTexts.ts';
import { replaceBoxes } from '../../eventlog/encryption/protectedJson.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { accountStream } from '../../eventlog/streams.ts';
import type { StoredEvent } from '../../ports/eventStore.ts';
import { wholeStreamTarget } from '../../commandHandling/targetStream.ts';

const withoutTexts = (stored: StoredEvent): ReadableEvent => ({
  ...stored,
  data: replaceBoxes(stored.data, () => '""'),
  stored,
});

/**
 * What an account says of keeping, by its own stream: read models may be late. No text is opened
 * for it, so it is known also where their key was lost.
 */
export async function readRetentionPolicy(
  { store, damaged }: StreamSource,
  accountId: string,
): Promise<AccountState> {
  const { keys, readStream } = store;
  const source: StreamSource = {
    store: {
      keys,
      readStream: async (...asked) => (await readStream(...asked)).map(withoutTexts),
    },
    // It is not read whole.
    damaged: { ...damaged, clear: () => undefined },
  };
  return (await wholeStreamTarget(accountStream(accountId), account).load(source)).state;
}
