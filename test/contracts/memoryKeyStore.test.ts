import { memoryKeyStore } from '../support/fakes/memoryKeys.ts';
import { keyStoreContract } from './keyStore.ts';

keyStoreContract('a key store in memory', async () => {
  const open = memoryKeyStore();
  return { open: async () => open(), dispose: async () => undefined };
});
