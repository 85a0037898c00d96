/** A hash, a key or an id, which breaks where the line ends. */
export const Hash = ({ children }: { children: string }) => (
  <code className="text-xs break-all">{children}</code>
);
