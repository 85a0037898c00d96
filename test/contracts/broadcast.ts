import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from '@jest/globals';
import { LIMITS } from '../../shared/limits.ts';
import { ALL_MEMBERS, MESSAGE_BYTES, type Broadcast } from '../../shared/ports/broadcast.ts';
import { eventually } from '../support/processes/operator.ts';

/** Members of one broadcast. */
export interface BroadcastUnderTest {
  join(name: string): Broadcast;
  dispose(): Promise<void>;
}

/** What every broadcast adapter does in which at most so many messages wait. */
export function broadcastContract(
  name: string,
  mostWaiting: number,
  open: () => Promise<BroadcastUnderTest>,
): void {
  describe(name, () => {
    const cleanups: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
    });

    /** Members, each with what it has heard, once all of them hear. */
    async function members(...names: string[]) {
      const { join, dispose } = await open();
      cleanups.push(dispose);
      const joined = names.map((member) => {
        const heard: string[] = [];
        const broadcast = join(member);
        cleanups.push(broadcast.close);
        const end = broadcast.listen((message) => heard.push(message));
        return { broadcast, heard, end };
      });
      for (const { broadcast, heard } of joined)
        await eventually(
          async () => {
            broadcast.send(broadcast.name, 'up');
            await sleep(20);
            return heard.length;
          },
          (count) => count > 0,
        );
      await sleep(100);
      for (const { heard } of joined) heard.length = 0;
      return joined as [(typeof joined)[number], ...typeof joined];
    }

    const heardBy = (member: { heard: string[] }, count: number) =>
      eventually(
        async () => member.heard,
        (heard) => heard.length >= count,
      );

    test('what is sent to a member is heard by it alone, whole and in order', async () => {
      const [one, other, third] = await members('one', 'other-2', 'third');
      const sent = Array.from({ length: 200 }, (_, index) => `${index} '"\\ 😀`);
      for (const message of sent) one.broadcast.send('other-2', message);
      expect(await heardBy(other!, sent.length)).toEqual(sent);
      expect([one.heard, third!.heard]).toEqual([[], []]);
    });

    test('what is sent to all is heard by all', async () => {
      const [one, other] = await members('one', 'other');
      one.broadcast.send(ALL_MEMBERS, 'hello');
      expect([await heardBy(one, 1), await heardBy(other!, 1)]).toEqual([['hello'], ['hello']]);
    });

    test('a message may be as long as it may be, and is refused beyond', async () => {
      const [one, other] = await members('one', 'other');
      const longest = `${'é'.repeat(MESSAGE_BYTES / 2 - 1)}xx`;
      one.broadcast.send('other', longest);
      expect(await heardBy(other!, 1)).toEqual([longest]);
      expect(() => one.broadcast.send('other', `${longest}x`)).toThrow(RangeError);
    });

    test('what is beyond the most that may wait is not sent, and says so', async () => {
      const [one, other] = await members('one', 'other');
      const numbers = Array.from({ length: LIMITS.stream.messages + 2 }, (_, index) => `${index}`);
      const sent = numbers.filter((number) => one.broadcast.send('other', number));
      // The first message does not wait.
      expect(sent).toEqual(numbers.slice(0, mostWaiting + 1));
      expect(await heardBy(other!, sent.length)).toEqual(sent);
    });

    test('to nobody, and after the end, nothing is heard and nothing fails', async () => {
      const [one, other] = await members('one', 'other');
      one.broadcast.send('nobody', 'x');
      one.broadcast.send("'; DROP SCHEMA turnlog", 'x');
      other!.end();
      one.broadcast.send('other', 'x');
      one.broadcast.send('one', 'last');
      expect(await heardBy(one, 1)).toEqual(['last']);
      expect(one.broadcast.connected()).toBe(true);
      await one.broadcast.close();
      expect([one.broadcast.send('one', 'x'), one.broadcast.connected()]).toEqual([false, false]);
      await sleep(50);
      expect([one.heard, other!.heard]).toEqual([['last'], []]);
    });
  });
}
