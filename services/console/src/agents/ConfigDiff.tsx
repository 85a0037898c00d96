import { TextDiff } from '../components/TextDiff.tsx';
import { diffConfigs, type RevisionConfig } from './revisionDiff.ts';

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
            <TextDiff labels={names} before={change.before ?? ''} after={change.after ?? ''} />
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
