import { formatCount } from '../components/Chart.tsx';
import { Card } from '../components/layout.tsx';
import type { Replay, ReplayTurn } from './replayQueries.ts';

type Took = Replay['sums']['recorded'] | ReplayTurn['recorded'];

const NONE = '–';
const formatMs = (ms: number): string => `${formatCount(ms)} ms`;

const formatChange = (before: number, after: number): string => {
  const percent = Math.round((after / before - 1) * 100);
  return Number.isFinite(percent) ? `${percent > 0 ? '+' : ''}${percent} %` : NONE;
};

/** What the same turns took, recorded and replayed. */
export function BeforeAfter({ before, after }: { before: Took; after: Took | undefined }) {
  const rows = [
    ['Prompt tokens', ({ tokens }: Took) => tokens?.prompt, formatCount],
    ['Answer tokens', ({ tokens }: Took) => tokens?.completion, formatCount],
    ['All tokens', ({ tokens }: Took) => tokens?.total, formatCount],
    ['Latency', ({ duration_ms }: Took) => duration_ms, formatMs],
  ] as const;
  const texts = [
    ['Cost', ({ cost }: Took) => (cost ? `${cost.amount} ${cost.currency}` : NONE)],
    ['Model', (took: Took) => ('model' in took ? took.model : undefined)],
  ] as const;
  return (
    <Card>
      <table className="w-full text-right text-xs tabular-nums [&_td,&_th]:py-1 [&_td]:pl-4 [&_th]:text-left [&_th]:font-normal">
        <caption className="pb-2 text-left text-sm font-medium">Before and after</caption>
        <thead className="border-b text-muted-foreground">
          <tr>
            <td />
            <td>Recorded</td>
            <td>Replayed</td>
            <td>Change</td>
          </tr>
        </thead>
        <tbody className="divide-y">
          {rows.map(([name, valueOf, format]) => {
            const [one, other] = [valueOf(before), after && valueOf(after)];
            return (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td>{one === undefined ? NONE : format(one)}</td>
                <td>{other === undefined ? NONE : format(other)}</td>
                <td>{formatChange(one ?? NaN, other ?? NaN)}</td>
              </tr>
            );
          })}
          {texts.map(
            ([name, textOf]) =>
              textOf(before) && (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  <td>{textOf(before)}</td>
                  <td>{after ? textOf(after) : NONE}</td>
                  <td />
                </tr>
              ),
          )}
        </tbody>
      </table>
    </Card>
  );
}
