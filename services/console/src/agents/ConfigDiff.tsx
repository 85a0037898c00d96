import { Facts } from '../components/tables.tsx';
import { TextDiff } from '../components/diff/TextDiff.tsx';
import { diffFields, type StoredFields } from './agentFields.ts';

interface ConfigDiffProps {
  before: StoredFields;
  after: StoredFields;
  /** What both are called. */
  names: readonly [before: string, after: string];
}

/** What differs between two configurations of an agent, field by field; texts line by line. */
export function ConfigDiff({ before, after, names }: ConfigDiffProps) {
  const changes = diffFields(before, after);
  if (changes.length === 0)
    return <p className="text-muted-foreground">Both have the same configuration.</p>;
  return changes.map(({ field, isText, before: old = '', after: next = '' }) => (
    <section key={field} className="grid gap-1.5">
      <h3 className="font-medium">{field}</h3>
      {isText ? (
        <TextDiff labels={names} before={old} after={next} />
      ) : (
        <Facts
          className="md:grid-cols-2"
          facts={[
            [names[0], old || 'Not set'],
            [names[1], next || 'Not set'],
          ]}
        />
      )}
    </section>
  ));
}
