/** `bun on-bun.ts`: says on a line where it listens, and lives until its input ends. */
import { smallServer } from './server.ts'

declare const Bun: {
  serve(options: { port: number; hostname: string; idleTimeout: number; fetch(request: Request): Promise<Response> }): {
    url: URL
  }
}

// Its usual 10 s would cut streams on which nothing is said for so long.
const { url } = Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch: smallServer() })
console.log(`${url.origin}/mcp`)
