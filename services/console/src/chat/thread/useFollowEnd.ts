import { useEffect, useRef, useState, type RefObject } from 'react';

/** A reader this close to the end is at the end. */
const NEAR_PX = 40;

interface FollowedEnd {
  scroller: RefObject<HTMLDivElement | null>;
  content: RefObject<HTMLDivElement | null>;
  isAtEnd: boolean;
  toEnd: () => void;
}

/** Keeps the end in view while the content grows, unless the reader has scrolled away from it. */
export function useFollowEnd(): FollowedEnd {
  const scroller = useRef<HTMLDivElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const follows = useRef(true);
  const [isAtEnd, setAtEnd] = useState(true);
  const toEnd = (): void => {
    follows.current = true;
    scroller.current!.scrollTop = scroller.current!.scrollHeight;
  };
  useEffect(() => {
    const element = scroller.current!;
    const onScroll = (): void => {
      const below = element.scrollHeight - element.scrollTop - element.clientHeight;
      follows.current = below < NEAR_PX;
      setAtEnd(follows.current);
    };
    const observer = new ResizeObserver(() => {
      if (follows.current) element.scrollTop = element.scrollHeight;
    });
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
