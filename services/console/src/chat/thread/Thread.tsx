import { ArrowDown } from 'lucide-react';
import { useEffect, useRef, useState, type ReactNode } from 'react';
import { Button } from '../../components/Button.tsx';
import { TurnMessage, type TurnActions } from './TurnMessage.tsx';
import type { ChatTurn } from './turnState.ts';

/** A reader this close to the end is at the end. */
const NEAR_PX = 40;

/** Keeps the end in view while the content grows, unless the reader has scrolled away from it. */
function useFollowedEnd() {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = (): void => scroller.current!.scrollTo({ top: scroller.current!.scrollHeight });
  useEffect(() => {
    const element = scroller.current!;
    let follows = true;
    const onScroll = (): void => {
      follows = element.scrollHeight - element.scrollTop - element.clientHeight < NEAR_PX;
      setAtEnd(follows);
    };
    const observer = new ResizeObserver(() => follows && toEnd());
    observer.observe(content.current!);
    observer.observe(element);
    element.addEventListener('scroll', onScroll, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener('scroll', onScroll);
    };
  }, []);
  return { scroller, content, isAtEnd, toEnd };
}

interface ThreadProps extends TurnActions {
  turns: readonly ChatTurn[];
  /** The text before the first turn. */
  children: ReactNode;
}

/** The turns of a conversation, of which the end stays in view. */
export function Thread({ turns, children, ...actions }: ThreadProps) {
  const { scroller, content, isAtEnd, toEnd } = useFollowedEnd();
  const last = turns.at(-1);
  const sent = last?.status === 'sending' ? last.key : undefined;
  useEffect(() => {
    if (sent !== undefined) toEnd();
  }, [sent]);
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={scroller}
        role="log"
        aria-label="Conversation"
        tabIndex={0}
        className="h-full overflow-y-auto px-4"
      >
        <div ref={content} className="mx-auto grid max-w-3xl gap-5 py-4">
          {children}
          {turns.map((turn) => (
            <TurnMessage key={turn.key} turn={turn} isLast={turn === last} {...actions} />
          ))}
        </div>
      </div>
      {!isAtEnd && (
        <Button
          size="small"
          className="absolute bottom-3 left-1/2 -translate-x-1/2 shadow-md"
          onClick={toEnd}
        >
          <ArrowDown aria-hidden /> Latest
        </Button>
      )}
    </div>
  );
}
