/** The keys of the notes in the checkpoint topic; the checkpoint's is the transactional id. */
export const checkpointRecordKeys = (transactionalId: string) => ({
  checkpoint: transactionalId,
  takenOver: `${transactionalId}.taken-over`,
  alive: `${transactionalId}.alive`,
  topic: (name: string): string => `${transactionalId}.topic.${name}`,
  /** Before topic and key. */
  parked: `${transactionalId}.parked.`,
});
