import { ArrowDown } from 'lucide-react';
import type { ReactNode } from 'react';
import { Button } from '../../components/Button.tsx';
import { TurnMessage, type TurnActions } from './TurnMessage.tsx';
import type { ThreadTurn } from './turnState.ts';
import type { useFollowEnd } from './useFollowEnd.ts';

interface ThreadProps extends TurnActions {
  turns: readonly ThreadTurn[];
  end: ReturnType<typeof useFollowEnd>;
  hasEarlier: boolean;
  onEarlier: () => void;
  /** What is shown before the first turn. */
  children: ReactNode;
}

/** The turns of a conversation, of which the end stays in view. */
export function Thread({ turns, end, hasEarlier, onEarlier, children, ...actions }: ThreadProps) {
  return (
    <div className="relative min-h-0 flex-1">
      <div
        ref={end.scroller}
        role="log"
        aria-label="Conversation"
        tabIndex={0}
        className="h-full overflow-y-auto px-4"
      >
        <div ref={end.content} className="mx-auto grid max-w-3xl gap-5 py-4">
          {hasEarlier && (
            <Button
              variant="outline"
              size="small"
              className="justify-self-center"
              onClick={onEarlier}
            >
              Load earlier turns
            </Button>
          )}
          {turns.length === 0 && children}
          {turns.map((turn, index) => (
            <TurnMessage
              key={turn.key}
              turn={turn}
              isLast={index === turns.length - 1}
              {...actions}
            />
          ))}
        </div>
      </div>
      {!end.isAtEnd && (
        <Button
          variant="outline"
          size="small"
          className="absolute bottom-3 left-1/2 -translate-x-1/2 shadow-md"
          onClick={end.toEnd}
        >
          <ArrowDown aria-hidden /> Latest
        </Button>
      )}
    </div>
  );
}
