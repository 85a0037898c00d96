import { afterEach, describe, expect, test } from '@jest/globals';
import { size } from '../support/jest/size.ts';
import {
  startPostgresServer,
  withoutPostgres,
} from '../support/servers/postgres/postgresServer.ts';
import { eventually } from '../support/processes/operator.ts';
import { clientOf, health, replicaProcesses } from '../support/processes/replicaProcesses.ts';

const RUNS = size({ small: 30, full: 200 });
const REPLICAS = 3;

const server = await startPostgresServer();
let close: (() => Promise<unknown>) | undefined;

if (server) {
  describe('one session', () => {
    afterEach(async () => {
      await close?.();
      await server.close();
    });

    test(`takes ${RUNS} runs that come at once to ${REPLICAS} replicas one after the other, each with all turns before it`, async () => {
      const stores = await replicaProcesses(server.url);
      ({ close } = stores);
      const patient = {
        RUN_WAIT_MS: '240000',
        RUN_TIMEOUT_MS: '300000',
        RATE_LIMIT_PER_SECOND: '10000',
      };
      const projector = stores.start('projector');
      const clients = await Promise.all(
        Array.from({ length: REPLICAS }, () => clientOf(stores.start('api', patient))),
      );
      await eventually(
        async () => health(await clientOf(projector)),
        (data) => data?.projector.state === 'active',
      );
      const agent = { name: 'Test', instruction: 'Be brief.', model: 'scripted' };
      const { agent_id } = (await clients[0]!.post('/v1/agents', agent)).body.data;
      const run = (index: number, session_id?: string) =>
        clients[index % REPLICAS]!.post(`/v1/agents/${agent_id}/run`, {
          input: `run ${index}`,
          ...(session_id !== undefined && { session_id }),
        });
      const { session_id } = (await run(0)).body.data;
      const answers = await Promise.all(
        Array.from({ length: RUNS }, (_, index) => run(index + 1, session_id)),
      );
      expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));

      const { turns } = (await clients[1]!.get(`/v1/sessions/${session_id}?limit=1000`)).body
        .data as { turns: { turn: number; status: string; input: string }[] };
      expect(turns.map(({ turn, status }) => [turn, status])).toEqual(
        Array.from({ length: RUNS + 1 }, (_, index) => [index + 1, 'completed']),
      );
      const inputs = turns.map(({ input }) => input);
      expect(new Set(inputs).size).toBe(RUNS + 1);
      // One call a turn, in the order of the turns, and each prompt is exactly what came before.
      expect(
        stores.model.requests.map(({ messages }) => messages.map(({ content }) => content)),
      ).toEqual(
        inputs.map((_, index) => [
          'Be brief.',
          ...inputs.slice(0, index).flatMap((input) => [input, 'Done.']),
          inputs[index],
        ]),
      );
    }, 400_000);
  });
} else {
  withoutPostgres('the runs of one session on several replicas');
}
