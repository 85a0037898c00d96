import type { Outcome } from '../node.ts';
import type { Operation } from '../types.ts';
import type { Message } from './protocol.ts';
import { FORWARD_TIMEOUT_MS } from './timing.ts';

/**
 * Passes the writes that come to a follower on to the leader. One whose answer is lost on the way
 * is never answered.
 */
export function createForwarding(send: (leader: number, message: Message) => void) {
  const waiting = new Map<string, { done: (outcome: Outcome) => void; since: number }>();
  return {
    forward(
      leader: number,
      term: number,
      operation: Operation,
      done: (outcome: Outcome) => void,
    ): void {
      const request = crypto.randomUUID();
      waiting.set(request, { done, since: performance.now() });
      send(leader, { kind: 'forward', term, request, operation });
    },
    answered(request: string, outcome: Outcome): void {
      const waiter = waiting.get(request);
      waiting.delete(request);
      waiter?.done(outcome);
    },
    tick(): void {
      const now = performance.now();
      for (const [request, { since }] of waiting) {
        if (now - since < FORWARD_TIMEOUT_MS) break;
        waiting.delete(request);
      }
    },
  };
}
