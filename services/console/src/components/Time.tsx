const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** A time of RFC 3339 in the reader's time zone; the pointer shows it in UTC. */
export const Time = ({ value, className }: { value: string; className?: string }) => (
  <time dateTime={value} title={`${new Date(value).toISOString()} (UTC)`} className={className}>
    {LOCAL.format(new Date(value))}
  </time>
);
