import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig } from 'vitest/config'
import { PUBLIC } from './scripts/lib/entries.ts'
import { root } from './scripts/lib/files.ts'

export default defineConfig({
  resolve: {
    alias: Object.entries(PUBLIC).map(([name, file]) => ({ find: `vivarium/${name}`, replacement: join(root, file) })),
  },
  test: {
    include: ['{src,test,scripts,examples}/**/*.test.ts'],
    // Processes, not threads: tests spawn children, bind ports and send signals.
    pool: 'forks',
    // Much of a test's time is waiting, so also two cores get two workers.
    maxWorkers: Math.max(2, availableParallelism() - 1),
    // A test that waits for what never comes fails late; one on a busy machine must not fail at all.
    testTimeout: 30_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 20_000 } },
    teardownTimeout: 5_000,
    globalSetup: ['test/oracle/announce.ts', 'test/shared-postgres.ts'],
    setupFiles: ['test/oracle/setup.ts'],
    reporters: ['default', './scripts/lib/cells-reporter.ts'],
  },
})
