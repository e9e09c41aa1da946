/** The web console of `vivarium gateway`: opening it beside the gateway, and printing further links from another terminal. */
import { hostname, userInfo } from 'node:os'
import { openBrowser } from '../../auth/client/loopback.ts'
import { createApprovalQueue, type GatewayObserver, type Role, serveConsole } from '../../console/index.ts'
import { runningConsoles, storeLink } from '../../console/links.ts'
import { allRoles } from '../../console/login.ts'
import { consolePort } from '../../console/serve.ts'
import type { Gateway, GatewayConfig } from '../../gateway/index.ts'
import { CliError, type Io } from '../io.ts'
import { printerOf } from '../print.ts'
import { say } from '../terminal/text.ts'
import { neededStore, shownText, storeIn } from './config.ts'

type Config = Pick<GatewayConfig<unknown>, 'file' | 'frame'>

/** What the console is opened with. */
interface OpenOptions {
  readonly gateway: Gateway
  readonly observer: GatewayObserver
  readonly config: Config
  /** Open the browser, where that makes sense. */
  readonly opens: boolean
  readonly io: Io
  /** Told what goes wrong later. */
  readonly failed: (error: unknown) => void
}

/** Serves the console, prints its link, and perhaps opens the browser. */
export async function openConsole(options: OpenOptions): Promise<{ readonly link: string; close(): Promise<void> }> {
  const { gateway, observer, config, opens, io, failed } = options
  const { aside } = printerOf(io)
  const said = typeof config.frame.console === 'object' ? config.frame.console : {}
  const approvals = createApprovalQueue()
  // Whoever sits at the terminal learns what was decided in the page.
  approvals.subscribe({
    answered: ({ id, yes, by }) => {
      const who = by === undefined ? '' : ` by ${shownText(by)}`
      if (yes !== undefined) aside.line(aside.paint.dim(`${yes ? 'Approved' : 'Refused'}${who}: ${shownText(id)}`))
    },
  })
  const store = await storeIn(config)
  const running = await serveConsole({
    ...{ gateway, observer, approvals, ...said, by: userName(), onError: failed },
    ...(store !== undefined && { store }),
  }).catch(async (error: unknown) => {
    await store?.close()
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    throw new CliError(`The port ${said.port} of the console is in use`, 'Set another console.port, or leave it out')
  })
  aside.line(say`console  ${aside.paint.name(running.link)}  (once, 10 min)`)
  if (said.port === undefined && running.port !== consolePort)
    aside.note(`  Port ${consolePort} is in use, so the console uses ${running.port}`)
  const machine = sshMachine(io)
  if (machine !== undefined) aside.note(`  ssh -L ${running.port}:127.0.0.1:${running.port} ${machine}`)
  else if (opens && io.interactive && hasDisplay(io)) await openBrowser(new URL(running.link)).catch(() => undefined)
  return {
    link: running.link,
    close: async () => {
      await running.close()
      await store?.close()
    },
  }
}

/** The name of this machine, where somebody is connected to it by SSH. */
function sshMachine({ env }: Io): string | undefined {
  const [, , address] = (env['SSH_CONNECTION'] ?? '').split(' ')
  if (address !== undefined && address !== '') return shownText(address)
  return env['SSH_TTY'] === undefined ? undefined : hostname()
}

function hasDisplay({ env }: Io): boolean {
  return process.platform !== 'linux' || env['DISPLAY'] !== undefined || env['WAYLAND_DISPLAY'] !== undefined
}

/** The options of `vivarium gateway console`. */
export interface LinkCommandOptions {
  /** What the link may do; everything by default. */
  readonly role?: readonly string[]
  /** The name for the audit log. */
  readonly as?: string
  readonly format: 'text' | 'json'
}

/** Prints a new link to each console that runs on the store of a gateway. */
export async function printLinks(
  config: Config,
  { role, as: by = userName(), format }: LinkCommandOptions,
  io: Io,
): Promise<number> {
  const { line, json } = printerOf(io)
  const roles = rolesIn(role)
  const store = await neededStore(config)
  try {
    const found = await runningConsoles(store)
    if (found.length === 0)
      throw new CliError(
        `No console of ${config.file} is running`,
        'Start the gateway with --web, or set console: true in its file',
        { exit: 4 },
      )
    for (const console of found) {
      const link = await storeLink(store, console, { by, roles })
      if (format === 'json') json({ link, replica: console.replica, pid: console.pid }, true)
      else line(say`${link}  (once, 10 min; process ${console.pid} on ${shownText(console.replica)})`)
    }
    return 0
  } finally {
    await store.close()
  }
}

function rolesIn(given: readonly string[] | undefined): readonly Role[] {
  if (given === undefined) return allRoles
  const unknown = given.find(each => !allRoles.some(role => role === each))
  if (unknown !== undefined) throw new CliError(`There is no role ${shownText(unknown)}`, `There are ${allRoles.join(', ')}`)
  return allRoles.filter(role => given.includes(role))
}

/** The user of this machine. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}
