import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig, type TestProjectInlineConfiguration } from 'vitest/config'
import { PUBLIC } from './scripts/lib/entries.ts'
import { root } from './scripts/lib/files.ts'
import { LongestFirst } from './scripts/lib/longest-first.ts'
import { compiledOnce } from './test/compiled-once.ts'

/** Much of a test's time is waiting, so there are twice as many workers as cores. */
const maxWorkers = 2 * Math.max(2, availableParallelism() - 1)

const all = ['{src,console,test,scripts,examples}/**/*.test.ts']

/** The runtimes have packages of their own, this one among them. */
const foreign = '**/node_modules/**'

/**
 * Rooms whose tests leave nothing behind in their process share it: a new one for each file, which has to load everything again,
 * costs more than most of the tests do.
 */
const together = [
  'src/{jsonrpc,core,revisions,engine,transports,features,auth,stores,server,client,policy,host,gateway,conformance,testing,recording}/**/*.test.ts',
  'console/src/**/*.test.ts',
  'test/{spec,live,reliability,hosting,model,auth,davioe}/**/*.test.ts',
]

// Programs that tests start load from here what was compiled before.
Object.assign(process.env, compiledOnce)

function project(test: TestProjectInlineConfiguration['test']): TestProjectInlineConfiguration {
  return {
    resolve: {
      alias: Object.entries(PUBLIC).map(([name, file]) => ({ find: `vivarium/${name}`, replacement: join(root, file) })),
    },
    test: {
      // Processes, not threads: tests spawn children, bind ports and send signals.
      pool: 'forks',
      maxWorkers,
      // A test that waits for what never comes fails late; one on a busy machine must not fail at all.
      testTimeout: 60_000,
      hookTimeout: 120_000,
      expect: { poll: { timeout: 40_000 } },
      setupFiles: ['test/oracle/setup.ts', 'test/log-lines/setup.ts', 'test/full-hour.ts'],
      ...test,
    },
  }
}

export default defineConfig({
  test: {
    projects: [
      project({ name: 'alone', include: all, exclude: [foreign, ...together] }),
      project({ name: 'together', include: together, exclude: [foreign], isolate: false }),
    ],
    maxWorkers,
    teardownTimeout: 5_000,
    globalSetup: ['test/oracle/announce.ts', 'test/shared-postgres.ts'],
    sequence: { sequencer: LongestFirst },
    reporters: ['default', './scripts/lib/cells-reporter.ts', './scripts/lib/proofs-reporter.ts'],
  },
})
