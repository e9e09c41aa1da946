import tailwindcss from '@tailwindcss/vite'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import manifest from '../package.json' with { type: 'json' }

/** The page as static files with hashed names. The process serves them under a policy without inline scripts and data addresses. */
export default defineConfig({
  root: import.meta.dirname,
  base: '/',
  define: { __VERSION__: JSON.stringify(manifest.version) },
  plugins: [react(), tailwindcss()],
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // One file of the whole page; its budget is a test's matter.
    chunkSizeWarningLimit: 1000,
    target: 'es2024',
  },
  worker: { format: 'es' },
})
