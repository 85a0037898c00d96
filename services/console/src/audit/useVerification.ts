import { useEffect, useRef, useState } from 'react';
import { fetchCheckpoint, readLeaf, readTree, sessionFromService } from './service.ts';
import { verifyBundleFile } from './verify/verifyFiles.ts';
import {
  checkpointVerifier,
  verifySession,
  type Trust,
  type VerifiedSession,
} from './verify/verifySession.ts';

const PROGRESS_MS = 100;

/** What is verified: a session of the service, or a file. */
export type VerificationTarget =
  { kind: 'session'; session_id: string } | { kind: 'bundle'; file: File };

export type Verification =
  | { state: 'idle' }
  | { state: 'running'; target: VerificationTarget; events: number; total: number }
  | { state: 'verified'; target: VerificationTarget; verified: VerifiedSession; trust: Trust }
  | { state: 'failed'; target: VerificationTarget; error: unknown; events: number };

/** Runs one verification at a time; `stop` ends it. */
export function useVerification() {
  const [verification, setVerification] = useState<Verification>({ state: 'idle' });
  const running = useRef<AbortController>(undefined);
  useEffect(() => () => running.current?.abort(), []);

  async function verify(target: VerificationTarget, trust: Trust): Promise<void> {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    const { signal } = controller;
    const show = (next: Verification): void => {
      if (!signal.aborted) setVerification(next);
    };
    let events = 0;
    let shownAt = 0;
    const onProgress = (done: number, total: number): void => {
      events = done;
      if (performance.now() - shownAt < PROGRESS_MS) return;
      shownAt = performance.now();
      show({ state: 'running', target, events, total });
    };
    show({ state: 'running', target, events: 0, total: 0 });
    try {
      const options = { trust, signal, onProgress };
      if (target.kind === 'bundle') {
        const verified = await verifyBundleFile(target.file, { ...options, readTree });
        return show({ state: 'verified', target, verified, trust });
      }
      const checkpoints = checkpointVerifier(trust, { readTree });
      const newest = await fetchCheckpoint();
      if (newest) checkpoints.requireNotShorter(newest);
      const source = sessionFromService(target.session_id, signal);
      const verified = await verifySession(source, { ...options, checkpoints, readLeaf });
      return show({ state: 'verified', target, verified, trust });
    } catch (error) {
      return show({ state: 'failed', target, error, events });
    }
  }

  return {
    verification,
    verify,
    stop(): void {
      running.current?.abort();
      setVerification({ state: 'idle' });
    },
  };
}
