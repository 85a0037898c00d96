import { afterAll, beforeAll, beforeEach, expect, test } from '@jest/globals';
import { forking } from '../../support/http/forking.ts';
import type { TestService } from '../../support/http/service.ts';
import { replaysOf } from '../../support/http/replaysOverHttp.ts';
import { startRecorder } from '../../support/builders/recordings.ts';

let service: TestService;
beforeAll(async () => void (service = await startRecorder()), 120_000);
beforeEach(() => service.model.use({ text: 'Hi.' }));
afterAll(() => service.close());

const asked = () => {
  const { model, messages } = service.model.requests.at(-1)!;
  return { model, instruction: messages[0]!.content };
};

test('another agent or revision is asked with its own model, also where a fallback had answered', async () => {
  service.model.use(({ model }) => (model === 'first' ? { status: 500 } : { text: 'Hi.' }));
  const agent = await service.createAgent({ model: 'first' });
  const session = await forking(service).run(agent, ['a']);
  const other = await service.createAgent({ model: 'plain' });
  await service.send('PATCH', `/v1/agents/${agent}`, { model: 'plain' });
  service.model.use({ text: 'Hi.' });
  const replays = replaysOf(service);
  await replays.run([session]);
  expect(asked().model).toBe('other');
  await replays.run([session], { agent_id: other });
  expect(asked().model).toBe('plain');
  await replays.run([session], { agent_revision: 1 });
  expect(asked().model).toBe('plain');
}, 60_000);

test('another agent has its own instruction, also where the session had one that a replay gave it', async () => {
  const { run, fork } = forking(service);
  const agent = await service.createAgent({ model: 'plain' });
  const other = await service.createAgent({ model: 'plain', instruction: 'Other.' });
  const replays = replaysOf(service);
  const first = await replays.run([await run(agent, ['a'])], { instruction: 'Be long.' });
  const made = first.turns[0].replay_session_id as string;
  const further = (await fork(made, 1)).session_id as string;
  await run(agent, ['b'], further);
  expect(asked().instruction).toBe('Be long.');
  for (const session of [made, further]) {
    const { turns } = await replays.run([session], { agent_id: other });
    expect(asked().instruction).toBe('Other.');
    const shown = await service.get(
      `/v1/sessions/${turns[0].replay_session_id}/turns/${turns[0].replay_turn}/requests`,
    );
    expect(shown.body.data[0]).toMatchObject({ matches: true });
    await replays.run([session], { agent_id: other, instruction: 'Be short.' });
    expect(asked().instruction).toBe('Be short.');
    await replays.run([session]);
    expect(asked().instruction).toBe('Be long.');
  }
}, 60_000);
