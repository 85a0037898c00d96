import type { ReactNode } from 'react';

/** A hash, a key or an id, which breaks where the line ends. */
export const Mono = ({ children }: { children: ReactNode }) => (
  <code className="text-xs break-all">{children}</code>
);

/** Names and values in two aligned columns. */
export const Facts = ({ facts }: { facts: readonly (readonly [string, ReactNode])[] }) => (
  <dl className="grid grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5">
    {facts.map(([name, value]) => (
      <div key={name} className="contents">
        <dt className="text-muted-foreground">{name}</dt>
        <dd className="tabular-nums">{value}</dd>
      </div>
    ))}
  </dl>
);

/** Hashes that differ, one below the other. */
export const Difference = ({
  expected,
  actual,
}: {
  expected: string | undefined;
  actual: string | undefined;
}) => (
  <Facts
    facts={[
      ...(expected === undefined ? [] : [['Expected', <Mono key="e">{expected}</Mono>] as const]),
      ...(actual === undefined ? [] : [['Actual', <Mono key="a">{actual}</Mono>] as const]),
    ]}
  />
);
