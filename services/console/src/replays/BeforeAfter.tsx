import { formatNumber } from '../sessions/session/format.ts';
import { Card, DataTable } from '../components/view.tsx';
import { showCost } from '../usage/UsageTable.tsx';
import type { Replay, ReplayTurn } from './replayQueries.ts';

type Took = Replay['sums']['recorded'] | ReplayTurn['recorded'];

const NUMBERS = [
  ['Prompt tokens', ({ tokens }: Took) => tokens?.prompt],
  ['Answer tokens', ({ tokens }: Took) => tokens?.completion],
  ['All tokens', ({ tokens }: Took) => tokens?.total],
  ['Latency (ms)', ({ duration_ms }: Took) => duration_ms],
] as const;

function formatChange(before = NaN, after = NaN): string {
  const percent = Math.round((after / before - 1) * 100);
  return Number.isFinite(percent) ? `${percent > 0 ? '+' : ''}${percent} %` : '–';
}

/** Tokens, time and cost of the same turns, recorded and replayed. */
export function BeforeAfter({ before, after }: { before: Took; after: Took | undefined }) {
  const numbers = NUMBERS.map(([name, valueOf]) => {
    const values = [valueOf(before), after && valueOf(after)] as const;
    const shown = values.map((value) => (value === undefined ? '–' : formatNumber(value)));
    return { key: name, cells: [name, ...shown, formatChange(...values)] };
  });
  const cost = { key: 'cost', cells: ['Cost', showCost(before.cost), showCost(after?.cost), ''] };
  return (
    <Card>
      <DataTable
        caption="Before and after"
        isTitled
        columns={['Turns that ran again', '#Recorded', '#Replayed', '#Change']}
        rows={[...numbers, cost]}
      />
    </Card>
  );
}
