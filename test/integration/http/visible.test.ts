/** What answers say of writes that the read models are late with. */
import { expect, test } from '@jest/globals';
import { startTestService } from '../../support/http/service.ts';
import { holdProjection } from '../../support/stores/projections/heldProjection.ts';
import { eventually } from '../../support/processes/operator.ts';

const VISIBLE = 'x-turnlog-visible';

test('a write that the read models do not show in time is answered all the same, and its answer says so', async () => {
  const service = await startTestService(
    { text: 'Done.' },
    { VISIBILITY_WAIT_MS: '5000', MODEL_MAX_RETRIES: '0' },
  );
  const agent = await service.createAgent();
  const create = () =>
    service.post('/v1/agents', { name: 'Late', instruction: 'Be brief.', model: 'scripted' });
  const run = () => service.post(`/v1/agents/${agent}/run`, { input: 'x' });
  const told = async (asked: ReturnType<typeof run>) => {
    const { status, headers } = await asked;
    return [status, headers.get(VISIBLE)];
  };
  const release = holdProjection(service.folder);
  try {
    service.model.use([{ status: 500 }]);
    expect(await Promise.all([told(create()), told(run())])).toEqual([
      [200, 'false'],
      [502, 'false'],
    ]);
    expect(await told(service.post('/v1/agents', {}))).toEqual([400, null]);
    // One that would answer with less than was acknowledged is refused.
    expect(await told(service.get('/v1/agents'))).toEqual([503, null]);
  } finally {
    release();
  }
  await eventually(create, ({ status, headers }) => status === 200 && !headers.has(VISIBLE));
  await service.close();
}, 60_000);
