import { expect, test } from '@jest/globals';
import { ownTurnsPart } from '../../../../../services/process/upkeep/ownTurns.ts';
import { createDamagedStreams } from '../../../../../shared/eventlog/reading/damagedStreams.ts';
import type { OpenTurn } from '../../../../../shared/ports/readModels.ts';
import { createOpenTurnQueue } from '../../../../../shared/runs/recovery/openTurnQueue.ts';
import { eventually } from '../../../../support/processes/operator.ts';
import { skipPauses } from '../../../../support/fakes/jumpingClock.ts';

skipPauses();

test("only the instance's own turns past their deadline are closed, and none of a damaged session", async () => {
  const turn = (session_id: string, owner: string, deadline: string): OpenTurn => ({
    session_id,
    account_id: 'acct_1',
    turn: 1,
    owner,
    deadline,
  });
  const damaged = createDamagedStreams(() => undefined);
  damaged.record({
    stream: 'session-damaged',
    revision: 1,
    reason: 'it is',
    first_revision: 0,
    last_revision: 1,
  });
  const openTurnQueue = createOpenTurnQueue();
  let sweeps = 0;
  const part = ownTurnsPart({
    damaged,
    runState: { openTurnQueue },
    instance: {
      id: 'self',
      isOverdue: ({ deadline }: { deadline: string }) => deadline === 'past',
    },
    readModels: {
      async listOpenTurns() {
        sweeps += 1;
        return [
          turn('damaged', 'self', 'past'),
          turn('running', 'self', 'ahead'),
          turn('foreign', 'other', 'past'),
          turn('late', 'self', 'past'),
        ];
      },
    },
  } as never);
  await using _upkeep = part.upkeep!();
  await eventually(
    async () => sweeps,
    (count) => count > 1,
  );
  expect([openTurnQueue.take()?.session_id, openTurnQueue.size]).toEqual(['late', 1]);
});
