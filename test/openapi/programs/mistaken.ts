// Each line that follows an expectation is a mistake that the compiler has to see.
import type { components, paths } from './schema.d.ts';

type Answers = paths['/v1/agents/{agentId}']['get']['responses'];
declare const failure: Answers[404]['content']['application/json'];
declare const event: components['schemas']['SessionEvent'];

// @ts-expect-error -- There is no such code.
if (failure.code === 'agent_missing') throw new Error(failure.error);
// @ts-expect-error -- Its output is known only once its type is.
if (event.data.output === '') throw new Error(event.id);
// @ts-expect-error -- An agent has an instruction.
export const body: components['schemas']['CreateAgentRequest'] = {
  name: 'x',
  model: 'offline-echo',
};
