import { createMemoryBroadcast } from '../../infra/broadcast/memory.ts';
import { broadcastContract } from './broadcast.ts';

broadcastContract('broadcast in memory', Infinity, async () => ({
  ...createMemoryBroadcast(),
  dispose: async () => undefined,
}));
