import { ALL_MEMBERS, MESSAGE_BYTES, type Broadcast } from '../../shared/ports/broadcast.ts';

/** Connects members within one process, for deployments that have only one. */
export function createMemoryBroadcast(): { join(name: string): Broadcast } {
  const members = new Map<string, Set<(message: string) => void>>();
  return {
    join(name) {
      const ownListeners = new Set<(message: string) => void>();
      members.set(name, ownListeners);
      const isMember = (): boolean => members.get(name) === ownListeners;
      return {
        name,
        send(to, message) {
          if (Buffer.byteLength(message) > MESSAGE_BYTES)
            throw new RangeError('too long a message');
          if (!isMember()) return false;
          const listeners = to === ALL_MEMBERS ? [...members.values()] : [members.get(to) ?? []];
          for (const onMessage of listeners.flatMap((memberListeners) => [...memberListeners]))
            setImmediate(() => onMessage(message));
          return true;
        },
        listen(onMessage) {
          ownListeners.add(onMessage);
          return () => ownListeners.delete(onMessage);
        },
        connected: isMember,
        close: async () => void members.delete(name),
      };
    },
  };
}
