/** The web console of `vivarium gateway`: opening it beside the gateway, and printing further links from another terminal. */
import { createApprovalQueue, type GatewayObserver, type Role, serveConsole } from '../../console/index.ts'
import { runningConsoles, storeLink } from '../../console/links.ts'
import { allRoles } from '../../console/login.ts'
import type { Gateway, GatewayConfig } from '../../gateway/index.ts'
import { linkNotes, openLink, userName } from '../console-link.ts'
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
  for (const note of linkNotes(running, said.port, io)) aside.note(`  ${note}`)
  if (opens) await openLink(running, io)
  return {
    link: running.link,
    close: async () => {
      await running.close()
      await store?.close()
    },
  }
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
