import { expect, test } from '@jest/globals';
import * as fc from 'fast-check';
import type { ModelCall } from '../../../../shared/sessions/turns/promptParts.ts';
import type { StoredEvent } from '../../../../shared/ports/eventStore.ts';
import { fold, rowMaps } from '../../../../shared/projections/fold.ts';
import { planBatch } from '../../../../shared/projections/plan.ts';
import { deliveries, randomHistory } from '../../../support/builders/randomHistory.ts';
import { size } from '../../../support/jest/size.ts';

type Sums = Record<string, Record<string, number>>;

function add(sums: Sums, key: string, name: string, amount: number): void {
  if (amount === 0) return;
  const sum = (sums[key] ??= {});
  sum[name] = (sum[name] ?? 0) + amount;
}

interface Data {
  turn: number;
  agent_id: string;
  model?: string;
  settings: { model: string };
  calls?: ModelCall[];
  call?: ModelCall;
  reason?: string;
}

/** What the events of one account come to, by agent and model: read off one after the other. */
function told(events: readonly StoredEvent[]): Sums {
  let sums: Sums = {};
  let isErased = false;
  const agents = new Map<string, string>();
  const open = new Map<string, { model: string; tools: number }>();
  for (const { stream, type, data } of events) {
    const { turn, agent_id, model, settings, calls = [], call, reason } = JSON.parse(data) as Data;
    isErased ||= type === 'account.erased.v1';
    if (isErased || (type === 'session.erased.v1' && reason === 'account')) sums = {};
    if (isErased || !stream.startsWith('session-')) continue;
    if (type === 'session.started.v1') agents.set(stream, agent_id);
    if (type === 'session.turn_started.v1') open.set(stream, { model: model!, tools: 0 });
    if (type === 'session.tool_called.v1') open.get(stream)!.tools += 1;
    const asked = call ? (model ?? settings.model) : open.get(stream)?.model;
    const outcome = /turn_(completed|failed|interrupted)/.exec(type)?.[1];
    for (const { tokens, fallback } of call ? [call] : calls) {
      const key = `${agents.get(stream)} ${fallback?.model ?? asked}`;
      add(sums, key, 'prompt_tokens', tokens.prompt);
      add(sums, key, 'total_tokens', tokens.total);
      add(sums, key, 'model_calls', 1);
    }
    if (!outcome || turn === undefined) continue;
    const key = `${agents.get(stream)} ${calls[0]?.fallback?.model ?? asked}`;
    add(sums, key, outcome, 1);
    add(sums, key, 'tool_calls', open.get(stream)!.tools);
  }
  return sums;
}

test('usage is what the events come to, however they were delivered', () => {
  const histories = randomHistory('').chain((events) =>
    fc.tuple(fc.constant(events), deliveries(events)),
  );
  fc.assert(
    fc.property(histories, ([events, batches]) => {
      const rows = rowMaps();
      for (const batch of batches) fold(planBatch(batch), rows, new Set());
      const sums: Sums = {};
      for (const { agent_id, model, ...row } of rows.usage.values())
        for (const name of [
          'prompt_tokens',
          'total_tokens',
          'model_calls',
          'tool_calls',
          'completed',
          'failed',
          'interrupted',
        ] as const)
          add(sums, `${agent_id} ${model}`, name, row[name]);
      expect(sums).toEqual(told(events));
    }),
    { numRuns: size({ small: 150, full: 300 }) },
  );
});
