import type { Member } from '../node.ts';
import { DEAD_MS, DOUBTED_MS } from './timing.ts';

/** For how long each member has not been heard of, which tells whether it lives. */
export function trackSilences(members: readonly Member[], self: number) {
  const silences = members.map(() => DEAD_MS);
  const others = members
    .map((member, index) => ({ member, index }))
    .filter(({ index }) => index !== self);
  const silenceOf = (index: number): number => silences[index] ?? Infinity;

  return {
    of: silenceOf,
    heard(index: number): void {
      const member = members[index];
      if (member) member.alive = true;
      silences[index] = 0;
    },
    /**
     * Lets time pass. Once one member is found dead, those that are silent as well go with it:
     * gossip judges them in one round.
     */
    elapse(elapsedMs: number): void {
      for (const { index } of others) silences[index] = silenceOf(index) + elapsedMs;
      const isNews = others.some(
        ({ member, index }) => member.alive && silenceOf(index) >= DEAD_MS,
      );
      const limit = isNews ? DOUBTED_MS : DEAD_MS;
      for (const { member, index } of others) member.alive &&= silenceOf(index) < limit;
    },
  };
}
