import { Link } from '@tanstack/react-router';
import type { AriaAttributes, ReactNode } from 'react';
import type { SessionSearch } from './search.ts';

interface SessionLinkProps extends AriaAttributes {
  id: string;
  className?: string;
  children: ReactNode;
  /** The part of the session to show. */
  search?: SessionSearch;
  preload?: false;
  /** For a link within the session: it leaves no entry in the history, and nothing scrolls. */
  isInPlace?: boolean;
}

/** A link to a session. */
export const SessionLink = ({ id, search = {}, isInPlace, ...props }: SessionLinkProps) => (
  <Link
    to="/sessions/$sessionId"
    params={{ sessionId: id }}
    search={search}
    {...(isInPlace && { replace: true, preload: false, resetScroll: false })}
    {...props}
  />
);
