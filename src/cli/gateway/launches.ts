/** Servers of a gateway's file whose command or address is not the one that its store knows as right. */

import { createInterface } from 'node:readline/promises'
import { cli } from '../../auth/client/index.ts'
import { userStorage, userTokens } from '../../auth/client/user-storage.ts'
import { connect } from '../../client/index.ts'
import type { GatewayConfig, LaunchChange } from '../../gateway/index.ts'
import type { TrustSettings } from '../../gateway/trust/settings.ts'
import { authOf, signInWith } from '../../gateway/upstreams/auth.ts'
import { approveBy } from '../../gateway/upstreams/entry.ts'
import { clip } from '../../jsonrpc/limits.ts'
import { type HeldLaunch, Launches } from '../../policy/pins/launches.ts'
import type { Store } from '../../stores/store.ts'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { printerOf } from '../print.ts'
import { unreachable } from '../server-errors.ts'
import { shownText } from './approval-text.ts'
import { serverNamed, storeIn } from './config.ts'

type Config = GatewayConfig<TrustSettings>

/** By name. Nothing is started for it, and nothing is kept. */
export async function heldLaunches(config: Config, known?: Launches): Promise<ReadonlyMap<string, HeldLaunch>> {
  const found = new Map<string, HeldLaunch>()
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
    aside.line(aside.paint.warn(`The file starts ${shownText(upstream)} in another way than before:`))
    for (const change of changes) aside.line(`  ${shownText(change)}`)
    const reader = createInterface({ input: io.input, output: io.errors })
    try {
      return /^y(es)?$/i.test((await reader.question('  Start it so? [y]es · [N]o › ', { signal: io.signal })).trim())
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

export async function approveLaunch(config: Config, name: string, io: Io): Promise<number> {
  const { target } = serverNamed(config, name)
  const { line } = printerOf(io)
  const known = await within(config, async launches => {
    const held = await launches.peek(name, target)
    if (held === undefined) return line(`The entry of ${name} is the one that is known, or will be when it is first started`)
    for (const change of held.changes) line(`  ${change}`)
    await launches.take(name, target)
    line(`${name} may be started so from now on`)
  })
  if (known) return 0
  throw new CliError(
    1,
    `${config.file} keeps nothing that could be approved: it has no store, or nothing was kept there yet`,
    'Start the gateway: what it sees first is the right one. Add store: sqlite:PATH to keep that',
  )
}

/** What is known of launches there. */
export function launchesOn(store: Store, { file, frame }: Pick<Config, 'file' | 'frame'>): Launches {
  return new Launches({
    store,
    mode: 'off',
    approveBy: upstream => approveBy({ config: file, ...(frame.store !== undefined && { store: frame.store }) }, upstream),
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

export async function signIn(config: GatewayConfig<unknown>, name: string, io: Io): Promise<number> {
  const server = serverNamed(config, name)
  const auth = server.auth === undefined ? undefined : authOf(server.auth)
  if (typeof server.target !== 'string' || auth?.signIn !== true)
    throw new CliError(1, `The entry of ${clip(name)} does not say that somebody signs in for it`, 'Add to it: auth: sign-in')
  if (!io.interactive) throw new CliError(3, 'There is no terminal to sign in from', 'Run it in a terminal on the same account')
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
    throw unreachable(error, server.target)
  }
  printerOf(io).line(`Signed in at ${server.target}. The tokens are kept, encrypted, in ${userTokens(io.env)}`)
  return 0
}
