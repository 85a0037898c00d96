import { useMemo } from 'react';
import { cn } from '../classNames.ts';
import { diffText, toBlocks, type DiffBlock, type DiffLine, type DiffPiece } from './diffText.ts';

/** Unchanged lines that are shown before and after a change; the others unfold. */
const CONTEXT = 3;

interface TextDiffProps {
  before?: string;
  after?: string;
  /** Instead of both texts: their differences. */
  parts?: readonly DiffPiece[];
  /** The names of the sides, such as "Revision 3". */
  labels: readonly [before: string, after: string];
}

const SIDES = {
  removed: { sign: '−', name: 'Removed: ', line: 'bg-destructive/8', word: 'bg-destructive/25' },
  added: { sign: '+', name: 'Added: ', line: 'bg-success/8', word: 'bg-success/25' },
} as const;

interface CellProps {
  line: DiffLine | undefined;
  number: number;
  side: keyof typeof SIDES | undefined;
  className?: string | false;
}

/** A line with its number; without a line, the gap beside one. */
function Cell({ line, number, side, className }: CellProps) {
  if (!line) return <div aria-hidden className="hidden bg-muted/50 md:block" />;
  return (
    <div className={cn('flex min-w-0', side && SIDES[side].line, className)}>
      <span
        aria-hidden
        className="w-14 shrink-0 pr-1 text-right whitespace-pre text-muted-foreground select-none"
      >
        {number} {side ? SIDES[side].sign : ' '}
      </span>
      <span className="min-w-0 flex-1 pr-2 break-words whitespace-pre-wrap">
        {side && <span className="sr-only select-none">{SIDES[side].name}</span>}
        {line.map(({ op, text }, at) => {
          if (op === 'same') return text;
          const Tag = op === 'removed' ? 'del' : 'ins';
          return (
            <Tag key={at} className={cn('no-underline', SIDES[op].word)}>
              {text}
            </Tag>
          );
        })}
        {line.length === 0 && ' '}
      </span>
    </div>
  );
}

/** Lines side by side where there is room. Unchanged ones that are far from a change are folded. */
function Lines({ isChanged, before, after, isFirst, isLast }: LinesProps) {
  const length = Math.max(before.lines.length, after.lines.length);
  const rows = Array.from({ length }, (_, at) => (
    <div key={at} className="grid md:grid-cols-2">
      <Cell
        line={before.lines[at]}
        number={before.first + at}
        side={isChanged ? 'removed' : undefined}
      />
      <Cell
        line={after.lines[at]}
        number={after.first + at}
        side={isChanged ? 'added' : undefined}
        className={!isChanged && 'hidden md:flex'}
      />
    </div>
  ));
  const head = isFirst ? 0 : CONTEXT;
  const tail = length - (isLast ? 0 : CONTEXT);
  if (isChanged || tail - head <= CONTEXT) return rows;
  return (
    <>
      {rows.slice(0, head)}
      <details>
        <summary className="bg-muted/50 px-3 py-1 font-sans text-muted-foreground">
          {tail - head} unchanged lines
        </summary>
        {rows.slice(head, tail)}
      </details>
      {rows.slice(tail)}
    </>
  );
}

type LinesProps = DiffBlock & { isFirst: boolean; isLast: boolean };

/** Two texts or their differences from the service: side by side, on a phone below each other. */
export function TextDiff({ labels, parts, before = '', after = '' }: TextDiffProps) {
  const blocks = useMemo(() => toBlocks(parts ?? diffText(before, after)), [parts, before, after]);
  if (!blocks.some(({ isChanged }) => isChanged))
    return <p className="text-muted-foreground">No line of the texts differs.</p>;
  return (
    <div className="overflow-hidden rounded-md border font-mono text-xs leading-5">
      <div className="grid border-b bg-muted px-3 py-1.5 font-sans font-medium md:grid-cols-2">
        {labels.map((label, at) => (
          <span key={label} className="truncate">
            {at === 0 ? '−' : '+'} {label}
          </span>
        ))}
      </div>
      {blocks.map((block, at) => (
        <Lines key={at} {...block} isFirst={at === 0} isLast={at === blocks.length - 1} />
      ))}
    </div>
  );
}
