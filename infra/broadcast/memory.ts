import { ALL, MESSAGE_BYTES, type Broadcast } from '../../shared/ports/broadcast.ts';

/** Joins members within one process: where it is the only one, nobody else is spoken to. */
export function createMemoryBroadcast(): { join(name: string): Broadcast } {
  const members = new Map<string, Set<(message: string) => void>>();
  return {
    join(name) {
      const heard = new Set<(message: string) => void>();
      members.set(name, heard);
      const isMember = (): boolean => members.get(name) === heard;
      return {
        name,
        send(to, message) {
          if (Buffer.byteLength(message) > MESSAGE_BYTES)
            throw new RangeError('too long a message');
          if (!isMember()) return false;
          const listeners = to === ALL ? [...members.values()] : [members.get(to) ?? []];
          for (const hear of listeners.flatMap((those) => [...those]))
            setImmediate(() => hear(message));
          return true;
        },
        listen(hear) {
          heard.add(hear);
          return () => heard.delete(hear);
        },
        connected: isMember,
        close: async () => void members.delete(name),
      };
    },
  };
}
