/** `deno run --allow-net on-deno.ts`: says on a line where it listens. */
import { smallServer } from './server.ts'

declare const Deno: {
  serve(
    options: { port: number; hostname: string; onListen(address: { port: number }): void },
    fetch: (request: Request) => Promise<Response>,
  ): void
}

const onListen = ({ port }: { port: number }): void => console.log(`http://127.0.0.1:${port}/mcp`)
Deno.serve({ port: 0, hostname: '127.0.0.1', onListen }, smallServer())
