import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

/** Builds `<turnlog-chat>` as one file, which pages of other hosts load. */
export default defineConfig({
  publicDir: false,
  build: {
    emptyOutDir: false,
    reportCompressedSize: false,
    target: 'es2022',
    lib: {
      entry: fileURLToPath(new URL('./embed/turnlogChat.ts', import.meta.url)),
      name: 'TurnlogChat',
      formats: ['iife'],
      fileName: () => 'turnlog-chat.js',
    },
  },
});
