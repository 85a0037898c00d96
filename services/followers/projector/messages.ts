import type { GenerationBatch } from './followGenerations.ts';
import type { ProjectorLogger } from './projection.ts';

/** What the projector's thread tells the thread that started it. */
export type ProjectorMessage =
  /** The read models are open; the event store may still be away. */
  | { type: 'opened' }
  | { type: 'progress'; batch: GenerationBatch }
  /** Why the read models are being rebuilt: those before can't be trusted. */
  | { type: 'healing'; reason: string }
  /** Why the log is not followed; undefined once it is again. */
  | { type: 'log_changed'; reason: string | undefined }
  /** Why nothing can be applied at the moment; progress ends that. */
  | { type: 'trouble'; reason: string }
  /** Half a sentence on why turns can't be indexed; undefined once they can. */
  | { type: 'index_trouble'; reason: string | undefined }
  | { type: 'log'; level: keyof ProjectorLogger; fields: object; message: string };

/** The only thing that it is ever told: to close. */
export const CLOSE = 'close';
