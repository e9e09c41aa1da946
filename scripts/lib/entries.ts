/** The public entries of the package and the compiled examples: what the build bundles and the checks hold to account. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './files.ts'

/** `vivarium/<name>` and the file that it is. */
export const PUBLIC: Readonly<Record<string, string>> = {
  server: 'src/server/index.ts',
  client: 'src/client/index.ts',
  host: 'src/host/index.ts',
  gateway: 'src/gateway/index.ts',
  console: 'src/console/index.ts',
  conformance: 'src/conformance/index.ts',
  stores: 'src/stores/index.ts',
  testing: 'src/testing/index.ts',
  express: 'src/server/express.ts',
  fastify: 'src/server/fastify.ts',
  hono: 'src/server/hono.ts',
}

/** Those that are also built for platforms with nothing but web standards, into dist/web. */
export const WEB: readonly string[] = ['server', 'client', 'stores', 'hono']

/** Threads: started by their file, which lies beside the chunk that starts it. */
export const WORKERS: Readonly<Record<string, string>> = {
  'chunks/sqlite-worker': 'src/stores/sqlite/worker.ts',
}

/** What is run and never imported. */
export const COMMANDS: Readonly<Record<string, string>> = {
  'cli/main': 'src/cli/main.ts',
}

/** Examples that start from compiled JavaScript; they name the package itself (`vivarium/server`), as a user would. */
export const EXAMPLES: Readonly<Record<string, string>> = {
  'examples/everything-server': 'examples/everything/server.ts',
  'examples/everything-client': 'examples/everything/client.ts',
}

/** The entries whose file is there; `missing` gets the others. */
export function present(
  entries: Readonly<Record<string, string>>,
  missing: (file: string) => void = () => {},
): Record<string, string> {
  const there = Object.entries(entries).filter(([, file]) => {
    if (existsSync(join(root, file))) return true
    missing(file)
    return false
  })
  return Object.fromEntries(there)
}
