import { diffConfigs, diffLines, type DiffLine, type RevisionConfig } from './revisionDiff.ts';

const MARKS = { same: ' ', removed: '−', added: '+' } as const;
const STYLES = {
  same: '',
  removed: 'bg-destructive/10 text-destructive',
  added: 'bg-success/10 text-success',
} as const;
const WORDS = { same: undefined, removed: 'Removed: ', added: 'Added: ' } as const;

const LineDiff = ({ lines, label }: { lines: readonly DiffLine[]; label: string }) => (
  <div
    role="group"
    tabIndex={0}
    aria-label={label}
    className="max-h-96 overflow-y-auto rounded-md border py-1 font-mono text-xs"
  >
    {lines.map(({ kind, text }, index) => (
      <div key={index} className={`flex gap-2 px-3 py-px ${STYLES[kind]}`}>
        <span aria-hidden className="w-[1ch] shrink-0 select-none">
          {MARKS[kind]}
        </span>
        <span className="min-w-0 whitespace-pre-wrap wrap-anywhere">
          {WORDS[kind] && <span className="sr-only">{WORDS[kind]}</span>}
          {text || ' '}
        </span>
      </div>
    ))}
  </div>
);

const Value = ({ text }: { text: string | undefined }) => (
  <dd className="min-w-0 wrap-anywhere">
    {text ?? <span className="text-muted-foreground">Not set</span>}
  </dd>
);

interface ConfigDiffProps {
  before: RevisionConfig;
  after: RevisionConfig;
  /** What both are called. */
  names: readonly [before: string, after: string];
}

/** What differs between two configurations of an agent, field by field; texts line by line. */
export function ConfigDiff({ before, after, names }: ConfigDiffProps) {
  const changes = diffConfigs(before, after);
  if (changes.length === 0)
    return <p className="text-muted-foreground">Both have the same configuration.</p>;
  return (
    <div className="grid gap-5">
      {changes.map((change) => (
        <section key={change.field} className="grid gap-1.5">
          <h3 className="font-medium">{change.field}</h3>
          {change.isText ? (
            <LineDiff
              label={`Changes of ${change.field}`}
              lines={diffLines(change.before ?? '', change.after ?? '')}
            />
          ) : (
            <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1">
              <dt className="text-muted-foreground">{names[0]}</dt>
              <Value text={change.before} />
              <dt className="text-muted-foreground">{names[1]}</dt>
              <Value text={change.after} />
            </dl>
          )}
        </section>
      ))}
    </div>
  );
}
