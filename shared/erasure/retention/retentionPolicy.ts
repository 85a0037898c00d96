import { account, type AccountState } from '../../accounts/decider.ts';
import { withEmptyTexts } from '../../eventlog/encryption/openTexts.ts';
import type { StreamSource } from '../../eventlog/reading/reportDamage.ts';
import { accountStream } from '../../eventlog/streams.ts';
import { wholeStreamTarget } from '../../commandHandling/targetStream.ts';

/**
 * The retention policy of an account from its own stream, because read models may lag behind. No
 * text is decrypted, so that the policy is known even if the key is lost.
 */
export async function readRetentionPolicy(
  { store, damaged }: StreamSource,
  accountId: string,
): Promise<AccountState> {
  const { keys, readStream } = store;
  const source: StreamSource = {
    store: {
      keys,
      readStream: async (...args) => (await readStream(...args)).map(withEmptyTexts),
    },
    // Events are read without their texts, so this read must not clear any noted damage.
    damaged: { ...damaged, clear: () => undefined },
  };
  return (await wholeStreamTarget(accountStream(accountId), account).load(source)).state;
}
