import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { ReplayAttempts } from '../../shared/replays/replayAttempts.ts';

export interface ReplayAttemptsFixture {
  /** Of another process on the same data. */
  open(): ReplayAttempts;
  dispose(): Promise<void>;
}

const TURN = { replay_id: 'replay_1', session_id: 'session_1', turn: 1 };

/** What every adapter of the port ReplayAttempts has to do. */
export function replayAttemptsContract(
  name: string,
  openFixture: () => Promise<ReplayAttemptsFixture>,
): void {
  describe(`the attempts of replays in ${name}`, () => {
    let fixture: ReplayAttemptsFixture;
    beforeEach(async () => {
      fixture = await openFixture();
    });
    afterEach(() => fixture.dispose());

    test('are deaths for every other process once they have begun, and no more once they have ended', async () => {
      const [first, second, third] = [fixture.open(), fixture.open(), fixture.open()];
      expect(await first.countDeaths(TURN)).toBe(0);
      await first.begin(TURN);
      await first.begin(TURN);
      expect(await first.countDeaths(TURN)).toBe(0);
      expect(await second.countDeaths(TURN)).toBe(1);
      await second.begin(TURN);
      expect(await third.countDeaths(TURN)).toBe(2);
      await second.end(TURN);
      await second.end(TURN);
      await third.end(TURN);
      expect(await third.countDeaths(TURN)).toBe(1);
      await first.end(TURN);
      expect(await third.countDeaths(TURN)).toBe(0);
    });

    test('are counted for their own turn of their own session', async () => {
      const [first, second] = [fixture.open(), fixture.open()];
      await first.begin({ ...TURN, turn: 11 });
      await first.begin({ ...TURN, session_id: 'session_11' });
      expect(await second.countDeaths(TURN)).toBe(0);
      expect(await second.countDeaths({ ...TURN, turn: 11 })).toBe(1);
      expect(await second.countDeaths({ ...TURN, session_id: 'session_11' })).toBe(1);
    });

    test('of replays that do not run any more can be removed', async () => {
      const [first, second] = [fixture.open(), fixture.open()];
      const other = { ...TURN, replay_id: 'replay_2', session_id: 'session_2' };
      await first.keepOnly([]);
      await first.begin(TURN);
      await first.begin(other);
      await second.keepOnly(['replay_3', 'replay_2']);
      expect(await second.countDeaths(TURN)).toBe(0);
      expect(await second.countDeaths(other)).toBe(1);
    });
  });
}
