import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import type { TurnSignals } from '../../shared/ports/turnSignals.ts';
import { eventually } from '../support/processes/operator.ts';

interface SignalsFixture {
  /** Opens the signals as another process would. */
  open(): TurnSignals;
  /** Breaks every connection that there is. */
  breakConnections(): Promise<void>;
  dispose(): Promise<void>;
}

/** What one process has heard. */
function heardBy(signals: TurnSignals) {
  const told: string[] = [];
  let missed = 0;
  signals.listen({ onTold: (sessionId) => told.push(sessionId), onMissed: () => (missed += 1) });
  return { told, missed: () => missed };
}

/** The suite that every adapter of the turn signals port passes. */
export function turnSignalsContract(name: string, create: () => Promise<SignalsFixture>): void {
  let fixture: SignalsFixture;
  let here: TurnSignals;
  let there: TurnSignals;
  let heard: ReturnType<typeof heardBy>;

  const connected = (signals: TurnSignals) =>
    eventually(
      async () => signals.connected(),
      (isConnected) => isConnected,
    );

  beforeEach(async () => {
    fixture = await create();
    [here, there] = [fixture.open(), fixture.open()];
    heard = heardBy(there);
    await connected(here);
    await connected(there);
  });
  afterEach(async () => {
    await here.close();
    await there.close();
    await fixture.dispose();
  });

  describe(`${name}: turn signals`, () => {
    test('what one process tells another one hears, in order', async () => {
      for (const session of ['session_1', 'session_2', "o'hara; --"]) here.tell(session);
      await eventually(
        async () => heard.told.length,
        (count) => count === 3,
      );
      expect(heard.told).toEqual(['session_1', 'session_2', "o'hara; --"]);
    });

    test('after the connection was lost it is said that something may have been missed, and signals go on', async () => {
      const before = heard.missed();
      await fixture.breakConnections();
      await eventually(
        async () => heard.missed(),
        (count) => count > before,
      );
      await connected(here);
      await eventually(
        async () => {
          here.tell('session_3');
          return heard.told.at(-1);
        },
        (last) => last === 'session_3',
      );
    });

    test('telling never throws, also far beyond what can be on its way, and when it is closed', async () => {
      for (let count = 0; count < 5_000; count += 1) here.tell(`session_${count}`);
      await eventually(
        async () => {
          here.tell('session_last');
          return heard.told.at(-1);
        },
        (last) => last === 'session_last',
      );
      expect(heard.told.slice(0, 1_000)).toEqual(
        Array.from({ length: 1_000 }, (_, count) => `session_${count}`),
      );
      await here.close();
      expect(here.connected()).toBe(false);
      here.tell('session_5');
    });
  });
}
