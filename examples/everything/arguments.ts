/** The server's command line. */
import { parseArgs } from 'node:util'

export const usage = `Usage: everything-server [--port N] [--host NAME]
       everything-server --stdio

  --port N      Serve over HTTP on this port; 0 takes any free one. Default 7420
  --host NAME   The address to listen on. Default 127.0.0.1
  --stdio       Serve one client on standard input and output instead
  --help        Show this`

export type Choice =
  | { readonly mode: 'help' }
  | { readonly mode: 'stdio' }
  | { readonly mode: 'http'; readonly port: number; readonly host: string }

/** Throws what is wrong with the arguments, in a sentence for their author. */
export function choose(args: readonly string[]): Choice {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string' },
      host: { type: 'string' },
      stdio: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const { port = '7420', host = '127.0.0.1', stdio = false, help = false } = values
  if (help) return { mode: 'help' }
  if (stdio) {
    if (values.port !== undefined || values.host !== undefined)
      throw new TypeError('--stdio listens nowhere: leave out --port and --host')
    return { mode: 'stdio' }
  }
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new TypeError(`--port must be a number from 0 to 65535, not "${port.slice(0, 80)}"`)
  return { mode: 'http', port: Number(port), host }
}
