/** The state of the console's build. */
export type ConsoleState =
  | { kind: 'ready' }
  /** `output` is the last line that the build has printed. */
  | { kind: 'building'; elapsedMs: number; output: string }
  /** `retryMs` is the time after which a visit starts the build again. */
  | { kind: 'failed'; reason: string; retryMs: number };

/** The build of the console in the background. */
export interface ConsoleBuild {
  /** The absolute path of the folder of the built files. */
  folder: string;
  /** Starts a build if the built files are missing or stale. */
  start(): void;
  /** The state at a visit of a page. Starts the build again if it failed some time ago. */
  visit(): Promise<ConsoleState>;
}
