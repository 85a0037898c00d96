/** What the adapter needs of a logger; pino's fits. */
export type StoreLogger = Record<'warn', (fields: object, message: string) => void>;
