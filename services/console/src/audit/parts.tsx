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
