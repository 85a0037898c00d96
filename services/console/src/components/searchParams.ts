/** The search of an address, as the router has parsed it. */
export type Search = Readonly<Record<string, unknown>>;

/** The text of a value that the router may have read as a number. */
export const searchText = (value: unknown): string | undefined =>
  typeof value === 'number' || typeof value === 'string' ? String(value) || undefined : undefined;

export const searchNumber = (value: unknown, least: number): number | undefined =>
  Number.isSafeInteger(value) && (value as number) >= least ? (value as number) : undefined;

/** The object without its undefined members. */
export const defined = <Members extends object>(members: Members) =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Members]?: Exclude<Members[Name], undefined>;
  };
