/**
 * Node's HTTP server. An `import` of `node:http` reads all of its exports, and its `WebSocket` loads
 * Node's own undici, which the service does not use: 8 MB and 80 ms of a start.
 */
export const { createServer, IncomingMessage, STATUS_CODES } =
  process.getBuiltinModule('node:http');
