/** A turn in a session that a replay made. */
export interface AttemptedTurn {
  replay_id: string;
  /** The session that the replay made. */
  session_id: string;
  /** The recorded turn. */
  turn: number;
}

/**
 * The attempts of replayed turns in progress, each with the process that makes it. They are stored
 * outside the log: an attempt is recorded before the process loads anything for it, and a process that
 * lives records its end while the log is unavailable, too. An attempt that remains was in progress when
 * its process died, whatever the cause. One process makes a turn's attempts one after another; its
 * comparison is one of them. If attempts are lost, a turn that ends the process is run again. Every
 * adapter passes test/contracts/replayAttempts.ts. All methods throw `store_unavailable`.
 */
export interface ReplayAttempts {
  /** The turn's attempts that other processes began and did not end. */
  countDeaths(turn: AttemptedTurn): Promise<number>;
  /** Recorded when the promise resolves, for later processes. */
  begin(turn: AttemptedTurn): Promise<void>;
  /** Removes the attempt of this process, if it has begun. */
  end(turn: AttemptedTurn): Promise<void>;
  /** Removes the attempts of all other replays. */
  keepOnly(replayIds: readonly string[]): Promise<void>;
}
