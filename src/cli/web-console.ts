/** The web console from the command line: telling where it is, opening the browser, and serving a playground until it is interrupted. */
import { hostname, userInfo } from 'node:os'
import { openBrowser } from '../auth/client/loopback.ts'
import { type ConsoleOptions, type RunningConsole, serveConsole } from '../console/index.ts'
import { consolePort } from '../console/serve.ts'
import { CliError, type Io, untilInterrupted } from './io.ts'
import { printerOf } from './print.ts'
import { foreignText, say } from './terminal/text.ts'
import type { WebOptions } from './web-options.ts'

/** Prints the link of a console, and opens the browser where that makes sense. */
export async function announce(
  running: RunningConsole,
  { port, opens }: { readonly port: number | undefined; readonly opens: boolean },
  io: Io,
): Promise<void> {
  const { aside } = printerOf(io)
  aside.line(say`console  ${aside.paint.name(running.link)}  (once, 10 min)`)
  if (port === undefined && running.port !== consolePort)
    aside.note(`  Port ${consolePort} is in use, so the console uses ${running.port}`)
  const machine = sshMachine(io)
  if (machine !== undefined) aside.note(`  ssh -L ${running.port}:127.0.0.1:${running.port} ${machine}`)
  else if (opens && io.interactive && hasDisplay(io)) await openBrowser(new URL(running.link)).catch(() => undefined)
}

/** Serves a console, says where, and ends with the command. */
export async function webConsole(
  options: Omit<ConsoleOptions, 'by' | 'port' | 'onError'>,
  { port, open }: WebOptions,
  io: Io,
): Promise<number> {
  const { aside } = printerOf(io)
  const onError = (error: unknown): void =>
    aside.warn(foreignText(`console: ${error instanceof Error ? error.message : String(error)}`))
  const running = await serveConsole({ ...options, by: userName(), onError, ...(port !== undefined && { port }) }).catch(
    (error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
      throw new CliError(`The port ${port} is in use`, 'Pass another --port, or leave it out')
    },
  )
  try {
    await announce(running, { port, opens: open !== false }, io)
    aside.note('  Press Ctrl-C to end')
    await untilInterrupted(io.signal)
    return 0
  } finally {
    await running.close()
  }
}

/** The name of this machine, where somebody is connected to it by SSH. */
function sshMachine({ env }: Io): string | undefined {
  const [, , address] = (env['SSH_CONNECTION'] ?? '').split(' ')
  if (address !== undefined && address !== '') return shownAddress(address)
  return env['SSH_TTY'] === undefined ? undefined : hostname()
}

function shownAddress(address: string): string {
  return /^[\w.:-]{1,100}$/.test(address) ? address : hostname()
}

function hasDisplay({ env }: Io): boolean {
  return process.platform !== 'linux' || env['DISPLAY'] !== undefined || env['WAYLAND_DISPLAY'] !== undefined
}

/** The user of this machine. */
export function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}
