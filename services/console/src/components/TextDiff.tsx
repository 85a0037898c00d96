import { Fragment, useMemo, useState, type ReactNode } from 'react';
import { Button } from './Button.tsx';
import { cn } from './classNames.ts';
import { diffText, toBlocks, type DiffBlock, type DiffLine, type DiffPiece } from './diffText.ts';

/** Unchanged lines that are shown before and after a change. */
const CONTEXT_LINES = 3;
/** Changed lines that are shown at first, so that a long text does not block the page. */
const MOST_LINES = 500;

type Texts = { before: string; after: string } | { parts: readonly DiffPiece[] };
type TextDiffProps = Texts & {
  /** What the sides are, such as "Revision 3". */
  labels: readonly [before: string, after: string];
};

const SIDES = {
  removed: { sign: '−', name: 'Removed', line: 'bg-destructive/8', word: 'bg-destructive/25' },
  added: { sign: '+', name: 'Added', line: 'bg-success/8', word: 'bg-success/25' },
} as const;

const Line = ({ line }: { line: DiffLine }) =>
  line.map(({ op, text }, at) => {
    if (op === 'same') return <Fragment key={at}>{text}</Fragment>;
    const Tag = op === 'removed' ? 'del' : 'ins';
    return (
      <Tag key={at} className={cn('rounded-xs no-underline', SIDES[op].word)}>
        {text}
      </Tag>
    );
  });

interface CellProps {
  line: DiffLine | undefined;
  number: number;
  side?: keyof typeof SIDES;
  className?: string;
}

/** A line with its number; without a line, the gap beside one. */
function Cell({ line, number, side, className }: CellProps) {
  if (!line) return <div aria-hidden className="hidden bg-muted/50 md:block" />;
  return (
    <div className={cn('flex min-w-0', side && SIDES[side].line, className)}>
      <span
        aria-hidden
        className="w-10 shrink-0 pr-2 text-right text-muted-foreground tabular-nums select-none"
      >
        {number}
      </span>
      <span className="w-4 shrink-0 select-none">
        {side && (
          <>
            <span aria-hidden>{SIDES[side].sign}</span>
            <span className="sr-only">{SIDES[side].name}: </span>
          </>
        )}
      </span>
      <span className="min-w-0 flex-1 pr-2 break-words whitespace-pre-wrap">
        <Line line={line} />
        {line.length === 0 && ' '}
      </span>
    </div>
  );
}

/** Changed lines: side by side where there is room, otherwise the removed ones above the added. */
function Changed({ block: { before, after, firstBefore, firstAfter } }: { block: DiffBlock }) {
  const [most, setMost] = useState(MOST_LINES);
  const total = Math.max(before.length, after.length);
  const rows = Array.from({ length: Math.min(total, most) }, (_, at) => at);
  return (
    <>
      <div
        className="grid md:grid-flow-col md:grid-cols-2"
        style={{ gridTemplateRows: `repeat(${rows.length}, auto)` }}
      >
        {rows.map((at) => (
          <Cell key={`b${at}`} line={before[at]} number={firstBefore + at} side="removed" />
        ))}
        {rows.map((at) => (
          <Cell key={`a${at}`} line={after[at]} number={firstAfter + at} side="added" />
        ))}
      </div>
      {total > most && (
        <More onClick={() => setMost(most + MOST_LINES)}>
          Show {Math.min(total - most, MOST_LINES)} more lines
        </More>
      )}
    </>
  );
}

const More = ({ onClick, children }: { onClick: () => void; children: ReactNode }) => (
  <Button variant="ghost" className="w-full rounded-none bg-muted/50 font-sans" onClick={onClick}>
    {children}
  </Button>
);

interface UnchangedProps {
  block: DiffBlock;
  isFirst: boolean;
  isLast: boolean;
}

/** Unchanged lines, of which only those near a change are shown at first. */
function Unchanged({ block, isFirst, isLast }: UnchangedProps) {
  const [shown, setShown] = useState(0);
  const { before, firstBefore, firstAfter } = block;
  const head = isFirst ? shown : CONTEXT_LINES + shown;
  const tail = isLast ? 0 : CONTEXT_LINES;
  const hidden = before.length - head - tail;
  const row = (line: DiffLine, at: number) => (
    <div key={at} className="grid md:grid-cols-2">
      <Cell line={line} number={firstBefore + at} />
      <Cell line={line} number={firstAfter + at} className="hidden md:flex" />
    </div>
  );
  // A button for a line or two takes as much room as they do.
  if (hidden <= CONTEXT_LINES) return before.map(row);
  return (
    <>
      {before.slice(0, head).map(row)}
      <More onClick={() => setShown(shown + MOST_LINES)}>{hidden} unchanged lines</More>
      {before.slice(before.length - tail).map((line, at) => row(line, before.length - tail + at))}
    </>
  );
}

/**
 * Two texts beside each other, or their differences as the service found them. On a phone the lines
 * of both are below each other.
 */
export function TextDiff({ labels, ...texts }: TextDiffProps) {
  const {
    parts,
    before = '',
    after = '',
  } = texts as Partial<{ parts: readonly DiffPiece[] } & Record<'before' | 'after', string>>;
  const compared = useMemo(() => parts ?? diffText(before, after), [parts, before, after]);
  const blocks = useMemo(() => toBlocks(compared), [compared]);
  if (!blocks.some(({ isChanged }) => isChanged))
    return (
      <p className="text-muted-foreground">
        {compared.every(({ op }) => op === 'same')
          ? 'The texts are the same.'
          : 'The texts differ only in their last line break.'}
      </p>
    );
  return (
    <div className="overflow-hidden rounded-md border font-mono text-xs leading-5">
      <div className="grid border-b bg-muted px-3 py-1.5 font-sans font-medium md:grid-cols-2 md:px-0">
        {labels.map((label, at) => (
          <span key={at} className="min-w-0 truncate md:px-3">
            <span aria-hidden>{at === 0 ? '− ' : '+ '}</span>
            {label}
          </span>
        ))}
      </div>
      {blocks.map((block, at) =>
        block.isChanged ? (
          <Changed key={at} block={block} />
        ) : (
          <Unchanged key={at} block={block} isFirst={at === 0} isLast={at === blocks.length - 1} />
        ),
      )}
    </div>
  );
}
