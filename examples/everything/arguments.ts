/** The server's command line. */
import { parseArgs } from 'node:util'

export const usage = `Usage: everything-server [--port N] [--host NAME] [--auth none]
       everything-server --stdio

  --port N      Serve over HTTP on this port; 0 takes a free one (default: 7420)
  --host NAME   Listen on this address (default: 127.0.0.1)
  --auth none   Accept every caller; required for a --host that others can reach
  --stdio       Serve one client over standard input and output instead
  --help        Print this help`

export type Choice =
  | { readonly mode: 'help' }
  | { readonly mode: 'stdio' }
  | { readonly mode: 'http'; readonly port: number; readonly host: string; readonly open: boolean }

/** Throws what is wrong with the arguments, in a sentence for their author. */
export function choose(args: readonly string[]): Choice {
  const { values } = parseArgs({
    args: [...args],
    options: {
      port: { type: 'string' },
      host: { type: 'string' },
      auth: { type: 'string' },
      stdio: { type: 'boolean' },
      help: { type: 'boolean', short: 'h' },
    },
  })
  const { port = '7420', host = '127.0.0.1', auth, stdio, help } = values
  if (help) return { mode: 'help' }
  if (stdio) {
    const idle = (['port', 'host', 'auth'] as const).find(name => values[name] !== undefined)
    if (idle !== undefined) throw new TypeError(`--stdio and --${idle} cannot be used together. Remove one of them`)
    return { mode: 'stdio' }
  }
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
    throw new TypeError(`--port must be a number from 0 to 65535, not "${port.slice(0, 80)}"`)
  }
  if (auth !== undefined && auth !== 'none') throw new TypeError('--auth can only be none')
  return { mode: 'http', port: Number(port), host, open: auth === 'none' }
}
