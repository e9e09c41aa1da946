/** The store of a gateway's file, for a second process beside the gateway. */
import { existsSync } from 'node:fs'
import { createInterface } from 'node:readline/promises'
import { cli } from '../../auth/client/index.ts'
import { userStorage, userTokens } from '../../auth/client/user-storage.ts'
import { connect } from '../../client/index.ts'
import { why } from '../../core/suggestion.ts'
import { servingFault } from '../../gateway/config/own-settings.ts'
import type { FoundServer, GatewayConfig, LaunchChange } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { authOf, signInWith } from '../../gateway/upstreams/auth.ts'
import { howToApproveLaunch } from '../../gateway/upstreams/entry.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { isRecord } from '../../jsonrpc/message.ts'
import { Launches, type WaitingLaunch } from '../../policy/pins/launches.ts'
import type { StoredTool } from '../../policy/pins/tool-pins.ts'
import { openStore } from '../../stores/open.ts'
import type { Store } from '../../stores/store.ts'
import { CliError, type Io } from '../io.ts'
import { printerOf } from '../print.ts'
import { explainServerError } from '../server-errors.ts'
import { brief, jsonEscape } from '../terminal/text.ts'

/** Undefined where there is none to look into: it is in memory, or nothing was kept yet. */
export async function storeIn({ file, frame }: Pick<GatewayConfig<unknown>, 'file' | 'frame'>): Promise<Store | undefined> {
  const { store: url = 'memory:' } = frame
  const path = /^sqlite:(?:\/\/(?=\/))?(.+)$/.exec(url)?.[1]
  if (url === 'memory:' || (path !== undefined && !existsSync(path))) return undefined
  return openStore(url).catch((error: unknown) => {
    throw new CliError(`The store of ${file} cannot be opened: ${brief(String(error), 200)}`, 'Correct "store" in the file', {
      exit: 4,
    })
  })
}

/** The same, for what makes no sense without. */
export async function neededStore(config: Pick<GatewayConfig<unknown>, 'file' | 'frame'>): Promise<Store> {
  const store = await storeIn(config)
  if (store !== undefined) return store
  throw new CliError(
    `${config.file} has no store that this command can read, or nothing is stored there yet`,
    'Add store: sqlite:PATH to the file (PATH is relative to the folder of the file), and start the gateway',
  )
}

/** A server of the file; a failure names those that there are. */
function serverNamed({ file, servers }: Pick<GatewayConfig<unknown>, 'file' | 'servers'>, name: string): FoundServer {
  const server = servers.get(name)
  if (server !== undefined) return server
  throw new CliError(`${file} has no server ${clip(name)}`, `Its servers are ${[...servers.keys()].join(', ')}`)
}

/** Options that change how a file is served. */
interface ServingOptions {
  readonly stdio?: boolean
  readonly port?: number
  readonly host?: string
  readonly unprotected?: boolean
}

/** The config with what keeps it from being served in this way among its faults. */
export function withServingFaults(config: GatewayConfig<TrustSettings>, options: ServingOptions): GatewayConfig<TrustSettings> {
  if (options.stdio === true) return config
  const { frame, trust, file, lines } = config
  const place = { ...frame.listen, ...(options.host !== undefined && { host: options.host }) }
  const fault = servingFault({ place, auth: trust.auth, unprotected: options.unprotected === true })
  if (fault === undefined) return config
  const { member, message, fix } = fault
  const line = lines.get(member) ?? 1
  return { ...config, faults: [...config.faults, { file, line, why: why('CONFIG_INVALID', `gateway.${member}`, message, fix) }] }
}

// How a definition differs from the one that was pinned: each place with what stood there and what stands there now.

/** Differences that a list shows. */
const mostLines = 40
/** Characters of one value that a list shows. */
const mostLength = 400

/** `whole`: however long it is. Otherwise only the beginning of what is long. */
export function changesIn({ before, tool }: Pick<StoredTool, 'before' | 'tool'>, whole = false): readonly string[] {
  const text = (value: unknown): string => shown(value, whole)
  if (before === undefined) return [`new: ${text(tool)}`]
  const lines = [...places('', before, tool)].map(([path, old, now]) => `${shownText(path)}: ${text(old)} → ${text(now)}`)
  return whole || lines.length <= mostLines ? lines : [...lines.slice(0, mostLines), `… and ${lines.length - mostLines} more`]
}

/** How many characters they have, where the list does not show all of them. */
export function cutIn(stored: Pick<StoredTool, 'before' | 'tool'>): number | undefined {
  const [whole, cut] = [changesIn(stored, true).join('\n'), changesIn(stored).join('\n')]
  return whole === cut ? undefined : whole.length
}

/** The places at which two values differ. */
function* places(path: string, old: unknown, now: unknown): Generator<readonly [path: string, old: unknown, now: unknown]> {
  if (JSON.stringify(old) === JSON.stringify(now)) return
  if (!isRecord(old) || !isRecord(now)) return yield [path, old, now]
  for (const name of new Set([...Object.keys(old), ...Object.keys(now)]))
    yield* places(path === '' ? name : `${path}.${name}`, old[name], now[name])
}

/** A value as JSON; only its beginning where that is enough. */
function shown(value: unknown, whole: boolean): string {
  const text = value === undefined ? 'nothing' : shownJson(value)
  return whole || text.length <= mostLength ? text : `${text.slice(0, mostLength - 1)}…`
}

/** Control and format characters, separators other than the space, and what stands for half a character. */
const unplain = /[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000\u115f\u1160\u3164\uffa0]/gu

/** A name or sentence, without quotation marks. */
export function shownText(text: string): string {
  return text.replace(unplain, jsonEscape)
}

/** A value, exactly as it was sent. */
export function shownJson(value: unknown): string {
  return shownText(JSON.stringify(value) ?? 'null')
}

// Servers of a gateway's file whose command or address is not the one that its store knows as right.

/** The file of a gateway. */
type Config = GatewayConfig<TrustSettings>

/** By name. Nothing is started for it, and nothing is kept. */
export async function heldLaunches(config: Config, known?: Launches): Promise<ReadonlyMap<string, WaitingLaunch>> {
  const found = new Map<string, WaitingLaunch>()
  if ((config.trust.pins ?? 'block') !== 'block') return found
  const look = async (launches: Launches): Promise<void> => {
    for (const [name, { target, disabled, file }] of config.servers) {
      // What stands in the gateway's own file is its operator's word.
      const held = disabled || file === config.file ? undefined : await launches.peek(name, target)
      if (held !== undefined) found.set(name, held)
    }
  }
  if (known === undefined) await within(config, look)
  else await look(known)
  return found
}

/** Asks in the terminal of the gateway about what its file changed, one question at a time. */
export function launchQuestions(io: Io): (launch: LaunchChange) => Promise<boolean> {
  const { aside } = printerOf(io)
  let last: Promise<unknown> = Promise.resolve()
  const ask = async ({ upstream, changes }: LaunchChange): Promise<boolean> => {
    aside.warn(`The file now starts ${shownText(upstream)} in another way:`)
    for (const change of changes) aside.line(`  ${shownText(change)}`)
    const reader = createInterface({ input: io.input, output: io.errors })
    try {
      return /^y(es)?$/i.test((await reader.question('  Approve? [y]es · [N]o › ', { signal: io.signal })).trim())
    } finally {
      reader.close()
    }
  }
  return launch => {
    const answer = last.then(() => ask(launch))
    last = answer.catch(() => {})
    return answer
  }
}

/** Takes the command or address that the file has now for the right one. */
export async function approveLaunch(config: Config, name: string, io: Io): Promise<number> {
  const { target } = serverNamed(config, name)
  const { line } = printerOf(io)
  const known = await within(config, async launches => {
    const held = await launches.peek(name, target)
    if (held === undefined) return line(`Nothing to approve: the entry of ${name} has not changed, or was never started`)
    for (const change of held.changes) line(`  ${change}`)
    await launches.take(name, target)
    line(`Approved: ${name} starts in this way from now on`)
  })
  if (known) return 0
  throw new CliError(
    `Nothing to approve: ${config.file} has no store, or nothing is stored there yet`,
    'Add store: sqlite:PATH to the file and start the gateway: it pins what it sees first',
  )
}

/** What is known of launches there. */
export function launchesOn(store: Store, { file, frame }: Pick<Config, 'file' | 'frame'>): Launches {
  return new Launches({
    store,
    mode: 'off',
    approveBy: upstream =>
      howToApproveLaunch({ config: file, ...(frame.store !== undefined && { store: frame.store }) }, upstream),
    held: () => {},
    changed: () => {},
    relaunch: () => {},
  })
}

/** False where there is no store to look into. */
async function within(config: Config, work: (launches: Launches) => Promise<void>): Promise<boolean> {
  const store = await storeIn(config)
  if (store === undefined) return false
  const launches = launchesOn(store, config)
  try {
    await work(launches)
    return true
  } finally {
    launches.close()
    await store.close()
  }
}

/** Signs in at a server with the browser, and keeps the tokens for the gateway. */
export async function signIn(config: GatewayConfig<unknown>, name: string, io: Io): Promise<number> {
  const server = serverNamed(config, name)
  const auth = server.auth === undefined ? undefined : authOf(server.auth)
  if (typeof server.target !== 'string' || auth?.signIn !== true)
    throw new CliError(`The entry of ${clip(name)} does not use a sign-in`, 'Add auth: sign-in to the entry')
  if (!io.interactive)
    throw new CliError('Signing in needs a terminal', 'Run the command in a terminal of the same user account', { exit: 3 })
  const authorization = await signInWith(auth, userStorage(io.env), cli())
  try {
    const { headers } = server
    const client = await connect(server.target, {
      auth: authorization,
      signal: io.signal,
      ...(headers !== undefined && { headers }),
    })
    await client.close()
  } catch (error) {
    throw explainServerError(error, { label: server.target })
  }
  printerOf(io).line(`Signed in at ${server.target}. The tokens are stored, encrypted, in ${userTokens(io.env)}`)
  return 0
}
