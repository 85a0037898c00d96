import { memo, useLayoutEffect, useRef } from 'react';
import { marked, sanitize } from '../markdown/sanitize.ts';

/** A text of a person, an agent or a tool, as Markdown. */
export const Markdown = memo(({ text }: { text: string }) => {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(
    () => ref.current!.replaceChildren(sanitize(marked.parse(text, { async: false }))),
    [text],
  );
  return <div ref={ref} className="markdown" />;
});
