/** What is said of the link to a web console, and who opens it. */
import { hostname, userInfo } from 'node:os'
import { openBrowser } from '../auth/client/loopback.ts'
import { consolePort, type RunningConsole } from '../console/serve.ts'
import type { Io } from './io.ts'
import { escaped } from './terminal/text.ts'

type OpenConsole = Pick<RunningConsole, 'link' | 'port'>

/** What helps to open the link: another port, and the tunnel where somebody is connected by SSH. `port`: the one that was asked for. */
export function linkNotes({ port: bound }: OpenConsole, port: number | undefined, io: Pick<Io, 'env'>): readonly string[] {
  const machine = sshMachine(io)
  return [
    ...(port === undefined && bound !== consolePort ? [`Port ${consolePort} is in use, so the console uses ${bound}`] : []),
    ...(machine === undefined ? [] : [`ssh -L ${bound}:127.0.0.1:${bound} ${machine}`]),
  ]
}

/** Opens the browser, where somebody sits before one. */
export async function openLink({ link }: OpenConsole, io: Pick<Io, 'env' | 'interactive'>): Promise<void> {
  if (sshMachine(io) === undefined && io.interactive && hasDisplay(io)) await openBrowser(new URL(link)).catch(() => undefined)
}

/** The name of this machine, where somebody is connected to it by SSH. */
function sshMachine({ env }: Pick<Io, 'env'>): string | undefined {
  const [, , address] = (env['SSH_CONNECTION'] ?? '').split(' ')
  if (address !== undefined && address !== '') return escaped(address)
  return env['SSH_TTY'] === undefined ? undefined : hostname()
}

function hasDisplay({ env }: Pick<Io, 'env'>): boolean {
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
